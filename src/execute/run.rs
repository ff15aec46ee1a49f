//! Runs the phases of a plan.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use super::outcome::{Effect, EffectResult, Failure, FailureKind, Outcome};
use super::serve;
use crate::cluster::{Acting, ClusterError, Deleted};
use crate::model::{ComponentName, DesiredObject, ObjectKey, limits};
use crate::observe::Observer;
use crate::plan::{Action, ActionKind, Deletion, Plan};

/// Everything that doing a plan needs.
#[derive(Clone, Copy)]
pub struct Executor<'a> {
    /// The cluster, and as whom everything is done.
    pub acting: &'a Acting,
    /// Who is told of every answer.
    pub observer: &'a Observer,
    /// Field managers whose fields become ours when we meet them, see `spec.takeover`.
    pub takeover: &'a [String],
    /// When cancelled, no further action is started; those under way end.
    pub stop: &'a CancellationToken,
}

/// What has not been done so far, and therefore stops others.
#[derive(Default)]
struct Undone {
    objects: HashSet<ObjectKey>,
    components: HashSet<ComponentName>,
}

/// Counts failures in a row that may pass: a cluster that has stopped answering would otherwise cost one deadline for every
/// sixteen objects.
#[derive(Default)]
struct Trouble(AtomicUsize);

impl Trouble {
    fn note(&self, effect: &Effect) {
        match &effect.result {
            EffectResult::Failed(failure) if failure.kind == FailureKind::Transient => {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
            // Once it is too much it stays so for this pass.
            _ if self.is_too_much() => {}
            EffectResult::Skipped(_) | EffectResult::Stopped => {}
            _ => self.0.store(0, Ordering::Relaxed),
        }
    }

    fn is_too_much(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= limits::FAILURES_IN_A_ROW_MAX
    }
}

/// Tells the moment before the first request is sent; audit lines tell when answers came.
fn log_begin(plan: &Plan) {
    tracing::debug!(
        source.name = %plan.source,
        plan.actions = plan.actions().count(),
        "executing"
    );
}

// === impl Executor ===

impl Executor<'_> {
    /// Does all of a plan that can be done, and tells of each effect when it has ended.
    pub async fn run(&self, plan: &Plan, mut on_effect: impl FnMut(&Effect)) -> Outcome {
        let mut outcome = Outcome::default();
        let mut undone = Undone::default();
        let trouble = Trouble::default();
        log_begin(plan);
        for (index, phase) in plan.phases.iter().enumerate() {
            let begun = outcome.effects.len();
            {
                let mut waiting = phase.iter();
                let mut running = FuturesUnordered::new();
                loop {
                    let free = limits::CLUSTER_CONCURRENCY - running.len();
                    running.extend(
                        waiting
                            .by_ref()
                            .take(free)
                            .map(|action| self.act(action, &undone, &trouble)),
                    );
                    let Some(effect) = running.next().await else {
                        break;
                    };
                    trouble.note(&effect);
                    on_effect(&effect);
                    outcome.effects.push(effect);
                }
            }
            outcome.effects[begun..]
                .iter()
                .for_each(|effect| undone.note(effect));
            let later = &plan.phases[index + 1..];
            serve::wait_for_kinds(self.acting.cluster(), phase, later, self.stop).await;
        }
        outcome.gave_up = trouble.is_too_much();
        outcome
    }

    async fn act(&self, action: &Action, undone: &Undone, trouble: &Trouble) -> Effect {
        let result = match undone.blocks(action) {
            Some(first) => EffectResult::Skipped(first),
            None if self.stop.is_cancelled() || trouble.is_too_much() => EffectResult::Stopped,
            None => match &action.kind {
                ActionKind::Apply(object) => self.apply(object).await,
                ActionKind::Delete(deletion) => self.delete(deletion).await,
                ActionKind::Replace(object, deletion) => match self.delete(deletion).await {
                    EffectResult::Deleted | EffectResult::AlreadyGone => self.apply(object).await,
                    other => other,
                },
            },
        };
        Effect {
            key: action.key.clone(),
            component: action.component.clone(),
            digest: match &action.kind {
                ActionKind::Apply(object) | ActionKind::Replace(object, _) => {
                    Some(object.digest.to_string())
                }
                ActionKind::Delete(_) => None,
            },
            why: action.why.clone(),
            result,
        }
    }

    async fn apply(&self, object: &DesiredObject) -> EffectResult {
        let before = self.observer.known(&object.key);
        match self.acting.cluster().apply(object, self.takeover).await {
            Ok(answer) => {
                let changed = self.observer.record_applied(before.as_deref(), &answer);
                if changed {
                    EffectResult::Applied
                } else {
                    EffectResult::Unchanged
                }
            }
            Err(error) => EffectResult::Failed(failure(&error)),
        }
    }

    async fn delete(&self, deletion: &Deletion) -> EffectResult {
        match self
            .acting
            .cluster()
            .delete(&deletion.key, &deletion.uid, &deletion.resource_version)
            .await
        {
            Ok(Deleted::Deleted) => {
                self.observer.record_deleted(&deletion.key, &deletion.uid);
                EffectResult::Deleted
            }
            Ok(Deleted::AlreadyGone | Deleted::Replaced) => EffectResult::AlreadyGone,
            Err(error) => EffectResult::Failed(failure(&error)),
        }
    }
}

// === impl Undone ===

impl Undone {
    fn note(&mut self, effect: &Effect) {
        if matches!(
            effect.result,
            EffectResult::Skipped(_) | EffectResult::Stopped | EffectResult::Failed(_)
        ) {
            self.objects.insert(effect.key.clone());
            self.components.insert(effect.component.clone());
        }
    }

    /// Returns the object that had to come first and did not: one that the action requires, or for a deletion the
    /// deletion's own object when anything else of its component has failed.
    fn blocks(&self, action: &Action) -> Option<ObjectKey> {
        let required = action
            .requires
            .iter()
            .find(|key| self.objects.contains(key))
            .cloned();
        if required.is_some() || matches!(action.kind, ActionKind::Apply(_)) {
            return required;
        }
        self.components
            .contains(&action.component)
            .then(|| action.key.clone())
    }
}

fn failure(error: &ClusterError) -> Failure {
    let kind = if error.is_immutable() {
        FailureKind::Immutable
    } else if error.is_retryable() {
        FailureKind::Transient
    } else {
        FailureKind::Refused
    };
    Failure {
        kind,
        message: error.to_string(),
    }
}
