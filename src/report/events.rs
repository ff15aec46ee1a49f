//! Kubernetes Events about a source: what changed in a pass, never what merely still is.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

use super::pass::{Effect, EffectKind, PassReport};
use super::text::{bounded, counted, first_line, some_of, with_author};
use crate::cluster::{Cluster, ClusterError};
use crate::model::api::{
    ConditionReason, ConditionStatus, ConditionType, EventReason, HeldItem, ReleaseSourceStatus,
    TargetStatus, find,
};
use crate::model::limits::{EVENT_NOTE_MAX, EVENTS_PER_PASS_MAX};
use crate::plan::Why;

/// What one pass changed in the statuses.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The source's status before and after.
    pub source: (&'a ReleaseSourceStatus, &'a ReleaseSourceStatus),
    /// The target's status before and after.
    pub target: (&'a TargetStatus, &'a TargetStatus),
}

/// Something that is worth an Event.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// Whether somebody should look at it.
    pub warning: bool,
    /// The stable word.
    pub reason: EventReason,
    /// The verb, in one word.
    pub action: &'static str,
    /// What happened, for people.
    pub note: String,
    /// The object that it happened to, beside the source.
    pub related: Option<Box<ObjectReference>>,
}

/// Returns what is worth an Event.
pub fn notices(change: &Change<'_>, report: &PassReport<'_>) -> Vec<Notice> {
    let mut notices = Vec::new();
    notices.extend(fetch(change));
    notices.extend(applied(change, report));
    at_most(&mut notices, drift(report));
    at_most(&mut notices, holds(change));
    notices.extend(deletion_held(change));
    notices.extend(pruned(report));
    notices
}

pub(super) fn notice(
    warning: bool,
    reason: EventReason,
    action: &'static str,
    note: &str,
) -> Notice {
    Notice {
        warning,
        reason,
        action,
        note: bounded(note, EVENT_NOTE_MAX),
        related: None,
    }
}

/// Adds the first few notices, and one that counts the rest.
fn at_most(notices: &mut Vec<Notice>, found: Vec<Notice>) {
    let rest = found.len().saturating_sub(EVENTS_PER_PASS_MAX);
    let last = found
        .last()
        .map(|last| (last.warning, last.reason, last.action));
    notices.extend(found.into_iter().take(EVENTS_PER_PASS_MAX));
    if let Some((warning, reason, action)) = last
        && rest > 0
    {
        notices.push(notice(
            warning,
            reason,
            action,
            &format!("and {rest} more in this pass"),
        ));
    }
}

fn fetch(change: &Change<'_>) -> Option<Notice> {
    let fetched = |status: &ReleaseSourceStatus| {
        find(&status.conditions, ConditionType::Fetched).map(|condition| condition.status)
    };
    let (before, after) = (fetched(change.source.0), fetched(change.source.1));
    let condition = find(&change.source.1.conditions, ConditionType::Fetched)?;
    if condition.reason == ConditionReason::Rewound.as_str() {
        // The hold tells.
        return None;
    }
    let message = &condition.message;
    match (before, after?) {
        (Some(ConditionStatus::True) | None, ConditionStatus::False) => {
            Some(notice(true, EventReason::FetchFailed, "Fetch", message))
        }
        (Some(ConditionStatus::False), ConditionStatus::True) => {
            Some(notice(false, EventReason::FetchRecovered, "Fetch", message))
        }
        _ => None,
    }
}

fn applied(change: &Change<'_>, report: &PassReport<'_>) -> Option<Notice> {
    let (before, after) = change.source;
    if before.last_applied_revision == after.last_applied_revision {
        return None;
    }
    let revision = with_author(report.revision?, report.commit);
    let changed = after.history.first().map_or(0, |entry| entry.changed);
    let changed = counted(usize::try_from(changed).unwrap_or_default(), "change");
    let note = format!("applied {revision} with {changed}");
    Some(notice(false, EventReason::RevisionApplied, "Apply", &note))
}

fn drift(report: &PassReport<'_>) -> Vec<Notice> {
    report
        .changes()
        .filter_map(|effect| match &effect.why {
            Why::Drifted(fields) => {
                let fields = some_of(fields.len(), fields.iter().cloned());
                let note = format!("brought {} back to what git says: {fields}", effect.key);
                Some(Notice {
                    related: Some(Box::new(reference(effect))),
                    ..notice(false, EventReason::DriftCorrected, "Apply", &note)
                })
            }
            _ => None,
        })
        .collect()
}

fn reference(effect: &Effect) -> ObjectReference {
    ObjectReference {
        kind: Some(effect.key.kind.kind.clone()),
        namespace: effect.key.namespace.clone(),
        name: Some(effect.key.name.clone()),
        ..ObjectReference::default()
    }
}

