//! What a judgement, or the proof of success, means for a run.

use std::time::Duration;

use super::{Machine, bounds, time};
use crate::model::api::{Evidence, RunPhase, RunVerb};
use crate::model::limits;
use crate::model::migration::Decision;
use crate::runs::guard::{Proof, Verdict};

// === impl Machine ===

impl Machine<'_> {
    /// Returns whether a person has said that preconditions do not count now.
    pub fn is_overridden(&self) -> bool {
        self.status.commands.iter().rev().any(|command| {
            let longest = command
                .at
                .checked_add(
                    jiff::SignedDuration::try_from(limits::OVERRIDE_MAX).unwrap_or_default(),
                )
                .unwrap_or(command.at);
            command.verb == RunVerb::Override
                && command
                    .until
                    .is_some_and(|until| self.now < until.min(longest))
        })
    }

    /// Takes in what the guard decided before the first effect. Returns the delay before it is asked again; none where the run
    /// goes on, rests or has ended.
    pub fn judged(&mut self, verdict: Verdict) -> Duration {
        if verdict.decision != Decision::Unknown {
            self.status.unknown_guards = 0;
        }
        match verdict.decision {
            Decision::Run => {
                self.status.evidence = bounds::evidence(verdict.evidence);
                if self.is_overridden() {
                    self.note("the guard says Run, with its preconditions overridden");
                }
                self.enter(RunPhase::Running, "", "");
            }
            Decision::NotNeeded => {
                self.status.evidence = bounds::evidence(verdict.evidence);
                self.note("the guard says NotNeeded");
                self.end(RunPhase::Succeeded, "NotNeeded", verdict.message);
            }
            Decision::Skip => {
                self.status.evidence = bounds::evidence(verdict.evidence);
                self.note(format!("left out: {}", verdict.message));
                self.end(RunPhase::Superseded, "Skipped", verdict.message);
            }
            Decision::Block => self.blocked(verdict),
            Decision::Unknown => return self.unclear_guard(&verdict.message, verdict.evidence),
        }
        Duration::ZERO
    }

    fn blocked(&mut self, verdict: Verdict) {
        // What has to be so comes first, then the way around it; what can be applied, if there is anything, stands below.
        let (what, below) = match verdict.message.split_once('\n') {
            Some((what, below)) => (what, Some(below)),
            None => (verdict.message.as_str(), None),
        };
        let mut message = what.to_owned();
        if let Some(runbook) = &verdict.runbook {
            message = format!("{message} ({runbook})");
        }
        if verdict.may_be_overridden {
            message = format!(
                "{message}\nto go on all the same: fairway run override {} --for 1h --reason '…'",
                self.name
            );
        }
        if let Some(below) = below {
            message = format!("{message}\n{below}");
        }
        let reason = verdict.reason;
        // The same answer as before changes nothing: a status that says the same is not written again.
        if self.status.phase != RunPhase::Blocked || self.status.message != message {
            let first_line = message.lines().next().unwrap_or_default();
            self.note(format!("blocked: {first_line}"));
            self.status.evidence = bounds::evidence(verdict.evidence);
            self.enter(RunPhase::Blocked, reason, message);
            self.status.next_at = self.after(limits::BLOCKED_INTERVAL);
        }
    }

    /// Nothing keeps the run from beginning any more; it begins when its hook comes.
    pub fn may_begin(&mut self) {
        if self.status.phase == RunPhase::Blocked {
            self.note("nothing keeps it from beginning any more");
            if self.status.undoing {
                self.enter(RunPhase::Running, "Undoing", "");
            } else {
                self.enter(RunPhase::Pending, "", "");
            }
        }
    }

    /// The guard, or the proof, is unknown: it is asked again, as often as a step is tried, and then the run fails. Never taken
    /// for false, nor for true.
    fn unclear_guard(&mut self, message: &str, evidence: Vec<Evidence>) -> Duration {
        self.status.unknown_guards += 1;
        self.note(format!("the guard is unknown: {message}"));
        let retry = &self.spec.definition.policy.retry;
        if self.status.unknown_guards >= retry.max_attempts || self.time_left().is_zero() {
            self.status.evidence = bounds::evidence(evidence);
            self.end_failed("GuardUnknown", &format!("the guard is unknown: {message}"));
            return Duration::ZERO;
        }
        let delay = time::delay(retry, self.status.unknown_guards, self.name);
        let next_at = self.after(delay);
        self.waiting(
            "GuardUnknown",
            format!("the guard is unknown: {message}"),
            next_at,
        );
        delay
    }

    /// Takes in whether the work is done, after the last step. Returns the delay before it is asked again.
    pub fn proved(&mut self, proof: Proof) -> Duration {
        match proof {
            Proof::Done(found) => {
                self.status.evidence.extend(found);
                self.status.evidence = bounds::evidence(std::mem::take(&mut self.status.evidence));
                self.status.unknown_guards = 0;
                self.note("the guard proves that the work is done");
                self.end(RunPhase::Succeeded, "", "");
                Duration::ZERO
            }
            Proof::Unknown(message) => self.unclear_guard(&message, Vec::new()),
            Proof::NotDone(found) => {
                self.status.unknown_guards = 0;
                self.status.open_proofs += 1;
                let retry = &self.spec.definition.policy.retry;
                let message = format!(
                    "every step is done, and `{}` is still {}",
                    found.about, found.result
                );
                self.note(message.clone());
                if self.status.open_proofs >= retry.max_attempts || self.time_left().is_zero() {
                    self.status.evidence.push(found);
                    self.end_failed("NotDone", &message);
                    return Duration::ZERO;
                }
                let delay = time::delay(retry, self.status.open_proofs, self.name);
                let next_at = self.after(delay);
                self.waiting("NotDone", message, next_at);
                delay
            }
        }
    }
}
