//! What a run means to who looks at it, in words: what it waits for, what it holds back, how long it took.

use std::time::Duration;

use jiff::Timestamp;

use super::find::Known;
use super::paste::phase_of;
use crate::cli::get::{age, moment};
use crate::model::api::{Run, RunPhase, RunStatus, StepRecord, StepState};
use crate::model::migration::{DeployAction, FailurePolicy, HookPhase, Span};

/// Says what a run waits for, or why it ended as it did.
pub(super) fn waits_for(run: &Run) -> String {
    let status = status_of(run);
    if !status.message.is_empty() {
        return status.message;
    }
    let current = status.current_step.as_deref();
    let record = status
        .steps
        .iter()
        .rfind(|record| Some(record.id.as_str()) == current);
    if let Some(record) = record.filter(|record| !record.message.is_empty()) {
        return format!("step {}: {}", step_name(record), record.message);
    }
    let step = current.map(|step| format!(" {step}")).unwrap_or_default();
    match status.phase {
        RunPhase::Pending => "its turn: nothing was done yet".to_owned(),
        RunPhase::Running => format!("step{step} is being done"),
        RunPhase::Waiting => format!("step{step} goes on by itself"),
        RunPhase::Blocked => {
            "a precondition is false; it goes on by itself once that is true".to_owned()
        }
        RunPhase::Paused => "a person has paused it, and a person must resume it".to_owned(),
        RunPhase::Manual => {
            format!("a person must look at step{step}: nobody knows whether it took effect")
        }
        RunPhase::Cancelling => "a person has cancelled it; what is under way may end".to_owned(),
        RunPhase::Succeeded => "nothing: the guard proved that the work is done".to_owned(),
        RunPhase::Failed => "a person: it ended without success".to_owned(),
        RunPhase::Cancelled => "a person: it was cancelled".to_owned(),
        RunPhase::Superseded => "nothing: another run took its place".to_owned(),
    }
}

/// Says what of the deploy a run holds back.
pub(super) fn holds_back(run: &Run, known: &Known) -> String {
    let (spec, phase) = (&run.spec, phase_of(run));
    let policy = &spec.definition.policy;
    let whole = format!("the whole deploy of {} on {}", spec.source, spec.cluster);
    let deploy_too = policy.on_failure == Some(FailurePolicy::BlockDeploy);
    let status = status_of(run);
    match phase {
        RunPhase::Succeeded | RunPhase::Superseded => return "nothing".to_owned(),
        _ if status.is_undo_given_up() => return "nothing".to_owned(),
        _ if status.undoing => {
            let component = spec.component.as_deref().unwrap_or_default();
            return format!("the deletion of what is left of {component}");
        }
        RunPhase::Failed | RunPhase::Cancelled if !known.is_last(run) => {
            return "nothing any more: a later run of this migration took its place".to_owned();
        }
        RunPhase::Failed | RunPhase::Cancelled
            if policy.on_failure == Some(FailurePolicy::Warn) =>
        {
            return "nothing: its failure is reported, and the deploy goes on".to_owned();
        }
        _ => {}
    }
    match (&spec.component, spec.phase) {
        (None, HookPhase::Pre) => format!("{whole}: nothing is applied or deleted"),
        (None, HookPhase::Post) => format!("the end of {whole}; everything is applied"),
        (Some(_), _) if deploy_too && phase.is_over() => {
            format!("{whole}: nothing more is applied")
        }
        (Some(component), HookPhase::Pre) => {
            format!("{component}{}: nothing of it is applied", hop(run))
        }
        (Some(component), HookPhase::Post) => format!(
            "the end of {component}{}: it is applied, and counts as deployed once this is done",
            hop(run)
        ),
    }
}

/// Says what the deploy does, such as ` 1.23.0 → 1.24.0`.
pub(super) fn hop(run: &Run) -> String {
    match (&run.spec.from, &run.spec.to) {
        (Some(from), Some(to)) if from == to => format!(" {to}"),
        (Some(from), Some(to)) => format!(" {from} → {to}"),
        (None, Some(to)) => format!(" {to}"),
        (Some(from), None) => format!(" {from} →"),
        (None, None) => String::new(),
    }
}

/// Says when a migration runs, such as `before the upgrade of components/logging 1.23.0 → 1.24.0`.
pub(super) fn when(run: &Run) -> String {
    let side = match run.spec.phase {
        HookPhase::Pre => "before",
        HookPhase::Post => "after",
    };
    let action = match run.spec.action {
        Some(DeployAction::Install) => "the installation",
        Some(DeployAction::Upgrade) => "the upgrade",
        None => "the deploy",
    };
    match &run.spec.component {
        Some(component) => format!("{side} {action} of {component}{}", hop(run)),
        None => format!("{side} the whole deploy"),
    }
}

/// Says since when, as `12m (2026-11-22T04:10:00Z)`.
pub(super) fn since(at: Timestamp) -> String {
    format!("{} ({})", age(at), moment(at))
}

/// Returns since when a run is as it is: in its phase, or in the world.
pub(super) fn since_of(run: &Run) -> Option<Timestamp> {
    let since = run.status.as_ref().and_then(|status| status.since.as_ref());
    since
        .or(run.metadata.creation_timestamp.as_ref())
        .map(|time| time.0)
}

/// Writes active time as durations are written in definitions; what takes longer than a second, without its milliseconds.
pub(super) fn took(milliseconds: u64) -> String {
    let shown = if milliseconds < 1_000 {
        milliseconds
    } else {
        milliseconds / 1_000 * 1_000
    };
    Span(Duration::from_millis(shown)).to_string()
}

/// Says how a step stands, with attempts and time: `Waiting, attempt 2 of 5, 12s`.
pub(super) fn step_state(run: &Run, record: &StepRecord) -> String {
    let definition = &run.spec.definition;
    let step = definition
        .steps
        .iter()
        .chain(&definition.undo)
        .find(|step| step.id == record.id);
    let retry = step
        .and_then(|step| step.retry.as_ref())
        .unwrap_or(&definition.policy.retry);
    let attempts = match record.state {
        StepState::Skipped => String::new(),
        StepState::Running | StepState::Waiting => {
            format!(
                ", attempt {} of {}",
                record.attempts.saturating_sub(record.free_attempts).max(1),
                retry.max_attempts
            )
        }
        _ if record.attempts == 1 => ", 1 attempt".to_owned(),
        _ => format!(", {} attempts", record.attempts),
    };
    let time = match record.active_milliseconds {
        0 => String::new(),
        milliseconds => format!(", {}", took(milliseconds)),
    };
    format!("{:?}{attempts}{time}", record.state)
}

/// Names a step, with the element of `forEach`.
pub(super) fn step_name(record: &StepRecord) -> String {
    match &record.item {
        Some(item) => format!("{} {item}", record.id),
        None => record.id.clone(),
    }
}

pub(super) fn status_of(run: &Run) -> RunStatus {
    run.status.clone().unwrap_or_default()
}
