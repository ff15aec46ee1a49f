//! Whether everything that git wants of an object is still ours, by the `fieldsV1` entry of our manager.
//!
//! The entry loses a field as soon as anyone else changes or removes its value, and only then. So walking the desired body
//! along the entry finds every drift without comparing a value: a desired leaf is covered when its path is owned, or an
//! owned leaf stands above it (an atomic list or map). The rules by which the API server writes the entry are those of
//! structured-merge-diff: `typed/tofieldset.go` and `fieldpath/serialize.go`.

use std::rc::Rc;

use serde_json::{Map, Value};

use crate::model::limits;
use crate::observe::FieldSet;

/// What the entry says about the desired body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Coverage {
    /// Everything is ours.
    Covered,
    /// These fields are not, in words; at most a few are named.
    Uncovered(Vec<String>),
    /// The entry does not tell; the text says why, as a lowercase fragment.
    Unclear(String),
}

/// Walks a desired body along our entry.
pub(super) fn coverage(body: &Value, owned: &FieldSet) -> Coverage {
    let mut walk = Walk::default();
    if let Some(map) = body.as_object() {
        for (name, value) in map {
            match (name.as_str(), value) {
                // The server keeps these out of every entry, since nobody can change them.
                ("apiVersion" | "kind", _) => {}
                ("metadata", Value::Object(metadata)) => walk.metadata(metadata, owned),
                _ => walk.field(name, value, owned, false),
            }
        }
    }
    match (walk.uncovered.is_empty(), walk.unclear) {
        (false, _) => Coverage::Uncovered(walk.uncovered),
        (true, Some(reason)) => Coverage::Unclear(reason),
        (true, None) => Coverage::Covered,
    }
}

/// One step from the object's root towards a leaf.
enum Step<'a> {
    Field(&'a str),
    /// An item of a list, with the names of the list's keys; without any, its position is what names it.
    Item(&'a Value, usize, Rc<[String]>),
}

#[derive(Default)]
struct Walk<'a> {
    path: Vec<Step<'a>>,
    uncovered: Vec<String>,
    unclear: Option<String>,
    /// Room for one key of the entry, so that looking a field up allocates nothing.
    key: String,
}

// === impl Walk ===

impl<'a> Walk<'a> {
    fn metadata(&mut self, metadata: &'a Map<String, Value>, owned: &FieldSet) {
        let below = owned.children.get("f:metadata");
        self.path.push(Step::Field("metadata"));
        for (name, value) in metadata {
            if !matches!(name.as_str(), "name" | "namespace") {
                match below {
                    Some(set) => self.field(name, value, set, false),
                    None => self.missing_field(name, value),
                }
            }
        }
        self.path.pop();
    }

    /// Looks at one field of a map. `open` says that the map is one whose fields the schema does not name.
    fn field(&mut self, name: &'a str, value: &'a Value, parent: &FieldSet, open: bool) {
        self.key.clear();
        self.key.push_str("f:");
        self.key.push_str(name);
        match parent.children.get(self.key.as_str()) {
            Some(set) => {
                self.path.push(Step::Field(name));
                self.value(value, set, open);
                self.path.pop();
            }
            None => self.missing_field(name, value),
        }
    }

    fn missing_field(&mut self, name: &'a str, value: &'a Value) {
        self.path.push(Step::Field(name));
        self.missing(value);
        self.path.pop();
    }

    /// Notes what is below a path that the entry does not name.
    fn missing(&mut self, value: &'a Value) {
        match value {
            // The server drops nulls, and an empty list owns nothing unless it is atomic: both say nothing here.
            Value::Null => {}
            Value::Array(items) if items.is_empty() => {}
            Value::Object(map) if map.is_empty() => {
                self.unclear("does not show whether the empty map is ours");
            }
            Value::Object(map) => {
                for (name, value) in map {
                    self.missing_field(name, value);
                }
            }
            _ => self.uncover(),
        }
    }

    fn value(&mut self, value: &'a Value, owned: &FieldSet, open: bool) {
        match value {
            Value::Object(map) if !owned.is_leaf() || owned.itself => {
                // Only where the schema does not name the fields does the server list a map beside its fields.
                for (name, value) in map {
                    self.field(name, value, owned, owned.itself);
                }
            }
            // Such maps are never atomic: this one has either lost all its fields, or it was empty.
            Value::Object(map) if open && !map.is_empty() => {
                self.unclear("names the map but none of its fields");
            }
            Value::Array(items) if !owned.is_leaf() => self.list(items, owned),
            Value::Null | Value::Object(_) | Value::Array(_) => {}
            _ if owned.is_leaf() => {}
            _ => self.unclear("has fields where git has a plain value"),
        }
    }

