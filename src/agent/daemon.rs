//! The agent while it leads: one task pair for each ReleaseSource of its namespace, and an orderly end.
//!
//! A ReleaseSource that appears starts its tasks, one that changes is handed to them, one that goes ends them, and its Target
//! goes as well. What becomes of what was applied is settled before that, see `withdrawal`.

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
use super::lease::Skew;
use super::migration_news::MigrationNews;
use super::observers::Observers;
use super::outlets::Outlets;
use super::record::Record;
use super::replica::Ended;
use super::run_events::run_events;
use super::runtimes::{Board, FleetTask};
use super::source_task::{SourceState, SourceTask};
use super::webhook::WebhookTask;
use super::worker::Worker;
use crate::cluster::{AccessPolicy, Cluster};
use crate::model::api::{HOME, ReleaseSource};
use crate::model::{SourceName, limits};
use crate::report::DecisionAction;
use crate::server::webhook::Routes;

/// What the agent is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The namespace whose ReleaseSources are honoured.
    pub namespace: String,
    /// Where mirrors are kept.
    pub cache: PathBuf,
    /// Where kubeconfigs of runtimes may lead.
    pub runtime_access: AccessPolicy,
    /// The routing table of the webhook port; none when this agent does not listen on one.
    pub webhooks: Option<Routes>,
}

/// The running agent.
pub struct Daemon {
    settings: Arc<Settings>,
    cluster: Cluster,
    observers: Observers,
    /// Every target task's.
    targets: Bells,
    claims: Claims,
    outlets: Outlets,
    heartbeats: Heartbeats,
    heartbeat: Heartbeat,
    /// Targets of one cluster pass one after another.
    turn: Arc<Mutex<()>>,
    /// How our clock differs from the cluster's.
    skew: watch::Receiver<Option<Skew>>,
    stop: CancellationToken,
}

struct Running {
    resource: watch::Sender<Arc<ReleaseSource>>,
    target: Bell,
    stop: CancellationToken,
}

/// The sources that are followed, each with its tasks.
#[derive(Default)]
struct Followed {
    running: BTreeMap<String, Running>,
    tasks: JoinSet<()>,
    /// What a list that is under way has named so far.
    listed: Option<Vec<String>>,
    /// Whether the records of sources that went while nobody looked were looked for.
    swept: bool,
}

impl Followed {
    /// Returns the sources that are followed and not among these.
    fn all_but(&self, names: &[String]) -> Vec<String> {
        let gone = self.running.keys().filter(|name| !names.contains(name));
        gone.cloned().collect()
    }

    /// Lets what is under way end, for a bounded time.
    async fn end(mut self) -> Ended {
        for one in self.running.values() {
            one.stop.cancel();
        }
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(limits::SHUTDOWN_DEADLINE, ended)
            .await
            .is_err()
        {
            tracing::warn!("stopped before everything under way had ended");
            return Ended::Late;
        }
        Ended::Well
    }
}

// === impl Daemon ===

impl Daemon {
    /// Makes the agent of one cluster, which writes under the claim that `cluster` has. Nothing is sent before [`Daemon::run`].
    pub fn new(
        settings: Settings,
        cluster: Cluster,
        outlets: Outlets,
        heartbeats: Heartbeats,
        (skew, stop): (watch::Receiver<Option<Skew>>, CancellationToken),
    ) -> Self {
        let targets = Bells::default();
        Self {
            settings: Arc::new(settings),
            cluster,
            observers: Observers::new(Arc::clone(&targets)),
            claims: Claims::new(Arc::clone(&targets)),
            targets,
            outlets,
            heartbeat: heartbeats.task("the watch of ReleaseSources"),
            heartbeats,
            turn: Arc::default(),
            skew,
            stop,
        }
    }

    /// Follows the ReleaseSources until told to stop; then lets what is under way end, for a bounded time.
    pub async fn run(self) -> Ended {
        let api: Api<ReleaseSource> =
            Api::namespaced(self.cluster.client(), &self.settings.namespace);
        let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
        let mut followed = Followed::default();
        let mut skew = self.skew.clone();
        loop {
            let event = tokio::select! {
                () = self.stop.cancelled() => break,
                () = tokio::time::sleep(limits::HEARTBEAT) => {
                    self.heartbeat.beat();
                    continue;
                }
                Some(ended) = followed.tasks.join_next(), if !followed.tasks.is_empty() => {
                    // Tasks end only when they are told to; a panic in one must not leave a half-dead agent behind.
                    if let Err(error) = ended {
                        tracing::error!(%error, "a task has died; the agent stops");
                        self.stop.cancel();
                    }
                    continue;
                }
                Ok(()) = skew.changed() => {
                    self.bells().values().for_each(Bell::ring);
                    continue;
                }
                event = events.next() => event,
            };
            match event {
                Some(Ok(event)) => self.take_in(event, &mut followed).await,
                Some(Err(error)) => tracing::warn!(%error, "failed to watch ReleaseSources"),
                None => break,
            }
        }
        followed.end().await
    }

