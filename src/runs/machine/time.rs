//! Delays and the sums of time.

use std::time::Duration;

use super::{Machine, Next};
use crate::model::Digest;
use crate::model::api::StepRecord;
use crate::model::migration::{Policy, Retry, Step};

/// Returns the delay after a failure: `interval × factor^(failures-1)`, at most `maxInterval`, of which the part `jitter` is spread over
/// runs and steps. The spread comes from names, not from chance, so that a run is the same each time it is tried.
pub fn delay(retry: &Retry, failures: u32, key: &str) -> Duration {
    let longest = retry.max_interval.0.as_secs_f64();
    let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
    let grown = retry.interval.0.as_secs_f64() * retry.factor.max(1.0).powi(exponent);
    // A factor to the power of thousands is infinite, and infinity times zero no number: both are the longest.
    let whole = if grown.is_finite() {
        grown.min(longest)
    } else {
        longest
    };
    let jitter = retry.jitter.clamp(0.0, 1.0);
    Duration::from_secs_f64(whole * (1.0 - jitter * (1.0 - spread(key, failures))))
}

/// Returns a number from 0 to 1 that is the same for the same run, step and attempt.
fn spread(key: &str, failures: u32) -> f64 {
    let digest = Digest::of_parts([key, &failures.to_string()]);
    let digits: String = digest.as_str().chars().rev().take(8).collect();
    let number = u32::from_str_radix(&digits, 16).unwrap_or(u32::MAX);
    f64::from(number) / f64::from(u32::MAX)
}

/// Adds a length of time to a sum in milliseconds.
pub(super) fn add(milliseconds: u64, elapsed: Duration) -> u64 {
    let elapsed = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    milliseconds.saturating_add(elapsed)
}

/// Returns how a step is tried again.
pub(super) fn retry<'a>(policy: &'a Policy, step: &'a Step) -> &'a Retry {
    step.retry.as_ref().unwrap_or(&policy.retry)
}

/// Returns the time for one attempt of a step.
pub(super) fn attempt_limit(policy: &Policy, step: &Step) -> Duration {
    step.attempt_timeout.unwrap_or(policy.attempt_timeout).0
}

/// Returns how much of the time of its present attempt a step has left.
pub(super) fn attempt_left(policy: &Policy, step: &Step, record: Option<&StepRecord>) -> Duration {
    let spent = record.map_or(0, |record| record.attempt_milliseconds);
    attempt_limit(policy, step).saturating_sub(Duration::from_millis(spent))
}

// === impl Machine ===

impl Machine<'_> {
    /// Returns how long to wait before a run that another process has left waiting is gone on with. A clock that has jumped cannot
    /// make a delay longer than it was; what is only looked at is looked at now.
    pub fn resumed_wait(&self) -> Duration {
        let planned = match (self.next(), &self.status.next_at) {
            (_, None) => return Duration::ZERO,
            (Next::Step(position), _) if self.is_look(&position) => return Duration::ZERO,
            (Next::Step(position), _) => {
                let retry = retry(&self.spec.definition.policy, self.step(&position));
                let failures = self.record(&position).map_or(0, |record| record.failures);
                delay(retry, failures, &self.idempotency_key(&position))
            }
            (Next::Judge | Next::Prove, _) => {
                let count = self.status.unknown_guards.max(self.status.open_proofs);
                delay(&self.spec.definition.policy.retry, count, self.name)
            }
            _ => return Duration::ZERO,
        };
        let next_at = self.status.next_at.as_ref().map(|time| time.0);
        let left = next_at.map(|next_at| next_at.duration_since(self.now));
        left.and_then(|left| Duration::try_from(left).ok())
            .map_or(Duration::ZERO, |left| left.min(planned))
    }
}
