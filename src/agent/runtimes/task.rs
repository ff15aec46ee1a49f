//! The task of one runtime of one source: brings its catalog up to home's whenever its bell rings.

use std::sync::{Arc, Mutex};

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::board::Board;
use super::contest::Contest;
use super::fleet::Gate;
use super::gone::write_gone;
use super::link::{Blocked, Link, LinkRequest};
use crate::agent::bell::Bell;
use crate::agent::clock;
use crate::agent::outlets::Outlets;
use crate::agent::record::Record;
use crate::agent::target_task::retry_delay;
use crate::cluster::{AccessPolicy, Cluster, ClusterError};
use crate::desired::Desired;
use crate::fleet::{
    AccessSecret, Discovered, Kyma, Published, RuntimeCatalog, RuntimeName, render,
};
use crate::model::SourceName;
use crate::model::api::{CatalogMode, ConditionReason, ReleaseSource, TargetStatus};
use crate::model::limits::{RUNTIME_RETRY_MAX, RUNTIME_RETRY_MIN};
use crate::model::names::ANNOTATION_REQUESTED_AT;
use crate::report::{RuntimeState, target_blocked};

/// What is the same for all runtimes of a source.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub(super) source: SourceName,
    /// The namespace of Targets.
    pub(super) namespace: String,
    pub(super) home: Cluster,
    pub(super) resource: watch::Receiver<Arc<ReleaseSource>>,
    pub(super) published: watch::Receiver<Option<Arc<Published>>>,
    pub(super) discovered: watch::Receiver<Discovered>,
    pub(super) board: Arc<Board>,
    pub(super) gate: Arc<Mutex<Gate>>,
    /// Rung when a runtime has come to a result, so that the next wave can begin.
    pub(super) fleet: Bell,
    pub(super) outlets: Outlets,
    pub(super) policy: AccessPolicy,
}

impl Surroundings {
    /// Returns whether a runtime is known not to be there any more.
    pub(super) fn is_gone(&self, name: &RuntimeName) -> bool {
        let found = self.discovered.borrow();
        found.listed.is_complete() && !found.kymas.contains_key(name)
    }
}

/// Keeps one runtime in step.
pub(super) struct RuntimeTask {
    pub(super) name: RuntimeName,
    pub(super) around: Surroundings,
    pub(super) bell: Bell,
    pub(super) stop: CancellationToken,
    pub(super) memory: Memory,
}

/// What the task keeps from pass to pass.
#[derive(Default)]
pub(super) struct Memory {
    link: Option<Link>,
    pub(super) record: Option<Record>,
    rendered: Option<(Arc<Published>, Kyma, Rendered)>,
    pub(super) contest: Contest,
    /// Times in a row that the runtime could not be worked on.
    failures: u32,
    /// When it may be tried again by itself.
    due: Option<Instant>,
    /// Which request for a pass was seen last.
    requested_at: Option<String>,
    /// The Secret that was tried last.
    tried: Option<AccessSecret>,
}

#[derive(Clone)]
pub(super) struct Rendered {
    pub(super) desired: Arc<Desired>,
    pub(super) catalog: Arc<RuntimeCatalog>,
}

/// What a look came to.
pub(super) enum Done {
    /// A pass, with its report written.
    Passed {
        state: RuntimeState,
        next: Option<Instant>,
    },
    /// A pass that ended early though the runtime answers; it is tried again after a delay.
    Failed(RuntimeState),
    /// Nothing was to be done; the runtime waits for its turn, or is left alone.
    Waiting(Option<Instant>),
}

// === impl RuntimeTask ===

