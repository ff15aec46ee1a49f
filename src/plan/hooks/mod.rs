//! Where migrations sit in a deploy: which hooks are due, what they freeze, and what may be committed.
//!
//! What comes in: what the target has committed ([`Committed`]) and how hooks stand ([`HookStates`]). What goes out: the hooks that are
//! wanted now ([`DueHook`]), those that a deploy comes by later and that are judged before its first change ([`AheadHook`]), holds in words,
//! and what is to be committed. The order is that of the design: global pre; for each
//! component pre, apply, healthy, post, commit; global post. While a hook that comes before something is not done, that
//! something is frozen: neither applied nor deleted. Nothing here waits, and drift alone makes no hook due: a hook belongs to a
//! deploy, and a deploy is a digest that differs from the committed one.

mod ahead;
mod deploy;
mod gate;
mod input;
mod once;
mod removal;
mod settled;
mod values;
mod words;

pub use ahead::AheadHook;
pub use deploy::committed_from;
pub(super) use gate::Gate;
pub use input::{
    BegunDeploy, Committed, CommittedComponent, CommittedGlobal, HookState, HookStates,
    MigrationInput, MigrationStand, Preflight, Stand, UndoState,
};
pub use once::{Loss, Once, OnceRun, OnceStand, Trust};
pub(super) use removal::{Removals, is_gone};
pub(super) use settled::settle;
pub use values::desired_values;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::model::migration::{
    DeployComponent, FailurePolicy, Hook, HookPhase, HookScope, Migration,
};

/// A hook that is wanted now: its migrations are judged, and those that are needed run.
#[derive(Debug, Clone, PartialEq)]
pub struct DueHook {
    /// The hook.
    pub hook: Hook,
    /// Its migrations, sorted by name.
    pub migrations: Vec<DueMigration>,
    /// The deploy that was committed before this one: the way from there to here is what happens once.
    pub previous: Option<crate::model::Digest>,
    /// What the deploy does with the component; none around the deploy as a whole.
    pub component: Option<DeployComponent>,
    /// The components that the deploy processes, for `deploy.components`.
    pub components: Vec<DeployComponent>,
    /// Whether migrations of it may begin now. One that had begun when something else came first goes on, and begins nothing new.
    pub may_begin: bool,
}

/// One migration of a hook.
#[derive(Debug, Clone, PartialEq)]
pub struct DueMigration {
    /// Its definition.
    pub migration: Arc<Migration>,
    /// What this revision would apply for each lookup that the definition names as `desired.NAME`. Secrets are redacted.
    pub desired: BTreeMap<String, Value>,
}

/// One migration that a deploy comes by, for people: what `fairway plan` lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlannedMigration {
    /// Where in the deploy.
    pub scope: HookScope,
    /// Before or after it.
    pub phase: HookPhase,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub owner: String,
    /// Where it stands.
    pub place: crate::model::Place,
}

impl DueMigration {
    /// Returns what a failure of this migration means in a hook.
    pub fn failure_policy(&self, hook: &Hook) -> FailurePolicy {
        failure_policy(&self.migration, hook)
    }
}

/// Returns what a failure of a migration means in a hook.
pub(super) fn failure_policy(migration: &Migration, hook: &Hook) -> FailurePolicy {
    let global_pre = hook.scope == HookScope::Global && hook.phase == HookPhase::Pre;
    match migration.spec.policy.on_failure {
        // There is no component that could be blocked alone.
        Some(FailurePolicy::BlockComponent) | None if global_pre => FailurePolicy::BlockDeploy,
        Some(policy) => policy,
        None => FailurePolicy::BlockComponent,
    }
}

/// What a plan says of migrations.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Gated {
    pub(super) due: Vec<DueHook>,
    pub(super) ahead: Vec<AheadHook>,
    pub(super) holds: Vec<crate::model::Hold>,
    pub(super) committed: Committed,
    pub(super) planned: Vec<PlannedMigration>,
}

#[cfg(test)]
mod ahead_tests;
#[cfg(test)]
mod laws;
#[cfg(test)]
pub(in crate::plan) mod testing;
#[cfg(test)]
mod tests;
