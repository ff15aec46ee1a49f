//! The kinds that Fairway itself keeps in the cluster: ReleaseSource and Target, with their conditions.
//!
//! The schemas hold only what works. What they refuse is refused by the API server, so that nothing here checks it again.

mod condition;
pub mod conditions;
mod crd;
mod decision;
mod release_source;
mod target;
#[cfg(test)]
mod tests;

pub use condition::{Condition, ConditionStatus, find, set, status_differs, unset};
pub use conditions::{ConditionReason, ConditionType, EventReason};
pub use crd::crds;
pub use decision::{Decision, DecisionKind};
pub use release_source::{
    CatalogSpec, GitReference, HeldItem, HistoryEntry, PruneSpec, ReleaseSource, ReleaseSourceSpec,
    ReleaseSourceStatus, SecretReference, VerifyMode, VerifySpec,
};
pub use target::{
    ApprovalRecord, HOME, PendingPrune, Target, TargetFields, TargetStatus, target_name,
};
