//! From a person's decision to a recorded approval, and what is left of one.

use std::collections::BTreeSet;

use super::outlets::Outlets;
use super::record::Record;
use crate::cluster::ClusterError;
use crate::model::api::{ApprovalRecord, Decision, DecisionKind};
use crate::model::limits;
use crate::plan::Plan;
use crate::report::bounded;

/// Returns whether a decision approves deletions and was made after the last one that was acted on: each counts once, so that
/// one which is written a second time (by a restore, by a manifest that somebody has exported) approves nothing.
pub(super) fn is_new_approval(decision: &Decision, record: &Record) -> bool {
    let last = record.status().approval.as_ref().map(|last| last.at.0);
    decision.kind == DecisionKind::Prune && decision.is_later_than(last)
}

/// Writes down what a decision allows, before anything is done in its name.
pub(super) async fn approve(
    record: &mut Record,
    decision: &Decision,
    plan: &Plan,
    outlets: &Outlets,
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
    record.write(status).await?;
    outlets.audit_decision(&plan.source, decision);
    Ok(())
}
