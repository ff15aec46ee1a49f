//! What a person can want of a run, and when it makes sense.

use jiff::{SignedDuration, Timestamp};

use super::run::{Resolution, Run, RunCommand, RunPhase, RunStatus, RunVerb};
use crate::model::names::ANNOTATION_COMMAND;

/// Why an undo has ended of which a person has said that the rest stays as it is.
pub const UNDO_GIVEN_UP: &str = "UndoGivenUp";

impl RunStatus {
    /// Returns what a person can do about a run that stands like this, the most useful first. The agent acts on nothing else, and
    /// the command line offers nothing else.
    pub fn verbs(&self) -> &'static [RunVerb] {
        match self.phase {
            RunPhase::Pending | RunPhase::Running => &[RunVerb::Pause, RunVerb::Cancel],
            RunPhase::Waiting => &[RunVerb::Pause, RunVerb::Retry, RunVerb::Cancel],
            RunPhase::Blocked if self.undoing => {
                &[RunVerb::Resolve, RunVerb::Pause, RunVerb::Cancel]
            }
            // That a release was skipped is no precondition: nothing of the migration may run any more.
            RunPhase::Blocked if self.reason == "HopSkipped" => &[RunVerb::Pause, RunVerb::Cancel],
            RunPhase::Blocked => &[RunVerb::Override, RunVerb::Pause, RunVerb::Cancel],
            RunPhase::Paused => &[RunVerb::Resume, RunVerb::Cancel],
            RunPhase::Manual => &[RunVerb::Resolve, RunVerb::Cancel],
            RunPhase::Failed | RunPhase::Cancelled if self.can_keep() => {
                &[RunVerb::Retry, RunVerb::Resolve]
            }
            RunPhase::Failed | RunPhase::Cancelled => &[RunVerb::Retry],
            RunPhase::Cancelling | RunPhase::Succeeded | RunPhase::Superseded => &[],
        }
    }

    /// Returns what a person can say with `resolve` about a run that stands like this.
    pub fn resolutions(&self) -> Vec<Resolution> {
        let mut possible = match self.phase {
            RunPhase::Manual => vec![Resolution::Done, Resolution::Again, Resolution::Fail],
            _ => Vec::new(),
        };
        if self.can_keep() {
            possible.push(Resolution::Keep);
        }
        possible
    }

    /// Returns whether a person may leave what is not taken back as it is: the undo has not ended well, or waits for a person.
    pub fn can_keep(&self) -> bool {
        let is_stuck = matches!(
            self.phase,
            RunPhase::Blocked | RunPhase::Failed | RunPhase::Cancelled | RunPhase::Manual
        );
        self.undoing && is_stuck && !self.is_undo_given_up()
    }

    /// Returns whether a person has left as it is what was not taken back.
    pub fn is_undo_given_up(&self) -> bool {
        self.undoing && self.phase == RunPhase::Cancelled && self.reason == UNDO_GIVEN_UP
    }

    /// Returns whether what was done is taken back.
    pub fn is_undone(&self) -> bool {
        self.undoing && self.phase == RunPhase::Succeeded
    }
}

impl RunVerb {
    /// Returns the word that is typed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Override => "override",
            Self::Resolve => "resolve",
        }
    }
}

impl std::fmt::Display for RunVerb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Resolution {
    /// Returns the word that is typed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Again => "again",
            Self::Fail => "fail",
            Self::Keep => "keep",
        }
    }
}

impl RunCommand {
    /// Reads the wish that stands in the annotation of a run, whether it was acted on or not. What cannot be read is no wish.
    pub fn wished(run: &Run) -> Option<Self> {
        let annotations = run.metadata.annotations.as_ref()?;
        serde_json::from_str(annotations.get(ANNOTATION_COMMAND)?).ok()
    }

    /// Returns whether the agent has taken this up.
    pub fn is_taken(&self, run: &Run) -> bool {
        let status = run.status.as_ref();
        status.is_some_and(|status| status.commands.iter().any(|one| one.at == self.at))
    }

    /// Returns when a new command is dated: now, but after every one before it, whatever this computer's clock says. Commands are told
    /// apart by their dates.
    pub fn next_date(run: &Run, now: Timestamp) -> Timestamp {
        let taken = run.status.iter().flat_map(|status| &status.commands);
        let dates = taken.map(|command| command.at);
        let last = dates.chain(Self::wished(run).map(|wish| wish.at)).max();
        let next = last.and_then(|last| last.checked_add(SignedDuration::from_millis(1)).ok());
        next.map_or(now, |next| next.max(now))
    }
}
