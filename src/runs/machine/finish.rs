//! How runs end, and how one begins anew.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Machine;
use super::commands::is_new;
use crate::model::api::{
    Run, RunCommand, RunPhase, RunStatus, StepRecord, StepState, TimelineEntry,
};
use crate::model::limits;

/// Why a run waits whose record was lost.
const RECORD_LOST: &str = "RecordLost";

/// Returns the status of a run whose record decides and was lost: nothing is done until a person has said whether it ever was.
/// `before` is what is left of it. What a person has said before the loss, also in the annotation (`wish`), says nothing about it.
pub fn lost_record(
    name: &str,
    why: &str,
    (before, wish): (&RunStatus, Option<RunCommand>),
    now: Timestamp,
) -> RunStatus {
    let mut commands = before.commands.clone();
    commands.extend(wish.filter(|wish| is_new(before, wish)));
    let mut timeline = before.timeline.clone();
    timeline.push(TimelineEntry {
        at: Time(now),
        what: format!("nothing of it goes on by itself: {why}"),
    });
    let surplus = timeline.len().saturating_sub(limits::RUN_TIMELINE_MAX);
    timeline.drain(..surplus);
    let mut status = RunStatus {
        phase: RunPhase::Manual,
        reason: RECORD_LOST.to_owned(),
        message: format!(
            "{why}\nlook, and say what you have seen: fairway run resolve {name} done|again|fail --reason '…'"
        ),
        since: Some(Time(now)),
        commands,
        timeline,
        ..RunStatus::default()
    };
    super::fit(&mut status);
    status
}

/// Returns whether a person is asked about a run as a whole, since its record was lost.
pub fn is_lost(status: &RunStatus) -> bool {
    status.phase == RunPhase::Manual && status.reason == RECORD_LOST
}

/// Returns whether a run may be superseded: it is not over, and no effect of it is under way.
pub fn can_be_superseded(run: &Run) -> bool {
    let status = run.status.clone().unwrap_or_default();
    let machine = Machine::new("", &run.spec, status, Timestamp::UNIX_EPOCH);
    let status = machine.status();
    !status.phase.is_over()
        && status.phase != RunPhase::Cancelling
        && !status.undoing
        && machine.in_flight().is_none()
        && !machine.decides()
}

/// Returns whether a run has effects that its `undo` could take back and has not: it is never trimmed then.
pub fn has_open_undo(run: &Run) -> bool {
    let Some(status) = &run.status else {
        return false;
    };
    // Of a step that is under way, or of which nobody knows, it may be so.
    let may_have = |record: &StepRecord| {
        matches!(
            record.state,
            StepState::Done | StepState::Running | StepState::Unknown
        ) || !record.effect.is_null()
            || !record.intended.is_null()
    };
    let has_effects = status.steps.iter().any(may_have);
    let is_undone = status.undoing && status.phase == RunPhase::Succeeded;
    !run.spec.definition.undo.is_empty() && has_effects && !is_undone
}

/// Returns the order in which runs of one component are taken back, by their positions: the last effect first. Of two that began within
/// the same second the one goes first that comes after the other by its phase, or by `after` of its definition.
pub fn undo_order(runs: &[&Run]) -> Vec<usize> {
    let began = |run: &Run| {
        let status = run.status.as_ref();
        let of_status = status.and_then(|it| it.started_at.as_ref()).map(|it| it.0);
        let created = run.metadata.creation_timestamp.as_ref().map(|it| it.0);
        of_status.or(created)
    };
    let mut left: Vec<usize> = (0..runs.len()).collect();
    left.sort_by_key(|index| {
        let run = runs[*index];
        (
            std::cmp::Reverse((began(run), run.spec.phase)),
            run.metadata.name.clone(),
        )
    });
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let mut chosen = 0;
        // A chain of `after` has no circle and is no longer than what is left.
        for _ in 0..left.len() {
            let run = runs[left[chosen]];
            let follows = |index: &usize| {
                let other = runs[*index];
                other.spec.deploy == run.spec.deploy
                    && other.spec.phase == run.spec.phase
                    && other.spec.definition.after.contains(&run.spec.migration)
            };
            match left.iter().position(follows) {
                Some(next) => chosen = next,
                None => break,
            }
        }
        order.push(left.remove(chosen));
    }
    order
}

// === impl Machine ===

