//! What one Migration says by itself.

use std::sync::Arc;

use crate::desired::finding::DocumentAt;
use crate::model::migration::{MigrationSpec, Scope};
use crate::model::{Digest, Place};

/// One document of a folder of migrations.
#[derive(Debug)]
pub(in crate::desired) struct MigrationFacts {
    /// Its name, where it has one.
    pub(super) name: Option<String>,
    /// What it says that it belongs to, as far as it can be read.
    pub(super) scope: Option<Scope>,
    /// The components that it names, as they stand.
    pub(super) components: Vec<String>,
    /// What it does; none while something is wrong.
    pub(super) spec: Option<Arc<MigrationSpec>>,
    /// The digest of its definition.
    pub(super) digest: Digest,
    /// The document.
    pub(super) at: DocumentAt,
    /// Where it stands.
    pub(super) place: Place,
    /// The first thing that is wrong.
    pub(super) error: Option<(Place, String)>,
}
