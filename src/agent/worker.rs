//! What acts for the repository of one source: its target task, its conductor, and the watch of its Runs.
//!
//! All of them act as the same account. When `spec.serviceAccountName` changes they end, as when the agent is told to stop, and begin
//! anew as the other one: nothing that was seen or allowed as one account counts for another. Fetching, runtimes and webhooks have no
//! part in it and go on.

use std::sync::Arc;

use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::bell::Bell;
use super::claims::Claims;
use super::heartbeat::Heartbeats;
use super::lease::Skew;
use super::memory::Memory;
use super::migration_news::MigrationNews;
use super::migrations::{Keep, conductor, follow_runs, ringing};
use super::observers::Observers;
use super::outlets::Outlets;
use super::pass::Engine;
use super::runtimes::Board;
use super::source_task::SourceState;
use super::target_task::TargetTask;
use crate::cluster::{Acting, Cluster};
use crate::fleet::Published;
use crate::model::api::{ReleaseSource, ReleaseSourceSpec};
use crate::model::{SourceName, limits};

/// Keeps the tasks that act for a source's repository, as the account that it names now.
pub(super) struct Worker {
    pub(super) source: SourceName,
    pub(super) namespace: String,
    pub(super) cluster: Cluster,
    pub(super) observers: Observers,
    pub(super) resource: watch::Receiver<Arc<ReleaseSource>>,
    pub(super) state: watch::Receiver<SourceState>,
    pub(super) bell: Bell,
    pub(super) outlets: Outlets,
    pub(super) heartbeats: Heartbeats,
    pub(super) turn: Arc<Mutex<()>>,
    pub(super) claims: Claims,
    pub(super) published: watch::Sender<Option<Arc<Published>>>,
    pub(super) board: Arc<Board>,
    pub(super) skew: watch::Receiver<Option<Skew>>,
    pub(super) news: Arc<MigrationNews>,
    pub(super) stop: CancellationToken,
}

// === impl Worker ===

impl Worker {
    pub(super) async fn run(self) {
        loop {
            let mut resource = self.resource.clone();
            let spec = resource.borrow_and_update().spec.clone();
            let named = spec.service_account_name.as_ref();
            let stop = self.stop.child_token();
            let mut tasks = self.start(self.acting(&spec), &stop);
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = renamed(&mut resource, named) => {
                    tracing::info!(
                        source.name = %self.source,
                        source.account = named.map_or("the agent's own", String::as_str),
                        "this account does not act for the source any more"
                    );
                }
                ended = tasks.join_next() => assert!(
                    matches!(ended, Some(Ok(()))) && self.stop.is_cancelled(),
                    "a task of the source has died"
                ),
            }
            stop.cancel();
            let ended = async {
                while let Some(ended) = tasks.join_next().await {
                    ended.expect("a task of the source has died");
                }
            };
            if self.stop.is_cancelled() {
                // How long that may take is for who tells all to stop.
                ended.await;
                return;
            }
            if tokio::time::timeout(limits::SHUTDOWN_DEADLINE, ended)
                .await
                .is_err()
            {
                tracing::warn!(source.name = %self.source, "what was under way as the former account is given up");
                tasks.shutdown().await;
            }
            // What is next does not wait for a change.
            self.bell.ring();
        }
    }

    /// Returns the connection for what the repository says.
    fn acting(&self, spec: &ReleaseSourceSpec) -> Acting {
        match spec.account(&self.namespace) {
            Ok(None) => self.cluster.acting_as_itself(),
            Ok(Some(account)) => self.cluster.acting_as(account),
            Err(error) => self.cluster.acting_as_nobody(error),
        }
    }

    fn start(&self, acting: Acting, stop: &CancellationToken) -> JoinSet<()> {
        let conductor = conductor(
            (&self.cluster, &acting),
            &self.namespace,
            &self.source,
            self.news.clone(),
            ringing(self.bell.clone()),
            stop.clone(),
        );
        let news = Arc::clone(&self.news);
        let runs_task = follow_runs(
            conductor.clone(),
            self.cluster.clone(),
            self.namespace.clone(),
            self.source.clone(),
            Some(Keep {
                resource: self.resource.clone(),
                tell: Box::new(move |run| news.trimmed(run)),
            }),
            stop.clone(),
        );
        let observer = self.observers.of(&acting);
        let engine = Engine::new(
            self.cluster.clone(),
            acting.clone(),
            observer,
            &self.namespace,
        );
        let target_task = TargetTask {
            source: self.source.clone(),
            namespace: self.namespace.clone(),
            cluster: self.cluster.clone(),
            acting,
            engine: engine.with_conductor(Arc::new(conductor)),
            resource: self.resource.clone(),
            state: self.state.clone(),
            bell: self.bell.clone(),
            outlets: self.outlets.clone(),
            heartbeat: self.heartbeats.task(&format!("target {}", self.source)),
            turn: Arc::clone(&self.turn),
            claims: self.claims.clone(),
            stop: stop.clone(),
            published: self.published.clone(),
            board: Arc::clone(&self.board),
            memory: Memory::default(),
            skew: self.skew.clone(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(target_task.run());
        tasks.spawn(runs_task);
        tasks
    }
}

/// Waits until a source names another account.
async fn renamed(resource: &mut watch::Receiver<Arc<ReleaseSource>>, from: Option<&String>) {
    let is_other =
        |resource: &Arc<ReleaseSource>| resource.spec.service_account_name.as_ref() != from;
    if resource.wait_for(is_other).await.is_err() {
        // The source is gone; whoever follows it says so.
        std::future::pending::<()>().await;
    }
}
