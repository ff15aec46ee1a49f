//! Why a signature is not good.

/// Why a commit or tag is not taken. Reads on behind "commit … is refused: ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no signature.
    #[error("it is not signed")]
    Missing,
    /// Nobody has allowed the key.
    #[error("it is signed by {key}, which is not among the allowed signers")]
    Unknown {
        /// The key's fingerprint or id.
        key: String,
    },
    /// The key or the signature is not valid any more.
    #[error("it is signed by {key}, {what} of which has expired")]
    Expired {
        /// The key.
        key: String,
        /// What has expired.
        what: &'static str,
    },
    /// The key was not allowed yet.
    #[error("it was signed by {key} before that was allowed")]
    NotYetValid {
        /// The key.
        key: String,
    },
    /// The key must not be used any more.
    #[error("it is signed by {key}, which is revoked")]
    Revoked {
        /// The key.
        key: String,
    },
    /// Content and signature do not belong together.
    #[error("its signature by {key} does not fit its content")]
    Bad {
        /// The key.
        key: String,
    },
    /// Something about the signature that is not accepted.
    #[error("its signature cannot be used: {reason}")]
    Unusable {
        /// What.
        reason: String,
    },
}

impl Refusal {
    pub(super) fn unusable(reason: impl Into<String>) -> Self {
        Self::Unusable {
            reason: reason.into(),
        }
    }
}
