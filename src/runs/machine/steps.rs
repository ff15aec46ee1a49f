//! Beginning a step, leaving it out, and finding one under way.

use std::collections::BTreeMap;

use serde_json::Value;

use super::next::Position;
use super::{Machine, bounds, items, time};
use crate::model::api::{Evidence, RunPhase, StepRecord, StepState};
use crate::model::limits;
use crate::model::migration::{Step, StepAction};

// === impl Machine ===

impl Machine<'_> {
    /// Returns the key that is the same for every attempt of a step: `RUN/STEP`, or `RUN/STEP/ITEM`.
    pub fn idempotency_key(&self, position: &Position) -> String {
        self.key_below(self.name, position)
    }

    fn key_below(&self, root: &str, position: &Position) -> String {
        let course = if self.status.undoing { "undo/" } else { "" };
        let id = &self.step(position).id;
        match &position.item {
            Some(item) => format!("{root}/{course}{id}/{item}"),
            None => format!("{root}/{course}{id}"),
        }
    }

    /// Returns a step as it is carried out: a request without a key of its own gets that of the policy, which outlives the run.
    pub fn carried_out(&self, position: &Position) -> Step {
        let mut step = self.step(position).clone();
        let policy = &self.spec.definition.policy;
        if let (StepAction::Http(http), Some(root)) = (&mut step.action, &policy.idempotency_key)
            && http.idempotency_key.is_none()
        {
            http.idempotency_key = Some(self.key_below(root, position));
        }
        step
    }

    /// Returns whether this is another look at what an attempt has begun, and no new attempt.
    pub fn is_look(&self, position: &Position) -> bool {
        self.record(position).is_some_and(|record| {
            record.state == StepState::Waiting && record.attempts > 0 && !record.retrying
        })
    }

    /// Returns whether another look may have an effect that the record does not tell yet. Looking at a Job or at a state changes
    /// nothing, and what deletes or rewrites once more does what its attempt said: these need no write before a look.
    pub fn is_told(&self, position: &Position) -> bool {
        let silent = matches!(
            self.step(position).action,
            StepAction::Wait(_)
                | StepAction::Job(_)
                | StepAction::Delete(_)
                | StepAction::Rewrite(_)
        );
        silent && self.is_look(position)
    }

    /// Begins an attempt, or another look. To be written before any effect.
    pub fn begin(&mut self, position: &Position, element: Option<&Value>, found: Option<Evidence>) {
        let look = self.is_look(position);
        let now = self.time();
        let patient = matches!(self.step(position).action, StepAction::Wait(_));
        let record = self.record_mut(position);
        if !look {
            record.attempts += 1;
        }
        if !look && !patient {
            record.attempt_milliseconds = 0;
        }
        record.state = StepState::Running;
        if let Some(element) = element.filter(|element| !element.is_null()) {
            record.element = items::kept(element);
        }
        record.retrying = false;
        record.next_at = None;
        // The last attempt's reason is the one that counts.
        if found.is_some() {
            record.evidence.retain(|known| known.about != "when");
        }
        record.evidence.extend(found);
        record.started_at.get_or_insert_with(|| now.clone());
        let (name, attempt) = (label(record), record.attempts);
        self.status.started_at.get_or_insert(now);
        self.status.unknown_guards = 0;
        self.status.current_step = Some(self.step(position).id.clone());
        if !look {
            self.note(format!("{name}: attempt {attempt}"));
        }
        if self.status.phase != RunPhase::Cancelling {
            self.enter(RunPhase::Running, "", "");
        }
    }

    /// Notes what the attempt that has just begun is about to change. One that would change nothing any more leaves what an earlier one
    /// may have changed.
    pub fn intend(&mut self, position: &Position, intended: Value) {
        if !intended.is_null() {
            self.record_mut(position).intended = intended;
        }
    }

    /// Returns what an attempt has left for the next look.
    pub fn progress(&self, position: &Position) -> BTreeMap<String, Value> {
        let record = self.record(position);
        record
            .map(|record| record.progress.clone())
            .unwrap_or_default()
    }

    /// Keeps what an attempt has left for the next one.
    pub fn keep(&mut self, position: &Position, progress: BTreeMap<String, Value>) {
        self.record_mut(position).progress = progress;
    }

    /// Counts that a step was found under way by an agent that had not begun it. To be written before it is looked into.
    ///
    /// # Errors
    ///
    /// When that has happened so often that the step itself may be what kills the agent.
    pub fn found(&mut self, position: &Position) -> Result<(), String> {
        let attempts = time::retry(&self.spec.definition.policy, self.step(position)).max_attempts;
        let record = self.record_mut(position);
        record.restarts += 1;
        let (name, restarts) = (label(record), record.restarts);
        self.note(format!("{name}: found under way after a restart"));
        if restarts > attempts.max(limits::RESTARTS_ALERT) {
            return Err(format!(
                "the agent has ended {restarts} times while this step was under way"
            ));
        }
        Ok(())
    }

    /// Leaves a step out, or ends one whose `when` has turned false since an earlier attempt: somebody, perhaps that attempt, has
    /// brought the cluster where the step wants it.
    pub fn skip(&mut self, position: &Position, found: Option<Evidence>, why: &str) {
        let now = self.time();
        let record = self.record_mut(position);
        let (state, word) = if record.attempts > record.free_attempts {
            (StepState::Done, "done, by the state of the cluster")
        } else {
            (StepState::Skipped, "left out")
        };
        record.state = state;
        record.retrying = false;
        record.next_at = None;
        record.message = bounds::cut(why.to_owned(), bounds::STEP_MESSAGE_MAX);
        record.ended_at = Some(now);
        record.evidence.extend(found);
        let name = label(record);
        self.note(format!("{name}: {word}"));
        if position.item.is_some() {
            self.close(position);
        }
    }
}

/// Returns the name of a step in messages.
pub(super) fn label(record: &StepRecord) -> String {
    match &record.item {
        Some(item) => format!("step {} of {item}", record.id),
        None => format!("step {}", record.id),
    }
}
