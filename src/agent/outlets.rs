//! Where a pass is reported to: the source's status, Events, metrics and audit lines.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource as _;
use serde_json::json;

use super::clock;
use crate::cluster::{Cluster, ClusterError, Patch};
use crate::model::api::{
    Decision, ReleaseSource, ReleaseSourceStatus, TargetStatus, status_differs,
};
use crate::model::{SourceName, names};
use crate::report::{
    AuditLog, Change, Decided, DecisionAction, Effect, EventSink, Metrics, Origin, PassReport,
    notices,
};

/// Everything that hears of a pass. Clones tell the same.
#[derive(Clone)]
pub struct Outlets {
    /// Writes statuses.
    pub cluster: Cluster,
    /// Writes Events.
    pub events: Arc<EventSink>,
    /// Writes audit lines.
    pub audit: Arc<AuditLog>,
    /// Counts.
    pub metrics: Arc<Metrics>,
}

/// Leaves `status.webhook` to the task that owns it.
fn without_webhook(status: &ReleaseSourceStatus) -> ReleaseSourceStatus {
    ReleaseSourceStatus {
        webhook: None,
        ..status.clone()
    }
}

/// A status before and after.
type Statuses<'a, S> = (&'a S, &'a S);

// === impl Outlets ===

impl Outlets {
    /// Returns the same outlets for as long as a claim holds: what writes to the cluster is refused with it.
    #[must_use]
    pub fn under(&self, cluster: Cluster) -> Self {
        Self {
            events: Arc::new(self.events.under(cluster.clone())),
            cluster,
            ..self.clone()
        }
    }

    /// Writes the line of one effect.
    pub(super) fn audit(&self, origin: &Origin<'_>, effect: &Effect) {
        if let Err(error) = self.audit.record(origin, effect) {
            tracing::error!(%error, "failed to write audit lines");
        }
    }

    /// Writes the line of one decision.
    pub(super) fn decided(
        &self,
        (namespace, source, cluster): (&str, &SourceName, &str),
        action: DecisionAction,
        decision: Option<&Decision>,
        details: &[String],
    ) {
        let decided = Decided {
            at: clock::now(),
            source,
            namespace,
            cluster,
            action,
            decision,
            details,
        };
        if let Err(error) = self.audit.decided(&decided) {
            tracing::error!(%error, "failed to write audit lines");
        }
    }

    /// Stores the status of a source, if it differs, over the one that is believed to be stored. Returns the resourceVersion that
    /// the source has then, where it was written.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Conflict`] when another status is stored by now: another replica has led in between.
    pub(super) async fn write_source(
        &self,
        resource: &ReleaseSource,
        before: &ReleaseSourceStatus,
        after: &ReleaseSourceStatus,
    ) -> Result<Option<String>, ClusterError> {
        let (before, after) = (without_webhook(before), without_webhook(after));
        if !status_differs(&before, &after) {
            return Ok(None);
        }
        let version = resource.metadata.resource_version.as_deref();
        let error = match self.patch_source(resource, version, &after).await {
            Err(error @ ClusterError::Conflict { .. }) => error,
            written => return written,
        };
        // Mostly a person has changed something beside the status, or the watch has not shown our own last write yet.
        let metadata = &resource.metadata;
        let name = metadata.name.as_deref().unwrap_or_default();
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let stored = self.cluster.get::<ReleaseSource>(namespace, name).await?;
        let same = stored.filter(|stored| {
            let status = without_webhook(&stored.status.clone().unwrap_or_default());
            stored.metadata.uid == metadata.uid && !status_differs(&status, &before)
        });
        let Some(stored) = same else {
            return Err(error);
        };
        let version = stored.metadata.resource_version.as_deref();
        self.patch_source(resource, version, &after).await
    }

    async fn patch_source(
        &self,
        resource: &ReleaseSource,
        version: Option<&str>,
        status: &ReleaseSourceStatus,
    ) -> Result<Option<String>, ClusterError> {
        let metadata = &resource.metadata;
        let name = metadata.name.as_deref().unwrap_or_default();
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let body = json!({
            "apiVersion": ReleaseSource::api_version(&()),
            "kind": ReleaseSource::kind(&()),
            "metadata": {"name": name, "uid": metadata.uid, "resourceVersion": version},
            "status": status,
        });
        let patch = (Patch::Apply, &body);
        let manager = names::MANAGER_STATUS;
        self.cluster
            .patch::<ReleaseSource>(namespace, name, Some("status"), manager, patch)
            .await
            .map(|written| written.metadata.resource_version)
    }

    /// Writes Events for what has changed, and counts.
    pub(super) async fn tell(
        &self,
        resource: &ReleaseSource,
        (source, target): (
            Statuses<'_, ReleaseSourceStatus>,
            Statuses<'_, TargetStatus>,
        ),
        report: &PassReport<'_>,
    ) {
        let change = Change { source, target };
        let notices = notices(&change, report);
        let regarding: ObjectReference = resource.object_ref(&());
        self.events
            .publish(&regarding, &notices, clock::now())
            .await;
        self.metrics.passed(report, source.0, source.1);
    }
}
