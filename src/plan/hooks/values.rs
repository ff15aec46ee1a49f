//! What this revision would apply for what a migration looks at: the values of `desired.NAME`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::desired::Desired;
use crate::expression::Bindings;
use crate::model::migration::{Lookup, Migration};
use crate::model::{DesiredObject, Selector};

/// Returns what this revision would apply for each lookup that the definition names as `desired.NAME`: the object or null, or
/// a list. Secrets are redacted.
pub fn desired_values(desired: &Desired, migration: &Migration) -> BTreeMap<String, Value> {
    let mut values = BTreeMap::new();
    if migration.spec.lookups.is_empty() {
        return values;
    }
    let Ok(text) = serde_json::to_string(&migration.spec) else {
        return values;
    };
    if !text.contains("desired") {
        return values;
    }
    for (name, lookup) in &migration.spec.lookups {
        if is_named(&text, name) {
            values.insert(name.clone(), value_of(desired, lookup));
        }
    }
    values
}

/// Returns whether a definition names `desired.NAME`, in either way of writing it. Naming one too many costs a few bytes.
fn is_named(text: &str, name: &str) -> bool {
    let forms = [
        format!("desired.{name}"),
        format!("desired[\\\"{name}\\\"]"),
        format!("desired['{name}']"),
        format!("desired.?{name}"),
    ];
    forms.iter().any(|form| text.contains(form.as_str()))
}

fn value_of(desired: &Desired, lookup: &Lookup) -> Value {
    let mut found = desired
        .objects()
        .filter(|object| !desired.held.contains_key(&object.key) && fits(object, lookup))
        .map(|object| {
            let mut body = object.body.as_ref().clone();
            Bindings::redact(&mut body);
            body
        });
    if lookup.list {
        return Value::Array(found.collect());
    }
    found.next().unwrap_or(Value::Null)
}

pub(super) fn fits(object: &DesiredObject, lookup: &Lookup) -> bool {
    let group = lookup
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group);
    object.key.kind.kind == lookup.kind
        && object.key.kind.group == group
        && (lookup.namespace.is_none() || object.key.namespace == lookup.namespace)
        && lookup
            .name
            .as_ref()
            .is_none_or(|name| object.key.name == *name)
        && lookup.selector.as_ref().is_none_or(|selector| {
            // One that cannot be read was refused with its place.
            Selector::parse(selector).is_ok_and(|it| it.matches(&object.body))
        })
}
