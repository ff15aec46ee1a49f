//! The step machine: from a run and what happened to the next status, and from a status to what is to be done next. Pure: no clock,
//! no chance, no cluster. Time comes in as the active time since it was asked last.
//!
//! What it guarantees, whatever order of events it is given: a step that is done is never begun again; attempts and active time
//! only add up, and a run that is out of either ends; after a cancel no step begins; there is no success without evidence; and what
//! nobody knows is never taken for done, nor for not done.

mod bounds;
mod commands;
mod finish;
mod guard;
mod items;
mod next;
mod resolve;
mod results;
mod steps;
mod time;
mod undo;

pub use bounds::{changed_objects, fit};
pub use commands::is_new;
pub use finish::{can_be_superseded, is_lost, lost_record};
pub use items::{find as find_element, kept as kept_element};
pub use next::{Next, Position};
pub use results::{Outputs, is_same_object};
pub use time::delay;
pub use undo::{has_open_undo, undo_order};

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::model::api::{RunPhase, RunSpec, RunStatus, StepRecord, TimelineEntry};
use crate::model::limits;
use crate::model::migration::Step;

/// One run at one moment.
#[derive(Debug)]
pub struct Machine<'a> {
    name: &'a str,
    spec: &'a RunSpec,
    status: RunStatus,
    /// Wall time, for the record alone.
    now: Timestamp,
}

// === impl Machine ===

impl<'a> Machine<'a> {
    /// Takes up a run. `now` is written down, and decides nothing but whether an override has ended.
    pub fn new(name: &'a str, spec: &'a RunSpec, status: RunStatus, now: Timestamp) -> Self {
        Self {
            name,
            spec,
            status,
            now,
        }
    }

    /// Returns the status as it is now.
    pub fn status(&self) -> &RunStatus {
        &self.status
    }

    /// Returns the status, cut to what a record may hold.
    pub fn into_status(self) -> RunStatus {
        let mut status = self.status;
        fit(&mut status);
        status
    }

    /// Counts active time.
    pub fn spend(&mut self, elapsed: Duration) {
        self.status.active_milliseconds = time::add(self.status.active_milliseconds, elapsed);
    }

    /// Returns how much of the whole run's time is left.
    pub fn time_left(&self) -> Duration {
        let spent = Duration::from_millis(self.status.active_milliseconds);
        self.spec.definition.policy.timeout.0.saturating_sub(spent)
    }

    /// Returns the steps that are being done: those of the migration, or those that take it back.
    pub fn course(&self) -> &'a [Step] {
        if self.status.undoing {
            &self.spec.definition.undo
        } else {
            &self.spec.definition.steps
        }
    }

    /// Returns the records of the steps that are being done.
    pub fn records(&self) -> &[StepRecord] {
        if self.status.undoing {
            &self.status.undone
        } else {
            &self.status.steps
        }
    }

    fn records_mut(&mut self) -> &mut Vec<StepRecord> {
        if self.status.undoing {
            &mut self.status.undone
        } else {
            &mut self.status.steps
        }
    }

    /// Returns a step by its position.
    pub fn step(&self, position: &Position) -> &'a Step {
        &self.course()[position.index]
    }

    /// Returns the record of a step, or of one element of it.
    pub fn record(&self, position: &Position) -> Option<&StepRecord> {
        let id = &self.step(position).id;
        self.records()
            .iter()
            .find(|record| record.id == *id && record.item == position.item)
    }

    /// Returns the record of a step, made where there is none.
    fn record_mut(&mut self, position: &Position) -> &mut StepRecord {
        let id = self.step(position).id.clone();
        let item = position.item.clone();
        let records = self.records_mut();
        let found = records
            .iter()
            .position(|record| record.id == id && record.item == item);
        let index = found.unwrap_or_else(|| {
            records.push(StepRecord {
                id,
                item,
                ..StepRecord::default()
            });
            records.len() - 1
        });
        &mut records[index]
    }

    fn time(&self) -> Time {
        Time(self.now)
    }

    /// Enters a phase; `since` moves only when the phase does, so that a status that says the same is the same.
    fn enter(&mut self, phase: RunPhase, reason: &str, message: impl Into<String>) {
        let status = &mut self.status;
        if status.phase != phase || status.since.is_none() {
            status.since = Some(Time(self.now));
        }
        status.phase = phase;
        reason.clone_into(&mut status.reason);
        status.message = bounds::cut(message.into(), bounds::MESSAGE_MAX);
        status.next_at = None;
    }

    /// Writes down that something happened; the oldest goes first.
    fn note(&mut self, what: impl Into<String>) {
        let at = self.time();
        let what = bounds::cut(what.into(), bounds::NOTE_MAX);
        let timeline = &mut self.status.timeline;
        if timeline.last().is_some_and(|last| last.what == what) {
            return;
        }
        timeline.push(TimelineEntry { at, what });
        let surplus = timeline.len().saturating_sub(limits::RUN_TIMELINE_MAX);
        timeline.drain(..surplus);
    }
}
