//! What a decision rests on: the values of the paths that an expression names.
//!
//! A list that is too long to be kept as a whole is kept in parts: the elements that decided a loop come first, each with its
//! name and the fields that the loop looks at, and what is left out is counted.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::bindings::Bindings;
use super::compile::{Expression, paths_in};
use super::evaluate::{EvaluationError, Machine};
use super::item::Item;
use super::tree::{Kind, Loop, Node};
use crate::model::api::Evidence;
use crate::model::limits;

/// Bytes of a record's date, which is added later.
const DATE: usize = 64;
/// Bytes of the line that counts the elements of a list.
const COUNT: usize = 120;

/// Returns what an expression came to, and the values of the paths that it names, within the limit of evidence.
pub fn evidence(
    about: &str,
    expression: &Expression,
    bindings: &Bindings,
    result: &Result<Value, EvaluationError>,
) -> Evidence {
    let mut found = Evidence {
        about: about.to_owned(),
        expression: expression.text().to_owned(),
        result: match result {
            Ok(value) => value.to_string(),
            Err(error) => format!("unknown: {error}"),
        },
        values: BTreeMap::new(),
        at: None,
    };
    let used = serde_json::to_vec(&found).map_or(usize::MAX, |text| text.len());
    let mut values = Values {
        found: BTreeMap::new(),
        left: limits::EVIDENCE_SIZE_MAX.saturating_sub(used.saturating_add(DATE)),
    };
    let mut long = Vec::new();
    for path in expression.paths() {
        let Some(value) = lookup(bindings, &path) else {
            continue;
        };
        let is_kept = values.keep(path.join("."), value);
        if let (false, Value::Array(elements)) = (is_kept, value) {
            long.push((path, elements));
        }
    }
    for (path, elements) in long {
        values.keep_parts(expression, bindings, &path, elements);
    }
    found.values = values.found;
    found
}

fn lookup<'a>(bindings: &'a Bindings, path: &[String]) -> Option<&'a Value> {
    let (root, rest) = path.split_first()?;
    rest.iter()
        .try_fold(bindings.get(root)?, |value, name| value.get(name))
}

/// Values that fit.
struct Values {
    found: BTreeMap<String, Value>,
    /// Bytes that are left.
    left: usize,
}

impl Values {
    /// Keeps a value, unless there is no room for it.
    fn keep(&mut self, key: String, value: &Value) -> bool {
        // Quotes, a colon and a comma.
        let size = key.len() + value.to_string().len() + 4;
        let Some(left) = self.left.checked_sub(size) else {
            return false;
        };
        self.left = left;
        self.found.insert(key, value.clone());
        true
    }

    /// Keeps as many elements of a list as there is room for.
    fn keep_parts(
        &mut self,
        expression: &Expression,
        bindings: &Bindings,
        path: &[String],
        elements: &[Value],
    ) {
        let key = path.join(".");
        let Some(left) = self.left.checked_sub(key.len() + COUNT) else {
            return;
        };
        self.left = left;
        let mut loops = Vec::new();
        loops_over(&expression.tree, path, &mut loops);
        let mut machine = Machine::new(bindings);
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        let mut all_known = true;
        for (index, element) in elements.iter().enumerate() {
            let mut decides = false;
            for turns in loops.iter().copied() {
                let found = machine.is_decided_by(turns, Item::from(element));
                all_known &= found.is_some();
                decides |= found == Some(true);
            }
            if decides {
                first.push((index, element));
            } else {
                rest.push((index, element));
            }
        }
        let decided = first.len();
        let mut omitted = 0;
        for (index, element) in first.into_iter().chain(rest) {
            let part = part_of(element, &loops);
            if omitted > 0 || !self.keep(format!("{key}[{index}]"), &part) {
                omitted += 1;
            }
        }
        let mut line = format!("a list of {}", elements.len());
        if decided > 0 {
            let at_least = if all_known { "" } else { "at least " };
            line = format!("{line}, of which {at_least}{decided} decided");
        }
        if omitted > 0 {
            line = format!("{line}; {omitted} are left out here");
        }
        self.found.insert(key, Value::String(line));
    }
}

/// Finds the loops over a list that stand in no other loop.
fn loops_over<'t>(node: &'t Node, path: &[String], found: &mut Vec<&'t Loop>) {
    if let Kind::Loop(turns) = &node.kind {
        if turns.range.path().as_deref() == Some(path) {
            found.push(turns);
        }
        loops_over(&turns.range, path, found);
        return;
    }
    for child in node.children() {
        loops_over(child, path, found);
    }
}

/// Returns what is shown of one element: its name, and what loops look at.
fn part_of(element: &Value, loops: &[&Loop]) -> Value {
    if !element.is_object() {
        return element.clone();
    }
    let mut paths: Vec<Vec<String>> = vec![
        vec!["metadata".to_owned(), "namespace".to_owned()],
        vec!["metadata".to_owned(), "name".to_owned()],
    ];
    for turns in loops {
        for part in turns.condition.iter().chain([&turns.body]) {
            let named = paths_in(part).into_iter().map(|(path, _)| path);
            let of_it = named.filter(|path| path.len() > 1 && *path[0] == *turns.variable);
            paths.extend(of_it.map(|path| path[1..].to_vec()));
        }
    }
    let mut part = Map::new();
    for path in paths {
        let value = path.iter().try_fold(element, |value, name| value.get(name));
        if let Some(value) = value {
            part.insert(path.join("."), value.clone());
        }
    }
    Value::Object(part)
}
