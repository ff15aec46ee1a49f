//! How runs end, and how one begins anew.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Machine;
use super::commands::is_new;
use crate::model::api::{Run, RunCommand, RunPhase, RunStatus, StepState, TimelineEntry};
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
        let or_else = if self.status.undoing {
            format!("; to leave the rest as it is: fairway run resolve {name} keep --reason '…'")
        } else {
            String::new()
        };
        let message =
            format!("{message}; to try again: fairway run retry {name} --reason '…'{or_else}");
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
}
