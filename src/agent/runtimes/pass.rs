//! One pass over a runtime whose catalog is ours to sync, and what it tells of how the runtime stands.

use std::sync::Arc;

use tokio::time::Instant;

use super::link::{Blocked, Link};
use super::task::{Done, NO_PANIC, Rendered, RuntimeTask};
use crate::agent::approval::{approve, is_new_approval};
use crate::agent::clock;
use crate::agent::listener::Listener;
use crate::agent::pass::{Pass, PassRequest, Presence};
use crate::agent::record::Record;
use crate::cluster::ClusterError;
use crate::fleet::{Published, prepare};
use crate::model::api::{ConditionReason, Decision, DecisionKind, ReleaseSource};
use crate::model::limits::{FIRST_LOOKS, LEFT_OUT_LISTED_MAX, UNSERVED_INTERVAL};
use crate::model::{ClusterUid, Hold, HoldReason};
use crate::observe::KindObservation;
use crate::plan::{Approval, Jobs, PruneSettings};
use crate::report::{
    Effect, EffectResult, Origin, PassReport, RuntimeState, failed_to, needs_person, target_status,
};

impl RuntimeTask {
    /// One pass over the runtime, and its report.
    pub(super) async fn sync(
        &mut self,
        resource: &ReleaseSource,
        published: &Published,
        rendered: &Rendered,
        link: &mut Link,
    ) -> Result<Done, Blocked> {
        // However it ends, what is known of the record stays known.
        let mut record = self.memory.record.take().expect("it was loaded before");
        let done = self
            .sync_with(resource, published, rendered, (link, &mut record))
            .await;
        self.memory.record = Some(record);
        done
    }

