//! Fetching: keeps the last good snapshot of one source, and says why a newer one could not be had.
//!
//! What comes out is a [`SourceState`], replaced as a whole after each attempt, and a ring of the target's bell. A failed
//! fetch never takes a snapshot away.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Notify, watch};
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use super::bell::Bell;
use super::fetching::failure;
use super::outlets::Outlets;
use super::secret_watch::SecretWatch;
use crate::cluster::Cluster;
use crate::model::api::{Decision, GitReference, ReleaseSource, ReleaseSourceSpec};
use crate::model::{Snapshot, SourceName, limits, names};
use crate::report::FetchFailure;
use crate::source::{Mirror, MirrorLimits, SourceError, SourceUrl, Watch, WorkingTree};

/// What is known of a source.
#[derive(Debug, Clone, Default)]
pub(super) struct SourceState {
    /// The last good snapshot; a rewound one only once it is approved.
    pub(super) snapshot: Option<Snapshot>,
    /// How the last attempt went; none before the first has ended.
    pub(super) attempt: Option<Result<(), FetchFailure>>,
    /// The annotation's value that the last attempt has answered.
    pub(super) requested_at: Option<String>,
}

/// Fetches one source again and again.
pub(super) struct SourceTask {
    pub(super) source: SourceName,
    pub(super) cluster: Cluster,
    pub(super) namespace: String,
    pub(super) cache: PathBuf,
    pub(super) resource: watch::Receiver<Arc<ReleaseSource>>,
    pub(super) state: watch::Sender<SourceState>,
    pub(super) target: Bell,
    pub(super) outlets: Outlets,
    /// Rung by the webhook.
    pub(super) announced: Bell,
    /// Hears of revisions that a poll has found by itself.
    pub(super) unannounced: watch::Sender<Option<String>>,
    pub(super) stop: CancellationToken,
    /// The watch of the Secret that the spec names.
    pub(super) secret: Option<SecretWatch>,
}

/// Where the files come from; made anew when URL, reference or path change.
pub(super) enum Origin {
    Mirror(Mirror),
    /// A local directory, followed as it is edited.
    Directory(
        WorkingTree,
        #[expect(dead_code, reason = "watches until it is dropped")] Watch,
    ),
}

/// What an attempt depends on: when any of it changes, there is an attempt at once.
#[derive(Clone, PartialEq)]
pub(super) struct Wanted {
    pub(super) spec: ReleaseSourceSpec,
    requested_at: Option<String>,
    pub(super) decision: Option<Decision>,
}

// === impl SourceTask ===

impl SourceTask {
    pub(super) async fn run(mut self) {
        let changed = Arc::new(Notify::new());
        let mut origin: Option<(ReleaseSourceSpec, Origin)> = None;
        let mut failures = 0;
        // Whether anything but the timer has asked for the next attempt; nobody has announced what the first one finds.
        let mut asked = true;
        loop {
            let resource = Arc::clone(&self.resource.borrow_and_update());
            let wanted = Wanted::of(&resource);
            self.watch_secret(&wanted.spec, &changed);
            if !wanted.spec.suspend {
                if origin
                    .as_ref()
                    .is_some_and(|(spec, _)| !same_repository(spec, &wanted.spec))
                {
                    origin = None;
                }
                let mut attempt = tokio::select! {
                    attempt = self.attempt(&resource, &wanted, &mut origin, &changed) => attempt,
                    () = self.stop.cancelled() => return,
                };
                if let Err(failure) = &mut attempt {
                    tokio::select! {
                        () = self.go_on_with_stored(&resource, &wanted, origin.as_ref(), failure) => {}
                        () = self.stop.cancelled() => return,
                    }
                }
                failures = if attempt.is_ok() { 0 } else { failures + 1 };
                if !asked {
                    self.tell_unannounced(&attempt);
                }
                asked &= attempt.is_err();
                self.publish(attempt, &wanted);
            }
            let pause = pause(&wanted.spec, failures);
            match self.idle(&wanted, Instant::now() + pause, &changed).await {
                Ok(by_somebody) => asked |= by_somebody,
                Err(()) => return,
            }
        }
    }

    /// Watches the Secret that the spec names now, while the source is not suspended.
    fn watch_secret(&mut self, spec: &ReleaseSourceSpec, changed: &Arc<Notify>) {
        let name = spec.secret_ref.as_ref().map(|reference| &reference.name);
        let name = name.filter(|_| !spec.suspend);
        if self.secret.as_ref().map(SecretWatch::name) == name.map(String::as_str) {
            return;
        }
        self.secret = name.map(|name| {
            let (cluster, namespace) = (self.cluster.clone(), self.namespace.clone());
            SecretWatch::start(cluster, namespace, name.clone(), Arc::clone(changed))
        });
    }

