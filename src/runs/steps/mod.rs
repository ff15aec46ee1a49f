//! What each kind of step does: one file for each. A step is attempted once; what comes of it is for the machine.
//!
//! Every kind keeps three promises. It sends nothing whose repetition could do harm: writes carry the uid and the
//! resourceVersion of what was seen, a Job its derived name, a request its key. It finds out by reading what became of a write
//! whose answer was lost. And it leaves in its outcome what it changed, never with a value out of a Secret.

mod apply;
mod builtin;
mod change;
mod compiled;
mod delete;
mod help;
mod http;
mod intent;
mod job;
mod patch;
mod rewrite;
mod wait;

pub use change::changed_since;
pub use intent::intend;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::effects::{EffectError, Effects};
use crate::expression::Bindings;
use crate::model::api::{Evidence, RunSpec, StepRecord};
use crate::model::migration::{PatchType, Step, StepAction};

/// Everything that one attempt of one step needs.
#[derive(Clone, Copy)]
pub struct StepContext<'a, E> {
    /// The way to the world.
    pub effects: &'a E,
    /// The name of the Run.
    pub run: &'a str,
    /// What it is of.
    pub spec: &'a RunSpec,
    /// The step.
    pub step: &'a Step,
    /// The element of `forEach`.
    pub item: Option<&'a Value>,
    /// What expressions may look at; read anew for this attempt.
    pub bindings: &'a Bindings,
    /// The objects that lookups found, whole: with uid, resourceVersion and, for a Secret, its values. Never for expressions.
    pub objects: &'a BTreeMap<String, Value>,
    /// The step's record, with the number of this attempt and the progress of those before.
    pub record: &'a StepRecord,
    /// The same for every attempt of this step: `RUN/STEP` or `RUN/STEP/ITEM`.
    pub idempotency_key: &'a str,
    /// Time for this attempt.
    pub deadline: Duration,
}

/// What came of one attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum StepResult {
    /// The step is done.
    Done(StepOutcome),
    /// Nothing failed, but the step is not over: look again after a while, or earlier when the cluster says so.
    Wait {
        /// What is waited for; stable.
        message: String,
        /// How long until the next look.
        after: Duration,
        /// What is needed to go on after a restart.
        progress: BTreeMap<String, Value>,
    },
    /// It failed, and may be tried again.
    Retry {
        /// What went wrong; stable.
        message: String,
        /// How long the other side wants to be left alone.
        after: Option<Duration>,
        /// Whether this counts as an attempt: a connection that broke before anything was sent does not, nor an evicted pod.
        counts: bool,
        /// What is needed to go on after a restart.
        progress: BTreeMap<String, Value>,
    },
    /// It failed for good.
    Fail {
        /// What went wrong; stable.
        message: String,
    },
    /// Nobody knows whether it took effect.
    Unknown {
        /// What happened; stable.
        message: String,
    },
}

/// What a step that is done leaves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepOutcome {
    /// `result` for the step's outputs.
    pub result: Value,
    /// The objects that were changed, with the values before and after that an undo is guarded by. No secrets.
    pub effect: Value,
    /// What was found.
    pub evidence: Vec<Evidence>,
    /// Whether anything was changed at all: false where the cluster was already as the step wants it.
    pub changed: bool,
}

/// Attempts a step once.
pub async fn attempt<E: Effects>(context: &StepContext<'_, E>) -> StepResult {
    keep_progress(context, attempt_once(context).await)
}

async fn attempt_once<E: Effects>(context: &StepContext<'_, E>) -> StepResult {
    let result = match &context.step.action {
        StepAction::Patch(step) => patch::attempt(context, step).await,
        StepAction::Apply(step) => apply::attempt(context, step).await,
        StepAction::Delete(step) => delete::attempt(context, step).await,
        StepAction::Wait(step) => wait::attempt(context, step).await,
        StepAction::Job(step) => job::attempt(context, step).await,
        StepAction::Http(step) => http::attempt(context, step).await,
        StepAction::Rewrite(step) => rewrite::attempt(context, step).await,
        StepAction::Builtin(step) => builtin::attempt(context, step).await,
        StepAction::Compiled(step) => compiled::attempt(context, step).await,
    };
    result.unwrap_or_else(std::convert::identity)
}

/// Goes on with a step that was found begun after a restart: its attempt may or may not have had its effect.
///
/// What was done is found by looking: an object that is as it should be, a Job by its name. Where a write would not be the same
/// if it were made twice (`http` without a key, a patch that is computed from what it changes), `when` is asked again; without
/// one the answer is [`StepResult::Unknown`].
pub async fn recover<E: Effects>(context: &StepContext<'_, E>) -> StepResult {
    let result = recover_once(context).await;
    keep_progress(context, result.unwrap_or_else(std::convert::identity))
}

async fn recover_once<E: Effects>(context: &StepContext<'_, E>) -> Result<StepResult, StepResult> {
    let judged = match &context.step.action {
        StepAction::Patch(_) | StepAction::Apply(_) | StepAction::Http(_) => {
            context.judge_when()?
        }
        _ => None,
    };
    match (&context.step.action, judged) {
        (_, Some((false, evidence))) => Ok(StepResult::Done(StepOutcome {
            evidence: vec![evidence],
            ..StepOutcome::default()
        })),
        (StepAction::Http(step), _) => http::recover(context, step).await,
        (StepAction::Patch(_) | StepAction::Apply(_), None) if !is_repeatable(context.step) => {
            Ok(StepResult::Unknown {
                message: "it may have been done before a restart, and what it writes is computed from what it changes; a `when` would tell"
                    .to_owned(),
            })
        }
        _ => Ok(attempt_once(context).await),
    }
}

/// Returns whether a step may be attempted again when nobody knows what became of an attempt: making it twice is the same as making
/// it once, or its `when` tells.
pub fn is_repeatable(step: &Step) -> bool {
    match &step.action {
        StepAction::Patch(patch) => {
            step.when.is_some()
                || (patch.form != PatchType::Json && !help::is_computed(step, &patch.body))
        }
        StepAction::Apply(apply) => {
            step.when.is_some() || !help::is_computed(step, &apply.manifest)
        }
        StepAction::Http(step) => http::is_repeatable(step),
        // What a program has done that nobody has heard of, only a person can find out.
        StepAction::Job(_) => false,
        StepAction::Delete(_)
        | StepAction::Wait(_)
        | StepAction::Rewrite(_)
        | StepAction::Builtin(_)
        | StepAction::Compiled(_) => true,
    }
}

/// Asks what a step has started, and what may still run, to stop: for a run that was cancelled. Only a Job can be asked; it goes on
/// with the next look at it.
///
/// # Errors
///
/// When it could not be asked; it can be tried again.
pub async fn stop<E: Effects>(
    effects: &E,
    step: &Step,
    record: &StepRecord,
) -> Result<(), EffectError> {
    match &step.action {
        StepAction::Job(_) => job::stop(effects, record).await,
        _ => Ok(()),
    }
}

/// A result that says nothing of its progress leaves it as it was.
fn keep_progress<E>(context: &StepContext<'_, E>, mut result: StepResult) -> StepResult {
    if let StepResult::Wait { progress, .. } | StepResult::Retry { progress, .. } = &mut result
        && progress.is_empty()
    {
        progress.clone_from(&context.record.progress);
    }
    result
}
