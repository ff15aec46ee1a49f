//! The type of this stage's result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::catalog::Catalog;
use crate::model::migration::Migration;
use crate::model::{
    ChannelName, ComponentName, DesiredObject, Diagnostic, Digest, Hold, ModuleName, ObjectKey,
    Place, Revision, Severity, names,
};

/// Everything that one revision wants on one target.
#[derive(Debug, Clone)]
pub struct Desired {
    /// The revision it was read from.
    pub revision: Revision,
    /// What `fairway.yaml` says.
    pub settings: RepositorySettings,
    /// Components by name, each with its objects.
    pub components: BTreeMap<ComponentName, DesiredComponent>,
    /// Objects that git names but that are not to be touched, with the reason: frozen, neither changed nor pruned.
    pub held: BTreeMap<ObjectKey, Hold>,
    /// Files whose objects are not known. While there is one, nothing is pruned on the target, since an object that seems
    /// to be gone may stand in such a file.
    pub unread: Vec<Unread>,
    /// Modules, versions and channels, for rules that compare two states.
    pub catalog: Catalog,
    /// Migrations that may run, sorted by name. One that is invalid is not here but in `held_migrations`.
    pub migrations: Vec<Arc<Migration>>,
    /// Migrations that git names but that cannot run: what they belong to is not deployed while one stands here.
    pub held_migrations: Vec<HeldMigration>,
    /// Findings, sorted by place.
    pub diagnostics: Vec<Diagnostic>,
    /// How many findings are beyond the limit and not listed.
    pub diagnostics_omitted: usize,
    /// Whether a person has deleted the source, so that wanting nothing at all is meant; see [`Desired::withdrawn`].
    pub withdrawn: bool,
}

impl Desired {
    /// Returns what an empty repository wants.
    pub fn nothing(revision: Revision) -> Self {
        Self {
            revision,
            settings: RepositorySettings::default(),
            components: BTreeMap::new(),
            held: BTreeMap::new(),
            unread: Vec::new(),
            catalog: Catalog::default(),
            migrations: Vec::new(),
            held_migrations: Vec::new(),
            diagnostics: Vec::new(),
            diagnostics_omitted: 0,
            withdrawn: false,
        }
    }

    /// Returns what a source wants that a person has deleted: nothing, and that is no mistake of a repository.
    pub fn withdrawn(revision: Revision) -> Self {
        Self {
            withdrawn: true,
            ..Self::nothing(revision)
        }
    }

    /// Returns every object in the order of components and, inside them, of files.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<DesiredObject>> {
        self.components
            .values()
            .flat_map(|component| component.objects.iter())
    }

    /// Returns whether any object is a Secret.
    pub fn has_secrets(&self) -> bool {
        self.objects().any(|object| object.is_secret())
    }

    /// Replaces the digest of each Secret, in its annotation as well: from a plain one, values could be guessed.
    pub fn seal_secrets(&mut self, seal: impl Fn(&Digest) -> Digest) {
        let components = self.components.values_mut();
        let objects = components.flat_map(|component| &mut component.objects);
        for object in objects.filter(|object| object.is_secret()) {
            let object = Arc::make_mut(object);
            object.digest = seal(&object.digest);
            let body = Arc::make_mut(&mut object.body);
            body["metadata"]["annotations"][names::ANNOTATION_DIGEST] =
                Value::from(object.digest.as_str());
        }
    }

    /// Returns whether nothing is wrong but warnings.
    pub fn is_valid(&self) -> bool {
        self.unread.is_empty()
            && self.diagnostics_omitted == 0
            && self
                .diagnostics
                .iter()
                .all(|found| found.severity != Severity::Error)
    }
}

/// One component with what it consists of.
#[derive(Debug, Clone, Default)]
pub struct DesiredComponent {
    /// Its objects, sorted by file and position.
    pub objects: Vec<Arc<DesiredObject>>,
    /// Components that must be applied and healthy before this one is touched.
    pub depends_on: Vec<ComponentName>,
    /// How long its objects may take to become healthy, before that counts as failed.
    pub health_timeout: Option<Duration>,
    /// The version, where `component.yaml` names one.
    pub version: Option<String>,
    /// What becomes of what its migrations have changed when it is removed.
    pub on_remove: OnRemove,
}

/// What becomes of what the migrations of a component have changed when its folder is removed from git.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnRemove {
    /// It stays.
    #[default]
    Keep,
    /// The `undo` of its runs takes it back.
    Undo,
    /// `component.yaml` cannot be read: what was wanted before still counts.
    Unread,
}

/// A migration that cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldMigration {
    /// Its name, or its file where the name is not known.
    pub name: String,
    /// The components that it belongs to, as far as that is known; none for a global one.
    pub components: Vec<ComponentName>,
    /// Whether it stands in the way of the whole deploy: it is global, or nobody knows what it belongs to.
    pub is_global: bool,
    /// Where it is wrong.
    pub place: Place,
    /// Why, as a lowercase fragment.
    pub message: String,
}

/// A file that could not be read, or not far enough to know its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Where reading stopped.
    pub place: Place,
    /// Why, as a lowercase fragment.
    pub reason: String,
}

/// The settings of the repository, from `fairway.yaml`; each has a default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepositorySettings {
    /// The release of the repository as a whole.
    pub release: Option<String>,
    /// Declared channels with the pre-release suffixes that each allows; empty means that any channel may be used.
    pub channels: BTreeMap<ChannelName, Vec<String>>,
    /// How channels may move.
    pub upgrades: UpgradePolicy,
    /// Removals that git announces.
    pub removals: Vec<Removal>,
    /// Declared landscapes; empty means that any name may be used.
    pub landscapes: Vec<String>,
    /// Modules that a new runtime starts with.
    pub default_modules: Vec<ModuleName>,
    /// Hosts that `http` steps of migrations may call.
    pub http_hosts: Vec<String>,
}

/// How a channel may move from version to version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UpgradePolicy {
    /// Through the latest patch of every known minor between.
    #[default]
    Linear,
    /// Upwards by any distance.
    Direct,
    /// As it comes: a runtime follows home, where every move was judged.
    Judged,
}

/// A removal that git announces, so that it needs no approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    /// A whole component or module.
    Component(ComponentName),
    /// One object, by its key.
    Object(ObjectKey),
}

impl Removal {
    /// Returns the component that is removed as a whole.
    pub fn as_component(&self) -> Option<&ComponentName> {
        match self {
            Self::Component(name) => Some(name),
            Self::Object(_) => None,
        }
    }
}
