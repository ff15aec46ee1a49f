//! What is to be done next.

use super::{Machine, items};
use crate::model::api::{RunPhase, StepRecord, StepState};
use crate::model::migration::StepAction;

/// A step, or one element of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Its place in the list of steps.
    pub index: usize,
    /// The element of `forEach`, by its key.
    pub item: Option<String>,
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Ask the guard.
    Judge,
    /// Begin this step, or go on with it; its record says whether it is due.
    Step(Position),
    /// Find out what became of this step: an attempt was written down, and its result was not.
    Recover(Position),
    /// Ask for the proof that the work is done.
    Prove,
    /// Write down that the effects were taken back.
    EndUndo,
    /// Write down that the run is cancelled.
    EndCancel,
    /// Write down that the run pauses.
    Pause,
    /// Nothing, until a person has said something or the cluster has changed.
    Rest,
    /// Nothing any more.
    Over,
}

// === impl Machine ===

impl Machine<'_> {
    /// Returns what is to be done next. It only depends on the status: after a restart the answer is the same, except that
    /// a step that was begun and not ended is looked into.
    pub fn next(&self) -> Next {
        let status = &self.status;
        match status.phase {
            RunPhase::Paused | RunPhase::Manual | RunPhase::Blocked => return Next::Rest,
            phase if phase.is_over() => return Next::Over,
            RunPhase::Cancelling if !self.is_running() => return Next::EndCancel,
            _ => {}
        }
        if self.wants_pause() && self.in_flight().is_none() {
            return Next::Pause;
        }
        if status.phase == RunPhase::Pending || status.unknown_guards > 0 && !self.is_begun() {
            return Next::Judge;
        }
        self.next_step()
    }

    fn next_step(&self) -> Next {
        for (index, step) in self.course().iter().enumerate() {
            let mut position = Position { index, item: None };
            let Some(record) = self.record(&position) else {
                return Next::Step(position);
            };
            if step.for_each.is_some() && !is_ended(record) {
                for key in items::keys(record) {
                    position.item = Some(key);
                    match self.record(&position) {
                        Some(record) if is_ended(record) => {}
                        record => return go_on(position, record),
                    }
                }
                // Every element has ended and the step has not: only a record that was edited says so. It is closed with
                // the step's next turn.
                position.item = None;
                return Next::Step(position);
            }
            if !is_ended(record) {
                return go_on(position, Some(record));
            }
        }
        if self.status.undoing {
            Next::EndUndo
        } else {
            Next::Prove
        }
    }

    /// Returns whether a step was begun or left out.
    pub fn is_begun(&self) -> bool {
        !self.records().is_empty()
    }

    /// Returns the position of the step whose effect may be under way.
    pub fn under_way(&self) -> Option<Position> {
        let record = self.in_flight()?;
        let index = self.course().iter().position(|step| step.id == record.id)?;
        let item = record.item.clone();
        Some(Position { index, item })
    }

    /// Returns whether anything runs that a cancel has to give time: an attempt, or a Job. Between two looks at anything else nothing
    /// does.
    pub fn is_running(&self) -> bool {
        self.in_flight().is_some_and(|record| {
            let mut steps = self.course().iter();
            let step = steps.find(|step| step.id == record.id);
            record.state == StepState::Running
                || step.is_none_or(|step| matches!(step.action, StepAction::Job(_)))
        })
    }

    /// Returns the step whose effect may be under way: one that was begun and not ended, or that waits for what it has begun.
    pub fn in_flight(&self) -> Option<&StepRecord> {
        self.records().iter().find(|record| match record.state {
            StepState::Running => true,
            StepState::Waiting => {
                record.attempts > 0 && !record.retrying && !items::is_parent(record)
            }
            StepState::Done | StepState::Skipped | StepState::Failed | StepState::Unknown => false,
        })
    }
}

fn is_ended(record: &StepRecord) -> bool {
    matches!(record.state, StepState::Done | StepState::Skipped)
}

fn go_on(position: Position, record: Option<&StepRecord>) -> Next {
    match record.map(|record| record.state) {
        Some(StepState::Running) => Next::Recover(position),
        // The run is over or waits for a person then, which was asked before; a record that was edited comes here.
        Some(StepState::Failed | StepState::Unknown) => Next::Rest,
        _ => Next::Step(position),
    }
}
