//! The task of one target: passes whenever its bell rings, and writes down what came of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::{Mutex, watch};
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use super::bell::Bell;
use super::clock;
use super::heartbeat::Heartbeat;
use super::outlets::Outlets;
use super::pass::{Engine, Pass, PassListener, PassRequest, Presence};
use super::record::Record;
use super::source_task::SourceState;
use crate::cluster::{Cluster, ClusterError};
use crate::desired::{Desired, EvaluateOptions};
use crate::execute;
use crate::model::api::{
    ApprovalRecord, Decision, DecisionKind, HOME, PruneSpec, ReleaseSource, ReleaseSourceStatus,
    status_differs,
};
use crate::model::snapshot::CommitInfo;
use crate::model::{GroupKind, Revision, Snapshot, SourceName, limits};
use crate::plan::{Approval, Plan, PruneSettings};
use crate::report::{
    DecisionAction, Effect, FetchFailure, Origin, PassReport, source_status, source_suspended,
    target_status,
};

/// Keeps home in step with one source.
pub(super) struct TargetTask {
    pub(super) source: SourceName,
    pub(super) namespace: String,
    pub(super) cluster: Cluster,
    pub(super) engine: Engine,
    pub(super) resource: watch::Receiver<Arc<ReleaseSource>>,
    pub(super) state: watch::Receiver<SourceState>,
    pub(super) bell: Bell,
    pub(super) outlets: Outlets,
    pub(super) heartbeat: Heartbeat,
    /// Held during a pass: targets of one cluster pass one after another.
    pub(super) turn: Arc<Mutex<()>>,
    pub(super) stop: CancellationToken,
    pub(super) memory: Memory,
}

/// What the task keeps from pass to pass.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) record: Option<Record>,
    /// The source's status as it is stored; none before it was read.
    status: Option<ReleaseSourceStatus>,
    /// Passes in a row that could not be finished.
    pub(super) failures: u32,
    /// Whether the source was suspended when it was last looked at; none before the first look.
    suspended: Option<bool>,
}

