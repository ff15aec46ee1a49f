//! An observer with a bell that tests can wait for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fairway::cluster::Cluster;
use fairway::model::{GroupKind, ObjectKey, limits};
use fairway::observe::{KindObservation, Observed, ObservedObject, Observer};
use tokio::sync::watch;

/// Longest time that a test waits for something that should happen at once.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Watched {
    pub(crate) observer: Observer,
    rings: watch::Receiver<usize>,
}

impl Watched {
    /// Observes some kinds and waits for their first lists.
    pub(crate) async fn start(cluster: &Cluster, kinds: &[&str]) -> Self {
        Self::start_with(cluster, limits::WATCH_BROKEN_MAX, kinds).await
    }

    /// Observes with another time for which a broken watch is believed.
    pub(crate) async fn start_with(cluster: &Cluster, broken: Duration, kinds: &[&str]) -> Self {
        let (sender, rings) = watch::channel(0);
        let bell = move || sender.send_modify(|n| *n += 1);
        let observer = Observer::start_with(&cluster.acting_as_itself(), broken, bell);
        let watched = Self { observer, rings };
        watched.ensure(kinds);
        assert!(watched.observer.synced(PATIENCE).await);
        watched
    }

    pub(crate) fn ensure(&self, kinds: &[&str]) {
        let kinds: BTreeSet<GroupKind> = kinds.iter().map(|kind| kind.parse().unwrap()).collect();
        self.observer.ensure(kinds);
    }

    /// How often the bell has rung.
    pub(crate) fn rings(&self) -> usize {
        *self.rings.borrow()
    }

    /// What is known of a kind.
    pub(crate) fn kind(&self, kind: &str) -> KindObservation {
        self.observer.view().kinds[&kind.parse::<GroupKind>().unwrap()].clone()
    }

    pub(crate) fn object(&self, key: &ObjectKey) -> Option<Arc<ObservedObject>> {
        self.observer.view().kinds[&key.kind].get(key).cloned()
    }

    /// Waits, woken by the bell, until what is seen is as the test expects.
    pub(crate) async fn until(&self, mut seen: impl FnMut(&Observed) -> bool) {
        let mut rings = self.rings.clone();
        let wait = async {
            while !seen(&self.observer.view()) {
                rings.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, wait)
            .await
            .expect("it was never seen");
    }

    /// Waits until an object is as the test expects.
    pub(crate) async fn until_object(
        &self,
        key: &ObjectKey,
        seen: impl Fn(Option<&ObservedObject>) -> bool,
    ) {
        self.until(|view| seen(view.kinds[&key.kind].get(key).map(AsRef::as_ref)))
            .await;
    }
}
