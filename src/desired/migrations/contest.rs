//! What a step writes after the apply, against what manifests own: such a field would be put back by the next apply.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::steps::{constant, kind_of};
use crate::desired::finding::{Finding, Pointer, pointer};
use crate::model::migration::{
    HookPhase, Lookup, MigrationSpec, PatchType, Selection, Step, StepAction,
};
use crate::model::{Code, DesiredObject, GroupKind, ObjectKey, Selector};

/// A field that a step writes.
struct Write {
    /// The way to it in the object.
    path: Vec<String>,
    /// The way to it in the step.
    pointer: Pointer,
}

/// What git wants, by its identity.
pub(super) type Owned = BTreeMap<ObjectKey, Arc<DesiredObject>>;

/// Checks the steps of a post migration against the objects that manifests own.
pub(super) fn check_contests(spec: &MigrationSpec, owned: &Owned) -> Vec<Finding> {
    if spec.bind.phase != HookPhase::Post {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (index, step) in spec.steps.iter().enumerate() {
        found.extend(check_deletion(spec, step, index, owned));
        let Some((key, writes)) = writes_of(spec, step) else {
            continue;
        };
        let Some(object) = owned.get(&key) else {
            continue;
        };
        for write in writes {
            if !is_owned(&object.body, &write.path) {
                continue;
            }
            let mut at = pointer!["spec", "steps", index];
            at.extend(write.pointer);
            let field = write.path.join(".");
            let message = format!(
                "`{field}` of {key} belongs to the manifest at {}: the next apply would put it back",
                object.place
            );
            found.push(Finding::error(Code::MigrationStep, at, message).help(
                "change the manifest; what must happen before it is applied is a pre migration",
            ));
        }
    }
    found
}

/// Refuses to delete after the apply what the next apply makes again.
fn check_deletion(
    spec: &MigrationSpec,
    step: &Step,
    index: usize,
    owned: &Owned,
) -> Option<Finding> {
    let StepAction::Delete(delete) = &step.action else {
        return None;
    };
    let (goes, field) = match (&delete.reference, &delete.select) {
        (Some(name), _) => (Deleted::of_lookup(spec.lookups.get(name)?), "ref"),
        (None, Some(selection)) => (Deleted::of_selection(selection, spec)?, "select"),
        (None, None) => return None,
    };
    // A Job of a manifest runs once, and is not made again when it is gone.
    let mut objects = owned.values().filter(|it| it.key.kind.kind != "Job");
    let object = objects.find(|object| goes.has(object))?;
    let at = pointer!["spec", "steps", index, "delete", field];
    let message = format!(
        "{} belongs to the manifest at {}: the next apply would make it again",
        object.key, object.place
    );
    Some(Finding::error(Code::MigrationStep, at, message).help(
        "take it out of git, which deletes it; what must go before the manifest is applied is a pre migration",
    ))
}

/// What a step deletes, as far as git alone tells.
struct Deleted {
    kind: GroupKind,
    /// None means every namespace.
    namespace: Option<String>,
    /// None means every name.
    names: Option<Vec<String>>,
    selector: Selector,
}

impl Deleted {
    fn of_lookup(lookup: &Lookup) -> Self {
        let selector = lookup.selector.as_deref().unwrap_or_default();
        Self {
            kind: kind_of(&lookup.api_version, &lookup.kind),
            namespace: lookup.namespace.clone(),
            names: lookup.name.clone().map(|name| vec![name]),
            // What cannot be read is refused elsewhere.
            selector: Selector::parse(selector).unwrap_or_default(),
        }
    }

    /// None where only the cluster knows what is meant.
    fn of_selection(selection: &Selection, spec: &MigrationSpec) -> Option<Self> {
        let namespace = match &selection.namespace {
            Some(namespace) => Some(constant(namespace, spec)?),
            None => None,
        };
        // A name that is not known yet could be any; those that are known are enough to tell.
        let names: Vec<String> = selection
            .names
            .iter()
            .filter_map(|name| constant(name, spec))
            .collect();
        let selector = constant(selection.selector.as_deref().unwrap_or_default(), spec)?;
        Some(Self {
            kind: kind_of(&selection.api_version, &selection.kind),
            namespace: namespace.filter(|_| !selection.all_namespaces),
            names: (!selection.names.is_empty()).then_some(names),
            selector: Selector::parse(&selector).ok()?,
        })
    }

    fn has(&self, object: &DesiredObject) -> bool {
        let key = &object.key;
        let is_named = |names: &Vec<String>| names.contains(&key.name);
        key.kind == self.kind
            && (self.namespace.is_none() || self.namespace == key.namespace)
            && self.names.as_ref().is_none_or(is_named)
            && self.selector.matches(&object.body)
    }
}

/// Returns the object that a step changes and the fields that it writes, where git alone tells.
fn writes_of(spec: &MigrationSpec, step: &Step) -> Option<(ObjectKey, Vec<Write>)> {
    match &step.action {
        StepAction::Patch(patch) if patch.subresource.is_none() => {
            let key = match (&patch.reference, &patch.object) {
                (Some(name), _) => {
                    let lookup = spec.lookups.get(name)?;
                    let kind = kind_of(&lookup.api_version, &lookup.kind);
                    ObjectKey::new(kind, lookup.namespace.as_deref(), lookup.name.clone()?)
                }
                (None, Some(object)) => {
                    let namespace = match &object.namespace {
                        Some(namespace) => Some(constant(namespace, spec)?),
                        None => None,
                    };
                    let kind = kind_of(&object.api_version, &object.kind);
                    ObjectKey::new(kind, namespace.as_deref(), constant(&object.name, spec)?)
                }
                (None, None) => return None,
            };
            let base = pointer!["patch", "body"];
            let mut writes = Vec::new();
            if patch.form == PatchType::Json {
                operations(&patch.body, &base, &mut writes);
            } else {
                leaves(&patch.body, &mut Vec::new(), &base, &mut writes);
            }
            Some((key, writes))
        }
        StepAction::Apply(apply) => {
            let text = |pointer: &str| {
                let text = apply.manifest.pointer(pointer)?.as_str()?;
                constant(text, spec)
            };
            let kind = kind_of(&text("/apiVersion")?, &text("/kind")?);
            let namespace = text("/metadata/namespace");
            let key = ObjectKey::new(kind, namespace.as_deref(), text("/metadata/name")?);
            let base = pointer!["apply", "manifest"];
            let mut writes = Vec::new();
            leaves(&apply.manifest, &mut Vec::new(), &base, &mut writes);
            writes.retain(|write| !is_identity(&write.path));
            Some((key, writes))
        }
        _ => None,
    }
}

fn is_identity(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    matches!(
        path.as_slice(),
        ["apiVersion" | "kind"] | ["metadata", "name" | "namespace"]
    )
}

fn leaves(value: &Value, path: &mut Vec<String>, pointer: &Pointer, writes: &mut Vec<Write>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                // Directives of a strategic patch are no fields.
                if name.starts_with('$') {
                    continue;
                }
                let mut pointer = pointer.clone();
                pointer.push(name.as_str().into());
                path.push(name.clone());
                leaves(field, path, &pointer, writes);
                path.pop();
            }
        }
        // Items of one list are told apart by their names, as Kubernetes does for most of them.
        Value::Array(items) if items.iter().all(|item| name_of(item).is_some()) => {
            for (index, item) in items.iter().enumerate() {
                let mut pointer = pointer.clone();
                pointer.push(index.into());
                path.push(name_of(item).unwrap_or_default().to_owned());
                if let Value::Object(fields) = item {
                    let mut rest = fields.clone();
                    rest.remove("name");
                    leaves(&Value::Object(rest), path, &pointer, writes);
                }
                path.pop();
            }
        }
        _ => writes.push(Write {
            path: path.clone(),
            pointer: pointer.clone(),
        }),
    }
}

