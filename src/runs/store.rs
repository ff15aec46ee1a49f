//! Where the record of a run is kept.

use crate::model::api::{Run, RunStatus};

/// Why a record could not be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Somebody else has written in between. Whoever acts under another claim has taken over; otherwise the write is tried again on
    /// what is stored, without the effect.
    #[error("the record of run {0} was changed by somebody else")]
    Conflict(String),
    /// It is gone.
    #[error("the record of run {0} is gone")]
    Gone(String),
    /// The claim to act has ended.
    #[error("{0}")]
    ClaimLost(String),
    /// It could not be reached; it may or may not have been written.
    #[error("{0}")]
    Unavailable(String),
    /// It was refused.
    #[error("{0}")]
    Refused(String),
}

/// Where the record of a run is kept. Each write carries the resourceVersion that was seen last, and the claim.
pub trait RunStore: Send + Sync {
    /// Creates a record. One of this name that is there already is returned as it is.
    fn create(&self, run: &Run) -> impl Future<Output = Result<Run, StoreError>> + Send;

    /// Reads a record; none where it is gone.
    fn read(&self, name: &str) -> impl Future<Output = Result<Option<Run>, StoreError>> + Send;

    /// Stores a status over the version that `run` carries, and returns the record with its new version.
    fn write(
        &self,
        run: &Run,
        status: RunStatus,
    ) -> impl Future<Output = Result<Run, StoreError>> + Send;
}
