//! The end of a source: what becomes of what it has applied when its ReleaseSource is deleted.
//!
//! With `deletionPolicy: Orphan` nothing stands in the way of the deletion: objects stay with their labels. With `Delete` our
//! finalizer keeps the ReleaseSource until everything of it is gone, by the same planner and with the same limits and
//! approvals as any deletion. Git is not needed for that: wanting nothing is what the person has decided. The finalizer goes
//! first and the Target after it (`Record::forget`), so that an agent that is killed between the two finds no source and
//! clears the Target away; the other way round it would find a source whose record is lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

use super::clock;
use super::pass::Pass;
use super::record::Record;
use super::source_task::SourceState;
use super::target_task::{Progress, TargetTask, retry_delay};
use crate::cluster::{ClusterError, Patch};
use crate::desired::Desired;
use crate::execute::Outcome;
use crate::model::api::{Decision, DecisionKind, DeletionPolicy, HOME, ReleaseSource};
use crate::model::snapshot::CommitInfo;
use crate::model::{Digest, GroupKind, Hold, HoldReason, Revision, names};
use crate::plan::hooks::Committed;
use crate::plan::{Jobs, Plan};
use crate::report::DecisionAction;

impl TargetTask {
    /// Puts our finalizer on the ReleaseSource, or takes it off, as its policy says. Costs nothing while it is right.
    pub(super) async fn settle_finalizer(
        &self,
        resource: &ReleaseSource,
    ) -> Result<(), ClusterError> {
        let wanted = resource.spec.deletion_policy == DeletionPolicy::Delete;
        self.set_finalizer(resource, wanted).await
    }

    /// Goes on with the end of a ReleaseSource that is being deleted. Returns when to look again without a bell.
    pub(super) async fn withdraw(
        &mut self,
        resource: &ReleaseSource,
        state: &SourceState,
    ) -> Option<Instant> {
        if !has_finalizer(resource) {
            // Others may still keep it; it is nothing to us any more.
            return None;
        }
        let started = clock::now();
        let mut progress = Progress::default();
        let result = self.go_on(resource, state, &mut progress).await;
        let failed = match result {
            Ok(true) => match self.set_finalizer(resource, false).await {
                Ok(()) => return None,
                Err(error) => Some(error),
            },
            Ok(false) => None,
            Err(error) => Some(error),
        };
        if self.stop.is_cancelled() {
            return None;
        }
        let reported = self
            .report_withdrawal(resource, &progress, failed.as_ref(), started)
            .await;
        if failed.is_some() || reported.is_err() {
            self.memory.failures += 1;
            return Some(Instant::now() + retry_delay(self.memory.failures));
        }
        self.memory.failures = 0;
        progress.pass.and_then(|pass| pass.next)
    }

    /// Deletes what may be deleted now; returns whether nothing is left that the source could want gone.
    async fn go_on(
        &mut self,
        resource: &ReleaseSource,
        state: &SourceState,
        progress: &mut Progress,
    ) -> Result<bool, ClusterError> {
        if resource.spec.deletion_policy == DeletionPolicy::Orphan {
            return Ok(true);
        }
        let desired = Arc::new(Desired::withdrawn(last_revision(resource)));
        progress.desired = Some(Arc::clone(&desired));
        if resource.spec.suspend {
            progress.pass = Some(self.suspended(desired));
            return Ok(false);
        }
        let mut record = match self.memory.record.take() {
            Some(record) => record,
            None => Record::load(&self.cluster, &self.namespace, &self.source).await?,
        };
        let result = self
            .delete_all(&mut record, (resource, state), desired, progress)
            .await;
        self.memory.record = Some(record);
        result
    }

    async fn delete_all(
        &mut self,
        record: &mut Record,
        (resource, state): (&ReleaseSource, &SourceState),
        desired: Arc<Desired>,
        progress: &mut Progress,
    ) -> Result<bool, ClusterError> {
        if self.is_new(resource) && record.kinds().is_empty() {
            return Ok(true);
        }
        let decision = self.decision(resource);
        let of_git = self.kinds_of_git(resource, state).await;
        self.adopt(record, decision.as_ref(), &of_git).await?;
        let mut kinds = record.kinds();
        kinds.extend(of_git);
        self.confirm().await?;
        self.engine.observe(&desired, &kinds).await;
        let commit = CommitInfo::default();
        let revision = desired.revision.clone();
        self.carry_out(
            record,
            (resource, &revision, &commit),
            decision,
            desired,
            progress,
        )
        .await?;
        let plan = progress.pass.as_ref().map(|pass| &pass.plan);
        Ok(plan.is_some_and(|plan| nothing_left(plan, &kinds)))
    }

    /// Trusts a record that was lost or is another cluster's once a person has said so. One that names no kinds gets those of
    /// git first: without either nobody knows what to look for.
    async fn adopt(
        &self,
        record: &mut Record,
        decision: Option<&Decision>,
        of_git: &BTreeSet<GroupKind>,
    ) -> Result<(), ClusterError> {
        let uid = self.cluster.uid().as_str();
        let adopted = decision.is_some_and(|one| one.approves(DecisionKind::Adopt, uid));
        if !adopted || record.trusted().is_ok() {
            return Ok(());
        }
        if record.kinds().is_empty() {
            record.begin(of_git, &record.jobs()).await?;
        }
        if record.kinds().is_empty() {
            return Ok(());
        }
        let whose = (self.namespace.as_str(), &self.source, HOME);
        self.outlets
            .decided(whose, DecisionAction::ApproveIdentity, decision, &[]);
        record.establish(false, true).await
    }

