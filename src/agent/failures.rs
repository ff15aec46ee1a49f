//! What failed lately, and when it may be tried again.
//!
//! Kept in memory only: after a restart everything may be tried at once, which costs a request for each object that still
//! fails. Nothing is decided here; planning holds an object while its failure is not due.

use std::collections::BTreeMap;

use tokio::time::{Duration, Instant};

use crate::execute::{Effect, EffectResult, Failure, Outcome};
use crate::model::{ObjectKey, limits};
use crate::plan::PastFailure;

/// Failures of one target by object.
#[derive(Debug, Default)]
pub(super) struct Failures(BTreeMap<ObjectKey, Entry>);

#[derive(Debug)]
struct Entry {
    digest: Option<String>,
    failure: Failure,
    attempts: u32,
    due: Instant,
}

impl Failures {
    /// Takes in what came of a plan: a success forgets, a failure doubles the delay.
    pub(super) fn note(&mut self, outcome: &Outcome, now: Instant) {
        for effect in &outcome.effects {
            match &effect.result {
                EffectResult::Failed(failure) => self.failed(effect, failure, now),
                EffectResult::Skipped(_) | EffectResult::Stopped => {}
                EffectResult::Applied
                | EffectResult::Unchanged
                | EffectResult::Deleted
                | EffectResult::AlreadyGone => {
                    self.0.remove(&effect.key);
                }
            }
        }
    }

    /// Returns what planning must know now.
    pub(super) fn past(&self, now: Instant) -> BTreeMap<ObjectKey, PastFailure> {
        self.0
            .iter()
            .map(|(key, entry)| {
                let past = PastFailure {
                    digest: entry.digest.clone(),
                    immutable: entry.failure.kind == crate::execute::FailureKind::Immutable,
                    message: entry.failure.message.clone(),
                    due: entry.due <= now,
                };
                (key.clone(), past)
            })
            .collect()
    }

    /// Returns when the next failure becomes due, if any is still to come.
    pub(super) fn next_due(&self, now: Instant) -> Option<Instant> {
        self.0
            .values()
            .map(|entry| entry.due)
            .filter(|due| *due > now)
            .min()
    }

    fn failed(&mut self, effect: &Effect, failure: &Failure, now: Instant) {
        let attempts = match self.0.get(&effect.key) {
            Some(entry) if entry.digest == effect.digest => entry.attempts + 1,
            _ => 1,
        };
        let delay = delay(attempts);
        self.0.insert(
            effect.key.clone(),
            Entry {
                digest: effect.digest.clone(),
                failure: failure.clone(),
                attempts,
                due: now + delay,
            },
        );
    }
}

/// Returns the delay after so many failed attempts: doubled each time, up to a limit.
fn delay(attempts: u32) -> Duration {
    let doublings = attempts.saturating_sub(1).min(16);
    (limits::FAILURE_DELAY_MIN * 2u32.pow(doublings)).min(limits::FAILURE_DELAY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_limit() {
        assert_eq!(delay(1), limits::FAILURE_DELAY_MIN);
        assert_eq!(delay(2), limits::FAILURE_DELAY_MIN * 2);
        assert_eq!(delay(1_000), limits::FAILURE_DELAY_MAX);
    }
}
