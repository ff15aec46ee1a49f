//! What can go wrong in memory, and what was attempted.

use crate::runs::EffectError;

/// What happens to one write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The process ends before the write is sent: nothing is done and nobody gets an answer, until
    /// [`Memory::restart`](super::Memory::restart).
    StopBefore,
    /// The process ends after the write was done and before the answer came.
    StopAfter,
    /// The write is not done. A record's write fails with the error of the store that is nearest.
    Fail(EffectError),
    /// The write is done and its answer is lost.
    Lose,
}

/// What kind of write it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// To the cluster or another system.
    Effect,
    /// To the record of a run.
    Record,
}

/// One write that was attempted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// What kind.
    pub write: Write,
    /// `patch`, `apply`, `create`, `replace`, `delete`, `http`; `create` and `write` for a record.
    pub verb: &'static str,
    /// What it was about: `StatefulSet kyma-system/logging-loki`, `POST https://…`, `Run NAME`.
    pub about: String,
    /// The step that the run's record named at that moment.
    pub step: Option<String>,
    /// Whether anything is different afterwards. A replacement, a creation, a deletion and a request count always.
    pub changed: bool,
    /// The idempotency key of a request.
    pub key: Option<String>,
}