    /// Waits for a reason to try again, and says whether it is another than the timer; an error means that it is time to end.
    async fn idle(
        &mut self,
        wanted: &Wanted,
        until: Instant,
        changed: &Notify,
    ) -> Result<bool, ()> {
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return Err(()),
                () = tokio::time::sleep_until(until) => return Ok(false),
                () = changed.notified() => return Ok(true),
                () = self.announced.rung() => return Ok(true),
                result = self.resource.changed() => {
                    result.map_err(drop)?;
                    if Wanted::of(&self.resource.borrow_and_update()) != *wanted {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Tells the webhook of a revision that is new and that only the timer has led to.
    fn tell_unannounced(&self, attempt: &Result<Snapshot, FetchFailure>) {
        let Ok(found) = attempt else {
            return;
        };
        let known = self
            .state
            .borrow()
            .snapshot
            .as_ref()
            .map(|one| one.revision.clone());
        if known.is_some_and(|known| known != found.revision) {
            self.unannounced
                .send_replace(Some(found.revision.to_string()));
        }
    }

    fn publish(&self, attempt: Result<Snapshot, FetchFailure>, wanted: &Wanted) {
        self.outlets
            .metrics
            .fetched(&self.source, attempt.as_ref().map(drop));
        self.state.send_modify(|state| {
            match attempt {
                Ok(snapshot) => {
                    state.snapshot = Some(snapshot);
                    state.attempt = Some(Ok(()));
                }
                Err(failure) => {
                    tracing::warn!(
                        source.name = %self.source,
                        error = %failure.message,
                        help = failure.help.as_deref().unwrap_or_default(),
                        "failed to fetch"
                    );
                    state.attempt = Some(Err(failure));
                }
            }
            state.requested_at.clone_from(&wanted.requested_at);
        });
        self.target.ring();
    }

    async fn attempt(
        &self,
        resource: &ReleaseSource,
        wanted: &Wanted,
        origin: &mut Option<(ReleaseSourceSpec, Origin)>,
        changed: &Arc<Notify>,
    ) -> Result<Snapshot, FetchFailure> {
        if origin.is_none() {
            let opened = self
                .open(&wanted.spec, changed)
                .map_err(|error| failure(&error))?;
            *origin = Some((wanted.spec.clone(), opened));
        }
        match origin {
            Some((_, Origin::Directory(tree, _))) => {
                tree.snapshot().map_err(|error| failure(&error))
            }
            Some((_, Origin::Mirror(mirror))) => self.fetch(resource, wanted, mirror).await,
            None => unreachable!("it was opened above"),
        }
    }

    fn open(&self, spec: &ReleaseSourceSpec, changed: &Arc<Notify>) -> Result<Origin, SourceError> {
        let url = SourceUrl::parse(&spec.url)?;
        let directory = std::path::Path::new(&spec.url);
        // A bare repository is fetched from like any other; a working tree is followed as it is edited.
        if url.is_local()
            && directory.join(".git").exists()
            && spec.reference == GitReference::default()
            && spec.verify.is_none()
        {
            let tree = WorkingTree::open(&directory.join(&spec.path))?;
            let changed = Arc::clone(changed);
            let watch = Watch::start(tree.root(), move || changed.notify_one())?;
            return Ok(Origin::Directory(tree, watch));
        }
        Ok(Origin::Mirror(Mirror::new(
            &self.cache,
            url,
            MirrorLimits::default(),
        )))
    }
}

// === impl Wanted ===

impl Wanted {
    fn of(resource: &ReleaseSource) -> Self {
        let annotations = resource.metadata.annotations.as_ref();
        Self {
            spec: resource.spec.clone(),
            requested_at: annotations
                .and_then(|all| all.get(names::ANNOTATION_REQUESTED_AT).cloned()),
            decision: Decision::of(resource),
        }
    }
}

fn same_repository(one: &ReleaseSourceSpec, other: &ReleaseSourceSpec) -> bool {
    one.url == other.url
        && one.reference == other.reference
        && one.path == other.path
        && one.verify == other.verify
}

/// Returns how long to wait before the next attempt: the interval with up to a tenth less, so that many sources do not ask
/// at the same moment; after failures less than that, doubled each time.
fn pause(spec: &ReleaseSourceSpec, failures: u32) -> Duration {
    let interval = spec.interval();
    if failures > 0 {
        let doubled = limits::FETCH_RETRY_MIN * 2u32.pow(failures.min(16) - 1);
        return doubled.min(interval);
    }
    // Spread by the address of a fresh hasher's keys: no clock and no random number generator of our own.
    let spread = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0) % 100;
    interval.mul_f64(1.0 - f64::from(u8::try_from(spread).unwrap_or(0)) / 1_000.0)
}
