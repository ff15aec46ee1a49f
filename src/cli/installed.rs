//! Whether a cluster has what Fairway's records need: its namespace and its kinds.

use super::failure::Failure;
use crate::cluster::{Cluster, ClusterError, is_unserved};
use crate::model::api::Target;
use crate::model::{GroupKind, ObjectKey};

#[derive(Debug, thiserror::Error)]
#[error("fairway is not installed on this cluster: {missing}")]
struct NotInstalled {
    missing: String,
}

/// Refuses to go on where a record could not be written. What may not be looked at is taken to be there.
pub(super) async fn require_installed(cluster: &Cluster, namespace: &str) -> Result<(), Failure> {
    let key = ObjectKey::new(GroupKind::new("", "Namespace"), None, namespace);
    let has_namespace = match cluster.read_whole(&key, None).await {
        Ok(found) => found.is_some(),
        Err(ClusterError::Forbidden { .. }) => true,
        Err(error) => return Err(Failure::of(error)),
    };
    let is_served = match cluster.list::<Target>(namespace, "").await {
        Ok(_) | Err(ClusterError::Forbidden { .. }) => true,
        Err(ClusterError::NotFound { .. } | ClusterError::KindUnknown { .. }) => false,
        Err(error) => return Err(Failure::of(error)),
    };
    let no_namespace = format!("there is no namespace {namespace}");
    let no_kinds = "its kinds (Target, Run) are not served";
    let missing = match (has_namespace, is_served) {
        (true, true) => return Ok(()),
        (false, true) => no_namespace,
        (true, false) => no_kinds.to_owned(),
        (false, false) => format!("{no_namespace}, and {no_kinds}"),
    };
    Err(Failure::of(NotInstalled { missing }).help(format!(
        "fairway install --namespace {namespace} --image IMAGE; fairway check --pre says whether you may"
    )))
}

/// Makes a failure of a request for one of Fairway's own objects.
pub(super) fn failed(error: ClusterError) -> Failure {
    let is_missing = is_unserved(&error);
    let failure = Failure::of(error);
    if is_missing {
        failure.help("fairway install --image IMAGE; fairway check says what else is missing")
    } else {
        failure
    }
}
