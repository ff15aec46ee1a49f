//! What an expression may look at.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Values by the name that an expression knows them by: `objects`, `desired`, `deploy`, `params`, `steps`, `hop`, and the
/// element of a `forEach`. Secrets must be redacted before they get here, see [`Bindings::redact`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bindings {
    values: Map<String, Value>,
    /// Bytes of each value, as JSON would write it without escapes.
    sizes: BTreeMap<String, usize>,
}

impl Bindings {
    /// Sets a value.
    pub fn set(&mut self, name: &str, value: Value) {
        self.sizes.insert(name.to_owned(), size_of(&value));
        self.values.insert(name.to_owned(), value);
    }

    /// Returns a value.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Returns all names with their values, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values
            .iter()
            .map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the bytes of all values.
    pub(super) fn size(&self) -> usize {
        self.sizes.values().sum()
    }

    /// Takes the values out of a Secret, and leaves its metadata, type and the names of its keys (each as `true`): an
    /// expression can ask which keys there are and nothing else. Anything that is no Secret stays as it is. Annotations that
    /// repeat values (`kubectl.kubernetes.io/last-applied-configuration`) and `managedFields` go as well.
    pub fn redact(object: &mut Value) {
        let is_secret = object.get("kind").and_then(Value::as_str) == Some("Secret")
            && object.get("apiVersion").and_then(Value::as_str) == Some("v1");
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            if is_secret
                && let Some(annotations) = metadata
                    .get_mut("annotations")
                    .and_then(Value::as_object_mut)
            {
                annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
            }
        }
        if !is_secret {
            return;
        }
        for field in ["data", "stringData"] {
            if let Some(values) = object.get_mut(field).and_then(Value::as_object_mut) {
                values
                    .values_mut()
                    .for_each(|value| *value = Value::Bool(true));
            }
        }
    }
}

/// Returns about as many bytes as JSON would have.
fn size_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 10,
        Value::String(text) => text.len() + 3,
        Value::Array(values) => 2 + values.iter().map(size_of).sum::<usize>(),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| name.len() + 4 + size_of(value));
            2 + fields.sum::<usize>()
        }
    }
}
