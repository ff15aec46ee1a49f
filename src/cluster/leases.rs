//! Requests on leases. They take no turn among other requests, since renewing must not wait for what the lease guards, they
//! carry no claim, since they are how one is had, and each is sent once: who keeps a lease counts from the moment of sending.

use futures::{Stream, StreamExt as _};
use http::Method;
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource as _};
use tokio::time::Duration;

use super::connection::{Cluster, JSON, Outgoing, Repeat};
use super::error::{ClusterError, Words};
use super::path::segment;
use crate::model::names;

impl Cluster {
    /// Reads a lease; none when it is not there.
    pub async fn read_lease(
        &self,
        namespace: &str,
        name: &str,
        deadline: Duration,
    ) -> Result<Option<Lease>, ClusterError> {
        let request = format!("read Lease {namespace}/{name}");
        let target = target(namespace, Some(name));
        match self
            .send_lease(Method::GET, target, Vec::new(), &request, deadline)
            .await
        {
            Ok(lease) => Ok(Some(lease)),
            Err(ClusterError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a lease that is not there.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Conflict`] when it is there by now.
    pub async fn create_lease(
        &self,
        lease: &Lease,
        deadline: Duration,
    ) -> Result<Lease, ClusterError> {
        let (namespace, name) = place(lease);
        let request = format!("create Lease {namespace}/{name}");
        let target = format!(
            "{}?fieldManager={}",
            target(namespace, None),
            names::MANAGER_LEASE
        );
        self.send_lease(Method::POST, target, body(lease)?, &request, deadline)
            .await
    }

    /// Replaces a lease if it still has the resourceVersion that it was read with.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Conflict`] when somebody has written in between, and [`ClusterError::NotFound`] when it is gone.
    pub async fn replace_lease(
        &self,
        lease: &Lease,
        deadline: Duration,
    ) -> Result<Lease, ClusterError> {
        let (namespace, name) = place(lease);
        let request = format!("renew Lease {namespace}/{name}");
        let target = format!(
            "{}?fieldManager={}",
            target(namespace, Some(name)),
            names::MANAGER_LEASE
        );
        self.send_lease(Method::PUT, target, body(lease)?, &request, deadline)
            .await
    }

    /// Watches one lease; none is told when it is not there. Errors are told and tried again by the stream itself.
    pub fn watch_lease(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Stream<Item = Result<Option<Lease>, watcher::Error>> + Send + use<> {
        let api: Api<Lease> = Api::namespaced(self.client(), namespace);
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let events = watcher(api, config).default_backoff();
        events
            .scan(false, |there, event| {
                let seen = match event {
                    Ok(watcher::Event::Init) => {
                        *there = false;
                        None
                    }
                    Ok(watcher::Event::InitApply(lease) | watcher::Event::Apply(lease)) => {
                        *there = true;
                        Some(Ok(Some(lease)))
                    }
                    Ok(watcher::Event::InitDone) => (!*there).then_some(Ok(None)),
                    Ok(watcher::Event::Delete(_)) => Some(Ok(None)),
                    Err(error) => Some(Err(error)),
                };
                std::future::ready(Some(seen))
            })
            .filter_map(std::future::ready)
    }

    async fn send_lease(
        &self,
        method: Method,
        target: String,
        body: Vec<u8>,
        request: &str,
        deadline: Duration,
    ) -> Result<Lease, ClusterError> {
        let words = Words {
            request,
            secret: false,
        };
        let outgoing = Outgoing {
            method,
            target,
            accept: JSON,
            content_type: JSON,
            body,
            words,
            deadline,
            repeat: Repeat::Never,
        };
        self.send_out_of_turn(outgoing).await?.json(words)
    }
}

fn target(namespace: &str, name: Option<&str>) -> String {
    let collection = Lease::url_path(&(), Some(&segment(namespace)));
    match name {
        Some(name) => format!("{collection}/{}", segment(name)),
        None => collection,
    }
}

fn place(lease: &Lease) -> (&str, &str) {
    let metadata = &lease.metadata;
    (
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

fn body(lease: &Lease) -> Result<Vec<u8>, ClusterError> {
    serde_json::to_vec(lease).map_err(|error| ClusterError::Invalid {
        request: "write a Lease".to_owned(),
        message: error.to_string(),
    })
}
