//! Finds runtimes: follows the Kymas of one namespace on home, and the kubeconfig Secrets beside them.
//!
//! Of a Secret only the metadata crosses the wire; its contents are read when a connection is made. What goes out is one value
//! that always holds the whole picture; until both lists were had once, it says that it is not complete, and nothing may be
//! concluded from what is missing in it.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::discovery::ApiResource;
use kube::runtime::{WatchStreamExt as _, watcher};
use tokio::sync::watch;

use super::access::{Access, AccessSecret};
use super::kyma::{Kyma, RuntimeName};
use crate::cluster::Cluster;
use crate::model::names::{ANNOTATION_NAMESPACE, KYMA_GROUP, KYMA_VERSION, LABEL_KYMA_NAME};

/// The runtimes of one namespace, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovered {
    /// The Kymas.
    pub kymas: BTreeMap<RuntimeName, Kyma>,
    /// What leads to them.
    pub access: Access,
    /// Whether Kymas and Secrets were listed; what is missing before that is unknown, not absent.
    pub listed: Listing,
}

/// What was listed at least once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Listing {
    kymas: bool,
    secrets: bool,
}

impl Listing {
    /// Returns whether the picture is complete.
    pub fn is_complete(self) -> bool {
        self.kymas && self.secrets
    }
}

/// Follows Kymas and Secrets for as long as it is polled, and hands on every change.
///
/// This needs the verbs list and watch on Kymas, and on Secrets in the namespace.
pub async fn discover(cluster: Cluster, namespace: String, found: watch::Sender<Discovered>) {
    let resource = ApiResource {
        group: KYMA_GROUP.to_owned(),
        version: KYMA_VERSION.to_owned(),
        api_version: format!("{KYMA_GROUP}/{KYMA_VERSION}"),
        kind: "Kyma".to_owned(),
        plural: "kymas".to_owned(),
    };
    let kymas: Api<DynamicObject> = Api::namespaced_with(cluster.client(), &namespace, &resource);
    let secrets: Api<PartialObjectMeta<Secret>> = Api::namespaced(cluster.client(), &namespace);
    let labelled = watcher::Config::default().labels(LABEL_KYMA_NAME);
    let mut kymas = std::pin::pin!(watcher(kymas, watcher::Config::default()).default_backoff());
    let mut secrets = std::pin::pin!(watcher(secrets, labelled).default_backoff());
    let mut relisted_kymas = BTreeMap::new();
    let mut relisted_access = Access::default();
    loop {
        tokio::select! {
            Some(event) = kymas.next() => kyma_event(event, &mut relisted_kymas, &found),
            Some(event) = secrets.next() => secret_event(event, &mut relisted_access, &found),
            else => return,
        }
    }
}

type Event<K> = Result<watcher::Event<K>, watcher::Error>;

fn kyma_event(
    event: Event<DynamicObject>,
    relisted: &mut BTreeMap<RuntimeName, Kyma>,
    found: &watch::Sender<Discovered>,
) {
    match event {
        Ok(watcher::Event::Init) => relisted.clear(),
        Ok(watcher::Event::InitApply(object)) => {
            relisted.extend(read(&object).map(|kyma| (kyma.name.clone(), kyma)));
        }
        Ok(watcher::Event::InitDone) => change(found, |found| {
            found.kymas = std::mem::take(relisted);
            found.listed.kymas = true;
        }),
        Ok(watcher::Event::Apply(object)) => change(found, |found| {
            found
                .kymas
                .extend(read(&object).map(|kyma| (kyma.name.clone(), kyma)));
        }),
        Ok(watcher::Event::Delete(object)) => change(found, |found| {
            if let Some(kyma) = read(&object) {
                found.kymas.remove(&kyma.name);
            }
        }),
        Err(error) => tracing::warn!(%error, "failed to watch Kymas"),
    }
}

fn secret_event(
    event: Event<PartialObjectMeta<Secret>>,
    relisted: &mut Access,
    found: &watch::Sender<Discovered>,
) {
    match event {
        Ok(watcher::Event::Init) => *relisted = Access::default(),
        Ok(watcher::Event::InitApply(secret)) => note(relisted, &secret),
        Ok(watcher::Event::InitDone) => change(found, |found| {
            found.access = std::mem::take(relisted);
            found.listed.secrets = true;
        }),
        Ok(watcher::Event::Apply(secret)) => {
            change(found, |found| note(&mut found.access, &secret));
        }
        Ok(watcher::Event::Delete(secret)) => change(found, |found| {
            found
                .access
                .remove(secret.metadata.name.as_deref().unwrap_or_default());
        }),
        Err(error) => tracing::warn!(%error, "failed to watch kubeconfig Secrets"),
    }
}

/// Hands on a change; a Kyma's heartbeat in its status is none.
fn change(found: &watch::Sender<Discovered>, change: impl FnOnce(&mut Discovered)) {
    found.send_if_modified(|found| {
        let before = found.clone();
        change(found);
        *found != before
    });
}

fn read(object: &DynamicObject) -> Option<Kyma> {
    let value = serde_json::to_value(object).ok()?;
    match Kyma::read(&value) {
        Ok(kyma) => Some(kyma),
        Err(error) => {
            tracing::error!(%error, "a Kyma is not followed");
            None
        }
    }
}

fn note(access: &mut Access, secret: &PartialObjectMeta<Secret>) {
    let metadata = &secret.metadata;
    let labels = metadata.labels.as_ref();
    let Some(kyma) = labels.and_then(|labels| labels.get(LABEL_KYMA_NAME)) else {
        return;
    };
    let annotations = metadata.annotations.as_ref();
    let namespace = annotations.and_then(|all| all.get(ANNOTATION_NAMESPACE));
    access.set(
        kyma.clone(),
        AccessSecret {
            name: metadata.name.clone().unwrap_or_default(),
            version: (
                metadata.uid.clone().unwrap_or_default(),
                metadata.resource_version.clone().unwrap_or_default(),
            ),
            namespace: namespace.cloned(),
        },
    );
}
