//! What planning is told about migrations: what was committed, and how hooks stand.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::model::migration::{DeployAction, DeployComponent, Hook};
use crate::model::{ComponentName, Digest};

/// What planning is told about migrations.
#[derive(Debug, Clone, Copy)]
pub struct MigrationInput<'a> {
    /// What the target has committed.
    pub committed: &'a Committed,
    /// How hooks stand; none where nobody judges them, as in `fairway plan`: the plan then shows what would be done if each hook
    /// ended well, and must not be carried out.
    pub states: Option<&'a HookStates>,
}

/// What a target has committed, from its record. Components without migrations are not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Committed {
    /// The components that have migrations.
    pub components: BTreeMap<ComponentName, CommittedComponent>,
    /// The deploy as a whole.
    pub global: CommittedGlobal,
}

/// What was committed of one component.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommittedComponent {
    /// The digest of the deploy that was committed last; none before the first.
    pub digest: Option<Digest>,
    /// Its version, where it had one.
    pub version: Option<String>,
    /// A deploy whose first object is about to be applied, or was.
    pub begun: Option<BegunDeploy>,
}

/// A deploy of a component between its pre and its post migrations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BegunDeploy {
    /// Its digest.
    pub digest: Digest,
    /// What it does: once its first object is there, nobody could tell any more.
    pub action: DeployAction,
}

/// What was committed of deploys as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommittedGlobal {
    /// The deploy whose global pre migrations are done.
    pub pre: Option<Digest>,
    /// The deploy whose global post migrations are done.
    pub post: Option<Digest>,
    /// What deploy `pre` does: once its first object is there, nobody could tell any more.
    pub action: Option<DeployAction>,
    /// What deploy `pre` does with each component, until its post migrations are done.
    pub components: Vec<DeployComponent>,
}

/// How the hooks stand that were begun; one that is not in it was not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookStates(pub BTreeMap<Hook, HookState>);

/// How one hook stands. Migrations that had nothing to do, are left out, or have ended well are not in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookState {
    /// Migrations that have not ended, sorted by name.
    pub open: Vec<MigrationStand>,
    /// Migrations that have ended without success, sorted by name.
    pub failed: Vec<MigrationStand>,
}

/// How one migration of a hook stands.
#[derive(Debug, Clone, PartialEq)]
pub struct MigrationStand {
    /// Its name.
    pub migration: String,
    /// Its Run, where there is one.
    pub run: Option<String>,
    /// How it stands.
    pub stand: Stand,
    /// What it waits for or what went wrong; stable.
    pub message: String,
    /// Since when, where that is known.
    pub since: Option<Timestamp>,
}

/// How a migration stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stand {
    /// Its guard is being judged, or it waits for others of its hook.
    Judging,
    /// It runs, or waits for the cluster.
    Running,
    /// A precondition is false, or something that it needs is not known: it is looked at again.
    Blocked,
    /// A person has paused it.
    Paused,
    /// A person must look: nobody knows whether a step took effect.
    Manual,
    /// It has failed.
    Failed,
    /// A person has cancelled it.
    Cancelled,
}

// === impl HookStates ===

impl HookStates {
    /// Returns how a hook stands; none where it was not begun.
    pub fn get(&self, hook: &Hook) -> Option<&HookState> {
        self.0.get(hook)
    }
}