    async fn sync_with(
        &mut self,
        resource: &ReleaseSource,
        published: &Published,
        rendered: &Rendered,
        (link, record): (&mut Link, &mut Record),
    ) -> Result<Done, Blocked> {
        let adopted = self.make_ready(resource, rendered, (link, record)).await?;
        let started = clock::now();
        let mut effects = Vec::new();
        let passed = self
            .pass(
                resource,
                published,
                rendered,
                (link, record, adopted),
                &mut effects,
            )
            .await;
        let (pass, failed) = match passed {
            Ok(pass) => (Some(pass), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let report = PassReport {
            clock: None,
            source: &self.around.source,
            cluster: self.name.as_str(),
            generation: resource.metadata.generation.unwrap_or_default(),
            requested_at: None,
            fetched: Ok(()),
            revision: Some(&rendered.desired.revision),
            commit: &published.commit,
            desired: Some(&rendered.desired),
            plan: pass.as_ref().map(|pass| &pass.plan),
            effects: &effects,
            runtimes: None,
            claims: &[],
            stopped: self.stop.is_cancelled(),
            failed: failed.as_deref(),
            is_of_account: false,
            started,
            ended: clock::now(),
        };
        let mut state = state(&report, pass.as_ref(), link);
        // What failed may be one object's trouble, or that of the whole runtime.
        let failed = |effect: &Effect| matches!(effect.result, EffectResult::Failed(_));
        if effects.iter().any(failed)
            && let Err(error) = link.cluster.confirm().await
        {
            state = RuntimeState::Unreachable(error.to_string());
        }
        let mut status = target_status(record.status(), &report);
        let left_out = rendered.catalog.left_out.iter().take(LEFT_OUT_LISTED_MAX);
        status.left_out = left_out.cloned().collect();
        // What a person needs to know to adopt it, while that is needed.
        status.found_cluster_uid = record
            .trusted()
            .is_err()
            .then(|| link.cluster.uid().to_string());
        if status.revision != record.status().revision {
            let gate = self.around.gate.lock().expect(NO_PANIC);
            let wave = gate.wave(&self.name);
            self.around
                .outlets
                .metrics
                .runtime_applied(wave.as_str(), &report);
        }
        let written = record.write(status).await;
        if let RuntimeState::Unreachable(message) = state {
            return Err(Blocked {
                reason: ConditionReason::Unreachable,
                message,
                found: None,
            });
        }
        if let Err(error) = written {
            // Home's trouble: the runtime has what it should have, but nobody can read that yet.
            tracing::warn!(runtime.name = %self.name, %error, "failed to write the record");
            let message = failed_to(&error.to_string());
            return Ok(Done::Failed(RuntimeState::Behind(message)));
        }
        Ok(match pass {
            Some(pass) => {
                let next = next_look(&pass, link);
                Done::Passed { state, next }
            }
            None => Done::Failed(state),
        })
    }

    /// Makes sure that the runtime is the one that it was, has what a catalog needs, and may be written to. Returns whether a person
    /// has adopted it.
    async fn make_ready(
        &mut self,
        resource: &ReleaseSource,
        rendered: &Rendered,
        (link, record): (&mut Link, &Record),
    ) -> Result<bool, Blocked> {
        let decision = Decision::read(resource).unwrap_or_default();
        let uid = link.cluster.uid().clone();
        let adopted = decision.as_ref().is_some_and(|one| {
            // A decision from before the record was made is about an earlier loss.
            let made = record.created();
            one.approves(DecisionKind::Adopt, uid.as_str())
                && made.is_some()
                && one.is_later_than(made)
        });
        let known = record.status().cluster_uid.as_ref();
        if let Some(known) = known.filter(|known| *known != uid.as_str() && !adopted) {
            return Err(self.other_cluster(known, &uid));
        }
        if !link.prepared {
            Box::pin(prepare(&link.cluster, link.namespace()))
                .await
                .map_err(|error| Blocked::unreachable(&error))?;
            link.prepared = true;
        }
        if known.is_none() && !adopted {
            self.first_look(rendered, record, link).await?;
        }
        match self.contested(resource, link) {
            Some(blocked) => Err(blocked),
            None => Ok(adopted),
        }
    }

    fn contested(&mut self, resource: &ReleaseSource, link: &Link) -> Option<Blocked> {
        let view = link.observer.view();
        let whose = (&self.around.source, resource.spec.takeover.as_slice());
        let writer = self.memory.contest.judge(&view, whose, Instant::now())?;
        let message = format!(
            "`{writer}` still writes this catalog, after it was taken over; nothing is written here for half an hour. Stop the \
             other one, or set spec.runtimes.catalog to Observe, which leaves the catalog to it"
        );
        Some(Blocked {
            reason: ConditionReason::Contested,
            message,
            found: None,
        })
    }

    /// Waits until it is known whether anything of ours is on a runtime that has no record. Nothing is applied before: later
    /// our own objects would look like those of a record that was lost.
    async fn first_look(
        &self,
        rendered: &Rendered,
        record: &Record,
        link: &Link,
    ) -> Result<(), Blocked> {
        for _ in 0..FIRST_LOOKS {
            link.engine
                .observe(&rendered.desired, &record.kinds())
                .await;
            if link.engine.presence_of(&self.around.source) != Presence::Unknown {
                return Ok(());
            }
        }
        Err(Blocked {
            reason: ConditionReason::Unreachable,
            message: unlisted(link).unwrap_or_default(),
            found: None,
        })
    }

    async fn pass(
        &self,
        resource: &ReleaseSource,
        published: &Published,
        rendered: &Rendered,
        (link, record, adopted): (&mut Link, &mut Record, bool),
        effects: &mut Vec<Effect>,
    ) -> Result<Pass, ClusterError> {
        let desired = &rendered.desired;
        link.engine.observe(desired, &record.kinds()).await;
        let source = &self.around.source;
        // Nothing of ours could be there before there was a record; what cannot be listed is not known to be absent.
        let empty = link.engine.presence_of(source) == Presence::Absent;
        record.establish(empty, adopted).await?;
        let trusted = record.trusted();
        let prune = PruneSettings::from(&resource.spec.prune);
        let jobs = Jobs::new();
        let committed = record.committed();
        let mut request = PassRequest {
            source,
            prune: &prune,
            takeover: &resource.spec.takeover,
            approval: None,
            record: trusted.as_ref().copied().map_err(String::as_str),
            jobs: &jobs,
            committed: &committed,
            author: &published.commit.author,
            only: None,
            stop: &self.stop,
        };
        let decision = Decision::read(resource).unwrap_or_default();
        if let Some(decision) = decision.filter(|one| is_new_approval(one, record)) {
            let plan = link.engine.plan(desired, &request);
            let whose = (self.around.namespace.as_str(), source, self.name.as_str());
            approve(&self.around.outlets, whose, record, (&decision, &plan)).await?;
        }
        let approval = record.status().approval.as_ref().map(|stored| Approval {
            digest: stored.digest.clone(),
            objects: stored.fingerprints(),
        });
        request.approval = approval.as_ref();
        let mut listener = Listener {
            // Whether the agent is alive does not depend on a runtime.
            heartbeat: None,
            origin: Origin {
                source,
                cluster: self.name.as_str(),
                revision: &desired.revision,
                commit: &published.commit,
            },
            outlets: &self.around.outlets,
            record,
            effects,
        };
        link.engine
            .pass(Arc::clone(desired), &request, &mut listener)
            .await
    }

    fn other_cluster(&self, known: &str, found: &ClusterUid) -> Blocked {
        Blocked {
            reason: ConditionReason::IdentityChanged,
            message: format!(
                "the kubeconfig leads to another cluster than before (uid {found}, before {known}), and nothing is written there; \
                 if that is meant: fairway adopt {} --target {} --reason '…'",
                self.around.source, self.name
            ),
            found: Some(found.clone()),
        }
    }
}

/// Returns when to look again without a bell.
fn next_look(pass: &Pass, link: &mut Link) -> Option<Instant> {
    let unserved = |hold: &Hold| hold.reason == HoldReason::KindUnknown;
    if !pass.plan.holds.iter().any(unserved) {
        return pass.next;
    }
    // The definitions may have gone since: they are looked for again.
    link.prepared = false;
    pass.next
        .or_else(|| Some(Instant::now() + UNSERVED_INTERVAL))
}

/// Returns why a kind is not known there; nothing when all are.
fn unlisted(link: &Link) -> Option<String> {
    let mut kinds = link.observer.view().kinds.into_values();
    kinds.find_map(|kind| match kind {
        KindObservation::Unlisted(reason) => Some(reason),
        KindObservation::Listed(_) => None,
    })
}

/// Tells how the runtime stands after a pass.
fn state(report: &PassReport<'_>, pass: Option<&Pass>, link: &Link) -> RuntimeState {
    if let Some(failed) = report.failed {
        return RuntimeState::Behind(failed_to(failed));
    }
    if let Some(reason) = unlisted(link) {
        return RuntimeState::Unreachable(reason);
    }
    if pass.is_some_and(|pass| pass.outcome.gave_up) {
        return RuntimeState::Unreachable("it has stopped answering".to_owned());
    }
    if report.is_applied_in_full() {
        return RuntimeState::Synced;
    }
    let Some(plan) = report.plan else {
        return RuntimeState::Behind("nothing could be planned".to_owned());
    };
    if let Some(pending) = &plan.pending {
        let reasons = pending.reasons.join("; ");
        return RuntimeState::Held(format!("deletions wait for approval: {reasons}"));
    }
    let words = |hold: &Hold| format!("{}: {}", hold.what, hold.message);
    match (
        plan.holds.iter().find(|hold| needs_person(hold)),
        plan.holds.first(),
    ) {
        (Some(hold), _) => RuntimeState::Held(words(hold)),
        (None, Some(hold)) => RuntimeState::Behind(words(hold)),
        (None, None) => RuntimeState::Behind("not everything is there yet".to_owned()),
    }
}
