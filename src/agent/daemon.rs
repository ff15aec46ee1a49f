//! The agent as a whole: one task pair for each ReleaseSource of its namespace, and an orderly end.
//!
//! A ReleaseSource that appears starts its tasks, one that changes is handed to them, one that goes ends them. What was
//! applied stays: a ReleaseSource owns nothing by finalizer.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::StreamExt as _;
use kube::Api;
use kube::runtime::{WatchStreamExt as _, watcher};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::bell::Bell;
use super::claims::{Bells, Claims};
use super::heartbeat::{Heartbeat, Heartbeats};
use super::memory::Memory;
use super::outlets::Outlets;
use super::pass::Engine;
use super::source_task::{SourceState, SourceTask};
use super::target_task::TargetTask;
use crate::cluster::Cluster;
use crate::model::api::ReleaseSource;
use crate::model::{SourceName, limits};
use crate::observe::Observer;

/// What the agent is started with.
pub struct Settings {
    /// The namespace whose ReleaseSources are honoured.
    pub namespace: String,
    /// Where mirrors are kept.
    pub cache: PathBuf,
}

/// The running agent.
pub struct Daemon {
    settings: Arc<Settings>,
    cluster: Cluster,
    observer: Observer,
    /// Rings every target task, since the observer does not know whose object has changed.
    targets: Bells,
    claims: Claims,
    outlets: Outlets,
    heartbeats: Heartbeats,
    heartbeat: Heartbeat,
    /// Targets of one cluster pass one after another.
    turn: Arc<Mutex<()>>,
    stop: CancellationToken,
}

struct Running {
    resource: watch::Sender<Arc<ReleaseSource>>,
    target: Bell,
    stop: CancellationToken,
}

// === impl Daemon ===

impl Daemon {
    /// Makes the agent of one cluster. Nothing is sent before [`Daemon::run`].
    pub fn new(
        settings: Settings,
        cluster: Cluster,
        outlets: Outlets,
        heartbeats: Heartbeats,
        stop: CancellationToken,
    ) -> Self {
        let targets = Bells::default();
        let bells = Arc::clone(&targets);
        let observer = Observer::start(cluster.clone(), move || {
            let bells = bells
                .lock()
                .expect("nothing panics while holding the bells");
            bells.values().for_each(Bell::ring);
        });
        Self {
            settings: Arc::new(settings),
            cluster,
            observer,
            claims: Claims::new(Arc::clone(&targets)),
            targets,
            outlets,
            heartbeat: heartbeats.task("the watch of ReleaseSources"),
            heartbeats,
            turn: Arc::default(),
            stop,
        }
    }

