//! From a person's decision to a recorded approval, and what is left of one.

use std::collections::BTreeSet;

use super::outlets::Outlets;
use super::record::Record;
use crate::cluster::ClusterError;
use crate::model::api::{ApprovalRecord, Decision, DecisionKind, status_differs};
use crate::model::{SourceName, limits};
use crate::plan::Plan;
use crate::report::{DecisionAction, bounded};

/// Returns whether a decision approves deletions and was made after the last one that was acted on: each counts once, so that
/// one which is written a second time (by a restore, by a manifest that somebody has exported) approves nothing.
pub(super) fn is_new_approval(decision: &Decision, record: &Record) -> bool {
    let last = record.status().approval.as_ref().map(|last| last.at.0);
    decision.kind == DecisionKind::Prune && decision.is_later_than(last)
}

/// Writes down which deletions a decision allows on a cluster, before anything is done in its name. `whose` is the namespace, the
/// source and the cluster.
pub(super) async fn approve(
    outlets: &Outlets,
    whose: (&str, &SourceName, &str),
    record: &mut Record,
    (decision, plan): (&Decision, &Plan),
) -> Result<(), ClusterError> {
    let Some(pending) = &plan.pending else {
        return Ok(());
    };
    if !decision.approves(DecisionKind::Prune, &pending.digest) {
        return Ok(());
    }
    let fingerprints: BTreeSet<u64> = pending
        .deletions
        .iter()
        .take(limits::APPROVAL_OBJECTS_MAX)
        .map(crate::plan::Deletion::fingerprint)
        .collect();
    let mut status = record.status().clone();
    status.approval = Some(ApprovalRecord {
        digest: pending.digest.clone(),
        objects: ApprovalRecord::stored(&fingerprints),
        by: bounded(&decision.by, limits::DECISION_BY_MAX),
        reason: bounded(&decision.reason, limits::DECISION_REASON_MAX),
        at: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(decision.at),
    });
    if !status_differs(record.status(), &status) {
        return Ok(());
    }
    let count = [format!("{} deletions", pending.deletions.len())];
    outlets.decided(whose, DecisionAction::ApprovePrune, Some(decision), &count);
    record.write(status).await
}
