//! A person's decision, as an annotation on a ReleaseSource.
//!
//! There is one annotation and thus one decision at a time: the last one counts, and what it has allowed is recorded
//! elsewhere (in the Target) before it is acted on.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What is decided, by whom and why. Stored as JSON in the annotation `fairway.dev/approved`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Decision {
    /// What is approved.
    pub kind: DecisionKind,
    /// Exactly what: the digest of a deletion set, the commit that a branch was rewound to, the uid of a cluster.
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

impl Decision {
    /// Reads the annotation of an object. Text that cannot be read decides nothing.
    pub fn of(resource: &impl kube::Resource) -> Option<Self> {
        let text = resource
            .meta()
            .annotations
            .as_ref()?
            .get(crate::model::names::ANNOTATION_APPROVED)?;
        serde_json::from_str(text).ok()
    }

    /// Returns whether this approves just that.
    pub fn approves(&self, kind: DecisionKind, digest: &str) -> bool {
        self.kind == kind && self.digest == digest
    }
}
