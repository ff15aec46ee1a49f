//! The elements of `forEach`. Which there are is settled when the step begins; what each of them is, is read anew for each attempt.

use serde_json::{Value, json};

use super::next::Position;
use super::{Machine, bounds};
use crate::model::api::{Evidence, StepRecord, StepState};
use crate::model::limits;

/// Where the record of a step keeps the keys of its elements.
const ITEMS: &str = "items";

/// Returns the key of an element: namespace and name of an object, a text or number as it is, else its position.
fn key(element: &Value, position: usize) -> String {
    let key = match element {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        element => {
            let metadata = element.get("metadata");
            let field = |name| metadata?.get(name)?.as_str();
            match (field("namespace"), field("name")) {
                (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
                (None, Some(name)) => name.to_owned(),
                _ => position.to_string(),
            }
        }
    };
    bounds::cut(key, bounds::ITEM_MAX)
}

/// Returns the element with a key, if the list still has it.
pub fn find<'a>(elements: &'a [Value], wanted: &str) -> Option<&'a Value> {
    elements
        .iter()
        .enumerate()
        .find(|(position, element)| key(element, *position) == wanted)
        .map(|(_, element)| element)
}

/// Returns what a record keeps of an element: of an object that was read from a cluster its kind, name and uid, otherwise itself.
pub fn kept(element: &Value) -> Value {
    let text = |pointer: &str| element.pointer(pointer).and_then(Value::as_str);
    if let (Some(version), Some(kind), Some(name)) =
        (text("/apiVersion"), text("/kind"), text("/metadata/name"))
    {
        return json!({
            "apiVersion": version,
            "kind": kind,
            "metadata": {
                "namespace": text("/metadata/namespace"),
                "name": name,
                "uid": text("/metadata/uid"),
            },
        });
    }
    if element.to_string().len() > limits::EVIDENCE_SIZE_MAX {
        return Value::Null;
    }
    element.clone()
}

/// Returns the keys that a step's record keeps.
pub(super) fn keys(record: &StepRecord) -> Vec<String> {
    let keys = record.progress.get(ITEMS).and_then(Value::as_array);
    keys.into_iter()
        .flatten()
        .filter_map(|key| key.as_str().map(str::to_owned))
        .collect()
}

/// Returns whether this is the record of a step that is done for each element.
pub(super) fn is_parent(record: &StepRecord) -> bool {
    record.item.is_none() && record.progress.contains_key(ITEMS)
}

// === impl Machine ===

impl Machine<'_> {
    /// Settles the elements of a step. It is not written on its own: without an attempt nothing is lost.
    ///
    /// # Errors
    ///
    /// When there are more than a step may be done for.
    pub fn settle(
        &mut self,
        position: &Position,
        elements: &[Value],
        found: Evidence,
    ) -> Result<(), String> {
        if elements.len() > limits::FOR_EACH_MAX {
            return Err(format!(
                "`forEach` has {} elements, more than {}",
                elements.len(),
                limits::FOR_EACH_MAX
            ));
        }
        if elements.is_empty() {
            self.skip(position, Some(found), "there are no elements");
            return Ok(());
        }
        let mut keys: Vec<String> = Vec::new();
        for (position, element) in elements.iter().enumerate() {
            let key = key(element, position);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let now = self.time();
        let record = self.record_mut(position);
        record.state = StepState::Waiting;
        record.started_at = Some(now);
        record.evidence = vec![found];
        record.progress.insert(ITEMS.to_owned(), json!(keys));
        Ok(())
    }

    /// Returns whether the elements of a step are settled.
    pub fn is_settled(&self, position: &Position) -> bool {
        self.record(position).is_some_and(is_parent)
    }

    /// Ends a step whose elements have all ended. Its outputs are lists of theirs, in the order of the elements; of an element
    /// that was left out it is null.
    pub fn close(&mut self, position: &Position) {
        let parent = Position {
            index: position.index,
            item: None,
        };
        let Some(record) = self.record(&parent).filter(|record| is_parent(record)) else {
            return;
        };
        let elements: Vec<Option<&StepRecord>> = keys(record)
            .into_iter()
            .map(|key| {
                self.record(&Position {
                    index: position.index,
                    item: Some(key),
                })
            })
            .collect();
        let ended =
            |record: &&StepRecord| matches!(record.state, StepState::Done | StepState::Skipped);
        if !elements
            .iter()
            .all(|record| record.as_ref().is_some_and(ended))
        {
            return;
        }
        let done = elements
            .iter()
            .flatten()
            .any(|record| record.state == StepState::Done);
        let mut outputs = std::collections::BTreeMap::new();
        for name in self.step(position).outputs.keys() {
            let values: Vec<Value> = elements
                .iter()
                .map(|record| {
                    let output = record.and_then(|record| record.outputs.get(name));
                    output.cloned().unwrap_or(Value::Null)
                })
                .collect();
            outputs.insert(name.clone(), Value::Array(values));
        }
        let now = self.time();
        let record = self.record_mut(&parent);
        record.state = if done {
            StepState::Done
        } else {
            StepState::Skipped
        };
        record.outputs = outputs;
        record.ended_at = Some(now);
    }
}
