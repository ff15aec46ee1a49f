//! The migrations of a source on home: a conductor under the claim, and the watch that tells it of Runs.

use std::sync::Arc;

use futures::StreamExt as _;
use jiff::SignedDuration;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::bell::Bell;
use super::clock;
use crate::cluster::{Cluster, ClusterError};
use crate::model::api::{HOME, Run};
use crate::model::{SourceName, limits};
use crate::runs::conductor::{Conductor, Listen, Whose, run_selector};
use crate::runs::{ClusterEffects, ClusterRuns, Driver, ProcessClock, RunHistory};

/// What runs the migrations of a source on home.
pub type HomeConductor = Conductor<ClusterEffects, ClusterRuns, ProcessClock>;

/// Makes the conductor of a source on home, which writes under the claim that `cluster` has.
pub fn conductor(
    cluster: &Cluster,
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
    let effects = ClusterEffects::new(cluster.clone(), namespace);
    let store = ClusterRuns::new(cluster.clone(), namespace);
    let clock = ProcessClock::new(clock::now);
    let driver = Driver::new(effects, store, clock, cluster.claim());
    Conductor::new(whose, driver, listener, ring, stop)
}

/// Deletes the oldest runs that are over, each with an audit line first. Nothing is asked of the cluster while there are not too many.
async fn trim(
    conductor: &HomeConductor,
    store: &ClusterRuns,
    source: &SourceName,
    tell: &TellTrimmed,
) -> Result<(), ClusterError> {
    let history = RunHistory::default();
    let (ended, in_use) = conductor.ended();
    let age_max = SignedDuration::from_hours(24 * i64::from(history.days));
    let now = clock::now();
    let is_old = ended
        .last()
        .is_some_and(|oldest| now.duration_since(*oldest) > age_max);
    if ended.len() <= history.runs && !is_old {
        return Ok(());
    }
    let runs = store.list(&run_selector(source, HOME)).await?;
    for run in history.surplus(&runs, &in_use, now) {
        let told = store.trim(run, |run| {
            tell(run).map_err(|error| ClusterError::Invalid {
                request: "write an audit line".to_owned(),
                message: error.to_string(),
            })
        });
        told.await?;
    }
    Ok(())
}

/// Writes down that a run is about to be deleted.
pub(super) type TellTrimmed = dyn Fn(&Run) -> std::io::Result<()> + Send + Sync;

/// Follows the Runs of a source on home, until told to stop; then waits until what is under way has been written down.
pub async fn follow_runs(
    conductor: HomeConductor,
    cluster: Cluster,
    namespace: String,
    source: SourceName,
    tell: Option<Arc<TellTrimmed>>,
    stop: CancellationToken,
) {
    let store = ClusterRuns::new(cluster.clone(), namespace.as_str());
    let mut tidy = tokio::time::interval(limits::RUN_TRIM_INTERVAL);
    tidy.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let api: Api<Run> = Api::namespaced(cluster.client(), &namespace);
    let config = watcher::Config::default().labels(&run_selector(&source, HOME));
    let mut events = std::pin::pin!(watcher(api, config).default_backoff());
    let mut listed: Vec<Run> = Vec::new();
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => break,
            _ = tidy.tick() => {
                if let Some(tell) = &tell
                    && let Err(error) = trim(&conductor, &store, &source, tell.as_ref()).await
                {
                    tracing::warn!(source.name = %source, %error, "failed to trim Runs");
                }
                continue;
            }
            event = events.next() => event,
        };
        match event {
            Some(Ok(watcher::Event::Init)) => listed.clear(),
            Some(Ok(watcher::Event::InitApply(run))) => listed.push(run),
            Some(Ok(watcher::Event::InitDone)) => conductor.listed(std::mem::take(&mut listed)),
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

/// Rings the bell of a target when a hook has come further.
pub(super) fn ringing(bell: Bell) -> impl Fn() + Send + Sync + 'static {
    move || bell.ring()
}