fn name_of(item: &Value) -> Option<&str> {
    item.get("name").and_then(Value::as_str)
}

fn operations(body: &Value, base: &Pointer, writes: &mut Vec<Write>) {
    for (index, operation) in body.as_array().into_iter().flatten().enumerate() {
        let text = |field: &str| operation.get(field).and_then(Value::as_str);
        if text("op") == Some("test") {
            continue;
        }
        for field in ["path", "from"] {
            if field == "from" && text("op") != Some("move") {
                continue;
            }
            let Some(path) = text(field) else { continue };
            let mut pointer = base.clone();
            pointer.push(index.into());
            pointer.push(field.into());
            let path = path
                .split('/')
                .skip(1)
                .map(|part| part.replace("~1", "/").replace("~0", "~"))
                .collect();
            writes.push(Write { path, pointer });
        }
    }
}

/// Returns whether a manifest has a value at a path, above it or below it.
fn is_owned(body: &Value, path: &[String]) -> bool {
    let mut value = body;
    for part in path {
        let next = match value {
            Value::Array(_) if part == "-" => return true,
            Value::Object(fields) => fields.get(part),
            Value::Array(items) => items
                .iter()
                .find(|item| name_of(item) == Some(part))
                .or_else(|| items.get(part.parse::<usize>().ok()?)),
            // The manifest has a value where the step goes deeper.
            _ => return true,
        };
        match next {
            Some(next) => value = next,
            None => return false,
        }
    }
    true
}
