//! Taking over the fields of writers that we replace.
//!
//! `kubectl apply` on the client's side, and programs that update, own what they wrote by an Update entry in
//! `metadata.managedFields`. Our apply becomes a second owner of what git has too; what git does *not* have stays theirs, so it
//! would stay for ever. Their fields are therefore moved into our Apply entry. The next apply gives up what git does not
//! have, and with its last owner a field goes: a key removed in git, and the annotation with the last applied text. The same
//! is done by Kubernetes' own csaupgrade for kubectl.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, ObjectMeta};
use serde_json::{Map, Value, json};

use crate::model::names;

/// Makes the JSON patch that moves the fields of these managers into our Apply entry, guarded by the resourceVersion. None if
/// they have no fields, or if we have no entry.
pub(super) fn patch(
    metadata: &ObjectMeta,
    api_version: &str,
    managers: &[String],
) -> Option<Value> {
    let entries = metadata.managed_fields.as_deref().unwrap_or_default();
    if !entries.iter().any(|entry| is_taken(entry, managers)) {
        return None;
    }
    let (taken, mut kept): (Vec<_>, Vec<_>) = entries
        .iter()
        .cloned()
        .partition(|entry| is_taken(entry, managers));
    let ours = kept.iter_mut().find(|entry| is_ours(entry))?;
    let fields = ours.fields_v1.get_or_insert_with(|| FieldsV1(json!({})));
    // Fields of another version cannot be translated; they are left without an owner, as Kubernetes does.
    for entry in taken
        .iter()
        .filter(|entry| entry.api_version.as_deref() == Some(api_version))
    {
        if let Some(theirs) = &entry.fields_v1 {
            union(&mut fields.0, &takeable(&theirs.0));
        }
    }
    Some(json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": kept},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.resource_version},
    ]))
}

fn is_taken(entry: &ManagedFieldsEntry, managers: &[String]) -> bool {
    entry.operation.as_deref() == Some("Update")
        && entry.subresource.as_deref().unwrap_or_default().is_empty()
        && entry
            .manager
            .as_ref()
            .is_some_and(|manager| managers.contains(manager))
}

fn is_ours(entry: &ManagedFieldsEntry) -> bool {
    entry.operation.as_deref() == Some("Apply")
        && entry.subresource.as_deref().unwrap_or_default().is_empty()
        && entry.manager.as_deref() == Some(names::MANAGER)
}

/// Leaves out what is never in git and what others depend on: taking these over would remove them.
fn takeable(fields: &Value) -> Value {
    let mut fields = fields.clone();
    if let Some(root) = fields.as_object_mut() {
        root.remove("f:status");
        if let Some(metadata) = root.get_mut("f:metadata").and_then(Value::as_object_mut) {
            metadata.remove("f:finalizers");
            metadata.remove("f:ownerReferences");
        }
    }
    fields
}

/// Adds one set of fields to another. An empty node is a field that is owned itself; beside nodes below it, that is written
/// as a node `.`.
fn union(into: &mut Value, from: &Value) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else {
        return;
    };
    if into.is_empty() != from.is_empty() {
        into.insert(".".to_owned(), Value::Object(Map::new()));
    }
    for (key, below) in from {
        match into.get_mut(key) {
            Some(existing) => union(existing, below),
            None => {
                into.insert(key.clone(), below.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"f:a": {}}), json!({"f:b": {}}), json!({"f:a": {}, "f:b": {}}))]
    #[case(json!({"f:a": {}}), json!({"f:a": {}}), json!({"f:a": {}}))]
    #[case(json!({"f:a": {}}), json!({"f:a": {"f:b": {}}}), json!({"f:a": {".": {}, "f:b": {}}}))]
    #[case(json!({"f:a": {"f:b": {}}}), json!({"f:a": {}}), json!({"f:a": {".": {}, "f:b": {}}}))]
    #[case(json!({"f:a": {".": {}, "f:b": {}}}), json!({"f:a": {".": {}, "f:c": {}}}), json!({"f:a": {".": {}, "f:b": {}, "f:c": {}}}))]
    fn fields_add_up(#[case] mut into: Value, #[case] from: Value, #[case] sum: Value) {
        union(&mut into, &from);
        assert_eq!(into, sum);
    }

    fn entry(
        manager: &str,
        operation: &str,
        subresource: Option<&str>,
        fields: Value,
    ) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            api_version: Some("v1".into()),
            fields_type: Some("FieldsV1".into()),
            fields_v1: Some(FieldsV1(fields)),
            manager: Some(manager.into()),
            operation: Some(operation.into()),
            subresource: subresource.map(str::to_owned),
            time: None,
        }
    }

    fn metadata(entries: Vec<ManagedFieldsEntry>) -> ObjectMeta {
        ObjectMeta {
            resource_version: Some("7".into()),
            managed_fields: Some(entries),
            ..ObjectMeta::default()
        }
    }

    fn kubectl() -> Vec<String> {
        vec!["kubectl-client-side-apply".into()]
    }

    #[test]
    fn only_updates_of_the_named_managers_are_taken() {
        let metadata = metadata(vec![
            entry("fairway", "Apply", None, json!({"f:data": {"f:a": {}}})),
            entry(
                "kubectl-client-side-apply",
                "Update",
                None,
                json!({
                    "f:data": {".": {}, "f:b": {}},
                    "f:metadata": {"f:finalizers": {"v:\"x\"": {}}, "f:annotations": {"f:last": {}}},
                    "f:status": {"f:phase": {}},
                }),
            ),
            entry(
                "kubectl-client-side-apply",
                "Update",
                Some("status"),
                json!({"f:status": {}}),
            ),
            entry(
                "kubectl-edit",
                "Update",
                None,
                json!({"f:data": {"f:c": {}}}),
            ),
        ]);
        let patch = patch(&metadata, "v1", &kubectl()).unwrap();
        let entries = patch[0]["value"].as_array().unwrap();
        assert_eq!(entries.len(), 3);
        assert_eq!(
            entries[0]["fieldsV1"],
            json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}, "f:metadata": {"f:annotations": {"f:last": {}}}})
        );
        assert_eq!(patch[1]["value"], "7");
    }

    #[test]
    fn nothing_is_taken_without_an_entry_of_ours_or_of_theirs() {
        let ours = entry("fairway", "Apply", None, json!({}));
        let theirs = entry("kubectl-client-side-apply", "Update", None, json!({}));
        assert!(patch(&metadata(vec![ours.clone()]), "v1", &kubectl()).is_none());
        assert!(patch(&metadata(vec![theirs.clone()]), "v1", &kubectl()).is_none());
        assert!(patch(&metadata(vec![ours, theirs]), "v1", &[]).is_none());
        assert!(patch(&ObjectMeta::default(), "v1", &kubectl()).is_none());
    }
}
