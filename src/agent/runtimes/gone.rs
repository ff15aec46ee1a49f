//! The records of runtimes that are gone: they say so, and wait for when the runtime comes back.
//!
//! A record is what tells this cluster from any other of the same name, so it is not deleted with the Kyma; only a person knows
//! whether the runtime comes back.

use tokio::time::Instant;

use super::task::Surroundings;
use crate::agent::clock;
use crate::agent::record::Record;
use crate::agent::target_task::retry_delay;
use crate::cluster::ClusterError;
use crate::fleet::RuntimeName;
use crate::model::api::{ConditionReason, HOME, ReleaseSource};
use crate::report::target_blocked;

/// Says it in the records of those that went while nobody looked. Called when it is known which runtimes there are; tries again
/// until it has succeeded.
pub(super) async fn say_who_is_gone(around: Surroundings) {
    let mut failures = 0;
    while let Err(error) = say_once(&around).await {
        tracing::warn!(%error, "failed to look for the records of runtimes that are gone");
        failures += 1;
        tokio::time::sleep_until(Instant::now() + retry_delay(failures)).await;
    }
}

async fn say_once(around: &Surroundings) -> Result<(), ClusterError> {
    let resource = std::sync::Arc::clone(&around.resource.borrow());
    let clusters = Record::clusters(&around.home, &around.namespace, &around.source).await?;
    for name in clusters.iter().filter(|name| *name != HOME) {
        // What no Kyma can be called is nothing that we have written.
        let Ok(name) = RuntimeName::new(name) else {
            continue;
        };
        if around.is_gone(&name) {
            write_gone(around, &name, &resource).await?;
        }
    }
    Ok(())
}

/// Says in the record of a runtime that it is gone; one that has no record needs none.
pub(super) async fn write_gone(
    around: &Surroundings,
    name: &RuntimeName,
    resource: &ReleaseSource,
) -> Result<(), ClusterError> {
    // Home's uid stands in for one that is not known; nothing is claimed with it.
    let cluster = (name.as_str(), around.home.uid());
    let mut record =
        Record::load_of(&around.home, &around.namespace, &around.source, cluster).await?;
    // It may have come back while the record was read: then it is its own task that writes.
    if record.created().is_none() || !around.is_gone(name) {
        return Ok(());
    }
    let message = format!(
        "there is no Kyma {}/{name} any more. What the cluster has stays there, and this record stays, so that everything goes on when \
         the Kyma comes back; if it does not: kubectl delete target --namespace {} {}",
        resource.spec.catalog.namespace,
        around.namespace,
        record.name()
    );
    let source = around.source.to_string();
    let gone = (ConditionReason::Gone, message.as_str());
    let mut status = target_blocked(record.status(), &source, gone, clock::now());
    status.found_cluster_uid = None;
    match record.write(status).await {
        // Somebody else knows better by now.
        Err(ClusterError::Conflict { .. } | ClusterError::NotFound { .. }) => Ok(()),
        written => written,
    }
}
