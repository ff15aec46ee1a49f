//! How what runs have done is taken back: which of them could be, in which order, and how that begins and ends.

use super::Machine;
use crate::model::api::{Run, RunCommand, RunPhase, StepRecord, StepState, UNDO_GIVEN_UP};
use crate::model::limits;

/// Returns whether a run has effects that its `undo` could take back and has not, and nobody has given that up: it is never trimmed then.
pub fn has_open_undo(run: &Run) -> bool {
    let Some(status) = &run.status else {
        return false;
    };
    // Of a step that is under way, or of which nobody knows, it may be so.
    let may_have = |record: &StepRecord| {
        matches!(
            record.state,
            StepState::Done | StepState::Running | StepState::Unknown
        ) || !record.effect.is_null()
            || !record.intended.is_null()
    };
    let has_effects = status.steps.iter().any(may_have);
    let is_decided = status.is_undone() || status.is_undo_given_up();
    !run.spec.definition.undo.is_empty() && has_effects && !is_decided
}

/// Returns the order in which runs of one component are taken back, by their positions: the last effect first. Of two that began within
/// the same second the one goes first that comes after the other by its phase, or by `after` of its definition.
pub fn undo_order(runs: &[&Run]) -> Vec<usize> {
    let began = |run: &Run| {
        let status = run.status.as_ref();
        let of_status = status.and_then(|it| it.started_at.as_ref()).map(|it| it.0);
        let created = run.metadata.creation_timestamp.as_ref().map(|it| it.0);
        of_status.or(created)
    };
    let mut left: Vec<usize> = (0..runs.len()).collect();
    left.sort_by_key(|index| {
        let run = runs[*index];
        (
            std::cmp::Reverse((began(run), run.spec.phase)),
            run.metadata.name.clone(),
        )
    });
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let mut chosen = 0;
        // A chain of `after` has no circle and is no longer than what is left.
        for _ in 0..left.len() {
            let run = runs[left[chosen]];
            let follows = |index: &usize| {
                let other = runs[*index];
                other.spec.deploy == run.spec.deploy
                    && other.spec.phase == run.spec.phase
                    && other.spec.definition.after.contains(&run.spec.migration)
            };
            match left.iter().position(follows) {
                Some(next) => chosen = next,
                None => break,
            }
        }
        order.push(left.remove(chosen));
    }
    order
}

// === impl Machine ===

impl Machine<'_> {
    /// Begins to take back what the run has done.
    ///
    /// # Errors
    ///
    /// When it is not over, or there is nothing to take back.
    pub fn begin_undo(&mut self, why: &str) -> Result<(), String> {
        if self.spec.definition.undo.is_empty() {
            return Err(format!("migration {} has no `undo`", self.spec.migration));
        }
        if !self.status.phase.is_over() {
            return Err(format!("run {} is not over", self.name));
        }
        self.status.undoing = true;
        self.status.active_milliseconds = 0;
        self.status.unknown_guards = 0;
        self.status.open_proofs = 0;
        self.status.ended_at = None;
        self.note(format!("taking it back: {why}"));
        self.enter(RunPhase::Running, "Undoing", "");
        Ok(())
    }

    /// Ends a run whose effects were taken back, with what was left since somebody has changed it.
    pub fn end_undo(&mut self) {
        let left = self.left_alone().join("; ");
        self.note("taken back");
        self.end(RunPhase::Succeeded, "Undone", left);
    }

    /// Ends an undo that does not come to its end, since a person has decided that the rest stays as it is. Returns false, having
    /// changed nothing, where there is none, or where it goes on by itself.
    pub(super) fn give_up_undo(&mut self, command: &RunCommand) -> bool {
        if !self.status.can_keep() {
            return false;
        }
        let is_ended = |id: &str| {
            let mut records = self.records().iter().filter(|record| record.id == id);
            let is_ended = |state| matches!(state, StepState::Done | StepState::Skipped);
            records.any(|record| record.item.is_none() && is_ended(record.state))
        };
        let steps = self.course().iter().map(|step| step.id.as_str());
        let open: Vec<&str> = steps.filter(|id| !is_ended(id)).collect();
        let mut parts = vec![format!(
            "{} leaves it as it is: {}",
            command.by, command.reason
        )];
        if !open.is_empty() {
            parts.push(format!("not taken back: {}", open.join(", ")));
        }
        parts.extend(self.left_alone());
        self.end(RunPhase::Cancelled, UNDO_GIVEN_UP, parts.join("; "));
        true
    }

    /// Returns what undo steps have left, and why.
    fn left_alone(&self) -> Vec<String> {
        let records = self.status.undone.iter();
        let left = records
            .filter(|record| record.state == StepState::Skipped && !record.message.is_empty());
        left.map(|record| format!("{}: {}", super::steps::label(record), record.message))
            .take(limits::STEPS_MAX)
            .collect()
    }
}
