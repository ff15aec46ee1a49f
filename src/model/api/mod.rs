//! The kinds that Fairway itself keeps in the cluster: ReleaseSource, Target and Run, with their conditions.
//!
//! The schemas hold only what works. What they refuse is refused by the API server, so that nothing here checks it again.

mod condition;
pub mod conditions;
mod crd;
mod decision;
mod release_source;
mod run;
mod run_verbs;
mod source_account;
mod target;
#[cfg(test)]
mod tests;
mod webhook;

pub use condition::{Condition, ConditionStatus, find, set, status_differs, unset};
pub use conditions::{ConditionReason, ConditionType, EventReason};
pub use crd::crds;
pub use decision::{Decision, DecisionError, DecisionKind};
pub use release_source::{
    CatalogMode, CatalogSpec, DeletionPolicy, GitReference, HeldItem, HistoryEntry, HistorySpec,
    PruneSpec, ReleaseSource, ReleaseSourceSpec, ReleaseSourceStatus, RuntimesSpec, RuntimesStatus,
    SecretReference, VerifyMode, VerifySpec,
};
pub use run::{
    Evidence, Resolution, Run, RunCommand, RunPhase, RunSpec, RunStatus, RunVerb, StepRecord,
    StepState, TimelineEntry,
};
pub use run_verbs::UNDO_GIVEN_UP;
pub use target::{
    ApprovalRecord, Claim, CommittedRecord, CreatedJob, DeployRecord, HOME, LeftOut, OnceRunRecord,
    PendingPrune, Target, TargetFields, TargetStatus, target_name,
};
pub use webhook::{MissedChange, WebhookDelivery, WebhookProvider, WebhookSpec, WebhookStatus};