impl RuntimeTask {
    pub(super) async fn run(mut self) {
        let mut next: Option<Instant> = Some(Instant::now());
        loop {
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = self.bell.rung() => {}
                () = at(next) => {}
            }
            next = self.look().await;
        }
        self.say_gone().await;
    }

    /// Says in the record that the runtime is gone, when that is why the task ends.
    async fn say_gone(&mut self) {
        let resource = Arc::clone(&self.around.resource.borrow());
        if resource.metadata.deletion_timestamp.is_some() || !self.around.is_gone(&self.name) {
            return;
        }
        if let Err(error) = write_gone(&self.around, &self.name, &resource).await {
            tracing::warn!(runtime.name = %self.name, %error, "failed to write that the runtime is gone");
        }
    }

    /// Looks once. Returns when to look again without a bell.
    async fn look(&mut self) -> Option<Instant> {
        let resource = Arc::clone(&self.around.resource.borrow());
        let published = self.around.published.borrow().clone()?;
        if resource.spec.suspend || resource.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let (kyma, access) = {
            let found = self.around.discovered.borrow();
            let kyma = found.kymas.get(&self.name)?.clone();
            (kyma, found.access.of(&self.name).cloned())
        };
        if kyma.skip {
            self.around.board.remove(&self.name);
            self.memory.link = None;
            return None;
        }
        let annotations = resource.metadata.annotations.as_ref();
        let requested = annotations.and_then(|all| all.get(ANNOTATION_REQUESTED_AT));
        if self.memory.requested_at.as_ref() != requested {
            // Who asks for a pass asks for a fresh look, also at a record that somebody has deleted meanwhile.
            self.memory.requested_at = requested.cloned();
            self.memory.record = None;
        }
        let outcome = match access {
            Err(error) => {
                self.memory.link = None;
                Err(Blocked {
                    reason: ConditionReason::AccessRefused,
                    message: error.to_string(),
                    found: None,
                })
            }
            Ok(secret) => {
                if let Some(due) = self.resting(&secret) {
                    return Some(due);
                }
                self.work(&resource, &published, &kyma, &secret).await
            }
        };
        match outcome {
            Ok(Done::Waiting(next)) => next,
            Ok(Done::Passed { state, next }) => {
                self.memory.failures = 0;
                self.memory.due = None;
                self.came_to(&published, state);
                next
            }
            Ok(Done::Failed(state)) => {
                tracing::warn!(runtime.name = %self.name, ?state, "a pass over the runtime has ended early");
                self.memory.failures += 1;
                self.memory.due = None;
                self.came_to(&published, state);
                Some(Instant::now() + retry_delay(self.memory.failures))
            }
            Err(blocked) => self.blocked(&published, &blocked).await,
        }
    }

    /// Returns until when a runtime that failed is left in peace, unless its Secret has changed since.
    fn resting(&mut self, secret: &AccessSecret) -> Option<Instant> {
        if self.memory.tried.as_ref() != Some(secret) {
            self.memory.tried = Some(secret.clone());
            self.memory.failures = 0;
            self.memory.due = None;
        }
        self.memory.due.filter(|due| *due > Instant::now())
    }

    fn came_to(&self, published: &Published, state: RuntimeState) {
        let revision = &published.desired.revision;
        self.around.board.set(&self.name, revision, state);
        let mut gate = self.around.gate.lock().expect(NO_PANIC);
        let opened = gate.done(&self.name, &published.desired.revision);
        drop(gate);
        if opened {
            self.around.fleet.ring();
        }
    }

    async fn blocked(&mut self, published: &Published, blocked: &Blocked) -> Option<Instant> {
        let again = blocked.reason == ConditionReason::Unreachable;
        if again {
            self.memory.failures += 1;
            let doubled = RUNTIME_RETRY_MIN * 2u32.pow(self.memory.failures.min(16) - 1);
            self.memory.due = Some(Instant::now() + doubled.min(RUNTIME_RETRY_MAX));
            self.memory.link = None;
        }
        let state = if again {
            RuntimeState::Unreachable(blocked.message.clone())
        } else {
            RuntimeState::Held(blocked.message.clone())
        };
        self.came_to(published, state);
        let (reason, message) = (blocked.reason, blocked.message.clone());
        let source = self.around.source.to_string();
        let written = self
            .write(|before| {
                let mut after = target_blocked(before, &source, (reason, &message), clock::now());
                after.found_cluster_uid = blocked.found.as_ref().map(ToString::to_string);
                after
            })
            .await;
        if let Err(error) = written {
            tracing::warn!(runtime.name = %self.name, %error, "failed to write the status");
        }
        self.memory.due.or(self.memory.contest.until())
    }

    async fn work(
        &mut self,
        resource: &ReleaseSource,
        published: &Arc<Published>,
        kyma: &Kyma,
        secret: &AccessSecret,
    ) -> Result<Done, Blocked> {
        let mode = resource.spec.runtimes.catalog;
        let wanted = (secret.clone(), mode);
        let mut link = match self.memory.link.take() {
            Some(link) if link.made_from == wanted => link,
            _ => {
                self.memory.rendered = None;
                let made = Link::make(LinkRequest {
                    home: &self.around.home,
                    agent: &self.around.namespace,
                    namespace: &resource.spec.catalog.namespace,
                    name: &self.name,
                    secret,
                    mode,
                    policy: self.around.policy,
                    bell: &self.bell,
                });
                tokio::select! {
                    made = made => made?,
                    () = self.stop.cancelled() => return Ok(Done::Waiting(None)),
                }
            }
        };
        self.load_record(&link)
            .await
            .map_err(|error| Blocked::unreachable(&error))?;
        if let Some(wait) = self.turn(published) {
            self.memory.link = Some(link);
            return Ok(Done::Waiting(Some(wait)));
        }
        let rendered = self.render(published, kyma, &link);
        let done = match mode {
            CatalogMode::Sync => {
                Box::pin(self.sync(resource, published, &rendered, &mut link)).await
            }
            CatalogMode::Observe | CatalogMode::Off => self.observe(&rendered, &link).await,
        };
        self.memory.link = Some(link);
        done
    }

    /// Returns when to look again, if a revision that is new here has not come to this runtime's wave yet.
    fn turn(&self, published: &Published) -> Option<Instant> {
        let status = self.memory.record.as_ref()?.status();
        let revision = published.desired.revision.to_string();
        if status.revision.as_deref() == Some(revision.as_str()) || status.revision.is_none() {
            return None;
        }
        let gate = self.around.gate.lock().expect(NO_PANIC);
        gate.wait(&self.name).map(|left| Instant::now() + left)
    }

    async fn load_record(&mut self, link: &Link) -> Result<(), ClusterError> {
        let uid = link.cluster.uid();
        if self
            .memory
            .record
            .as_ref()
            .is_none_or(|record| record.uid() != uid)
        {
            let around = &self.around;
            let cluster = (self.name.as_str(), uid);
            let record =
                Record::load_of(&around.home, &around.namespace, &around.source, cluster).await?;
            self.memory.record = Some(record);
        }
        Ok(())
    }

    fn render(&mut self, published: &Arc<Published>, kyma: &Kyma, link: &Link) -> Rendered {
        if let Some((of, with, rendered)) = &self.memory.rendered
            && Arc::ptr_eq(of, published)
            && with == kyma
        {
            return rendered.clone();
        }
        let catalog = render(published, kyma, link.namespace());
        let rendered = Rendered {
            desired: Arc::new(catalog.desired.clone()),
            catalog: Arc::new(catalog),
        };
        self.memory.rendered = Some((Arc::clone(published), kyma.clone(), rendered.clone()));
        rendered
    }

    /// Writes the Target, if it changes; one that was not read yet is read first.
    pub(super) async fn write(
        &mut self,
        change: impl FnOnce(&TargetStatus) -> TargetStatus,
    ) -> Result<(), ClusterError> {
        if let Some(mut record) = self.memory.record.take() {
            let status = change(record.status());
            let written = record.write(status).await;
            self.memory.record = Some(record);
            return written;
        }
        let around = &self.around;
        // Home's uid stands in for one that is not known; nothing is claimed with it, and the record is not kept.
        let cluster = (self.name.as_str(), around.home.uid());
        let mut record =
            Record::load_of(&around.home, &around.namespace, &around.source, cluster).await?;
        let status = change(record.status());
        record.write(status).await
    }
}

pub(super) const NO_PANIC: &str = "nothing panics while holding the gate";

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
