//! What a person can want of a run, and when it makes sense.

use jiff::{SignedDuration, Timestamp};

use super::run::{Resolution, Run, RunCommand, RunPhase, RunVerb};
use crate::model::names::ANNOTATION_COMMAND;

impl RunPhase {
    /// Returns what a person can do about a run in this phase, the most useful first. The agent acts on nothing else, and the
    /// command line offers nothing else.
    pub fn verbs(self) -> &'static [RunVerb] {
        match self {
            Self::Pending | Self::Running => &[RunVerb::Pause, RunVerb::Cancel],
            Self::Waiting => &[RunVerb::Pause, RunVerb::Retry, RunVerb::Cancel],
            Self::Blocked => &[RunVerb::Override, RunVerb::Pause, RunVerb::Cancel],
            Self::Paused => &[RunVerb::Resume, RunVerb::Cancel],
            Self::Manual => &[RunVerb::Resolve, RunVerb::Cancel],
            Self::Failed | Self::Cancelled => &[RunVerb::Retry],
            Self::Cancelling | Self::Succeeded | Self::Superseded => &[],
        }
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
