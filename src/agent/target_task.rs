//! The task of one target: passes whenever its bell rings, and writes down what came of it.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use super::approval::{approve, is_new_approval};
use super::bell::Bell;
use super::claims::Claims;
use super::clock;
use super::heartbeat::Heartbeat;
use super::lease::Skew;
use super::listener::Listener;
use super::memory::Memory;
use super::outlets::Outlets;
use super::pass::{Engine, Pass, PassRequest, Presence};
use super::record::Record;
use super::runtimes::Board;
use super::source_task::SourceState;
use crate::cluster::{Acting, Cluster, ClusterError};
use crate::desired::{Desired, EvaluateOptions};
use crate::fleet::Published;
use crate::model::api::{ApprovalRecord, Decision, DecisionKind, HOME, ReleaseSource};
use crate::model::snapshot::CommitInfo;
use crate::model::{Revision, Snapshot, SourceName, limits};
use crate::plan::{Approval, PruneSettings};
use crate::report::{
    DecisionAction, Effect, FetchFailure, Origin, PassReport, source_status, source_suspended,
    target_status,
};

/// Keeps home in step with one source.
pub(super) struct TargetTask {
    pub(super) source: SourceName,
    pub(super) namespace: String,
    /// Where our own records are.
    pub(super) cluster: Cluster,
    /// As whom everything is done that the repository says.
    pub(super) acting: Acting,
    pub(super) engine: Engine,
    pub(super) resource: watch::Receiver<Arc<ReleaseSource>>,
    pub(super) state: watch::Receiver<SourceState>,
    pub(super) bell: Bell,
    pub(super) outlets: Outlets,
    pub(super) heartbeat: Heartbeat,
    /// Held while something is executed: targets of one cluster write one after another. Reading, evaluating and the first
    /// lists of a large source hold nobody up.
    pub(super) turn: Arc<Mutex<()>>,
    pub(super) claims: Claims,
    pub(super) stop: CancellationToken,
    /// What runtimes follow: what home has after each pass.
    pub(super) published: watch::Sender<Option<Arc<Published>>>,
    /// How the runtimes stand.
    pub(super) board: Arc<Board>,
    pub(super) memory: Memory,
    /// How the agent's clock differs from the cluster's.
    pub(super) skew: watch::Receiver<Option<Skew>>,
}

/// What one pass came to, before it is reported.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) desired: Option<Arc<Desired>>,
    pub(super) pass: Option<Pass>,
    effects: Vec<Effect>,
    /// What is left of an approval after the pass.
    approval: Option<Approval>,
}

// === impl TargetTask ===

