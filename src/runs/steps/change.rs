//! What a step has changed, in the form that a Run keeps: objects with the values before and after, by JSON pointers.
//!
//! That is what an undo is guarded by, see [`changed_since`]. Values of Secrets are left out, and all of it is bounded.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::help::Seen;
use crate::model::limits;

/// Values that differ, by their pointers: before and after. None where there was, or is, none.
pub(super) type Fields = BTreeMap<String, (Option<Value>, Option<Value>)>;

/// Parts of an object that the server keeps, or that say nothing of what is wanted.
const LEFT_OUT: &[&str] = &[
    "/metadata/managedFields",
    "/metadata/resourceVersion",
    "/metadata/generation",
];

/// Returns what differs between two states of one object. The status counts only where it was meant.
pub(super) fn difference(before: &Value, after: &Value, with_status: bool) -> Fields {
    let mut fields = Fields::new();
    compare(Some(before), Some(after), &mut String::new(), &mut fields);
    fields.retain(|pointer, _| {
        let below = |part: &str| {
            pointer
                .strip_prefix(part)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        !LEFT_OUT.iter().any(|part| below(part)) && (with_status || !below("/status"))
    });
    fields
}

/// Returns whether an object has, at every pointer, the value after.
pub(super) fn holds(fields: &Fields, object: &Value) -> bool {
    fields
        .iter()
        .all(|(pointer, (_, after))| object.pointer(pointer) == after.as_ref())
}

fn compare(
    before: Option<&Value>,
    after: Option<&Value>,
    pointer: &mut String,
    fields: &mut Fields,
) {
    if before == after {
        return;
    }
    let length = pointer.len();
    match (before, after) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let names: std::collections::BTreeSet<&String> =
                left.keys().chain(right.keys()).collect();
            for name in names {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                compare(left.get(name), right.get(name), pointer, fields);
                pointer.truncate(length);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                pointer.push('/');
                pointer.push_str(&index.to_string());
                compare(Some(left), Some(right), pointer, fields);
                pointer.truncate(length);
            }
        }
        _ => {
            fields.insert(pointer.clone(), (before.cloned(), after.cloned()));
        }
    }
}

/// The objects that a step has changed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    objects: Vec<Value>,
    size: usize,
    omitted: u64,
}

// === impl Changes ===

impl Changes {
    /// Goes on from what an earlier attempt has recorded.
    pub(super) fn resumed(record: &Value) -> Self {
        let objects = record["objects"].as_array().cloned().unwrap_or_default();
        Self {
            size: objects.iter().map(|one| one.to_string().len()).sum(),
            objects,
            omitted: record["omitted"].as_u64().unwrap_or_default(),
        }
    }

    /// Adds an object: `action` is `patched`, `applied`, `created`, `deleted` or `written`.
    pub(super) fn add(&mut self, action: &str, object: &Seen, fields: &Fields) {
        let mut entry = json!({
            "action": action,
            "apiVersion": object.kind.api_version,
            "kind": object.kind.kind,
            "name": object.name,
        });
        if !object.uid.is_empty() {
            entry["uid"] = object.uid.as_str().into();
        }
        if let Some(namespace) = &object.namespace {
            entry["namespace"] = namespace.as_str().into();
        }
        if !fields.is_empty() {
            entry["fields"] = recorded(fields, object.is_secret());
        }
        let mut size = entry.to_string().len();
        if size > limits::EVIDENCE_SIZE_MAX && entry.get("fields").is_some() {
            // That it was changed counts more than by what; an undo then leaves the object alone.
            entry["fields"] = Value::Null;
            size = entry.to_string().len();
        }
        if self.size + size > limits::EVIDENCE_SIZE_MAX {
            self.omitted += 1;
            return;
        }
        self.size += size;
        self.objects.push(entry);
    }

    /// Adds an object of which nobody knows what changes of it: an undo leaves it alone.
    pub(super) fn add_unknown(&mut self, action: &str, object: &Seen) {
        let count = self.objects.len();
        self.add(action, object, &Fields::new());
        if let Some(entry) = self.objects.get_mut(count) {
            entry["fields"] = Value::Null;
        }
    }

    /// Returns the record; null where nothing was changed.
    pub(super) fn record(self) -> Value {
        if self.objects.is_empty() && self.omitted == 0 {
            return Value::Null;
        }
        let mut record = json!({"objects": self.objects});
        if self.omitted > 0 {
            record["omitted"] = self.omitted.into();
        }
        record
    }
}

fn recorded(fields: &Fields, secret: bool) -> Value {
    let fields = fields.iter().map(|(pointer, (before, after))| {
        let mut field = Map::new();
        if secret {
            field.insert("secret".to_owned(), Value::Bool(true));
        } else {
            // A value that is missing here was missing there.
            field.extend(before.clone().map(|value| ("before".to_owned(), value)));
            field.extend(after.clone().map(|value| ("after".to_owned(), value)));
        }
        (pointer.clone(), Value::Object(field))
    });
    Value::Object(fields.collect())
}

