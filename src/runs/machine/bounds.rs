//! What a record may hold. What goes first is what matters least to whoever goes on: the story, then the values that decisions
//! rested on; never the present attempt, what an undo is guarded by, or what later steps use.

use serde_json::Value;

use super::results::is_same_object;
use crate::model::api::{Evidence, RunStatus, StepRecord, StepState};
use crate::model::limits;

/// Bytes of `status.message`.
pub(super) const MESSAGE_MAX: usize = 4_000;
/// Bytes of a step's message.
pub(super) const STEP_MESSAGE_MAX: usize = 1_000;
/// Bytes of one line of the timeline.
pub(super) const NOTE_MAX: usize = 500;
/// Bytes of the key of an element.
pub(super) const ITEM_MAX: usize = 512;
/// What the schema of a Run allows of each list of evidence.
const RUN_EVIDENCE_MAX: usize = 16;
const STEP_EVIDENCE_MAX: usize = 8;
/// Bytes of one result and of one expression.
const RESULT_MAX: usize = 1_000;
const EXPRESSION_MAX: usize = 4_000;
/// Lines of the timeline that stay when a record is too large.
const TIMELINE_MIN: usize = 8;

/// Cuts a text to a number of bytes, between two characters.
pub(super) fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        let mut end = bytes_max - '…'.len_utf8();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Keeps the evidence that a Run may hold: the newest, each within its bound.
pub(super) fn evidence(mut found: Vec<Evidence>) -> Vec<Evidence> {
    let surplus = found.len().saturating_sub(RUN_EVIDENCE_MAX);
    found.drain(..surplus);
    found.iter_mut().for_each(bound);
    found
}

fn bound(found: &mut Evidence) {
    found.result = cut(std::mem::take(&mut found.result), RESULT_MAX);
    found.expression = cut(std::mem::take(&mut found.expression), EXPRESSION_MAX);
}

/// Cuts a status to what a record may hold.
pub fn fit(status: &mut RunStatus) {
    for records in [&mut status.steps, &mut status.undone] {
        fold_elements(records);
        for record in records {
            let surplus = record.evidence.len().saturating_sub(STEP_EVIDENCE_MAX);
            record.evidence.drain(..surplus);
            record.evidence.iter_mut().for_each(bound);
            let mut size = 0;
            for found in record.evidence.iter_mut().rev() {
                size += serde_json::to_vec(found).map_or(0, |text| text.len());
                if size > limits::EVIDENCE_SIZE_MAX {
                    found.values.clear();
                }
            }
        }
    }
    let surplus = status
        .commands
        .len()
        .saturating_sub(limits::RUN_COMMANDS_MAX);
    status.commands.drain(..surplus);
    shrink(status);
}

/// Takes out the rest in the order of what matters least, until the record is small enough.
fn shrink(status: &mut RunStatus) {
    if size(status) <= limits::RUN_SIZE_MAX {
        return;
    }
    let surplus = status.timeline.len().saturating_sub(TIMELINE_MIN);
    status.timeline.drain(..surplus);
    for index in 0..status.steps.len() + status.undone.len() {
        if size(status) <= limits::RUN_SIZE_MAX {
            return;
        }
        let steps = status.steps.len();
        let record = if index < steps {
            &mut status.steps[index]
        } else {
            &mut status.undone[index - steps]
        };
        if is_ended(record) {
            record
                .evidence
                .iter_mut()
                .for_each(|found| found.values.clear());
        }
    }
    for found in &mut status.evidence {
        found.values.clear();
    }
}

fn size(status: &RunStatus) -> usize {
    serde_json::to_vec(status).map_or(0, |text| text.len())
}

fn is_ended(record: &StepRecord) -> bool {
    matches!(record.state, StepState::Done | StepState::Skipped)
}

/// Returns the objects that a step has changed, and those that it was about to change where it may have: of what a killed process has
/// done nothing else is known.
pub fn changed_objects(record: &StepRecord) -> Vec<Value> {
    let objects = |of: &Value| of["objects"].as_array().cloned().unwrap_or_default();
    let mut changed = objects(&record.effect);
    let mut intended = objects(&record.intended);
    intended.retain(|one| !changed.iter().any(|other| is_same_object(one, other)));
    changed.append(&mut intended);
    changed
}

/// Folds the elements of steps that have ended into the records of their steps, the first step first, while there are more
/// records than a Run may have: what they changed stays, for an undo.
fn fold_elements(records: &mut Vec<StepRecord>) {
    while records.len() > limits::RUN_STEPS_MAX {
        let Some(parent) = records.iter().position(|record| {
            record.item.is_none()
                && is_ended(record)
                && records
                    .iter()
                    .any(|one| one.id == record.id && one.item.is_some())
        }) else {
            return;
        };
        let id = records[parent].id.clone();
        let mut changed = Vec::new();
        records.retain(|record| {
            let element = record.id == id && record.item.is_some();
            if element {
                changed.extend(changed_objects(record));
            }
            !element
        });
        if let Some(parent) = records
            .iter_mut()
            .find(|record| record.id == id && !changed.is_empty())
        {
            parent.effect = serde_json::json!({ "objects": changed });
        }
    }
}