    /// Returns the kinds that git names, where it could be read in this process's life.
    async fn kinds_of_git(
        &mut self,
        resource: &ReleaseSource,
        state: &SourceState,
    ) -> BTreeSet<GroupKind> {
        let Some(snapshot) = &state.snapshot else {
            return BTreeSet::new();
        };
        let options = self.evaluate_options(resource);
        let desired = self.engine.evaluate(snapshot, &options).await;
        let objects = desired.objects().map(|object| object.key.kind.clone());
        objects.collect()
    }

    /// The pass over a source that is suspended and deleted at the same time: nothing, and why.
    fn suspended(&self, desired: Arc<Desired>) -> Pass {
        let source = &self.source;
        let hold = Hold {
            what: "deletion of all that the source has applied".to_owned(),
            reason: HoldReason::Suspended,
            message: format!(
                "nothing is deleted for a suspended source; `fairway resume {source}`, or set `spec.deletionPolicy: Orphan`, \
                 which leaves everything where it is"
            ),
            place: None,
        };
        let plan = Plan {
            identity: Digest::of_parts(["suspended", source.as_str()]),
            source: source.clone(),
            revision: desired.revision.clone(),
            phases: Vec::new(),
            holds: vec![hold],
            pending: None,
            kept: Vec::new(),
            unchanged: 0,
            unhealthy: Vec::new(),
            conflicts: Vec::new(),
            jobs: Jobs::new(),
            hooks: Vec::new(),
            ahead: Vec::new(),
            committed: Committed::default(),
            migrations: Vec::new(),
            undo: Vec::new(),
        };
        Pass {
            desired,
            plan,
            outcome: Outcome::default(),
            next: None,
        }
    }

    async fn report_withdrawal(
        &mut self,
        resource: &ReleaseSource,
        progress: &Progress,
        failed: Option<&ClusterError>,
        started: Timestamp,
    ) -> Result<(), ClusterError> {
        let annotations = resource.metadata.annotations.as_ref();
        // Git has no part in this, so that no revision and no fetch is told of.
        let state = SourceState {
            requested_at: annotations
                .and_then(|all| all.get(names::ANNOTATION_REQUESTED_AT).cloned()),
            ..SourceState::default()
        };
        let reported = self
            .report(resource, &state, &Ok(()), progress, failed, started)
            .await;
        if let Err(error) = &reported {
            tracing::warn!(source.name = %self.source, %error, "failed to write the status");
        }
        reported
    }

    /// Changes the finalizer of the ReleaseSource as it is stored now, if it is still the same one.
    async fn set_finalizer(
        &self,
        resource: &ReleaseSource,
        wanted: bool,
    ) -> Result<(), ClusterError> {
        if has_finalizer(resource) == wanted {
            return Ok(());
        }
        let name = self.source.as_str();
        let stored: Option<ReleaseSource> = self.cluster.get(&self.namespace, name).await?;
        let Some(stored) = stored.filter(|one| one.metadata.uid == resource.metadata.uid) else {
            return Ok(());
        };
        // Nothing can be added to what is being deleted.
        let too_late = wanted && stored.metadata.deletion_timestamp.is_some();
        if has_finalizer(&stored) == wanted || too_late {
            return Ok(());
        }
        let mut finalizers = stored.metadata.finalizers.unwrap_or_default();
        finalizers.retain(|one| one != names::FINALIZER_PRUNE);
        if wanted {
            finalizers.push(names::FINALIZER_PRUNE.to_owned());
        }
        let version = stored.metadata.resource_version;
        let body = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
        let patch = (Patch::Merge, &body);
        self.cluster
            .patch::<ReleaseSource>(&self.namespace, name, None, names::MANAGER_STATUS, patch)
            .await?;
        tracing::info!(
            source.name = name,
            finalizer = names::FINALIZER_PRUNE,
            wanted,
            "changed the finalizer"
        );
        Ok(())
    }
}

fn has_finalizer(resource: &ReleaseSource) -> bool {
    let finalizers = resource.metadata.finalizers.as_ref();
    finalizers.is_some_and(|all| all.iter().any(|one| one == names::FINALIZER_PRUNE))
}

/// Returns whether a plan has nothing more to delete. A kind that could not be listed counts where the source may have
/// applied it; other sources on this cluster have kinds of their own.
fn nothing_left(plan: &Plan, kinds: &BTreeSet<GroupKind>) -> bool {
    let of_others = |hold: &Hold| {
        hold.reason == HoldReason::Unobserved
            && !kinds.iter().any(|kind| kind.to_string() == hold.what)
    };
    plan.is_empty() && plan.pending.is_none() && plan.holds.iter().all(of_others)
}

/// Returns the revision that was read last, for audit lines.
fn last_revision(resource: &ReleaseSource) -> Revision {
    let status = resource.status.as_ref();
    let text = status.and_then(|status| status.last_attempted_revision.as_deref());
    let (reference, digest) = text
        .and_then(|text| text.rsplit_once('@'))
        .unwrap_or(("none", "none"));
    Revision {
        reference: reference.to_owned(),
        digest: digest.to_owned(),
    }
}
