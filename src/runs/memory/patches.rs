//! The forms of a patch, on values.
//!
//! Kubernetes merges some lists by a key that the type declares. Without types, the key is known by the list's name: the
//! table below has those of Pods, workloads and Services. Every other list is replaced as a whole, which is also what a
//! server does with lists of custom resources that declare nothing.

use serde_json::{Map, Value};

use crate::model::migration::PatchType;

/// Names of lists that are merged, with the key of their elements; `ports` has the key of a Service where no element has the
/// one of a container.
const MERGED: &[(&str, &str)] = &[
    ("conditions", "type"),
    ("containers", "name"),
    ("env", "name"),
    ("ephemeralContainers", "name"),
    ("hostAliases", "ip"),
    ("imagePullSecrets", "name"),
    ("initContainers", "name"),
    ("ownerReferences", "uid"),
    ("ports", "containerPort"),
    ("resourceClaims", "name"),
    ("schedulingGates", "name"),
    ("topologySpreadConstraints", "topologyKey"),
    ("volumeDevices", "devicePath"),
    ("volumeMounts", "mountPath"),
    ("volumes", "name"),
];

/// Names of lists of plain values that are merged.
const SETS: &[&str] = &["finalizers"];

/// Patches an object.
///
/// # Errors
///
/// When the patch is none of its form, or does not fit the object: why, as a fragment.
pub(super) fn patched(object: &Value, form: PatchType, patch: &Value) -> Result<Value, String> {
    let mut object = object.clone();
    match form {
        PatchType::Merge => json_patch::merge(&mut object, patch),
        PatchType::Json => {
            let operations: json_patch::Patch = serde_json::from_value(patch.clone())
                .map_err(|error| format!("the body is no JSON patch: {error}"))?;
            json_patch::patch(&mut object, &operations)
                .map_err(|error| format!("the JSON patch does not fit: {error}"))?;
        }
        PatchType::Strategic => merge(&mut object, patch, true),
    }
    Ok(object)
}

/// Applies a manifest over an object: fields that it has are set, others stay.
pub(super) fn applied(object: &Value, manifest: &Value) -> Value {
    let mut object = object.clone();
    merge(&mut object, manifest, false);
    object
}

/// Merges as a strategic patch does; without `directives` null and `$patch` are values like others.
fn merge(object: &mut Value, patch: &Value, directives: bool) {
    let (Some(fields), Some(changes)) = (object.as_object_mut(), patch.as_object()) else {
        *object = patch.clone();
        return;
    };
    if directives && changes.get("$patch").and_then(Value::as_str) == Some("replace") {
        fields.clear();
    }
    for (name, change) in changes {
        if directives && name.starts_with('$') {
            delete_plain(fields, name, change);
            continue;
        }
        if directives && change.is_null() {
            fields.remove(name);
            continue;
        }
        match change {
            Value::Object(_) => {
                let field = fields.entry(name.clone()).or_insert(Value::Null);
                if !field.is_object() {
                    *field = Value::Object(Map::new());
                }
                merge(field, change, directives);
            }
            Value::Array(changes) => {
                let field = fields.entry(name.clone()).or_insert(Value::Null);
                merge_list(name, field, changes, directives);
            }
            change => {
                fields.insert(name.clone(), change.clone());
            }
        }
    }
}

/// Merges `$deleteFromPrimitiveList/NAME`. The order of lists, `$setElementOrder`, means nothing here.
fn delete_plain(fields: &mut Map<String, Value>, directive: &str, values: &Value) {
    let Some(name) = directive.strip_prefix("$deleteFromPrimitiveList/") else {
        return;
    };
    if let (Some(list), Some(gone)) = (
        fields.get_mut(name).and_then(Value::as_array_mut),
        values.as_array(),
    ) {
        list.retain(|it| !gone.contains(it));
    }
}

fn merge_list(name: &str, field: &mut Value, changes: &[Value], directives: bool) {
    let replaces = changes
        .iter()
        .any(|it| it.get("$patch").and_then(Value::as_str) == Some("replace"));
    let key = key_of(name, changes);
    let is_set = SETS.contains(&name);
    if !field.is_array() || (directives && replaces) || (key.is_none() && !is_set) {
        *field = Value::Array(Vec::new());
    }
    let Some(elements) = field.as_array_mut() else {
        return;
    };
    for change in changes {
        let directive = change
            .get("$patch")
            .and_then(Value::as_str)
            .filter(|_| directives);
        if directive == Some("replace") {
            continue;
        }
        let position = match key {
            Some(key) => elements
                .iter()
                .position(|it| it.get(key).is_some() && it.get(key) == change.get(key)),
            None if is_set => elements.iter().position(|it| it == change),
            None => None,
        };
        match (position, directive) {
            (Some(position), Some("delete")) => {
                elements.remove(position);
            }
            (None, Some("delete")) => {}
            (Some(position), _) => merge(&mut elements[position], change, directives),
            (None, _) => elements.push(change.clone()),
        }
    }
}

fn key_of(name: &str, elements: &[Value]) -> Option<&'static str> {
    let (_, key) = MERGED.iter().find(|(list, _)| *list == name)?;
    let has = |key: &str| elements.iter().any(|it| it.get(key).is_some());
    match *key {
        "containerPort" if !has("containerPort") && has("port") => Some("port"),
        key => Some(key),
    }
}
