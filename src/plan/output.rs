//! The types of this stage: what it is asked, and what it answers.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::hooks::{AheadHook, Committed, DueHook, MigrationInput, PlannedMigration};
use super::jobs::Jobs;
use crate::desired::Desired;
use crate::model::api::PruneSpec;
use crate::model::{ComponentName, DesiredObject, Digest, Hold, ObjectKey, Revision, SourceName};
use crate::observe::{KindObservation, Observed, ObservedObject};

/// Everything that planning may look at. There is no clock and no cluster behind it.
#[derive(Debug, Clone, Copy)]
pub struct PlanInput<'a> {
    /// The source that is planned for.
    pub source: &'a SourceName,
    /// What git wants.
    pub desired: &'a Desired,
    /// What is there.
    pub observed: &'a Observed,
    /// How deletions are limited.
    pub prune: &'a PruneSettings,
    /// What a person has approved on this target.
    pub approval: Option<&'a Approval>,
    /// Whether the target's record is whole (its Target was found with the cluster's uid, or nothing of ours was there).
    /// Without it nothing is pruned; the text says why not.
    pub record: Result<(), &'a str>,
    /// The Jobs that were created here before, from the target's record.
    pub jobs: &'a Jobs,
    /// What failed lately, by object.
    pub failures: &'a BTreeMap<ObjectKey, PastFailure>,
    /// Who uses ModuleTemplates beside channels.
    pub templates: TemplateUse<'a>,
    /// Only this component; nothing else is touched, and nothing is said about what else is to do.
    pub only: Option<&'a ComponentName>,
    /// Field managers whose fields are to become ours, from `spec.takeover`.
    pub takeover: &'a [String],
    /// What was committed, and how hooks stand.
    pub migrations: MigrationInput<'a>,
}

/// What came of the last attempt at an object, where it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastFailure {
    /// The digest of what was applied; none for a deletion. Another digest is tried at once.
    pub digest: Option<String>,
    /// Whether a field was refused because it is immutable.
    pub immutable: bool,
    /// What the other side said, as a lowercase fragment.
    pub message: String,
    /// Whether the delay after the failure has passed.
    pub due: bool,
}

/// Who uses ModuleTemplates beside the channels that name them: Kymas and Manifests.
#[derive(Debug, Clone, Copy, Default)]
pub enum TemplateUse<'a> {
    /// Nobody has asked. A plan that deletes a template must not be executed so, see [`Plan::deletes_templates`].
    #[default]
    NotAsked,
    /// The users by the template, written `NAMESPACE/NAME`, in words.
    Known(&'a BTreeMap<String, String>),
    /// They could not be listed; the text says why.
    Unknown(&'a str),
}

/// Limits on deletions, from `spec.prune` of the ReleaseSource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PruneSettings {
    /// Whether anything is deleted at all.
    pub enabled: bool,
    /// Deletions in one pass beyond which they are held.
    pub max_objects: u32,
    /// Share of the target's objects in percent beyond which deletions are held, with more than two objects.
    pub max_percent: u32,
}

impl Default for PruneSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            max_objects: 10,
            max_percent: 20,
        }
    }
}

impl From<&PruneSpec> for PruneSettings {
    fn from(spec: &PruneSpec) -> Self {
        Self {
            enabled: spec.enabled,
            max_objects: spec.max_objects,
            max_percent: spec.max_percent,
        }
    }
}

/// A deletion that a person has approved. It stays valid while the set only shrinks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approval {
    /// The digest of the set that was approved.
    pub digest: String,
    /// A short hash of each object (key and uid) in the approved set, see [`Deletion::fingerprint`].
    pub objects: BTreeSet<u64>,
}

impl Approval {
    /// Takes out what git names again and what is gone: an approval stays valid only while the set shrinks, so that an object
    /// which comes back to git and is dropped a second time needs an approval of its own. Nothing is taken out for not being
    /// seen while some kind could not be listed.
    pub fn narrow(&mut self, source: &SourceName, desired: &Desired, observed: &Observed) {
        if self.objects.is_empty() {
            return;
        }
        let named: HashSet<&ObjectKey> = desired
            .objects()
            .map(|object| &object.key)
            .chain(desired.held.keys())
            .collect();
        let mut all_listed = true;
        let (mut wanted, mut unwanted) = (BTreeSet::new(), BTreeSet::new());
        for kind in observed.kinds.values() {
            let KindObservation::Listed(objects) = kind else {
                all_listed = false;
                continue;
            };
            let ours = objects
                .values()
                .filter(|live| live.source.as_ref() == Some(source));
            for live in ours {
                let set = if named.contains(&live.key) {
                    &mut wanted
                } else {
                    &mut unwanted
                };
                set.insert(Deletion::of(live).fingerprint());
            }
        }
        self.objects.retain(|object| {
            !wanted.contains(object) && (!all_listed || unwanted.contains(object))
        });
    }
}

