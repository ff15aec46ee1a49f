//! Where a pass is reported to: the source's status, Events, metrics and audit lines.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource as _;
use serde_json::json;

use super::clock;
use crate::cluster::{Cluster, ClusterError, Patch};
use crate::model::SourceName;
use crate::model::api::{
    Decision, HOME, ReleaseSource, ReleaseSourceStatus, TargetStatus, status_differs,
};
use crate::model::names;
use crate::report::{AuditLog, Change, Effect, EventSink, Metrics, Origin, PassReport, notices};

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

/// A status before and after.
type Statuses<'a, S> = (&'a S, &'a S);

// === impl Outlets ===

impl Outlets {
    /// Writes the line of one effect.
    pub(super) fn audit(&self, origin: &Origin<'_>, effect: &Effect) {
        if let Err(error) = self.audit.record(origin, effect) {
            tracing::error!(%error, "failed to write audit lines");
        }
    }

    /// Writes the line of a decision that is acted on.
    pub(super) fn audit_decision(&self, source: &SourceName, decision: &Decision) {
        let line = self.audit.decided(source, HOME, decision, clock::now());
        if let Err(error) = line {
            tracing::error!(%error, "failed to write audit lines");
        }
    }

    /// Stores the status of a source, if it differs. Returns the resourceVersion that the source has then, where it was
    /// written.
    pub(super) async fn write_source(
        &self,
        resource: &ReleaseSource,
        before: &ReleaseSourceStatus,
        after: &ReleaseSourceStatus,
    ) -> Result<Option<String>, ClusterError> {
        if !status_differs(before, after) {
            return Ok(None);
        }
        let metadata = &resource.metadata;
        let name = metadata.name.as_deref().unwrap_or_default();
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let body = json!({
            "apiVersion": ReleaseSource::api_version(&()),
            "kind": ReleaseSource::kind(&()),
            "metadata": {"name": name, "uid": metadata.uid},
            "status": after,
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