impl Machine<'_> {
    /// Ends the run.
    pub(super) fn end(&mut self, phase: RunPhase, reason: &str, message: impl Into<String>) {
        self.enter(phase, reason, message);
        self.status.ended_at = Some(self.time());
        self.status.current_step = None;
    }

    /// Ends the run as failed, with the way out; one that is being cancelled ends as cancelled, once nothing is under way.
    pub(super) fn end_failed(&mut self, reason: &str, message: &str) {
        if self.status.phase == RunPhase::Cancelling {
            return;
        }
        let name = self.name;
        let message = format!("{message}; to try again: fairway run retry {name} --reason '…'");
        self.end(RunPhase::Failed, reason, message);
    }

    /// Ends a cancelled run. What has not ended within the grace stays as it is in the record, and the message says so.
    pub fn end_cancel(&mut self) {
        let done = self
            .records()
            .iter()
            .filter(|record| record.state == StepState::Done && record.item.is_none())
            .count();
        let left = self
            .in_flight()
            .map(|record| format!("; {} was still under way", super::steps::label(record)));
        let message = format!(
            "{}; {done} of {} steps were done{}",
            self.status.message,
            self.course().len(),
            left.unwrap_or_default()
        );
        self.note("cancelled");
        self.end(RunPhase::Cancelled, "Cancelled", message);
    }

    /// Returns whether what was done, or may have been, is known by the record alone: another run in its place would do it again.
    fn decides(&self) -> bool {
        let is_once = self.spec.definition.policy.run.is_once();
        is_once && (self.status.started_at.is_some() || is_lost(&self.status))
    }

    /// Ends a run that has had no effect yet, since another takes its place.
    ///
    /// # Errors
    ///
    /// When a step is under way, the run is over, or its record alone tells what it did: it ends as it began.
    pub fn supersede(&mut self, why: &str) -> Result<(), String> {
        if self.status.phase.is_over() {
            return Err(format!("run {} is over", self.name));
        }
        if self.status.undoing {
            return Err(format!("run {} is being taken back", self.name));
        }
        if let Some(record) = self.in_flight() {
            let step = super::steps::label(record);
            return Err(format!("{step} of run {} is under way", self.name));
        }
        if self.decides() {
            return Err(format!(
                "nothing but the record of run {} tells what it did",
                self.name
            ));
        }
        self.note(format!("superseded: {why}"));
        self.end(RunPhase::Superseded, "Superseded", why);
        Ok(())
    }

    /// Begins a run anew that has failed or was cancelled: steps that are done stay done, what has failed gets new attempts and new
    /// time, and the guard is asked first. Where every step was done and the guard still wants more, all of them begin anew.
    pub fn begin_round(&mut self) {
        let from_the_start = self.status.reason == "NotDone" || self.status.reason == "Resolved";
        let status = &mut self.status;
        status.rounds += 1;
        status.active_milliseconds = 0;
        status.open_proofs = 0;
        status.unknown_guards = 0;
        status.ended_at = None;
        let undoing = status.undoing;
        let records = if undoing {
            &mut status.undone
        } else {
            &mut status.steps
        };
        if from_the_start {
            // Names of Jobs come from run, step and attempt: attempts count on.
            for record in records.iter_mut() {
                record.state = StepState::Waiting;
                record.progress.clear();
            }
        }
        records.retain(|record| {
            record.state != StepState::Skipped && !(record.item.is_none() && record.attempts == 0)
        });
        for record in records.iter_mut() {
            // One that may be under way keeps its state: what became of it is found out first.
            if !matches!(record.state, StepState::Done | StepState::Running) {
                record.state = StepState::Waiting;
                record.retrying = true;
            }
            record.next_at = None;
            record.ended_at = record
                .ended_at
                .take()
                .filter(|_| record.state == StepState::Done);
            record.free_attempts = record.attempts;
            record.restarts = 0;
            record.failures = 0;
            record.attempt_milliseconds = 0;
        }
        let phase = if undoing {
            RunPhase::Running
        } else {
            RunPhase::Pending
        };
        self.enter(phase, "", "");
    }

    /// Begins to take back what the run has done.
    ///
    /// # Errors
    ///
    /// When it is not over, or there is nothing to take back.
    pub fn begin_undo(&mut self, why: &str) -> Result<(), String> {
        if self.spec.definition.undo.is_empty() {
            return Err(format!("migration {} has no `undo`", self.spec.migration));
        }
        if !self.status.phase.is_over() {
            return Err(format!("run {} is not over", self.name));
        }
        self.status.undoing = true;
        self.status.active_milliseconds = 0;
        self.status.unknown_guards = 0;
        self.status.open_proofs = 0;
        self.status.ended_at = None;
        self.note(format!("taking it back: {why}"));
        self.enter(RunPhase::Running, "Undoing", "");
        Ok(())
    }

    /// Ends a run whose effects were taken back, with what was left since somebody has changed it.
    pub fn end_undo(&mut self) {
        let left: Vec<String> = self
            .status
            .undone
            .iter()
            .filter(|record| record.state == StepState::Skipped && !record.message.is_empty())
            .map(|record| format!("{}: {}", super::steps::label(record), record.message))
            .take(limits::STEPS_MAX)
            .collect();
        self.note("taken back");
        self.end(RunPhase::Succeeded, "Undone", left.join("; "));
    }
}
