//! The migrations of a source on home: a conductor under the claim, and the watch that tells it of Runs.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::SignedDuration;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::bell::Bell;
use super::clock;
use super::record::Record;
use crate::cluster::{Acting, Cluster, ClusterError};
use crate::model::api::{HOME, ReleaseSource, Run, RunPhase};
use crate::model::{SourceName, limits};
use crate::runs::conductor::{Conductor, Listen, Whose, happens_once, run_selector};
use crate::runs::{ClusterEffects, ClusterRuns, Driver, ProcessClock, RunHistory};

/// What runs the migrations of a source on home.
pub type HomeConductor = Conductor<ClusterEffects, ClusterRuns, ProcessClock>;

/// Makes the conductor of a source on home, which writes under the claim that `cluster` has. What its migrations look at and do goes
/// through `acting`, their records do not.
pub fn conductor(
    (cluster, acting): (&Cluster, &Acting),
    namespace: &str,
    source: &SourceName,
    listener: Arc<dyn Listen>,
    ring: impl Fn() + Send + Sync + 'static,
    stop: CancellationToken,
) -> HomeConductor {
    let whose = Whose {
        source: source.clone(),
        cluster: HOME.to_owned(),
        cluster_uid: cluster.uid().to_string(),
        namespace: namespace.to_owned(),
    };
    let effects = ClusterEffects::new(acting, namespace);
    let store = ClusterRuns::new(cluster.clone(), namespace);
    let clock = ProcessClock::new(clock::now);
    let driver = Driver::new(effects, store, clock, cluster.claim());
    Conductor::new(whose, driver, listener, ring, stop)
}

/// Writes down that a run is about to be deleted.
type TellTrimmed = Box<dyn Fn(&Run) -> std::io::Result<()> + Send + Sync>;

/// What becomes of Runs that are over.
pub struct Keep {
    /// The source, with how long they are kept.
    pub resource: watch::Receiver<Arc<ReleaseSource>>,
    /// Writes down that one is about to be deleted; where that fails, it stays.
    pub tell: TellTrimmed,
}

impl Keep {
    /// Deletes the oldest runs that are over, each with an audit line first. Nothing is asked of the cluster while there are not too
    /// many. Returns when to look again.
    async fn trim(
        &mut self,
        conductor: &HomeConductor,
        store: &ClusterRuns,
        source: &SourceName,
    ) -> Result<Duration, ClusterError> {
        let history = RunHistory::from(&self.resource.borrow_and_update().spec.history);
        let Some((ended, in_use)) = conductor.ended() else {
            return Ok(limits::RUN_TRIM_PATIENCE);
        };
        let age_max = SignedDuration::from_hours(24 * i64::from(history.days));
        let now = clock::now();
        let is_old = ended
            .last()
            .is_some_and(|oldest| now.duration_since(*oldest) > age_max);
        if ended.len() <= history.runs && !is_old {
            return Ok(limits::RUN_TRIM_INTERVAL);
        }
        let runs = store.list(&run_selector(source, HOME)).await?;
        for run in history.surplus(&runs, &in_use, now) {
            let told = store.trim(run, |run| {
                (self.tell)(run).map_err(|error| ClusterError::Invalid {
                    request: "write an audit line".to_owned(),
                    message: error.to_string(),
                })
            });
            told.await?;
        }
        Ok(limits::RUN_TRIM_INTERVAL)
    }
}

/// Looks for surplus runs when that is due, or when what is said about them has changed.
async fn tidy(
    mut keep: Option<Keep>,
    conductor: &HomeConductor,
    store: &ClusterRuns,
    source: &SourceName,
) {
    let Some(keep) = &mut keep else {
        return std::future::pending().await;
    };
    loop {
        let rest = match keep.trim(conductor, store, source).await {
            Ok(rest) => rest,
            Err(error) => {
                tracing::warn!(source.name = %source, %error, "failed to trim Runs");
                limits::RUN_TRIM_INTERVAL
            }
        };
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            changed = keep.resource.changed() => {
                if changed.is_err() {
                    return std::future::pending().await;
                }
            }
        }
    }
}

/// Follows the Runs of a source on home, until told to stop; then waits until what is under way has been written down. Without `keep`
/// nothing is deleted.
pub async fn follow_runs(
    conductor: HomeConductor,
    cluster: Cluster,
    namespace: String,
    source: SourceName,
    keep: Option<Keep>,
    stop: CancellationToken,
) {
    let store = ClusterRuns::new(cluster.clone(), namespace.as_str());
    let mut tidying = std::pin::pin!(tidy(keep, &conductor, &store, &source));
    let api: Api<Run> = Api::namespaced(cluster.client(), &namespace);
    let config = watcher::Config::default().labels(&run_selector(&source, HOME));
    let mut events = std::pin::pin!(watcher(api, config).default_backoff());
    let mut listed: Vec<Run> = Vec::new();
    let mut is_recalled = false;
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => break,
            () = &mut tidying => break,
            event = events.next() => event,
        };
        match event {
            Some(Ok(watcher::Event::Init)) => listed.clear(),
            Some(Ok(watcher::Event::InitApply(run))) => listed.push(run),
            Some(Ok(watcher::Event::InitDone)) => {
                let listed = std::mem::take(&mut listed);
                let is_asked = !is_recalled && listed.iter().any(is_open_once);
                conductor.listed(listed);
                if is_asked {
                    is_recalled = true;
                    recall(&conductor, &cluster, &namespace, &source).await;
                }
            }
            Some(Ok(watcher::Event::Apply(run))) => conductor.seen(run),
            Some(Ok(watcher::Event::Delete(run))) => conductor.gone(&run.name_any()),
            Some(Err(error)) => {
                tracing::warn!(source.name = %source, %error, "failed to watch Runs");
                conductor.unlisted(&error.to_string());
            }
            None => break,
        }
    }
    conductor.end().await;
}

fn is_open_once(run: &Run) -> bool {
    let phase = run.status.as_ref().map(|status| status.phase);
    happens_once(run) && !phase.is_some_and(RunPhase::is_over)
}

/// Tells a conductor what the target remembers: a run inside a step waits neither for git nor for the end of a suspension.
async fn recall(
    conductor: &HomeConductor,
    cluster: &Cluster,
    namespace: &str,
    source: &SourceName,
) {
    match Record::load(cluster, namespace, source).await {
        Ok(record) => conductor.recall(record.committed().once),
        // The first pass tells.
        Err(error) => {
            tracing::warn!(source.name = %source, %error, "failed to read what happens once");
        }
    }
}

/// Rings the bell of a target when a hook has come further.
pub(super) fn ringing(bell: Bell) -> impl Fn() + Send + Sync + 'static {
    move || bell.ring()
}