    fn list(&mut self, items: &'a [Value], owned: &FieldSet) {
        let first = owned.children.keys().next().map_or("", |key| &key[..]);
        match first.split_once(':').map(|(form, _)| form) {
            Some("k") => self.keyed_list(items, owned),
            Some("v") => {
                for (position, item) in items.iter().enumerate() {
                    let set = owned.children.get(item_key('v', item).as_str());
                    self.plain_item(item, position, set);
                }
            }
            Some("i") => {
                for (position, item) in items.iter().enumerate() {
                    let set = owned.children.get(format!("i:{position}").as_str());
                    self.plain_item(item, position, set);
                }
            }
            _ => self.unclear("has fields where git has a list"),
        }
    }

    fn plain_item(&mut self, item: &'a Value, position: usize, owned: Option<&FieldSet>) {
        self.path.push(Step::Item(item, position, Rc::default()));
        match owned {
            Some(set) => self.value(item, set, false),
            None => self.uncover(),
        }
        self.path.pop();
    }

    /// Finds each item by the list's keys. A key that git leaves out was filled in by the server and counts as equal, but
    /// only on an entry that no other item names in full: `53` beside `53/UDP` must not be taken for it.
    fn keyed_list(&mut self, items: &'a [Value], owned: &FieldSet) {
        let names: Rc<[String]> = owned
            .children
            .keys()
            .find_map(|key| Some(parsed(key, "k:")?.as_object()?.keys().cloned().collect()))
            .unwrap_or_default();
        let mut exact = Vec::with_capacity(items.len());
        for item in items {
            let key = in_full(item, &names);
            let found = key.and_then(|key| owned.children.get_key_value(key.as_str()));
            exact.push(found.map(|(key, set)| (&**key, set)));
        }
        let mut rest: Option<Vec<(Map<String, Value>, &FieldSet)>> = None;
        for (position, (item, found)) in items.iter().zip(&exact).enumerate() {
            let set = found.map(|(_, set)| set).or_else(|| {
                let rest = rest.get_or_insert_with(|| unnamed(owned, &exact));
                let index = rest.iter().position(|(key, _)| agrees(item, key))?;
                Some(rest.swap_remove(index).1)
            });
            self.path
                .push(Step::Item(item, position, Rc::clone(&names)));
            match (item, set) {
                (Value::Object(map), Some(set)) => {
                    for (name, value) in map {
                        self.field(name, value, set, false);
                    }
                }
                _ => self.uncover(),
            }
            self.path.pop();
        }
    }

    fn uncover(&mut self) {
        if self.uncovered.len() < limits::DRIFTED_FIELDS_NAMED_MAX {
            let words = words(&self.path);
            self.uncovered.push(words);
        }
    }

    fn unclear(&mut self, what: &str) {
        if self.unclear.is_none() {
            self.unclear = Some(format!("our entry {what} at {}", words(&self.path)));
        }
    }
}

// === keys of list items ===

fn item_key(form: char, item: &Value) -> String {
    format!("{form}:{item}")
}

fn parsed(key: &str, form: &str) -> Option<Value> {
    serde_json::from_str(key.strip_prefix(form)?).ok()
}

/// Returns the key of an item that has all of the list's keys.
fn in_full(item: &Value, names: &[String]) -> Option<String> {
    let mut key = Map::new();
    for name in names {
        key.insert(name.clone(), item.get(name)?.clone());
    }
    Some(item_key('k', &Value::Object(key)))
}

/// Returns the entries that no item names in full.
fn unnamed<'s>(
    owned: &'s FieldSet,
    exact: &[Option<(&'s str, &'s FieldSet)>],
) -> Vec<(Map<String, Value>, &'s FieldSet)> {
    let taken: std::collections::HashSet<&str> =
        exact.iter().flatten().map(|(key, _)| *key).collect();
    owned
        .children
        .iter()
        .filter(|(key, _)| !taken.contains(&key[..]))
        .filter_map(|(key, set)| match parsed(key, "k:")? {
            Value::Object(map) => Some((map, set)),
            _ => None,
        })
        .collect()
}

fn agrees(item: &Value, key: &Map<String, Value>) -> bool {
    key.iter()
        .all(|(name, value)| item.get(name).is_none_or(|wanted| wanted == value))
        && key.keys().any(|name| item.get(name).is_some())
}

// === paths in words ===

fn words(path: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            // A label such as `app.kubernetes.io/name` would read as four fields.
            Step::Field(name) if name.contains(['.', '/']) => {
                text.push('[');
                text.push_str(name);
                text.push(']');
            }
            Step::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Step::Item(item, position, names) => text.push_str(&item_words(item, *position, names)),
        }
    }
    text
}

fn item_words(item: &Value, position: usize, names: &[String]) -> String {
    let keys: Vec<String> = names
        .iter()
        .filter_map(|name| match item.get(name)? {
            Value::String(value) => Some(format!("{name}={value}")),
            value => Some(format!("{name}={value}")),
        })
        .collect();
    if keys.is_empty() {
        format!("[{position}]")
    } else {
        format!("[{}]", keys.join(","))
    }
}

#[cfg(test)]
mod tests;
