//! What came of a plan.

use crate::model::{ComponentName, ObjectKey};
use crate::plan::Why;

/// What came of one action.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The object.
    pub key: ObjectKey,
    /// The component that it belongs to.
    pub component: ComponentName,
    /// The digest that was applied; none for a deletion.
    pub digest: Option<String>,
    /// Why the action was taken.
    pub why: Why,
    /// How it ended.
    pub result: EffectResult,
}

/// How one action ended.
#[derive(Debug, Clone, PartialEq)]
pub enum EffectResult {
    /// The object was created or changed.
    Applied,
    /// The server answered that nothing had to change.
    Unchanged,
    /// The object was deleted, or its deletion has begun.
    Deleted,
    /// It was gone already, or somebody had replaced it; nothing was deleted.
    AlreadyGone,
    /// Not tried, since this object had to come first and did not.
    Skipped(ObjectKey),
    /// Not tried, since the process is stopping.
    Stopped,
    /// Tried, and refused or not answered.
    Failed(Failure),
}

/// Why an action failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure, as far as planning must know.
    pub kind: FailureKind,
    /// What the server said, as a lowercase fragment; for a Secret only the reason.
    pub message: String,
}

/// Kinds of failure that planning treats in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// A field cannot be changed in place; trying again is of no use.
    Immutable,
    /// The server refuses the object as it is; trying again is of little use until it or the cluster changes.
    Refused,
    /// It may work later.
    Transient,
}

/// What came of a whole plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// One for each action of the plan, in the order in which they ended.
    pub effects: Vec<Effect>,
    /// Whether the rest was left for later because the cluster had stopped answering.
    pub gave_up: bool,
}

impl Outcome {
    /// Counts the effects with a result that the predicate takes.
    pub fn count(&self, predicate: impl Fn(&EffectResult) -> bool) -> usize {
        self.effects
            .iter()
            .filter(|effect| predicate(&effect.result))
            .count()
    }

    /// Returns the failures with their objects.
    pub fn failures(&self) -> impl Iterator<Item = (&Effect, &Failure)> {
        self.effects
            .iter()
            .filter_map(|effect| match &effect.result {
                EffectResult::Failed(failure) => Some((effect, failure)),
                _ => None,
            })
    }

    /// Returns whether every action was done.
    pub fn is_complete(&self) -> bool {
        self.effects.iter().all(|effect| {
            matches!(
                effect.result,
                EffectResult::Applied
                    | EffectResult::Unchanged
                    | EffectResult::Deleted
                    | EffectResult::AlreadyGone
            )
        })
    }
}
