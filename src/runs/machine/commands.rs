//! What people say, and what that changes. A command counts once, told apart by its date, and is in the record before it counts.

use super::{Machine, bounds};
use crate::model::api::{RunCommand, RunPhase, RunStatus, RunVerb};

/// Returns whether a command was not acted on yet.
pub fn is_new(status: &RunStatus, command: &RunCommand) -> bool {
    !status.commands.iter().any(|known| known.at == command.at)
}

// === impl Machine ===

impl Machine<'_> {
    /// Acts on a command. One that has no meaning in this phase is written down and changes nothing else. Returns false, having
    /// changed nothing, for one that was acted on before.
    pub fn act(&mut self, command: &RunCommand) -> bool {
        if !is_new(&self.status, command) {
            return false;
        }
        let mut kept = command.clone();
        kept.reason = bounds::cut(kept.reason, bounds::STEP_MESSAGE_MAX);
        self.status.commands.push(kept);
        let phase = self.status.phase;
        let heard = match command.verb {
            RunVerb::Pause => self.pause(),
            RunVerb::Resume => self.resume(),
            RunVerb::Cancel => self.cancel(command),
            RunVerb::Retry => self.retry_all(),
            RunVerb::Override => self.override_guard(),
            RunVerb::Resolve => self.resolve(command),
        };
        let verb = word(command.verb);
        let by = &command.by;
        if heard {
            self.note(format!("{verb} by {by}: {}", command.reason));
        } else {
            self.note(format!("{verb} by {by} has no meaning while {phase}"));
        }
        true
    }

    /// Returns whether the last word about going on was to pause.
    pub(super) fn wants_pause(&self) -> bool {
        let last = self.status.commands.iter().rev().find(|command| {
            matches!(
                command.verb,
                RunVerb::Pause | RunVerb::Resume | RunVerb::Retry | RunVerb::Cancel
            )
        });
        last.is_some_and(|command| command.verb == RunVerb::Pause)
    }

    fn pause(&mut self) -> bool {
        // Where a step is under way the run pauses after it; what is to be done next says so.
        !self.status.phase.is_over()
            && !matches!(
                self.status.phase,
                RunPhase::Paused | RunPhase::Manual | RunPhase::Cancelling
            )
            && {
                if self.status.phase == RunPhase::Blocked {
                    self.pauses();
                }
                true
            }
    }

    /// Stops before the next step.
    pub fn pauses(&mut self) {
        let name = self.name;
        self.enter(
            RunPhase::Paused,
            "Paused",
            format!("paused; to go on: fairway run resume {name} --reason '…'"),
        );
    }

    fn resume(&mut self) -> bool {
        match self.status.phase {
            RunPhase::Paused if self.is_begun() || self.status.undoing => {
                self.enter(RunPhase::Running, "", "");
            }
            RunPhase::Paused => self.enter(RunPhase::Pending, "", ""),
            // The pause had not begun yet, and does not begin now.
            RunPhase::Pending | RunPhase::Running | RunPhase::Waiting => {}
            _ => return false,
        }
        true
    }

    fn cancel(&mut self, command: &RunCommand) -> bool {
        if self.status.phase.is_over() || self.status.phase == RunPhase::Cancelling {
            return false;
        }
        let message = format!("cancelled by {}: {}", command.by, command.reason);
        self.enter(RunPhase::Cancelling, "Cancelled", message);
        if !self.is_running() {
            self.end_cancel();
        }
        true
    }

    fn retry_all(&mut self) -> bool {
        match self.status.phase {
            RunPhase::Failed | RunPhase::Cancelled => {
                self.begin_round();
                true
            }
            // A delay after a failure ends now.
            RunPhase::Waiting => {
                for record in self.records_mut() {
                    if record.retrying {
                        record.next_at = None;
                    }
                }
                self.status.next_at = None;
                true
            }
            _ => false,
        }
    }

    fn override_guard(&mut self) -> bool {
        // What keeps an undo from beginning is a right, and no precondition.
        if self.status.undoing {
            return false;
        }
        if self.status.phase == RunPhase::Blocked {
            self.enter(RunPhase::Pending, "", "");
            return true;
        }
        self.status.phase == RunPhase::Pending
    }
}

fn word(verb: RunVerb) -> &'static str {
    match verb {
        RunVerb::Pause => "pause",
        RunVerb::Resume => "resume",
        RunVerb::Cancel => "cancel",
        RunVerb::Retry => "retry",
        RunVerb::Override => "override",
        RunVerb::Resolve => "resolve",
    }
}
