//! What comes of an attempt.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::next::Position;
use super::steps::label;
use super::{Machine, bounds, time};
use crate::model::api::{Evidence, RunPhase, StepState};
use crate::model::limits;
use crate::model::migration::{OnUnknown, StepAction};
use crate::runs::steps::{StepOutcome, is_repeatable};

/// What a step leaves for later ones, by name.
pub type Outputs = BTreeMap<String, Value>;

// === impl Machine ===

impl Machine<'_> {
    /// Counts the time that an attempt has taken so far.
    pub fn spend_on(&mut self, position: &Position, elapsed: Duration) {
        self.spend(elapsed);
        let record = self.record_mut(position);
        record.attempt_milliseconds = time::add(record.attempt_milliseconds, elapsed);
        record.active_milliseconds = time::add(record.active_milliseconds, elapsed);
    }

    /// Returns how long an attempt, or the wait between two looks, may last: the rest of the attempt's time or of the whole run's.
    pub fn attempt_left(&self, position: &Position) -> Duration {
        let policy = &self.spec.definition.policy;
        time::attempt_left(policy, self.step(position), self.record(position)).min(self.time_left())
    }

    /// Takes in that a step is done.
    pub fn done(&mut self, position: &Position, outcome: StepOutcome, outputs: Outputs) {
        let now = self.time();
        let record = self.record_mut(position);
        record.state = StepState::Done;
        record.ended_at = Some(now);
        record.message.clear();
        record.progress.clear();
        record.outputs = outputs;
        record.effect = outcome.effect;
        if covers(&record.effect, &record.intended) {
            record.intended = Value::Null;
        }
        record.evidence.extend(outcome.evidence);
        let word = if outcome.changed {
            "done"
        } else {
            "done, nothing was to be changed"
        };
        let name = label(record);
        self.note(format!("{name}: {word}"));
        if position.item.is_some() {
            self.close(position);
        }
        self.go_on();
    }

    /// Takes in that nothing failed and the step is not over. Returns how long until the next look; none where its time is over.
    pub fn waits(
        &mut self,
        position: &Position,
        message: String,
        after: Duration,
        progress: BTreeMap<String, Value>,
    ) -> Duration {
        self.record_mut(position).progress = progress;
        if self.time_left().is_zero() {
            self.time_is_over(position, &message);
            return Duration::ZERO;
        }
        if self.attempt_left(position).is_zero() {
            return self.attempt_is_over(position, &message);
        }
        let after = after.min(self.attempt_left(position));
        let next_at = self.after(after);
        let record = self.record_mut(position);
        record.state = StepState::Waiting;
        record.retrying = false;
        record.failures = 0;
        record.message = bounds::cut(message, bounds::STEP_MESSAGE_MAX);
        record.next_at.clone_from(&next_at);
        let message = format!("{}: {}", label(record), record.message);
        self.waiting("StepWaits", message, next_at);
        after
    }

    /// Takes in that an attempt failed and may be made again. Returns the delay before that; none where the run has ended with it.
    pub fn failed(
        &mut self,
        position: &Position,
        message: String,
        after: Option<Duration>,
        counts: bool,
    ) -> Duration {
        let step = self.step(position);
        let retry = time::retry(&self.spec.definition.policy, step);
        let key = self.idempotency_key(position);
        let record = self.record_mut(position);
        record.failures = record.failures.saturating_add(1);
        if !counts {
            record.free_attempts += 1;
            // Nothing was done.
            record.intended = Value::Null;
        }
        record.message = bounds::cut(message, bounds::STEP_MESSAGE_MAX);
        let delay = time::delay(retry, record.failures, &key)
            .max(after.unwrap_or_default())
            .min(limits::RUN_WAIT_MAX);
        let (attempts, message) = (
            record.attempts.saturating_sub(record.free_attempts),
            format!("{}: {}", label(record), record.message),
        );
        self.note(message.clone());
        // A wait has no number of attempts but its patience.
        let patient = matches!(step.action, StepAction::Wait(_));
        if counts && attempts >= retry.max_attempts && !patient {
            self.gave_up(position, "AttemptsUsedUp", &message);
            return Duration::ZERO;
        }
        if self.time_left().is_zero() {
            self.time_is_over(position, &message);
            return Duration::ZERO;
        }
        let next_at = self.after(delay);
        let record = self.record_mut(position);
        record.state = StepState::Waiting;
        record.retrying = true;
        record.next_at.clone_from(&next_at);
        self.waiting("StepFailed", message, next_at);
        delay
    }

    /// Takes in that an attempt could not be begun, since what it depends on cannot be read or evaluated. While the other side is away
    /// (`transient`) that goes on for the time of the whole run; otherwise as often as a step is tried.
    pub fn stumbles(&mut self, position: &Position, message: String, transient: bool) -> Duration {
        let record = self.record_mut(position);
        record.attempts += 1;
        let failures = record.failures;
        let retry = time::retry(&self.spec.definition.policy, self.step(position));
        if !transient && failures.saturating_add(1) >= retry.max_attempts {
            self.record_mut(position).free_attempts += 1;
            self.fails(position, message);
            return Duration::ZERO;
        }
        self.failed(position, message, None, false)
    }

    /// Ends the run where its time is over before another attempt. Returns whether it is.
    pub fn is_out_of_time(&mut self, position: &Position) -> bool {
        if !self.time_left().is_zero() {
            return false;
        }
        let record = self.record_mut(position);
        let message = format!("{}: {}", label(record), record.message);
        self.time_is_over(position, &message);
        true
    }

    /// Takes in that a step failed for good.
    pub fn fails(&mut self, position: &Position, message: String) {
        let record = self.record_mut(position);
        record.message = bounds::cut(message, bounds::STEP_MESSAGE_MAX);
        let message = format!("{}: {}", label(record), record.message);
        self.note(message.clone());
        self.gave_up(position, "StepFailed", &message);
    }

    /// Takes in that nobody knows what became of an attempt. With `proof` the state of the cluster tells that the work is done. Returns
    /// the delay before another attempt, where the step says that it may be made.
    pub fn unknown(
        &mut self,
        position: &Position,
        message: String,
        proof: Option<Evidence>,
    ) -> Duration {
        if let Some(proof) = proof {
            let now = self.time();
            let record = self.record_mut(position);
            record.state = StepState::Done;
            record.ended_at = Some(now);
            record.message = bounds::cut(message, bounds::STEP_MESSAGE_MAX);
            record.evidence.push(proof);
            let name = label(record);
            self.note(format!("{name}: done, by the state of the cluster"));
            if position.item.is_some() {
                self.close(position);
            }
            self.go_on();
            return Duration::ZERO;
        }
        match self.on_unknown(position) {
            OnUnknown::Retry => return self.failed(position, message, None, true),
            OnUnknown::Fail => self.fails(position, message),
            OnUnknown::Manual => self.manual(position, message),
        }
        Duration::ZERO
    }

    fn manual(&mut self, position: &Position, message: String) {
        let id = &self.step(position).id;
        let run = self.name;
        let record = self.record_mut(position);
        record.state = StepState::Unknown;
        record.message = bounds::cut(message, bounds::STEP_MESSAGE_MAX);
        let name = label(record);
        let message = format!(
            "{name}: nobody knows whether it took effect ({}); look, and say what you have seen: fairway run resolve {run} done|again|fail --step {id} --reason '…'",
            record.message,
        );
        self.note(format!("{name}: unknown"));
        if self.status.phase != RunPhase::Cancelling {
            self.enter(RunPhase::Manual, "StepUnknown", message);
        }
    }

    /// Returns what is done about an attempt of which nobody knows.
    pub fn on_unknown(&self, position: &Position) -> OnUnknown {
        let step = self.carried_out(position);
        if let Some(said) = step.on_unknown {
            return said;
        }
        if is_repeatable(&step) {
            OnUnknown::Retry
        } else {
            OnUnknown::Manual
        }
    }

    /// An attempt has used up its time. For a wait that was all the patience there is.
    fn attempt_is_over(&mut self, position: &Position, message: &str) -> Duration {
        let step = self.step(position);
        let limit = time::attempt_limit(&self.spec.definition.policy, step);
        let message = format!("not over within {}: {message}", shown(limit));
        if matches!(step.action, StepAction::Wait(_)) {
            self.fails(position, message);
            return Duration::ZERO;
        }
        self.failed(position, message, None, true)
    }

    fn time_is_over(&mut self, position: &Position, message: &str) {
        let limit = shown(self.spec.definition.policy.timeout.0);
        let message = format!("the time of the whole run, {limit}, is over: {message}");
        self.gave_up(position, "Timeout", &message);
    }

    fn gave_up(&mut self, position: &Position, reason: &str, message: &str) {
        let now = self.time();
        let record = self.record_mut(position);
        record.state = StepState::Failed;
        record.retrying = false;
        record.next_at = None;
        record.ended_at = Some(now);
        self.end_failed(reason, message);
    }

    fn go_on(&mut self) {
        if self.status.phase != RunPhase::Cancelling {
            self.enter(RunPhase::Running, "", "");
        }
    }

    pub(super) fn waiting(&mut self, reason: &str, message: String, next_at: Option<Time>) {
        if self.status.phase != RunPhase::Cancelling {
            self.enter(RunPhase::Waiting, reason, message);
            self.status.next_at = next_at;
        }
    }

    pub(super) fn after(&self, delay: Duration) -> Option<Time> {
        let delay = jiff::SignedDuration::try_from(delay).ok()?;
        self.now.checked_add(delay).ok().map(Time)
    }
}

/// Returns whether an effect has every object that was intended.
fn covers(effect: &Value, intended: &Value) -> bool {
    let objects = |of: &Value| of["objects"].as_array().cloned().unwrap_or_default();
    let known = objects(effect);
    objects(intended)
        .iter()
        .all(|one| known.iter().any(|other| is_same_object(one, other)))
}

/// Returns whether two entries of records are about the same object.
pub fn is_same_object(one: &Value, other: &Value) -> bool {
    ["apiVersion", "kind", "namespace", "name"]
        .iter()
        .all(|field| one[*field] == other[*field])
}

/// Writes a length of time as definitions do.
pub(super) fn shown(duration: Duration) -> String {
    crate::model::migration::Span(duration).to_string()
}
