//! What this revision would apply for what a migration looks at: the values of `desired.NAME`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::expression::Bindings;
use crate::model::DesiredObject;
use crate::model::migration::{Lookup, Migration};
use crate::plan::view::View;

/// Returns what this revision would apply for each lookup that the definition names as `desired.NAME`: the object or null, or
/// a list. Secrets are redacted.
pub(super) fn desired_values(view: &View<'_>, migration: &Migration) -> BTreeMap<String, Value> {
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
            values.insert(name.clone(), value_of(view, lookup));
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

fn value_of(view: &View<'_>, lookup: &Lookup) -> Value {
    let mut found = view
        .objects
        .iter()
        .filter(|object| fits(object, lookup))
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

fn fits(object: &DesiredObject, lookup: &Lookup) -> bool {
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
        && lookup
            .selector
            .as_ref()
            .is_none_or(|selector| selects(selector, &object.body))
}

/// Returns whether labels fit a selector of equalities and existence. A part of another form selects nothing here: what is wanted
/// is then said to be less than it is, and never more.
fn selects(selector: &str, body: &Value) -> bool {
    let labels = &body["metadata"]["labels"];
    let label = |key: &str| labels.get(key.trim()).and_then(Value::as_str);
    selector.split(',').all(|part| {
        let part = part.trim();
        if part.contains('(') || part.contains(')') {
            return false;
        }
        if let Some((key, value)) = part.split_once("!=") {
            return label(key) != Some(value.trim());
        }
        if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            return label(key) == Some(value.trim());
        }
        match part.strip_prefix('!') {
            Some(key) => label(key).is_none(),
            None => label(part).is_some(),
        }
    })
}
