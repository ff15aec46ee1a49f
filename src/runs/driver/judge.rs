//! Asking a guard: look everything up that it names, and evaluate it off the threads that serve requests.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Driver;
use crate::model::api::{Evidence, RunSpec};
use crate::model::migration::Decision;
use crate::runs::clock::Clock;
use crate::runs::effects::{EffectError, Effects};
use crate::runs::guard::{Verdict, decide, guard_expressions};
use crate::runs::lookups::{LookupCache, Scene, Surroundings, lookups_named};
use crate::runs::obstacle::{Obstacle, obstacle};
use crate::runs::sight::Sight;

/// What a guard decided, by what, and how long that took.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The decision.
    pub decision: Decision,
    /// What it rests on: each expression with its result and the values of the paths that it names, without secrets.
    pub evidence: Vec<Evidence>,
    /// Why, and what a person must do; empty where there is nothing to say. Stable.
    pub message: String,
    /// Where it is explained.
    pub runbook: Option<String>,
    /// The stable word for why it blocks; empty where it does not.
    pub reason: &'static str,
    /// Time for lookups and evaluation.
    pub took: Duration,
    /// Whether a person may say for a limited time that the precondition does not count.
    pub may_be_overridden: bool,
    /// Whether it is unknown for a reason that may pass by itself.
    pub may_pass: bool,
}

impl<E: Effects, S: Send + Sync, C: Clock> Driver<E, S, C> {
    /// Judges a migration. It only reads, and only what the guard names; where there is work, also whether it can be done. `lookups` is
    /// shared by the migrations that are judged together, so that each distinct lookup is one request. `sight` says what of the
    /// cluster is not yet as the migration will find it.
    pub async fn judge(&self, spec: &RunSpec, lookups: &LookupCache, sight: &Sight) -> Judgement {
        let surroundings = Surroundings::default();
        self.judge_run(spec, (lookups, surroundings), false, sight)
            .await
    }

    /// Judges a migration whose run exists: with what that run knows, and what a person has overridden.
    pub(super) async fn judge_run(
        &self,
        spec: &RunSpec,
        (lookups, surroundings): (&LookupCache, Surroundings<'_>),
        overridden: bool,
        sight: &Sight,
    ) -> Judgement {
        let begin = self.clock.monotonic();
        let wanted = lookups_named(&guard_expressions(spec));
        let scene = Scene::look(&self.effects, lookups, spec, wanted.as_ref(), surroundings).await;
        let is_forbidden = scene
            .failures
            .values()
            .any(|error| matches!(error, EffectError::Forbidden(_)));
        let may_pass = scene.failures.values().any(is_passing);
        let (asked, open) = (spec.clone(), sight.open.clone());
        let verdict = self
            .clock
            .apart(move || decide(&asked, &scene, overridden, &open))
            .await;
        let mut verdict =
            verdict.unwrap_or_else(|message| Verdict::new(Decision::Unknown, Vec::new(), message));
        let is_work = verdict.decision == Decision::Run || verdict.may_be_overridden;
        let mut may_pass = may_pass && verdict.decision == Decision::Unknown;
        if !overridden && !sight.guard_alone && (is_work || is_forbidden) {
            match obstacle(&self.effects, spec, sight, (lookups, surroundings)).await {
                Ok(Some(obstacle)) => meet(&mut verdict, obstacle),
                Ok(None) => {}
                Err(error) if is_passing(&error) && verdict.decision == Decision::Run => {
                    let message = format!("its rights are not known: {error}");
                    verdict = Verdict::new(Decision::Unknown, verdict.evidence, message);
                    may_pass = true;
                }
                // What cannot be asked is left to the steps: the server has the last word.
                Err(error) => {
                    tracing::debug!(migration.name = spec.migration, %error, "failed to review rights");
                }
            }
        }
        let at = Some(Time(self.now()));
        for one in &mut verdict.evidence {
            one.at.clone_from(&at);
        }
        Judgement {
            decision: verdict.decision,
            evidence: verdict.evidence,
            message: verdict.message,
            runbook: verdict.runbook,
            reason: verdict.reason,
            took: self.clock.monotonic().saturating_sub(begin),
            may_be_overridden: verdict.may_be_overridden,
            may_pass,
        }
    }
}

/// Returns whether an error may pass by itself.
fn is_passing(error: &EffectError) -> bool {
    matches!(
        error,
        EffectError::Transient { .. } | EffectError::Lost(_) | EffectError::ClaimLost(_)
    )
}

/// Puts an obstacle into a verdict: beside a precondition that is false, or in place of everything else.
fn meet(verdict: &mut Verdict, obstacle: Obstacle) {
    if verdict.decision == Decision::Block {
        verdict.message = format!("{}\n{}", verdict.message, obstacle.message);
        return;
    }
    verdict.decision = Decision::Block;
    verdict.message = obstacle.message;
    verdict.reason = obstacle.reason;
    verdict.may_be_overridden = true;
}

impl From<Judgement> for Verdict {
    fn from(judgement: Judgement) -> Self {
        Self {
            decision: judgement.decision,
            evidence: judgement.evidence,
            message: judgement.message,
            runbook: judgement.runbook,
            reason: judgement.reason,
            may_be_overridden: judgement.may_be_overridden,
        }
    }
}
