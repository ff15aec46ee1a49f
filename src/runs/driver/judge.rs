//! Asking a guard: look everything up that it names, and evaluate it off the threads that serve requests.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Driver;
use crate::model::api::{Evidence, RunSpec};
use crate::model::migration::Decision;
use crate::runs::clock::Clock;
use crate::runs::effects::Effects;
use crate::runs::guard::{Verdict, decide, guard_expressions};
use crate::runs::lookups::{LookupCache, Scene, Surroundings, lookups_named};

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
    /// Time for lookups and evaluation.
    pub took: Duration,
    /// Whether a person may say for a limited time that the precondition does not count.
    pub may_be_overridden: bool,
}

impl<E: Effects, S: Send + Sync, C: Clock> Driver<E, S, C> {
    /// Judges a migration. It only reads, and only what the guard names. `lookups` is shared by the migrations of one hook, so that
    /// each distinct lookup is one request.
    pub async fn judge(&self, spec: &RunSpec, lookups: &LookupCache) -> Judgement {
        self.judge_run(spec, lookups, Surroundings::default(), false)
            .await
    }

    /// Judges a migration whose run exists: with what that run knows, and what a person has overridden.
    pub(super) async fn judge_run(
        &self,
        spec: &RunSpec,
        lookups: &LookupCache,
        surroundings: Surroundings<'_>,
        overridden: bool,
    ) -> Judgement {
        let begin = self.clock.monotonic();
        let wanted = lookups_named(&guard_expressions(spec));
        let scene = Scene::look(&self.effects, lookups, spec, wanted.as_ref(), surroundings).await;
        let spec = spec.clone();
        let verdict = self
            .clock
            .apart(move || decide(&spec, &scene, overridden))
            .await;
        let verdict = verdict.unwrap_or_else(|message| Verdict {
            decision: Decision::Unknown,
            evidence: Vec::new(),
            message,
            runbook: None,
            may_be_overridden: false,
        });
        let at = Some(Time(self.now()));
        let mut evidence = verdict.evidence;
        for one in &mut evidence {
            one.at.clone_from(&at);
        }
        Judgement {
            decision: verdict.decision,
            evidence,
            message: verdict.message,
            runbook: verdict.runbook,
            took: self.clock.monotonic().saturating_sub(begin),
            may_be_overridden: verdict.may_be_overridden,
        }
    }
}
