//! Why a kubeconfig is not used, and the way out. No value of the file is ever part of it.

use crate::model::limits;

/// A kubeconfig that is not used. Nobody but the one who wrote it can change that, so trying again never helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// It is larger than any real one.
    #[error(
        "the kubeconfig is larger than {} bytes; keep one cluster, user and context in it",
        limits::KUBECONFIG_SIZE_MAX
    )]
    TooLarge,
    /// It is not text.
    #[error("the kubeconfig is not UTF-8 text; store the file as it is, encoded once by `data`")]
    NotText,
    /// It is no YAML.
    #[error("the kubeconfig is not one YAML document: line {line}, column {column} cannot be read")]
    Syntax {
        /// Line, from one.
        line: u64,
        /// Column in characters, from one.
        column: u64,
    },
    /// Readers differ in which of the two they would take.
    #[error("the kubeconfig has a key twice in one mapping, at line {line}; keep one")]
    DuplicateKey {
        /// Line, from one.
        line: u64,
    },
    /// It has what only a bomb or a person has use for.
    #[error(
        "the kubeconfig uses anchors, is nested deeper than {} levels, or has more than {} values; write it plainly",
        limits::KUBECONFIG_DEPTH_MAX,
        limits::KUBECONFIG_NODES_MAX
    )]
    TooComplex,
    /// A field that would make the agent do what a kubeconfig from a Secret may not.
    #[error("the kubeconfig's `{field}` is refused: {reason}; {way_out}")]
    Refused {
        /// Path of the field.
        field: String,
        /// What it would do.
        reason: &'static str,
        /// What to do instead.
        way_out: &'static str,
    },
    /// A field that is not known here; a client that knows it may act on it.
    #[error("the kubeconfig's `{field}` is refused: no such field is known; remove it")]
    Unknown {
        /// Path of the field; a name that might be a value by mistake is left out.
        field: String,
    },
    /// A field that has to be there.
    #[error("the kubeconfig has no `{field}`; {way_out}")]
    Missing {
        /// Path of the field.
        field: String,
        /// What to do.
        way_out: &'static str,
    },
    /// A field whose value cannot be what it should be.
    #[error("the kubeconfig's `{field}` {reason}")]
    Invalid {
        /// Path of the field.
        field: String,
        /// What is wrong with it, and the way out; completes the sentence.
        reason: &'static str,
    },
}

impl KubeconfigError {
    pub(super) fn refused(
        field: impl Into<String>,
        reason: &'static str,
        way_out: &'static str,
    ) -> Self {
        Self::Refused {
            field: field.into(),
            reason,
            way_out,
        }
    }

    pub(super) fn missing(field: impl Into<String>, way_out: &'static str) -> Self {
        Self::Missing {
            field: field.into(),
            way_out,
        }
    }

    pub(super) fn invalid(field: impl Into<String>, reason: &'static str) -> Self {
        Self::Invalid {
            field: field.into(),
            reason,
        }
    }
}
