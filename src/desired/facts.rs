//! What one file says, by itself: the unit that is cached. Rules between files work on these facts.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::catalog::{CatalogRelease, ReleaseGraph};
use super::custom::CustomKind;
use super::finding::{DocumentAt, Pointer};
use super::migrations::MigrationFacts;
use super::output::{OnRemove, RepositorySettings, Unread};
use crate::model::{
    ComponentName, DesiredObject, Diagnostic, GroupKind, ModuleVersion, ObjectKey, Place,
};

/// What one file says.
#[derive(Debug, Default)]
pub(super) struct FileFacts {
    /// Objects of a component, in their order.
    pub(super) objects: Vec<FileObject>,
    /// Definitions, in their order.
    pub(super) definitions: Vec<Definition>,
    /// CustomResourceDefinitions: the kinds that they make known.
    pub(super) custom_kinds: Vec<(GroupKind, CustomKind)>,
    /// What is wrong with the file by itself.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Findings that were beyond the limit.
    pub(super) diagnostics_omitted: usize,
    /// The first thing that hides objects.
    pub(super) unread: Option<Unread>,
    /// The first error, for the message of a hold.
    pub(super) error: Option<(Place, String)>,
}

/// An object of a component's file.
#[derive(Debug)]
pub(super) enum FileObject {
    /// One that may be applied.
    Ready {
        /// The object.
        object: Arc<DesiredObject>,
        /// What is left to be checked, where the scope of its kind is not known offline.
        unscoped: Option<Unscoped>,
    },
    /// One that breaks a rule.
    Held {
        /// Its identity.
        key: ObjectKey,
        /// Where it stands.
        place: Place,
        /// The rule that it breaks.
        message: String,
    },
}

/// An object whose kind may be known by a CustomResourceDefinition of the repository.
#[derive(Debug)]
pub(super) struct Unscoped {
    /// Where a missing namespace would stand.
    pub(super) metadata: Place,
    /// The document.
    pub(super) at: DocumentAt,
    /// Where the object stands in the document: an item of a list, or the document itself.
    pub(super) base: Pointer,
}

/// What is not an object by itself.
#[derive(Debug)]
pub(super) enum Definition {
    /// `fairway.yaml`.
    Settings(SettingsFacts),
    /// `component.yaml`.
    Component(ComponentFacts),
    /// A `component.yaml` that breaks a rule: the order of its component is not known.
    BrokenComponent {
        /// Where it breaks it.
        place: Place,
        /// The rule.
        message: String,
    },
    /// A ModuleReleaseMeta.
    Release(ReleaseFacts),
    /// A ModuleTemplate.
    Template(TemplateFacts),
    /// A ReleaseGraph.
    Graph(ReleaseGraph),
    /// A Migration.
    Migration(Box<MigrationFacts>),
}

/// The settings with the places that rules between files need.
#[derive(Debug)]
pub(super) struct SettingsFacts {
    /// The settings.
    pub(super) settings: RepositorySettings,
    /// Where each of `defaultModules` stands.
    pub(super) default_module_places: Vec<Place>,
}

/// What `component.yaml` says.
#[derive(Debug)]
pub(super) struct ComponentFacts {
    /// The version.
    pub(super) version: Option<String>,
    /// What it depends on, each with its place.
    pub(super) depends_on: Vec<(ComponentName, Place)>,
    /// How long its objects may take to become healthy.
    pub(super) health_timeout: Option<Duration>,
    /// What becomes of what its migrations have changed when it is removed.
    pub(super) on_remove: OnRemove,
    /// Where it stands.
    pub(super) place: Place,
}

/// What a ModuleReleaseMeta says, and the object that it becomes.
#[derive(Debug)]
pub(super) struct ReleaseFacts {
    /// What it says.
    pub(super) release: Arc<CatalogRelease>,
    /// The object.
    pub(super) object: Arc<DesiredObject>,
}

/// What a ModuleTemplate says; its object is finished when the digest of its folder is known.
#[derive(Debug)]
pub(super) struct TemplateFacts {
    /// The normalised body.
    pub(super) body: Map<String, Value>,
    /// The version.
    pub(super) version: ModuleVersion,
    /// Whether it says `mandatory: true`.
    pub(super) is_mandatory: bool,
    /// Where it stands.
    pub(super) place: Place,
}
