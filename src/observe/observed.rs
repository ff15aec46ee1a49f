//! What is there: the types of this stage's result.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::fields::FieldSet;
use crate::model::{ChannelName, Digest, GroupKind, ObjectKey, ServedKind, SourceName};

/// An immutable view of one cluster, as far as it concerns us.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// For each kind that was looked at, what is there, or why that is not known.
    pub kinds: BTreeMap<GroupKind, KindObservation>,
    /// The kinds that the cluster serves; none where discovery has failed, which is not the same as "serves nothing".
    pub served: Option<Arc<HashMap<GroupKind, ServedKind>>>,
}

/// What is known about the objects of one kind that carry our label (of any source).
#[derive(Debug, Clone)]
pub enum KindObservation {
    /// The complete list.
    Listed(Arc<HashMap<ObjectKey, Arc<ObservedObject>>>),
    /// The list could not be had; the text is a lowercase fragment that says why.
    Unlisted(String),
}

/// The projection of one object that is kept in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedObject {
    /// Identity on the cluster.
    pub key: ObjectKey,
    /// The object's uid; a new object of the same name has another one.
    pub uid: String,
    /// The version of the object in the store.
    pub resource_version: String,
    /// The value of our source label; none when it is not a valid name.
    pub source: Option<SourceName>,
    /// The component annotation, as it stands.
    pub component: Option<String>,
    /// The digest of what was last applied.
    pub digest: Option<Digest>,
    /// The version digest of a ModuleTemplate.
    pub version_digest: Option<Digest>,
    /// Whether a deletion is under way.
    pub deleting: bool,
    /// The live annotation `fairway.dev/reconcile: disabled`.
    pub reconcile_disabled: bool,
    /// The live annotation `fairway.dev/prune: disabled`.
    pub prune_disabled: bool,
    /// Which fields are ours.
    pub ownership: Ownership,
    /// Managers with an entry of updates on the object itself. One that `spec.takeover` names has fields that are to become
    /// ours: the object is then applied again, even where nothing else differs.
    pub writers: Vec<Box<str>>,
    /// Other managers who may take fields from us: by an apply of theirs, or through a subresource such as `scale`.
    pub rivals: Vec<Box<str>>,
    /// How it is, where its kind tells.
    pub health: Health,
    /// For a ModuleReleaseMeta, where its channels point now.
    pub channels: Option<BTreeMap<ChannelName, String>>,
    /// How many re-applies to this object the process has sent within the contested window (`limits::CONTESTED_WINDOW`).
    pub recent_applies: usize,
    /// The digest that this process last applied here, as long as nobody has taken anything from us since: uid, digest and
    /// ownership are still those of the answer to that apply. It settles what the fields alone cannot tell.
    pub answered: Option<Digest>,
}

/// Which fields of an object are ours by `metadata.managedFields`.
#[derive(Debug, Clone, PartialEq)]
pub enum Ownership {
    /// An Apply entry of our manager, under this API version.
    Ours {
        /// The `apiVersion` of the entry.
        api_version: String,
        /// The fields.
        fields: Arc<FieldSet>,
    },
    /// There are managed fields, but no Apply entry of ours.
    None,
    /// The object has no managed fields at all (some aggregated APIs).
    Unsupported,
}

/// How an object is, after the rules of kstatus.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// It is as its spec says, or its kind has no health.
    Current,
    /// It is on its way; the text says what is missing.
    InProgress(String),
    /// It has failed and will not recover by itself.
    Failed(String),
    /// It is being deleted.
    Terminating,
}
