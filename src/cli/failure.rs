//! How a command ends.

use std::error::Error;
use std::io;

use crate::source::SourceError;

/// The answer of a command that did what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All is well, code 0.
    Ok,
    /// Something was found (errors, changes), code 1.
    Found,
}

impl Exit {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Found => 1,
        }
    }
}

/// Why a command could not do what it was asked, code 2.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It was asked for something that makes no sense.
    #[error("{0}")]
    Misuse(String),
    /// Stdout or stderr did not take what we wrote.
    #[error("failed to write the output")]
    Output(#[from] io::Error),
    /// The command itself failed.
    #[error("{error}")]
    Command {
        /// The error, with its own chain of sources.
        error: Box<dyn Error + Send + Sync>,
        /// What to do, as sentences.
        help: Option<String>,
    },
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        let help = error.help();
        Self::of(error).help(help)
    }
}

impl Failure {
    /// Wraps a command's own error.
    pub fn of(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Command {
            error: Box::new(error),
            help: None,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        if let Self::Command { help, .. } = &mut self {
            *help = Some(text.into());
        }
        self
    }

    /// Returns whether the reader of our output has gone, as `head` does; then there is nobody left to tell.
    pub(super) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
