//! What planning is told about migrations: what was committed, and how hooks stand.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::model::migration::{DeployAction, DeployComponent, Hook};
use crate::model::{ComponentName, Digest};

use super::once::{Once, OnceRun};

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
    /// Components that said `onRemove: Undo` when git had them last: what their migrations have changed is taken back before
    /// their objects go. One that is gone stays here until nothing is left to take back.
    pub undo_on_remove: BTreeSet<ComponentName>,
    /// Runs that happen once.
    pub once: Once,
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

/// How hooks stand.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookStates {
    /// Those that were begun; one that is not in it was not.
    pub begun: BTreeMap<Hook, HookState>,
    /// The runs that happen once, as their records stand; none where it is not known which there are.
    pub once: Option<Vec<OnceRun>>,
    /// What preflight says of those that were not; one that is in neither was not looked at.
    pub preflight: BTreeMap<Hook, Preflight>,
    /// What of components could be taken back, or is; a component that is not in it has nothing. None while it is not known
    /// which Runs there are.
    pub undo: Option<BTreeMap<ComponentName, UndoState>>,
}

/// What of the changes that the migrations of a component have made could be taken back, or is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UndoState {
    /// Runs that have changed something that could be taken back, those included of which that was begun.
    pub open: usize,
    /// A run that is not over, and that nobody takes back yet.
    pub running: Option<MigrationStand>,
    /// The run that is being taken back, or of which that has ended without success.
    pub undoing: Option<MigrationStand>,
}

/// What is known of a hook before anything of its deploy is changed.
#[derive(Debug, Clone, PartialEq)]
pub enum Preflight {
    /// It is judged; what that waits for is empty where there is nothing to say.
    Judging(String),
    /// It was.
    Judged {
        /// The migrations that must not begin as things are, sorted by name.
        findings: Vec<MigrationStand>,
        /// Whether none of its migrations has anything to do, which need not be asked again if the hook comes now.
        is_clear: bool,
    },
}

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
    /// A person must look: its record was lost, and nobody knows whether it ever ran.
    Lost,
    /// It has failed.
    Failed,
    /// A person has cancelled it.
    Cancelled,
}

// === impl HookStates ===

impl HookStates {
    /// Returns how a hook stands; none where it was not begun.
    pub fn get(&self, hook: &Hook) -> Option<&HookState> {
        self.begun.get(hook)
    }

    /// Returns whether a hook that comes now has nothing to do.
    pub(in crate::plan) fn is_clear(&self, hook: &Hook) -> bool {
        matches!(
            self.preflight.get(hook),
            Some(Preflight::Judged { is_clear: true, .. })
        )
    }
}

// === impl UndoState ===

impl UndoState {
    /// Returns whether nothing is left to take back.
    pub fn is_done(&self) -> bool {
        self.open == 0 && self.running.is_none() && self.undoing.is_none()
    }

    /// Returns whether a run is being taken back at this moment, or waits for a person in the middle of that.
    pub fn is_under_way(&self) -> bool {
        let ended = [Stand::Failed, Stand::Cancelled];
        let mut undoing = self.undoing.iter();
        undoing.any(|it| !ended.contains(&it.stand))
    }
}
