//! A person's decision, as an annotation on a ReleaseSource.
//!
//! There is one annotation and thus one decision at a time: the last one counts, and what it has allowed is recorded
//! elsewhere (in the Target) before it is acted on.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::limits;

/// What is decided, by whom and why. Stored as JSON in the annotation `fairway.dev/approved`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Decision {
    /// What is approved.
    pub kind: DecisionKind,
    /// Exactly what: the digest of a deletion set, the commits of a rewound branch as `FROM..TO`, the uid of a cluster.
    pub digest: String,
    /// Who decided.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Timestamp,
}

/// What can be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecisionKind {
    /// A set of deletions.
    Prune,
    /// A branch that no longer contains what was applied from it.
    Rewind,
    /// A cluster whose record was lost, or is another's: what carries our label there is ours.
    Adopt,
}

/// A decision that cannot be taken for one. The text itself is not repeated: it may be anything.
#[derive(Debug, thiserror::Error)]
pub enum DecisionError {
    /// It is larger than any decision.
    #[error("the annotation has {size} bytes, more than the {limit} of a decision")]
    TooLarge {
        /// Bytes that it has.
        size: usize,
        /// Bytes that it may have.
        limit: usize,
    },
    /// It is not written as one.
    #[error("the annotation is no decision (line {line}, column {column})")]
    Unreadable {
        /// Line of the annotation, from one.
        line: usize,
        /// Column of the annotation, from one.
        column: usize,
    },
}

impl Decision {
    /// Reads the annotation of an object. Text that cannot be read decides nothing.
    pub fn of(resource: &impl kube::Resource) -> Option<Self> {
        Self::read(resource).ok().flatten()
    }

    /// Reads the annotation of an object; none when it has none.
    ///
    /// # Errors
    ///
    /// When the text is larger than a decision can be, or is not written as one.
    pub fn read(resource: &impl kube::Resource) -> Result<Option<Self>, DecisionError> {
        let annotations = resource.meta().annotations.as_ref();
        let text = annotations.and_then(|all| all.get(crate::model::names::ANNOTATION_APPROVED));
        let Some(text) = text else {
            return Ok(None);
        };
        if text.len() > limits::DECISION_SIZE_MAX {
            return Err(DecisionError::TooLarge {
                size: text.len(),
                limit: limits::DECISION_SIZE_MAX,
            });
        }
        serde_json::from_str(text).map_err(|error| DecisionError::Unreadable {
            line: error.line(),
            column: error.column(),
        })
    }

    /// Returns whether this was decided in a later second than the given moment; times are stored to the second.
    pub fn is_later_than(&self, moment: Option<Timestamp>) -> bool {
        moment.is_none_or(|moment| self.at.as_second() > moment.as_second())
    }

    /// Returns whether this approves just that.
    pub fn approves(&self, kind: DecisionKind, digest: &str) -> bool {
        self.kind == kind && self.digest == digest
    }
}
