//! What is known of one kind: a pure state machine over lists, watch events, failures and our own writes.
//!
//! Our own answers are known at once. Until the watch has caught up with one, what it says about that object is older than
//! our answer and is not judged. Whatever goes in, each function returns whether anything changed that planning looks at.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::time::{Duration, Instant};

use super::{KindObservation, ObservedObject};
use crate::model::ObjectKey;

type Objects = HashMap<ObjectKey, Arc<ObservedObject>>;

/// The objects of one kind that carry our label.
#[derive(Debug)]
pub(super) struct KindStore {
    objects: Arc<Objects>,
    /// Why the objects are not known; none while they are.
    unknown: Option<String>,
    /// Since when the watch has not been running.
    broken_since: Option<Instant>,
    /// For how long what was seen before counts as known while the watch does not run.
    broken_max: Duration,
    /// Writes of ours that the watch has not caught up with.
    own: HashMap<ObjectKey, OwnWrite>,
    /// Whether a first attempt to list has ended, however it did.
    attempted: bool,
}

#[derive(Debug)]
enum OwnWrite {
    /// Applied; the answer had this resourceVersion.
    Applied(String),
    /// Deleted; the object had this uid.
    Deleted(String),
}

impl KindStore {
    pub(super) fn new(broken_max: Duration) -> Self {
        Self {
            broken_max,
            objects: Arc::default(),
            unknown: Some("it has not been listed yet".to_owned()),
            broken_since: None,
            own: HashMap::new(),
            attempted: false,
        }
    }

    pub(super) fn attempted(&self) -> bool {
        self.attempted
    }

    /// Returns what is known now. A watch that is broken for too long is not known any more, also while the attempt to mend it
    /// has got no answer yet.
    pub(super) fn view(&self, now: Instant) -> KindObservation {
        if let Some(reason) = &self.unknown {
            return KindObservation::Unlisted(reason.clone());
        }
        let broken = self.broken_since.map(|since| now.duration_since(since));
        match broken.filter(|broken| *broken >= self.broken_max) {
            None => KindObservation::Listed(Arc::clone(&self.objects)),
            Some(broken) => KindObservation::Unlisted(format!(
                "its watch has been broken for {} s",
                broken.as_secs()
            )),
        }
    }

    /// Takes a complete list.
    pub(super) fn listed(&mut self, list: Vec<ObservedObject>, resource_version: &str) -> bool {
        let known = &self.objects;
        let mut objects = Objects::with_capacity(list.len());
        for mut object in list {
            if let Some(before) = known.get(&object.key) {
                keep_answered(before, &mut object);
            }
            objects.insert(object.key.clone(), Arc::new(object));
        }
        self.own.retain(|key, write| match write {
            OwnWrite::Applied(version) if is_older(resource_version, version) => {
                if let Some(object) = known.get(key) {
                    objects.insert(key.clone(), Arc::clone(object));
                }
                true
            }
            OwnWrite::Deleted(uid) => {
                let remains = objects
                    .get(key)
                    .is_some_and(|object| object.uid == *uid && !object.deleting);
                if remains {
                    objects.remove(key);
                }
                remains
            }
            OwnWrite::Applied(_) => false,
        });
        let same = self.unknown.is_none()
            && self.objects.len() == objects.len()
            && objects.iter().all(|(key, object)| {
                self.objects
                    .get(key)
                    .is_some_and(|before| plans_alike(before, object))
            });
        self.objects = Arc::new(objects);
        self.running();
        !same
    }

    /// Takes that the kind is not served: nothing of it can be there.
    pub(super) fn unserved(&mut self) -> bool {
        self.own.clear();
        let changed = self.unknown.is_some() || !self.objects.is_empty();
        self.objects = Arc::default();
        self.running();
        changed
    }

    /// Takes that the watch runs, from where the last list or watch ended.
    pub(super) fn running(&mut self) -> bool {
        self.attempted = true;
        self.broken_since = None;
        self.unknown.take().is_some()
    }

