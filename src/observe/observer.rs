//! The observer of one cluster: a task for each kind, and one place where they write down what they see.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep_until, timeout};

use super::follow::follow;
use super::health::{Item, needs_whole_object};
use super::project::{FieldSets, project};
use super::store::KindStore;
use super::{KindObservation, Observed, ObservedObject};
use crate::cluster::{Acting, Answer, Cluster};
use crate::model::{GroupKind, ObjectKey, limits, names};

/// Sees what is on one cluster, of the kinds that it was told to look at and the objects that carry our label.
///
/// Cloning is cheap and shares everything; watching ends when the last clone is dropped.
#[derive(Clone)]
pub struct Observer {
    shared: Arc<Shared>,
    tasks: Arc<Mutex<JoinSet<()>>>,
}

/// Finds an observer again, and keeps it from ending for nobody.
#[derive(Clone)]
pub struct WeakObserver {
    shared: Weak<Shared>,
    tasks: Weak<Mutex<JoinSet<()>>>,
}

impl WeakObserver {
    /// Returns the observer, if anybody still has it.
    pub fn upgrade(&self) -> Option<Observer> {
        // The tasks share the rest: they are what ends with the last clone.
        let tasks = self.tasks.upgrade()?;
        let shared = self.shared.upgrade()?;
        Some(Observer { shared, tasks })
    }
}

/// What the tasks share.
pub(super) struct Shared {
    pub(super) cluster: Cluster,
    /// The label selector of what is looked at.
    pub(super) labels: String,
    broken_max: Duration,
    state: Mutex<State>,
    /// Counts first attempts to list; who waits for them is woken.
    attempts: watch::Sender<usize>,
    /// Wakes the tasks of kinds that are not served, to look again.
    look_again: Notify,
    bell: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct State {
    kinds: BTreeMap<GroupKind, KindStore>,
    sets: FieldSets,
    /// When objects were applied again although git had not changed.
    reapplies: HashMap<ObjectKey, Vec<Instant>>,
}

// === impl Observer ===

impl Observer {
    /// Returns what finds this observer again for as long as somebody else keeps it.
    pub fn downgrade(&self) -> WeakObserver {
        WeakObserver {
            shared: Arc::downgrade(&self.shared),
            tasks: Arc::downgrade(&self.tasks),
        }
    }

    /// Starts to observe home; of no kind at first. The bell rings when anything has changed that planning looks at,
    /// except by our own writes; it must not block.
    pub fn start(acting: &Acting, bell: impl Fn() + Send + Sync + 'static) -> Self {
        let labels = format!("{},!{}", names::LABEL_SOURCE, names::LABEL_RUNTIME);
        Self::start_selected(acting, labels, limits::WATCH_BROKEN_MAX, bell)
    }

    /// Starts like [`Observer::start`], with another time for which a broken watch is believed.
    pub fn start_with(
        acting: &Acting,
        broken_max: Duration,
        bell: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let labels = format!("{},!{}", names::LABEL_SOURCE, names::LABEL_RUNTIME);
        Self::start_selected(acting, labels, broken_max, bell)
    }

    /// Starts to observe the catalog of a runtime, by the value of [`names::LABEL_RUNTIME`]; see [`Observer::start`].
    pub fn start_runtime(
        acting: &Acting,
        runtime: &str,
        bell: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let labels = format!("{},{}={runtime}", names::LABEL_SOURCE, names::LABEL_RUNTIME);
        Self::start_selected(acting, labels, limits::WATCH_BROKEN_MAX, bell)
    }

    /// Starts to observe what somebody has copied from home to a runtime, with our label on it; see [`Observer::start`].
    pub fn start_copies(acting: &Acting, bell: impl Fn() + Send + Sync + 'static) -> Self {
        let labels = names::LABEL_SOURCE.to_owned();
        Self::start_selected(acting, labels, limits::WATCH_BROKEN_MAX, bell)
    }

    fn start_selected(
        acting: &Acting,
        labels: String,
        broken_max: Duration,
        bell: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let shared = Shared {
            cluster: acting.cluster().clone(),
            labels,
            broken_max,
            state: Mutex::default(),
            attempts: watch::Sender::new(0),
            look_again: Notify::new(),
            bell: Box::new(bell),
        };
        Self {
            shared: Arc::new(shared),
            tasks: Arc::default(),
        }
    }

    /// Observes these kinds from now on, beside those that are observed already.
    pub fn ensure(&self, kinds: BTreeSet<GroupKind>) {
        let mut state = self.shared.lock();
        let mut tasks = self.tasks.lock().expect(NO_PANIC);
        for kind in kinds {
            if !state.kinds.contains_key(&kind) {
                state
                    .kinds
                    .insert(kind.clone(), KindStore::new(self.shared.broken_max));
                tasks.spawn(follow(Arc::clone(&self.shared), kind));
            }
        }
        drop((state, tasks));
        self.shared.look_again.notify_waiters();
    }

    /// Waits until each kind was listed or has failed to be, for this long at most. Returns whether that is so.
    pub async fn synced(&self, patience: Duration) -> bool {
        let mut attempts = self.shared.attempts.subscribe();
        let all =
            attempts.wait_for(|_| self.shared.lock().kinds.values().all(KindStore::attempted));
        timeout(patience, all).await.is_ok()
    }