/// Says why an object that a step has changed is not as the step left it, so that an undo leaves it alone: one reason for each
/// field that somebody has changed since. Empty where it is untouched; `live` is none where the object is gone.
///
/// `object` is one entry of a record's `effect.objects`.
pub fn changed_since(object: &Value, live: Option<&Value>) -> Vec<String> {
    let deleted = object["action"] == "deleted";
    // What was about to be created had no uid yet.
    let is_the_one = |live: &&Value| {
        let uid = &object["uid"];
        uid.is_null() || live["metadata"]["uid"] == *uid
    };
    let Some(live) = live.filter(is_the_one) else {
        return match live {
            None if deleted => Vec::new(),
            None => vec!["it is gone".to_owned()],
            Some(_) => vec!["another object has its name now".to_owned()],
        };
    };
    if deleted {
        return vec!["it is still there".to_owned()];
    }
    match object.get("fields") {
        None => Vec::new(),
        Some(Value::Object(fields)) => fields
            .iter()
            .filter_map(|(pointer, field)| {
                if field.get("secret").is_some() {
                    return Some(format!(
                        "`{pointer}` is a value of a Secret, which is not recorded"
                    ));
                }
                (live.pointer(pointer) != field.get("after"))
                    .then(|| format!("`{pointer}` was changed by somebody else"))
            })
            .collect(),
        Some(_) => vec!["what was changed of it is not recorded".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(kind: &str) -> Seen {
        Seen::of(&json!({
            "apiVersion": "v1", "kind": kind,
            "metadata": {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "1"},
        }))
        .unwrap()
    }

    #[test]
    fn a_difference_names_leaves_and_leaves_out_what_the_server_keeps() {
        let before = json!({
            "metadata": {"resourceVersion": "1", "labels": {"a/b": "x"}},
            "spec": {"list": [1, 2], "same": 1, "gone": true}, "status": {"ready": 1},
        });
        let after = json!({
            "metadata": {"resourceVersion": "2", "labels": {"a/b": "y"}},
            "spec": {"list": [1, 3], "same": 1, "new": {"deep": 1}}, "status": {"ready": 2},
        });
        let fields = difference(&before, &after, false);
        let pointers: Vec<_> = fields.keys().map(String::as_str).collect();
        assert_eq!(
            pointers,
            [
                "/metadata/labels/a~1b",
                "/spec/gone",
                "/spec/list/1",
                "/spec/new"
            ]
        );
        assert!(holds(&fields, &after) && !holds(&fields, &before));
        assert!(difference(&before, &after, true).contains_key("/status/ready"));
    }

    #[test]
    fn an_undo_is_told_what_somebody_has_changed_since() {
        let before = json!({"metadata": {"uid": "u"}, "spec": {"size": 1}});
        let after = json!({"metadata": {"uid": "u"}, "spec": {"size": 2, "new": 1}});
        let mut changes = Changes::default();
        changes.add(
            "patched",
            &seen("ConfigMap"),
            &difference(&before, &after, false),
        );
        let record = changes.record();
        let object = &record["objects"][0];
        assert!(changed_since(object, Some(&after)).is_empty());
        let touched = json!({"metadata": {"uid": "u"}, "spec": {"size": 3, "new": 1}});
        assert_eq!(
            changed_since(object, Some(&touched)),
            ["`/spec/size` was changed by somebody else"]
        );
        assert_eq!(changed_since(object, None), ["it is gone"]);
        let other = json!({"metadata": {"uid": "v"}});
        assert_eq!(
            changed_since(object, Some(&other)),
            ["another object has its name now"]
        );
    }

    #[test]
    fn a_secret_leaves_no_value_and_much_leaves_a_bounded_record() {
        let before = json!({"data": {"password": "old"}});
        let after = json!({"data": {"password": "new"}});
        let mut changes = Changes::default();
        changes.add(
            "patched",
            &seen("Secret"),
            &difference(&before, &after, false),
        );
        let text = changes.record().to_string();
        assert!(text.contains("/data/password") && !text.contains("old") && !text.contains("new"));

        let mut changes = Changes::default();
        let long = json!({"data": {"a": "x".repeat(limits::EVIDENCE_SIZE_MAX)}});
        for _ in 0..1_000 {
            changes.add(
                "patched",
                &seen("ConfigMap"),
                &difference(&json!({}), &long, false),
            );
        }
        let record = changes.record();
        assert!(record.to_string().len() < limits::EVIDENCE_SIZE_MAX + 1_000);
        assert_eq!(
            record["objects"].as_array().unwrap().len() as u64
                + record["omitted"].as_u64().unwrap(),
            1_000
        );
        assert!(
            !changed_since(
                &record["objects"][0],
                Some(&json!({"metadata": {"uid": "u"}}))
            )
            .is_empty()
        );
    }
}
