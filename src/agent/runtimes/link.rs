//! The connection to one runtime, made from its kubeconfig Secret, and everything that lives as long as it does.

use k8s_openapi::api::core::v1::Secret;

use crate::agent::bell::Bell;
use crate::agent::pass::Engine;
use crate::cluster::{AccessPolicy, Cluster, ClusterError, RemoteAccess};
use crate::fleet::{AccessSecret, RuntimeName};
use crate::model::ClusterUid;
use crate::model::api::{CatalogMode, ConditionReason};
use crate::model::names::{KUBECONFIG_KEY, RUNTIME_NAMESPACE};
use crate::observe::Observer;

/// A live connection.
pub(super) struct Link {
    /// The Secret that it was made from, and what for; another one needs another connection.
    pub(super) made_from: (AccessSecret, CatalogMode),
    pub(super) cluster: Cluster,
    pub(super) observer: Observer,
    pub(super) engine: Engine,
    /// Whether the runtime was made ready for its catalog.
    pub(super) prepared: bool,
}

/// Why a runtime cannot be worked on now: the reason of its condition, and a message with the way out.
#[derive(Debug)]
pub(super) struct Blocked {
    pub(super) reason: ConditionReason,
    pub(super) message: String,
    /// The cluster that was found in the place of the one that was known.
    pub(super) found: Option<ClusterUid>,
}

/// What a connection is made with.
#[derive(Clone, Copy)]
pub(super) struct LinkRequest<'a> {
    pub(super) home: &'a Cluster,
    /// The namespace of the agent's own resources.
    pub(super) agent: &'a str,
    /// The namespace of the Secret.
    pub(super) namespace: &'a str,
    pub(super) name: &'a RuntimeName,
    pub(super) secret: &'a AccessSecret,
    pub(super) mode: CatalogMode,
    pub(super) policy: AccessPolicy,
    /// Rung when something changes on the runtime.
    pub(super) bell: &'a Bell,
}

// === impl Link ===

impl Link {
    /// Connects: reads the Secret, refuses what a kubeconfig may not have, and asks the runtime who it is.
    pub(super) async fn make(request: LinkRequest<'_>) -> Result<Self, Blocked> {
        let access = read_access(&request).await?;
        let cluster = access
            .connect(None)
            .await
            .map_err(|error| Blocked::unreachable(&error))?;
        // Who may not write on home may not write on its runtimes.
        let cluster = request.home.share_claim(&cluster);
        // Accounts are home's; on a runtime its kubeconfig says who acts.
        let acting = cluster.acting_as_itself();
        let bell = request.bell.clone();
        let ring = move || bell.ring();
        let observer = match request.mode {
            CatalogMode::Sync => Observer::start_runtime(&acting, &request.name.label(), ring),
            CatalogMode::Observe | CatalogMode::Off => Observer::start_copies(&acting, ring),
        };
        Ok(Self {
            made_from: (request.secret.clone(), request.mode),
            engine: Engine::new(cluster.clone(), acting, observer.clone(), request.agent),
            cluster,
            observer,
            prepared: false,
        })
    }

    /// Returns the namespace of the catalog there.
    pub(super) fn namespace(&self) -> &str {
        let asked = self.made_from.0.namespace.as_deref();
        asked.unwrap_or(RUNTIME_NAMESPACE)
    }
}

async fn read_access(request: &LinkRequest<'_>) -> Result<RemoteAccess, Blocked> {
    let (namespace, name) = (request.namespace, request.secret.name.as_str());
    let refused = |message: String| Blocked {
        reason: ConditionReason::AccessRefused,
        message: format!("the Secret {namespace}/{name}: {message}"),
        found: None,
    };
    let secret = request.home.get::<Secret>(namespace, name).await;
    let secret = match secret {
        Ok(Some(secret)) => secret,
        Ok(None) => return Err(refused("it is gone".to_owned())),
        Err(error @ ClusterError::Forbidden { .. }) => {
            return Err(refused(format!(
                "{error}; allow the agent's ServiceAccount to `get` Secrets in {namespace}"
            )));
        }
        Err(error) => return Err(Blocked::unreachable(&error)),
    };
    let data = secret.data.unwrap_or_default();
    let Some(kubeconfig) = data.get(KUBECONFIG_KEY) else {
        return Err(refused(format!(
            "it has no key `{KUBECONFIG_KEY}`; put the kubeconfig there"
        )));
    };
    RemoteAccess::parse(&kubeconfig.0, request.policy).map_err(|error| refused(error.to_string()))
}

// === impl Blocked ===

impl Blocked {
    /// The runtime, or home, does not answer as it should; trying again may help.
    pub(super) fn unreachable(error: &ClusterError) -> Self {
        Self {
            reason: ConditionReason::Unreachable,
            message: error.to_string(),
            found: None,
        }
    }
}
