//! What a person has seen of a step of which nobody knew, or of a run whose record was lost.

use super::{Machine, bounds};
use crate::model::api::{Evidence, Resolution, RunCommand, RunPhase, StepState};

// === impl Machine ===

impl Machine<'_> {
    /// Takes in what a person has seen. Without the name of a step it is the one that is unknown; where none is, the run as
    /// a whole.
    pub(super) fn resolve(&mut self, command: &RunCommand) -> bool {
        if command.resolution == Some(Resolution::Keep) {
            return command.step.is_none() && self.give_up_undo(command);
        }
        let (RunPhase::Manual, Some(resolution)) = (self.status.phase, command.resolution) else {
            return false;
        };
        let now = self.time();
        let seen = Evidence {
            about: "resolve".to_owned(),
            expression: bounds::cut(command.reason.clone(), bounds::STEP_MESSAGE_MAX),
            result: format!("said by {}", command.by),
            values: std::collections::BTreeMap::new(),
            at: Some(now.clone()),
        };
        let unknown = self.records().iter().position(|record| {
            record.state == StepState::Unknown
                && command.step.as_ref().is_none_or(|step| *step == record.id)
        });
        let Some(unknown) = unknown else {
            // Another step than the unknown one says nothing about it.
            return command.step.is_none() && self.resolve_whole(resolution, seen);
        };
        let record = &mut self.records_mut()[unknown];
        record.evidence.push(seen);
        let (id, item) = (record.id.clone(), record.item.clone());
        match resolution {
            // That is no answer about a step.
            Resolution::Keep => return false,
            Resolution::Done => {
                record.state = StepState::Done;
                record.ended_at = Some(now);
                self.enter(RunPhase::Running, "", "");
            }
            Resolution::Again => {
                record.state = StepState::Waiting;
                record.retrying = true;
                record.free_attempts = record.attempts;
                record.failures = 0;
                self.enter(RunPhase::Running, "", "");
            }
            Resolution::Fail => {
                record.state = StepState::Failed;
                record.ended_at = Some(now);
                let message = format!("{} gave it up: {}", command.by, command.reason);
                self.end_failed("GivenUp", &message);
            }
        }
        if item.is_some()
            && let Some(index) = self.course().iter().position(|step| step.id == id)
        {
            self.close(&super::Position { index, item });
        }
        true
    }

    /// The record was lost: a person says whether this was ever done.
    fn resolve_whole(&mut self, resolution: Resolution, seen: Evidence) -> bool {
        if self.is_begun() {
            return false;
        }
        let message = format!("{}: {}", seen.result, seen.expression);
        self.status.evidence.push(seen);
        match resolution {
            Resolution::Done => self.end(RunPhase::Succeeded, "Resolved", message),
            Resolution::Again => self.enter(RunPhase::Pending, "", ""),
            Resolution::Fail => self.end_failed("GivenUp", &message),
            Resolution::Keep => return false,
        }
        true
    }
}