    async fn take_in(&self, event: watcher::Event<ReleaseSource>, followed: &mut Followed) {
        match event {
            watcher::Event::Init => followed.listed = Some(Vec::new()),
            watcher::Event::InitApply(resource) => {
                let name = resource.metadata.name.clone();
                followed.listed.get_or_insert_default().extend(name);
                self.upsert(resource, followed);
            }
            watcher::Event::Apply(resource) => self.upsert(resource, followed),
            watcher::Event::InitDone => {
                if let Some(names) = followed.listed.take() {
                    for name in followed.all_but(&names) {
                        self.remove(&name, &mut followed.running).await;
                    }
                    if !std::mem::replace(&mut followed.swept, true) {
                        self.sweep(&names).await;
                    }
                }
                self.heartbeats.listed();
            }
            watcher::Event::Delete(resource) => {
                if let Some(name) = resource.metadata.name {
                    self.remove(&name, &mut followed.running).await;
                }
            }
        }
    }

    fn upsert(&self, resource: ReleaseSource, followed: &mut Followed) {
        let name = resource.metadata.name.clone().unwrap_or_default();
        if let Some(one) = followed.running.get(&name) {
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
        let one = self.start(source, resource, &mut followed.tasks);
        followed.running.insert(name, one);
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
        let (bell, announced) = (Bell::default(), Bell::default());
        let (unannounced_sender, unannounced) = watch::channel(None);
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
            announced: announced.clone(),
            unannounced: unannounced_sender,
            secret: None,
            stop: stop.clone(),
        };
        let webhook_task = WebhookTask {
            source: source.clone(),
            cluster: self.cluster.clone(),
            namespace: self.settings.namespace.clone(),
            resource: resource.clone(),
            routes: self.settings.webhooks.clone(),
            announced,
            unannounced,
            stop: stop.clone(),
        };
        let board = Arc::new(Board::new(bell.clone()));
        let (published_sender, published) = watch::channel(None);
        let fleet_task = FleetTask {
            source: source.clone(),
            namespace: self.settings.namespace.clone(),
            home: self.cluster.clone(),
            resource: resource.clone(),
            published,
            board: Arc::clone(&board),
            outlets: self.outlets.clone(),
            policy: self.settings.runtime_access,
            stop: stop.clone(),
        };
        let (events, event_writer) = run_events(&self.outlets, resource.clone());
        let news = MigrationNews::new(&source, &self.settings.namespace, &self.outlets, events);
        let worker = Worker {
            source,
            namespace: self.settings.namespace.clone(),
            cluster: self.cluster.clone(),
            observers: self.observers.clone(),
            resource,
            state,
            bell: bell.clone(),
            outlets: self.outlets.clone(),
            heartbeats: self.heartbeats.clone(),
            turn: Arc::clone(&self.turn),
            claims: self.claims.clone(),
            published: published_sender,
            board,
            skew: self.skew.clone(),
            news,
            stop: stop.clone(),
        };
        tasks.spawn(source_task.run());
        tasks.spawn(webhook_task.run());
        tasks.spawn(worker.run());
        tasks.spawn(fleet_task.run());
        tasks.spawn(event_writer.run(stop.clone()));
        // What needs no fetch, such as the end of a source, is not kept waiting by a git server that is away.
        bell.ring();
        Running {
            resource: resource_sender,
            target: bell,
            stop,
        }
    }

    async fn remove(&self, name: &str, running: &mut BTreeMap<String, Running>) {
        let Some(one) = running.remove(name) else {
            return;
        };
        one.stop.cancel();
        self.bells().retain(|source, _| source.as_str() != name);
        self.claims.forget(name);
        tracing::info!(source.name = name, "no longer following a source");
        // With the turn in our hands no pass of it is under way that could write the Target again.
        let turn = tokio::time::timeout(limits::SHUTDOWN_DEADLINE, self.turn.lock()).await;
        if let Ok(source) = SourceName::new(name) {
            let policy = one.resource.borrow().spec.deletion_policy;
            let details = [format!("deletionPolicy: {policy:?}")];
            let whose = (self.settings.namespace.as_str(), &source, HOME);
            self.outlets
                .decided(whose, DecisionAction::DeleteSource, None, &details);
            self.forget(&source).await;
        }
        drop(turn);
    }

    /// Clears away the Targets of sources that went while no agent was there to see it.
    async fn sweep(&self, sources: &[String]) {
        match Record::sources(&self.cluster, &self.settings.namespace).await {
            Ok(recorded) => {
                for source in recorded {
                    if !sources.iter().any(|name| name == source.as_str()) {
                        self.forget(&source).await;
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "failed to look for Targets without a source"),
        }
    }

    async fn forget(&self, source: &SourceName) {
        let forgotten = Record::forget(&self.cluster, &self.settings.namespace, source).await;
        if let Err(error) = forgotten {
            tracing::warn!(source.name = %source, %error, "failed to delete the Target; the next start tries again");
        }
    }

    fn bells(&self) -> std::sync::MutexGuard<'_, BTreeMap<SourceName, Bell>> {
        self.targets
            .lock()
            .expect("nothing panics while holding the bells")
    }
}