    /// Waits like [`Observer::synced`], but for these kinds only: others' first lists hold nobody up.
    pub async fn listed(&self, kinds: &BTreeSet<GroupKind>, patience: Duration) -> bool {
        let mut attempts = self.shared.attempts.subscribe();
        let all = attempts.wait_for(|_| {
            let state = self.shared.lock();
            let mut stores = kinds.iter().filter_map(|kind| state.kinds.get(kind));
            stores.all(KindStore::attempted)
        });
        timeout(patience, all).await.is_ok()
    }

    /// Returns what is known now; later changes do not show in it.
    pub fn view(&self) -> Observed {
        let served = self
            .shared
            .cluster
            .known_served()
            .map(|served| served.kinds);
        let mut state = self.shared.lock();
        let now = Instant::now();
        state.count_reapplies(now);
        let kinds = state
            .kinds
            .iter()
            .map(|(kind, store)| (kind.clone(), store.view(now)))
            .collect();
        Observed { kinds, served }
    }

    /// Returns one object as it is known now; who applies it asks before, see [`Observer::record_applied`].
    pub fn known(&self, key: &ObjectKey) -> Option<Arc<ObservedObject>> {
        let state = self.shared.lock();
        state.kinds.get(&key.kind)?.get(key)
    }

    /// Takes the answer to an apply of ours, so that it is known at once and rings no bell, with what was known of the object
    /// before the apply was sent: by now the watch may have seen its effect. Returns whether the apply has changed anything.
    pub fn record_applied(&self, before: Option<&ObservedObject>, answer: &Answer) -> bool {
        let kind = &answer.key.kind;
        let changed = answer.changed_since(before.map(|before| before.resource_version.as_str()));
        let whole = needs_whole_object(kind)
            .then(|| answer.read::<Item>())
            .flatten();
        let item = whole.unwrap_or_else(|| Item {
            metadata: answer.metadata.clone(),
            ..Item::default()
        });
        let Some(mut object) = self.shared.project(kind, &item) else {
            return changed;
        };
        object.answered.clone_from(&object.digest);
        // Git wants what it wanted before, and yet there was something to write: somebody else had written.
        let drifted = changed
            && before
                .is_some_and(|before| before.uid == object.uid && before.digest == object.digest);
        let mut state = self.shared.lock();
        if drifted && state.note_reapply(&object.key, Instant::now()) {
            self.ring_when_calm();
        }
        if let Some(store) = state.kinds.get_mut(kind) {
            store.applied(object);
        }
        changed
    }

    /// Takes that a deletion of ours was accepted, so that it is known at once and rings no bell.
    pub fn record_deleted(&self, key: &ObjectKey, uid: &str) {
        if let Some(store) = self.shared.lock().kinds.get_mut(&key.kind) {
            store.deleted(key, uid);
        }
    }

    /// Who stays away from a contested object is woken when the window has passed.
    fn ring_when_calm(&self) {
        let shared = Arc::downgrade(&self.shared);
        let calm = Instant::now() + limits::CONTESTED_WINDOW;
        let mut tasks = self.tasks.lock().expect(NO_PANIC);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            sleep_until(calm).await;
            if let Some(shared) = shared.upgrade() {
                (shared.bell)();
            }
        });
    }
}

const NO_PANIC: &str = "nothing panics while it holds the lock";

// === impl Shared ===

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(NO_PANIC)
    }

    /// Makes the projection of an object.
    pub(super) fn project(&self, kind: &GroupKind, item: &Item) -> Option<ObservedObject> {
        project(kind, item, &mut self.lock().sets)
    }

    /// Changes what is known of a kind, and rings the bell if planning has to look at it.
    pub(super) fn update(
        &self,
        kind: &GroupKind,
        change: impl FnOnce(&mut KindStore, Instant) -> bool,
    ) {
        let mut state = self.lock();
        let Some(store) = state.kinds.get_mut(kind) else {
            return;
        };
        let attempted = store.attempted();
        let changed = change(store, Instant::now());
        let first_attempt = !attempted && store.attempted();
        drop(state);
        if first_attempt {
            self.attempts.send_modify(|attempts| *attempts += 1);
        }
        if changed {
            (self.bell)();
        }
    }

    /// Waits until somebody has seen that the cluster serves this kind now.
    pub(super) async fn until_served(&self, kind: &GroupKind) {
        loop {
            let look_again = self.look_again.notified();
            if self
                .cluster
                .known_served()
                .is_some_and(|served| served.kinds.contains_key(kind))
            {
                return;
            }
            look_again.await;
        }
    }
}

// === impl State ===

impl State {
    /// Notes that an object was applied again because of drift. Returns whether it is contested by that.
    fn note_reapply(&mut self, key: &ObjectKey, now: Instant) -> bool {
        let times = self.reapplies.entry(key.clone()).or_default();
        times.push(now);
        times.len() == limits::CONTESTED_APPLIES
    }

    fn count_reapplies(&mut self, now: Instant) {
        let Self {
            kinds, reapplies, ..
        } = self;
        reapplies.retain(|key, times| {
            times.retain(|time| now.duration_since(*time) < limits::CONTESTED_WINDOW);
            if let Some(store) = kinds.get_mut(&key.kind) {
                store.set_recent_applies(key, times.len());
            }
            !times.is_empty()
        });
    }
}

// === impl KindObservation ===

impl KindObservation {
    /// Returns an object, where the kind is listed and the object is there.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<ObservedObject>> {
        match self {
            Self::Listed(objects) => objects.get(key),
            Self::Unlisted(_) => None,
        }
    }
}