fn holds(change: &Change<'_>) -> Vec<Notice> {
    let (before, after) = change.source;
    let known = |item: &HeldItem| {
        let same = |other: &HeldItem| other.what == item.what && other.reason == item.reason;
        before.holds.iter().any(same)
    };
    let appeared = after.holds.iter().filter(|item| !known(item));
    appeared
        .filter(|item| item.reason != crate::model::HoldReason::ApprovalNeeded.as_str())
        // It is on its way; what becomes of it is told when it stops.
        .filter(|item| item.reason != crate::model::HoldReason::MigrationPending.as_str())
        .map(|item| {
            let place = item.place.as_ref().map(|place| format!(" ({place})"));
            let place = place.unwrap_or_default();
            let message = first_line(&item.message);
            let note = format!("{}: {}{place}: {message}", item.reason, item.what);
            notice(true, EventReason::HoldAppeared, "Hold", &note)
        })
        .collect()
}

fn deletion_held(change: &Change<'_>) -> Option<Notice> {
    let (before, after) = change.target;
    let pending = after.pending_prune.as_ref()?;
    if before
        .pending_prune
        .as_ref()
        .is_some_and(|before| before.digest == pending.digest)
    {
        return None;
    }
    let count = usize::try_from(pending.count).unwrap_or_default();
    let note = format!(
        "{} held as {}: {}; {}",
        counted(count, "deletion"),
        pending.digest,
        pending.reasons.join(" "),
        some_of(count, pending.sample.iter().cloned())
    );
    Some(notice(true, EventReason::DeletionHeld, "Prune", &note))
}

fn pruned(report: &PassReport<'_>) -> Option<Notice> {
    let deleted: Vec<String> = report
        .changes()
        .filter(|effect| effect.kind == EffectKind::Delete)
        .map(|effect| effect.key.to_string())
        .collect();
    if deleted.is_empty() {
        return None;
    }
    let count = counted(deleted.len(), "object");
    let note = format!(
        "deleted {count}: {}",
        some_of(deleted.len(), deleted.into_iter())
    );
    Some(notice(false, EventReason::PruneDone, "Prune", &note))
}

/// Writes notices as Events.
///
/// kube's recorder folds events of the same reason within minutes into a series that keeps the first note. Each of ours is
/// written once, on a change, and its note is what people look for, so each is an object of its own.
#[derive(Clone)]
pub struct EventSink {
    cluster: Cluster,
    namespace: String,
    instance: String,
}

impl EventSink {
    /// Makes a sink that writes to a namespace, in the name of one process (the pod's name).
    pub fn new(
        cluster: Cluster,
        namespace: impl Into<String>,
        instance: impl Into<String>,
    ) -> Self {
        Self {
            cluster,
            namespace: namespace.into(),
            instance: instance.into(),
        }
    }

    /// Returns the same sink on another connection to the same cluster.
    #[must_use]
    pub fn under(&self, cluster: Cluster) -> Self {
        Self {
            cluster,
            ..self.clone()
        }
    }

    /// Writes the notices. An Event that cannot be written is logged and forgotten: nothing depends on it.
    pub async fn publish(&self, regarding: &ObjectReference, notices: &[Notice], now: Timestamp) {
        for (index, notice) in notices.iter().enumerate() {
            let event = notice.event(regarding, &self.instance, now, index);
            match self.cluster.create(&self.namespace, &event).await {
                Ok(_) => {}
                Err(error @ (ClusterError::Timeout { .. } | ClusterError::ClaimLost { .. })) => {
                    tracing::warn!(%error, "could not write events; the rest is left out");
                    return;
                }
                Err(error) => tracing::warn!(
                    %error,
                    event.reason = notice.reason.as_str(),
                    "could not write an event"
                ),
            }
        }
    }
}

impl Notice {
    /// Returns the Event; its name is unique by time and index.
    fn event(
        &self,
        regarding: &ObjectReference,
        instance: &str,
        now: Timestamp,
        index: usize,
    ) -> Event {
        let name = regarding.name.as_deref().unwrap_or("fairway");
        let at = now + Duration::from_nanos(index as u64);
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:x}", at.as_nanosecond())),
                namespace: regarding.namespace.clone(),
                ..ObjectMeta::default()
            },
            type_: Some(if self.warning { "Warning" } else { "Normal" }.to_owned()),
            reason: Some(self.reason.as_str().to_owned()),
            action: Some(self.action.to_owned()),
            note: Some(self.note.clone()),
            event_time: Some(MicroTime(now)),
            regarding: Some(regarding.clone()),
            related: self.related.as_deref().cloned(),
            reporting_controller: Some("fairway.dev/agent".to_owned()),
            reporting_instance: Some(instance.to_owned()),
            ..Event::default()
        }
    }
}