    /// Takes that a list or the watch has failed. What was listed before stays known for a while.
    pub(super) fn failed(&mut self, reason: &str, now: Instant) -> bool {
        self.attempted = true;
        let since = *self.broken_since.get_or_insert(now);
        let was_known = self.unknown.is_none();
        if was_known && now.duration_since(since) < self.broken_max {
            return false;
        }
        self.unknown = Some(reason.to_owned());
        was_known
    }

    /// Takes an object that was added or modified.
    pub(super) fn set(&mut self, object: ObservedObject) -> bool {
        match self.own.get(&object.key) {
            Some(OwnWrite::Applied(version)) if is_older(&object.resource_version, version) => {
                return false;
            }
            Some(OwnWrite::Deleted(uid)) if object.uid == *uid && !object.deleting => return false,
            _ => {}
        }
        self.own.remove(&object.key);
        self.insert(object)
    }

    /// Takes that an object is gone, or does not carry our label any more.
    pub(super) fn removed(&mut self, key: &ObjectKey, resource_version: &str) -> bool {
        if let Some(OwnWrite::Applied(version)) = self.own.get(key)
            && is_older(resource_version, version)
        {
            return false;
        }
        self.own.remove(key);
        self.objects.contains_key(key) && Arc::make_mut(&mut self.objects).remove(key).is_some()
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<ObservedObject>> {
        self.objects.get(key).cloned()
    }

    /// Takes the answer to an apply of ours. It does not ring: who applies knows.
    pub(super) fn applied(&mut self, object: ObservedObject) {
        let before = self.objects.get(&object.key);
        // The watch may be ahead of our answer.
        let ahead = before
            .is_some_and(|before| is_newer(&before.resource_version, &object.resource_version));
        if ahead {
            return;
        }
        // An apply that changed nothing makes no event that could be waited for.
        if before.is_none_or(|before| before.resource_version != object.resource_version) {
            let version = object.resource_version.clone();
            self.own
                .insert(object.key.clone(), OwnWrite::Applied(version));
        }
        self.insert(object);
    }

    /// Takes that a deletion of ours was accepted.
    pub(super) fn deleted(&mut self, key: &ObjectKey, uid: &str) {
        if self
            .objects
            .get(key)
            .is_some_and(|object| object.uid == uid && !object.deleting)
        {
            self.own
                .insert(key.clone(), OwnWrite::Deleted(uid.to_owned()));
            Arc::make_mut(&mut self.objects).remove(key);
        }
    }

    /// Sets how often an object was applied again lately.
    pub(super) fn set_recent_applies(&mut self, key: &ObjectKey, count: usize) {
        let differs = |object: &Arc<ObservedObject>| object.recent_applies != count;
        if self.objects.get(key).is_some_and(differs)
            && let Some(object) = Arc::make_mut(&mut self.objects).get_mut(key)
        {
            Arc::make_mut(object).recent_applies = count;
        }
    }

    fn insert(&mut self, mut object: ObservedObject) -> bool {
        let before = self.objects.get(&object.key);
        if let Some(before) = before {
            keep_answered(before, &mut object);
        }
        let changed = before.is_none_or(|before| !plans_alike(before, &object));
        Arc::make_mut(&mut self.objects).insert(object.key.clone(), Arc::new(object));
        changed
    }
}

/// What the answer to our last apply has told holds as long as nobody has taken anything from us since.
fn keep_answered(before: &ObservedObject, after: &mut ObservedObject) {
    if after.answered.is_none()
        && before.uid == after.uid
        && before.digest == after.digest
        && before.ownership == after.ownership
    {
        after.answered.clone_from(&before.answered);
    }
}

/// Returns whether planning sees no difference: the resourceVersion moves with every status, and how often we applied is
/// ours to know.
fn plans_alike(before: &ObservedObject, after: &ObservedObject) -> bool {
    let after = ObservedObject {
        resource_version: before.resource_version.clone(),
        recent_applies: before.recent_applies,
        ..after.clone()
    };
    *before == after
}

/// Versions are numbers on every server that we know; where they are not, only the same one is not older.
fn is_older(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        _ => version != than,
    }
}

fn is_newer(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version > than,
        _ => false,
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