    /// Follows the ReleaseSources until told to stop; then lets what is under way end, for a bounded time.
    pub async fn run(self) {
        let api: Api<ReleaseSource> =
            Api::namespaced(self.cluster.client(), &self.settings.namespace);
        let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
        let mut running: BTreeMap<String, Running> = BTreeMap::new();
        let mut tasks = JoinSet::new();
        let mut listed: Option<Vec<String>> = None;
        loop {
            let event = tokio::select! {
                () = self.stop.cancelled() => break,
                () = tokio::time::sleep(limits::HEARTBEAT) => {
                    self.heartbeat.beat();
                    continue;
                }
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                    // Tasks end only when they are told to; a panic in one must not leave a half-dead agent behind.
                    if let Err(error) = ended {
                        tracing::error!(%error, "a task has died; the agent stops");
                        self.stop.cancel();
                    }
                    continue;
                }
                event = events.next() => event,
            };
            match event {
                Some(Ok(watcher::Event::Init)) => listed = Some(Vec::new()),
                Some(Ok(watcher::Event::InitApply(resource))) => {
                    listed
                        .get_or_insert_default()
                        .extend(resource.metadata.name.clone());
                    self.upsert(resource, &mut running, &mut tasks);
                }
                Some(Ok(watcher::Event::Apply(resource))) => {
                    self.upsert(resource, &mut running, &mut tasks);
                }
                Some(Ok(watcher::Event::InitDone)) => {
                    if let Some(names) = listed.take() {
                        let gone: Vec<String> = running
                            .keys()
                            .filter(|name| !names.contains(name))
                            .cloned()
                            .collect();
                        for name in &gone {
                            self.remove(name, &mut running);
                        }
                    }
                    self.heartbeats.listed();
                }
                Some(Ok(watcher::Event::Delete(resource))) => {
                    if let Some(name) = resource.metadata.name {
                        self.remove(&name, &mut running);
                    }
                }
                Some(Err(error)) => tracing::warn!(%error, "failed to watch ReleaseSources"),
                None => break,
            }
        }
        for one in running.values() {
            one.stop.cancel();
        }
        let ended = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(limits::SHUTDOWN_DEADLINE, ended)
            .await
            .is_err()
        {
            tracing::warn!("stopped before everything under way had ended");
        }
    }

    fn upsert(
        &self,
        resource: ReleaseSource,
        running: &mut BTreeMap<String, Running>,
        tasks: &mut JoinSet<()>,
    ) {
        let name = resource.metadata.name.clone().unwrap_or_default();
        if let Some(one) = running.get(&name) {
            let changed = one.resource.borrow().metadata.generation != resource.metadata.generation
                || one.resource.borrow().metadata.annotations != resource.metadata.annotations;
            one.resource.send_replace(Arc::new(resource));
            // Our own writes of the status come back as events, too; those are no reason to look again.
            if changed {
                one.target.ring();
            }
            return;
        }
        let source = match SourceName::new(&name) {
            Ok(source) => source,
            Err(error) => {
                tracing::error!(%error, "a ReleaseSource is ignored: its name becomes a label");
                return;
            }
        };
        tracing::info!(source.name = %source, source.url = %resource.spec.url, "following a source");
        let one = self.start(source, resource, tasks);
        running.insert(name, one);
    }

    fn start(
        &self,
        source: SourceName,
        resource: ReleaseSource,
        tasks: &mut JoinSet<()>,
    ) -> Running {
        let stop = self.stop.child_token();
        let (resource_sender, resource) = watch::channel(Arc::new(resource));
        let (state_sender, state) = watch::channel(SourceState::default());
        let bell = Bell::default();
        self.bells().insert(source.clone(), bell.clone());
        let source_task = SourceTask {
            source: source.clone(),
            cluster: self.cluster.clone(),
            namespace: self.settings.namespace.clone(),
            cache: self.settings.cache.join(source.as_str()),
            resource: resource.clone(),
            state: state_sender,
            target: bell.clone(),
            outlets: self.outlets.clone(),
            stop: stop.clone(),
        };
        let target_task = TargetTask {
            heartbeat: self.heartbeats.task(&format!("target {source}")),
            source,
            namespace: self.settings.namespace.clone(),
            cluster: self.cluster.clone(),
            engine: Engine::new(
                self.cluster.clone(),
                self.observer.clone(),
                &self.settings.namespace,
            ),
            resource,
            state,
            bell: bell.clone(),
            outlets: self.outlets.clone(),
            turn: Arc::clone(&self.turn),
            claims: self.claims.clone(),
            stop: stop.clone(),
            memory: Memory::default(),
        };
        tasks.spawn(source_task.run());
        tasks.spawn(target_task.run());
        Running {
            resource: resource_sender,
            target: bell,
            stop,
        }
    }

    fn remove(&self, name: &str, running: &mut BTreeMap<String, Running>) {
        let Some(one) = running.remove(name) else {
            return;
        };
        one.stop.cancel();
        self.bells().retain(|source, _| source.as_str() != name);
        self.claims.forget(name);
        tracing::info!(
            source.name = name,
            "no longer following a source; what it applied stays"
        );
    }

    fn bells(&self) -> std::sync::MutexGuard<'_, BTreeMap<SourceName, Bell>> {
        self.targets
            .lock()
            .expect("nothing panics while holding the bells")
    }
}