/// What a pass does, and what it does not do and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Identity of the plan: a digest over all it says.
    pub identity: Digest,
    /// The source.
    pub source: SourceName,
    /// The revision.
    pub revision: Revision,
    /// Actions in phases: a phase starts when the one before has ended. Inside a phase the order does not matter.
    ///
    /// Deletions stand in the last phases. Where an action of a component has failed, the deletions of that component are
    /// left for a later pass: what replaces an object must be there before the object goes.
    pub phases: Vec<Vec<Action>>,
    /// What is wanted but held.
    pub holds: Vec<Hold>,
    /// The Jobs to remember; written down before the plan is begun.
    pub jobs: Jobs,
    /// Objects that this source wants and another one owns, sorted by key.
    pub conflicts: Vec<(ObjectKey, SourceName)>,
    /// Deletions that wait for a person, as one set.
    pub pending: Option<PendingDeletion>,
    /// Objects that git does not want and that stay for good all the same, sorted by key.
    pub kept: Vec<Kept>,
    /// Objects that are as git wants them; nothing is sent for these.
    pub unchanged: usize,
    /// Components that are not healthy yet, with what is missing.
    pub unhealthy: Vec<(ComponentName, String)>,
    /// The hooks that are wanted now; what is done for any other one may be forgotten.
    pub hooks: Vec<DueHook>,
    /// The hooks that the deploy comes by later, or as soon as they are judged.
    pub ahead: Vec<AheadHook>,
    /// What the target's record is to say about migrations, before the first action.
    pub committed: Committed,
    /// Every migration that the deploy comes by, in the order of components.
    pub migrations: Vec<PlannedMigration>,
    /// Removed components of which what their migrations have changed is taken back now, sorted by name.
    pub undo: Vec<ComponentName>,
}

impl Plan {
    /// Returns every action in the order of the phases.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.phases.iter().flatten()
    }

    /// Returns whether nothing is to be done; things may still be held.
    pub fn is_empty(&self) -> bool {
        self.phases.is_empty()
    }

    /// Returns whether anything is to be deleted because git does not want it any more.
    pub fn deletes(&self) -> bool {
        self.actions().any(Action::is_deletion)
    }

    /// Returns whether a ModuleTemplate is to be deleted.
    pub fn deletes_templates(&self) -> bool {
        let mut deletions = self.actions().filter(|action| action.is_deletion());
        deletions.any(|action| super::kinds::is_module_template(&action.key.kind))
    }
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// The object.
    pub key: ObjectKey,
    /// The component that it belongs to.
    pub component: ComponentName,
    /// What to do.
    pub kind: ActionKind,
    /// Why.
    pub why: Why,
    /// Objects of this plan whose action must have succeeded before this one is tried.
    pub requires: Vec<ObjectKey>,
}

impl Action {
    /// Returns whether an object goes for good.
    pub fn is_deletion(&self) -> bool {
        matches!(self.kind, ActionKind::Delete(_))
    }
}

/// What to do with an object.
#[derive(Debug, Clone, PartialEq)]
pub enum ActionKind {
    /// Server-side apply, as manager `fairway`, with force.
    Apply(Arc<DesiredObject>),
    /// Delete and create anew, since a field is immutable and git says `fairway.dev/force: enabled`.
    Replace(Arc<DesiredObject>, Deletion),
    /// Delete.
    Delete(Deletion),
}

/// The object that a deletion means, and no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// The object.
    pub key: ObjectKey,
    /// Precondition: the uid that was observed.
    pub uid: String,
    /// Precondition: the resourceVersion that was observed.
    pub resource_version: String,
}

impl Deletion {
    /// Makes the deletion of an object as it was observed.
    pub fn of(live: &ObservedObject) -> Self {
        Self {
            key: live.key.clone(),
            uid: live.uid.clone(),
            resource_version: live.resource_version.clone(),
        }
    }

    /// Returns a short hash of key and uid, for approvals.
    pub fn fingerprint(&self) -> u64 {
        let digest = Digest::of_parts([self.key.to_string().as_str(), self.uid.as_str()]);
        u64::from_str_radix(&digest.as_str()[3..19], 16)
            .expect("a v1 digest is 32 hexadecimal digits")
    }
}

/// Why an action is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The object is not there.
    Missing,
    /// Git wants something else than what was last applied.
    Changed,
    /// Somebody has changed or removed these fields, in words (`data.key`); at most a few are named.
    Drifted(Vec<String>),
    /// It is there, but was never applied by us under this source.
    Adopted,
    /// It cannot be told whether it is in step; it is applied once.
    Unclear(String),
    /// Git does not want it any more.
    Removed,
}

/// A set of deletions that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingDeletion {
    /// Digest of the set; an approval names it.
    pub digest: String,
    /// The deletions, sorted by key.
    pub deletions: Vec<Deletion>,
    /// Why they are held, in words, one sentence each.
    pub reasons: Vec<String>,
}

/// An object that carries our source's label, that git does not want, and that is left alone for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The object.
    pub key: ObjectKey,
    /// Why it stays, as a lowercase fragment.
    pub reason: String,
}
