//! The catalog of one revision: modules, their versions, and where their channels point.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::output::{RepositorySettings, UpgradePolicy};
use crate::model::{BlobId, ChannelName, Digest, ModuleName, ModuleVersion, Place};

/// Every module of a revision.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    /// The modules by name.
    pub modules: BTreeMap<ModuleName, CatalogModule>,
}

/// One module with its versions and channels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CatalogModule {
    /// The versions that have a folder with a ModuleTemplate, by their text; those with an error too.
    pub versions: BTreeMap<String, Arc<CatalogVersion>>,
    /// Where the module's channels point on this target; none when it has no ModuleReleaseMeta here.
    pub release: Option<Arc<CatalogRelease>>,
    /// Every ModuleReleaseMeta, by the landscape that it is for; none for all others.
    pub releases: BTreeMap<Option<String>, Arc<CatalogRelease>>,
    /// What `release-graph.yaml` says.
    pub graph: ReleaseGraph,
}

/// A version: the folder that holds its ModuleTemplate.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogVersion {
    /// The version, parsed.
    pub version: ModuleVersion,
    /// Digest over the folder's paths and blob ids; a published version never changes it.
    pub digest: Digest,
    /// The folder's files with their path inside the folder, sorted.
    pub files: Vec<(String, BlobId)>,
    /// Whether the ModuleTemplate says `mandatory: true`.
    pub is_mandatory: bool,
    /// Where the ModuleTemplate stands, or the folder where that is not known.
    pub place: Place,
}

/// What one ModuleReleaseMeta says.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogRelease {
    /// The channels with the version that each offers.
    pub channels: BTreeMap<ChannelName, Assignment>,
    /// The version that every runtime gets, for a mandatory module.
    pub mandatory: Option<Assignment>,
    /// Deprecations by version.
    pub deprecations: BTreeMap<String, Deprecation>,
    /// The landscapes that it is for, where the short form names them.
    pub target_landscapes: Option<Vec<(String, Place)>>,
    /// Where the ModuleReleaseMeta stands.
    pub place: Place,
}

impl CatalogRelease {
    /// Returns every assignment with its channel; none for the mandatory version.
    pub fn assignments(&self) -> impl Iterator<Item = (Option<&ChannelName>, &Assignment)> {
        let channels = self.channels.iter().map(|(name, it)| (Some(name), it));
        channels.chain(self.mandatory.iter().map(|it| (None, it)))
    }
}

/// A version that a channel offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The version, as it stands.
    pub version: String,
    /// Where it stands.
    pub place: Place,
    /// Where the channel's name stands.
    pub channel_place: Place,
}

/// What `spec.versions` says about a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deprecation {
    /// The day after which no channel may newly point at the version.
    pub date: jiff::civil::Date,
    /// Why, and what to use instead.
    pub message: Option<String>,
}

/// The exceptions from the upgrade policy that a module allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReleaseGraph {
    /// Steps that are allowed beside those of the policy; ways back too.
    pub edges: Vec<Edge>,
    /// Versions that no channel may go to, with the reason; any way out of one is allowed.
    pub yanked: BTreeMap<String, Option<String>>,
}

/// An allowed step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The version that is left.
    pub from: String,
    /// The version that is reached.
    pub to: String,
}

/// What the repository's settings say about the moves of one channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovePolicy<'a> {
    /// How versions may be skipped.
    pub upgrades: UpgradePolicy,
    /// The suffixes of pre-releases that the channel allows; empty where it is not declared.
    pub suffixes: &'a [String],
}

impl RepositorySettings {
    /// Returns the policy for a channel; none is the version of a mandatory module.
    pub fn move_policy(&self, channel: Option<&ChannelName>) -> MovePolicy<'_> {
        let suffixes = channel.and_then(|channel| self.channels.get(channel));
        MovePolicy {
            upgrades: self.upgrades,
            suffixes: suffixes.map_or(&[], Vec::as_slice),
        }
    }
}