impl TargetTask {
    pub(super) async fn run(mut self) {
        let mut next = None;
        loop {
            let rest = next.unwrap_or_else(|| Instant::now() + limits::HEARTBEAT);
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.bell.rung() => {}
                () = tokio::time::sleep_until(rest.min(Instant::now() + limits::HEARTBEAT)) => {
                    self.heartbeat.beat();
                    if next.is_none_or(|next| next > Instant::now()) {
                        continue;
                    }
                }
            }
            self.heartbeat.beat();
            next = self.look().await;
        }
    }

    /// Looks once: a pass, and its report. Returns when to look again without a bell.
    async fn look(&mut self) -> Option<Instant> {
        let resource = Arc::clone(&self.resource.borrow_and_update());
        // Nobody watches the record. It is read again with each fetch, so that an edit or a loss is found out within the
        // source's interval, and before a pass that somebody has asked for.
        if self.state.has_changed().unwrap_or(true) {
            self.memory.record = None;
            self.memory.confirmed = false;
            self.engine.forget_template_use();
        }
        let state = self.state.borrow_and_update().clone();
        if resource.metadata.deletion_timestamp.is_some() {
            return self.withdraw(&resource, &state).await;
        }
        self.note_suspension(&resource);
        let settled = self.settle_finalizer(&resource).await;
        if resource.spec.suspend {
            return self.rest(&resource, settled).await;
        }
        let attempt = state.attempt.clone()?;
        let started = clock::now();
        let mut progress = Progress::default();
        let passed = self.pass(&resource, &state, &mut progress).await;
        self.publish(&state, &progress);
        let failed = passed.and(settled).err();
        if self.stop.is_cancelled() && failed.is_none() && progress.pass.is_none() {
            return None;
        }
        let reported = self
            .report(
                &resource,
                &state,
                &attempt,
                &progress,
                failed.as_ref(),
                started,
            )
            .await;
        if let Err(error) = &reported {
            tracing::warn!(source.name = %self.source, %error, "failed to write the status");
        }
        if failed.is_some() || reported.is_err() {
            self.memory.failures += 1;
            return Some(Instant::now() + retry_delay(self.memory.failures));
        }
        self.memory.failures = 0;
        progress.pass.and_then(|pass| pass.next)
    }

    /// Hands what home has now to the runtimes. They are told again only of what differs.
    fn publish(&self, state: &SourceState, progress: &Progress) {
        let (Some(snapshot), Some(pass)) = (&state.snapshot, &progress.pass) else {
            return;
        };
        let published = Published::of(&pass.desired, &pass.plan, &snapshot.commit);
        self.published.send_if_modified(|before| {
            let differs = before.as_ref().is_none_or(|before| {
                !Arc::ptr_eq(&before.desired, &published.desired)
                    || before.not_on_home != published.not_on_home
            });
            if differs {
                *before = Some(Arc::new(published));
            }
            differs
        });
    }

    /// Writes down that somebody has suspended or resumed the source. What happened while no agent was there is not known.
    fn note_suspension(&mut self, resource: &ReleaseSource) {
        let suspend = resource.spec.suspend;
        let action = match self.memory.suspended.replace(suspend) {
            Some(before) if before != suspend && suspend => DecisionAction::Suspend,
            Some(before) if before != suspend => DecisionAction::Resume,
            _ => return,
        };
        let whose = (self.namespace.as_str(), &self.source, HOME);
        self.outlets.decided(whose, action, None, &[]);
    }

    /// Says that a suspended source was seen; there is nothing else to do.
    async fn rest(
        &mut self,
        resource: &ReleaseSource,
        settled: Result<(), ClusterError>,
    ) -> Option<Instant> {
        let before = self.memory.status(resource);
        let generation = resource.metadata.generation.unwrap_or_default();
        let after = source_suspended(&before, generation);
        let written = self.outlets.write_source(resource, &before, &after).await;
        let written = self.memory.remember(resource, (before, after), written);
        written.and(settled).err().map(|error| {
            tracing::warn!(source.name = %self.source, %error, "failed to write the status or the finalizer");
            Instant::now() + limits::FAILURE_DELAY_MIN
        })
    }

    /// Returns whether this source was never looked at before.
    pub(super) fn is_new(&self, resource: &ReleaseSource) -> bool {
        self.memory
            .status(resource)
            .last_attempted_revision
            .is_none()
    }

    /// Reads a person's decision; one that cannot be read decides nothing, and that is said once.
    pub(super) fn decision(&mut self, resource: &ReleaseSource) -> Option<Decision> {
        match Decision::read(resource) {
            Ok(decision) => decision,
            Err(error) => {
                let text = error.to_string();
                if self.memory.unread_decision.as_ref() != Some(&text) {
                    tracing::warn!(
                        source.name = %self.source,
                        error = %text,
                        "a decision cannot be read and decides nothing; make it again with `fairway approve`"
                    );
                    self.memory.unread_decision = Some(text);
                }
                None
            }
        }
    }

    async fn pass(
        &mut self,
        resource: &ReleaseSource,
        state: &SourceState,
        progress: &mut Progress,
    ) -> Result<(), ClusterError> {
        let Some(snapshot) = &state.snapshot else {
            return Ok(());
        };
        let options = self.evaluate_options(resource);
        let decision = self.decision(resource);
        // Who asks for a pass asks for a fresh look, also at a record that somebody has deleted meanwhile.
        let handled = self.memory.status(resource).last_handled_reconcile_at;
        if state.requested_at != handled {
            self.memory.record = None;
            self.memory.confirmed = false;
        }
        let mut record = match self.memory.record.take() {
            Some(record) => record,
            None => Record::load(&self.cluster, &self.namespace, &self.source).await?,
        };
        let desired = self.engine.evaluate(snapshot, &options).await;
        progress.desired = Some(Arc::clone(&desired));
        let outcome = self
            .pass_with(
                &mut record,
                (resource, snapshot),
                decision,
                desired,
                progress,
            )
            .await;
        self.memory.record = Some(record);
        outcome
    }

    /// Makes sure, before anything is read or done for the repository, that its account is there and can be acted as. What was so stays
    /// so until the next fetch.
    pub(super) async fn confirm(&mut self) -> Result<(), ClusterError> {
        if !self.memory.confirmed {
            self.acting.confirm().await?;
            self.memory.confirmed = true;
        }
        Ok(())
    }

    pub(super) fn evaluate_options(&self, resource: &ReleaseSource) -> EvaluateOptions {
        EvaluateOptions {
            source: self.source.clone(),
            landscape: resource.spec.landscape.clone(),
            catalog_namespace: resource.spec.catalog.namespace.clone(),
        }
    }

    async fn pass_with(
        &mut self,
        record: &mut Record,
        (resource, snapshot): (&ReleaseSource, &Snapshot),
        decision: Option<Decision>,
        desired: Arc<Desired>,
        progress: &mut Progress,
    ) -> Result<(), ClusterError> {
        self.confirm().await?;
        self.engine.observe(&desired, &record.kinds()).await;
        let uid = self.cluster.uid().as_str();
        let adopted = decision.as_ref().is_some_and(|one| {
            // A decision from before the record was made is about an earlier loss.
            let made = record.created();
            one.approves(DecisionKind::Adopt, uid) && made.is_some() && one.is_later_than(made)
        });
        let empty = match self.engine.presence_of(&self.source) {
            Presence::Absent => true,
            Presence::Present => false,
            // A source that was never here before has left nothing, whether or not that can be seen.
            Presence::Unknown => self.is_new(resource),
        };
        if adopted && record.trusted().is_err() {
            let whose = (self.namespace.as_str(), &self.source, HOME);
            self.outlets.decided(
                whose,
                DecisionAction::ApproveIdentity,
                decision.as_ref(),
                &[],
            );
        }
        record.establish(empty, adopted).await?;
        let from = (resource, &snapshot.revision, &snapshot.commit);
        self.carry_out(record, from, decision, desired, progress)
            .await
    }

    /// Plans and does what the record and the decisions allow. Everything that the plan needs is observed already.
    pub(super) async fn carry_out(
        &mut self,
        record: &mut Record,
        (resource, revision, commit): (&ReleaseSource, &Revision, &CommitInfo),
        decision: Option<Decision>,
        desired: Arc<Desired>,
        progress: &mut Progress,
    ) -> Result<(), ClusterError> {
        let trusted = record.trusted();
        let prune = PruneSettings::from(&resource.spec.prune);
        let (stop, jobs, committed) = (self.stop.clone(), record.jobs(), record.committed());
        let mut request = PassRequest {
            source: &self.source,
            prune: &prune,
            takeover: &resource.spec.takeover,
            approval: None,
            record: trusted.as_ref().copied().map_err(String::as_str),
            jobs: &jobs,
            committed: &committed,
            author: &commit.author,
            only: None,
            stop: &stop,
        };
        if let Some(decision) = decision.filter(|one| is_new_approval(one, record)) {
            let plan = self.engine.plan(&desired, &request);
            let whose = (self.namespace.as_str(), &self.source, HOME);
            approve(&self.outlets, whose, record, (&decision, &plan)).await?;
        }
        let approval = self.approval(record, &desired);
        request.approval = approval.as_ref();
        let Some(_turn) = self.turn().await else {
            return Ok(());
        };
        let mut listener = Listener {
            heartbeat: Some(&self.heartbeat),
            origin: Origin {
                source: &self.source,
                cluster: HOME,
                revision,
                commit,
            },
            outlets: &self.outlets,
            record,
            effects: &mut progress.effects,
        };
        let passed = self
            .engine
            .pass(Arc::clone(&desired), &request, &mut listener)
            .await?;
        progress.pass = Some(passed);
        progress.approval = self.approval(record, &desired);
        Ok(())
    }

    /// Waits for its turn to write to the cluster; none when the task is told to stop before.
    async fn turn(&self) -> Option<OwnedMutexGuard<()>> {
        let mut turn = std::pin::pin!(Arc::clone(&self.turn).lock_owned());
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return None,
                turn = &mut turn => return Some(turn),
                // Waiting for somebody else's long pass is no reason to be taken for dead.
                () = tokio::time::sleep(limits::HEARTBEAT) => self.heartbeat.beat(),
            }
        }
    }

    /// Returns what is left of the recorded approval: what git wants again is not approved any more.
    fn approval(&self, record: &Record, desired: &Desired) -> Option<Approval> {
        let stored = record.status().approval.as_ref()?;
        let mut approval = Approval {
            digest: stored.digest.clone(),
            objects: stored.fingerprints(),
        };
        self.engine.narrow(&mut approval, &self.source, desired);
        Some(approval)
    }

    /// Writes the statuses that have changed, and tells everybody who listens.
    pub(super) async fn report(
        &mut self,
        resource: &ReleaseSource,
        state: &SourceState,
        attempt: &Result<(), FetchFailure>,
        progress: &Progress,
        failed: Option<&ClusterError>,
        started: Timestamp,
    ) -> Result<(), ClusterError> {
        let nobody = CommitInfo::default();
        let snapshot = state.snapshot.as_ref();
        let before = self.memory.status(resource);
        let runtimes = self.board.report(
            &resource.spec.runtimes,
            snapshot.map(|snapshot| &snapshot.revision),
        );
        if let Some(pass) = &progress.pass {
            self.claims.put(&self.source, &pass.plan.conflicts);
        }
        let target_before = self.target_status();
        let claims = self.claims.against(&self.source, &target_before.claims);
        let clock = self.skew.borrow().map(|skew| skew.to_string());
        let is_of_account = matches!(failed, Some(ClusterError::Account { .. }));
        let failed = failed.map(ToString::to_string);
        let report = PassReport {
            clock: clock.as_deref(),
            claims: &claims,
            source: &self.source,
            cluster: HOME,
            generation: resource.metadata.generation.unwrap_or_default(),
            requested_at: state.requested_at.as_deref(),
            fetched: attempt.as_ref().copied(),
            revision: snapshot.map(|snapshot| &snapshot.revision),
            commit: snapshot.map_or(&nobody, |snapshot| &snapshot.commit),
            desired: progress.desired.as_deref(),
            plan: progress.pass.as_ref().map(|pass| &pass.plan),
            effects: &progress.effects,
            runtimes: runtimes.as_ref(),
            failed: failed.as_deref(),
            is_of_account,
            stopped: self.stop.is_cancelled(),
            started,
            ended: clock::now(),
        };
        let after = source_status(&before, &report);
        let mut target_after = target_status(&target_before, &report);
        if let (Some(stored), Some(left)) = (&mut target_after.approval, &progress.approval) {
            stored.objects = ApprovalRecord::stored(&left.objects);
        }
        let target = match &mut self.memory.record {
            Some(record) => record.write(target_after.clone()).await,
            None => Ok(()),
        };
        let written = self.outlets.write_source(resource, &before, &after).await;
        let source = self
            .memory
            .remember(resource, (before.clone(), after.clone()), written);
        let changes = ((&before, &after), (&target_before, &target_after));
        self.outlets.tell(resource, changes, &report).await;
        target.and(source)
    }

    fn target_status(&self) -> crate::model::api::TargetStatus {
        self.memory
            .record
            .as_ref()
            .map(|record| record.status().clone())
            .unwrap_or_default()
    }
}

/// Doubled with each failure, from the first delay to the last of failed objects.
pub(super) fn retry_delay(failures: u32) -> Duration {
    let doubled = limits::FAILURE_DELAY_MIN * 2u32.pow(failures.clamp(1, 16) - 1);
    doubled.min(limits::FAILURE_DELAY_MAX)
}