/// What one pass came to, before it is reported.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) desired: Option<Arc<Desired>>,
    pub(super) pass: Option<Pass>,
    effects: Vec<Effect>,
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
            let turn = Arc::clone(&self.turn);
            let _turn = tokio::select! {
                () = self.stop.cancelled() => return,
                turn = turn.lock() => turn,
            };
            // Whoever has told us to stop and waits for the turn may rely on it.
            if self.stop.is_cancelled() {
                return;
            }
            next = self.look().await;
        }
    }

    /// Looks once: a pass, and its report. Returns when to look again without a bell.
    async fn look(&mut self) -> Option<Instant> {
        let resource = Arc::clone(&self.resource.borrow_and_update());
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
        let failed = passed.and(settled).err().map(|error| error.to_string());
        if self.stop.is_cancelled() && failed.is_none() && progress.pass.is_none() {
            return None;
        }
        let reported = self
            .report(
                &resource,
                &state,
                &attempt,
                &progress,
                failed.as_deref(),
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

    /// Writes down that somebody has suspended or resumed the source. What happened while no agent was there is not known.
    fn note_suspension(&mut self, resource: &ReleaseSource) {
        let suspend = resource.spec.suspend;
        let action = match self.memory.suspended.replace(suspend) {
            Some(before) if before != suspend && suspend => DecisionAction::Suspend,
            Some(before) if before != suspend => DecisionAction::Resume,
            _ => return,
        };
        let whose = (self.namespace.as_str(), &self.source);
        self.outlets.decided(whose, action, None, &[]);
    }

    /// Says that a suspended source was seen; there is nothing else to do.
    async fn rest(
        &mut self,
        resource: &ReleaseSource,
        settled: Result<(), ClusterError>,
    ) -> Option<Instant> {
        let before = self.status(resource);
        let generation = resource.metadata.generation.unwrap_or_default();
        let after = source_suspended(&before, generation);
        let written = self.outlets.write_source(resource, &before, &after).await;
        self.memory.status = Some(if written.is_ok() { after } else { before });
        written.and(settled).err().map(|error| {
            tracing::warn!(source.name = %self.source, %error, "failed to write the status or the finalizer");
            Instant::now() + limits::FAILURE_DELAY_MIN
        })
    }

    /// Returns the status as it is stored.
    fn status(&mut self, resource: &ReleaseSource) -> ReleaseSourceStatus {
        let stored = self.memory.status.take();
        stored.unwrap_or_else(|| resource.status.clone().unwrap_or_default())
    }

    /// Returns whether this source was never looked at before.
    pub(super) fn is_new(&self, resource: &ReleaseSource) -> bool {
        let status = self.memory.status.as_ref().or(resource.status.as_ref());
        status.is_none_or(|status| status.last_attempted_revision.is_none())
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
        let decision = Decision::of(resource);
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
        self.engine.observe(&desired, &record.kinds()).await;
        let adopted = decision
            .as_ref()
            .is_some_and(|one| one.approves(DecisionKind::Adopt, self.cluster.uid().as_str()));
        let empty = match self.engine.presence_of(&self.source) {
            Presence::Absent => true,
            Presence::Present => false,
            // A source that was never here before has left nothing, whether or not that can be seen.
            Presence::Unknown => self.is_new(resource),
        };
        if adopted && record.trusted().is_err() {
            let whose = (self.namespace.as_str(), &self.source);
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
        let options = self.evaluate_options(resource);
        let trusted = record.trusted();
        let prune = prune_settings(&resource.spec.prune);
        let stop = self.stop.clone();
        let mut request = PassRequest {
            options: &options,
            prune: &prune,
            takeover: &resource.spec.takeover,
            approval: None,
            record: trusted.as_ref().copied().map_err(String::as_str),
            only: None,
            stop: &stop,
        };
        if let Some(decision) = decision {
            let plan = self.engine.plan(&desired, &request);
            self.approve(record, &decision, &plan).await?;
        }
        let approval = record.status().approval.as_ref().map(|stored| Approval {
            digest: stored.digest.clone(),
            objects: stored.fingerprints(),
        });
        request.approval = approval.as_ref();
        let mut listener = Listener {
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
        progress.pass = Some(self.engine.pass(desired, &request, &mut listener).await?);
        Ok(())
    }

    /// Writes down what a decision allows, before anything is done in its name.
    async fn approve(
        &self,
        record: &mut Record,
        decision: &Decision,
        plan: &Plan,
    ) -> Result<(), ClusterError> {
        let Some(pending) = &plan.pending else {
            return Ok(());
        };
        if !decision.approves(DecisionKind::Prune, &pending.digest) {
            return Ok(());
        }
        let fingerprints: BTreeSet<u64> = pending
            .deletions
            .iter()
            .take(limits::APPROVAL_OBJECTS_MAX)
            .map(crate::plan::Deletion::fingerprint)
            .collect();
        let mut status = record.status().clone();
        status.approval = Some(ApprovalRecord {
            digest: pending.digest.clone(),
            objects: ApprovalRecord::stored(&fingerprints),
            by: decision.by.clone(),
            reason: decision.reason.clone(),
            at: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(decision.at),
        });
        if !status_differs(record.status(), &status) {
            return Ok(());
        }
        let whose = (self.namespace.as_str(), &self.source);
        let count = [format!("{} deletions", pending.deletions.len())];
        self.outlets
            .decided(whose, DecisionAction::ApprovePrune, Some(decision), &count);
        record.write(status).await
    }

    /// Writes the statuses that have changed, and tells everybody who listens.
    pub(super) async fn report(
        &mut self,
        resource: &ReleaseSource,
        state: &SourceState,
        attempt: &Result<(), FetchFailure>,
        progress: &Progress,
        failed: Option<&str>,
        started: Timestamp,
    ) -> Result<(), ClusterError> {
        let nobody = CommitInfo::default();
        let snapshot = state.snapshot.as_ref();
        let before = self.status(resource);
        let report = PassReport {
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
            failed,
            started,
            ended: clock::now(),
        };
        let after = source_status(&before, &report);
        let target_before = self.target_status();
        let target_after = target_status(&target_before, &report);
        let target = match &mut self.memory.record {
            Some(record) => record.write(target_after.clone()).await,
            None => Ok(()),
        };
        let source = self.outlets.write_source(resource, &before, &after).await;
        let stored = if source.is_ok() {
            after.clone()
        } else {
            before.clone()
        };
        self.memory.status = Some(stored);
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

fn prune_settings(spec: &PruneSpec) -> PruneSettings {
    PruneSettings {
        enabled: spec.enabled,
        max_objects: spec.max_objects,
        max_percent: spec.max_percent,
    }
}

/// Doubled with each failure, from the first delay to the last of failed objects.
pub(super) fn retry_delay(failures: u32) -> Duration {
    let doubled = limits::FAILURE_DELAY_MIN * 2u32.pow(failures.clamp(1, 16) - 1);
    doubled.min(limits::FAILURE_DELAY_MAX)
}

/// Writes down kinds and collects effects while a pass goes on.
struct Listener<'a> {
    origin: Origin<'a>,
    outlets: &'a Outlets,
    record: &'a mut Record,
    effects: &'a mut Vec<Effect>,
}

impl PassListener for Listener<'_> {
    async fn kinds(&mut self, kinds: &BTreeSet<GroupKind>) -> Result<(), ClusterError> {
        self.record.add_kinds(kinds).await
    }

    async fn deleting(&mut self) -> Result<(), ClusterError> {
        self.record.confirm().await
    }

    fn planned(&mut self, plan: &Plan) {
        tracing::info!(
            source.name = %self.origin.source,
            source.revision = %plan.revision,
            plan.actions = plan.actions().count(),
            plan.holds = plan.holds.len(),
            "planned"
        );
    }

    fn effect(&mut self, effect: &execute::Effect) {
        if let Some(effect) = Effect::of(effect, clock::now()) {
            self.outlets.audit(&self.origin, &effect);
            self.effects.push(effect);
        }
    }
}
