use serde_json::{Value, json};

use super::*;
use crate::observe::Health;

fn projected(kind: &str, object: &Value) -> Option<ObservedObject> {
    let item = serde_json::from_value(object.clone()).unwrap();
    project(&kind.parse().unwrap(), &item, &mut FieldSets::default())
}

fn map() -> Value {
    json!({"metadata": {
        "name": "a", "namespace": "default", "uid": "u", "resourceVersion": "7",
        "labels": {"fairway.dev/source": "modules"},
        "annotations": {"fairway.dev/component": "modules/telemetry", "fairway.dev/digest": "v1:0"},
        "managedFields": [
            {"manager": "fairway", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:a": {}}}},
            {"manager": "fairway", "operation": "Update", "subresource": "status", "fieldsV1": {}},
            {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:data": {"f:b": {}}}},
            {"manager": "argocd-controller", "operation": "Apply", "fieldsV1": {"f:data": {"f:c": {}}}},
            {"manager": "kubectl", "operation": "Update", "subresource": "scale", "fieldsV1": {}},
            {"manager": "kubelet", "operation": "Update", "subresource": "status", "fieldsV1": {}},
        ],
    }})
}

#[test]
fn everything_that_planning_asks_for_is_kept() {
    let object = projected("ConfigMap", &map()).unwrap();
    assert_eq!(object.key.to_string(), "ConfigMap default/a");
    assert_eq!(
        (object.uid.as_str(), object.resource_version.as_str()),
        ("u", "7")
    );
    assert_eq!(object.source, Some(SourceName::new("modules").unwrap()));
    assert_eq!(object.component.as_deref(), Some("modules/telemetry"));
    assert_eq!(object.digest, Some(Digest::from_text("v1:0")));
    assert_eq!(object.writers, ["kubectl-edit".into()]);
    assert_eq!(
        object.rivals,
        ["argocd-controller".into(), "kubectl".into()]
    );
    assert_eq!(object.health, Health::Current);
    assert!(!object.deleting && !object.reconcile_disabled && !object.prune_disabled);
    let fields = Arc::new(FieldSet::from_fields_v1(&json!({"f:data": {"f:a": {}}})));
    assert_eq!(
        object.ownership,
        Ownership::Ours {
            api_version: "v1".into(),
            fields
        }
    );
}

#[test]
fn only_an_apply_entry_of_our_manager_on_the_object_itself_is_ours() {
    for (field, value) in [
        ("manager", "other"),
        ("operation", "Update"),
        ("subresource", "status"),
    ] {
        let mut object = map();
        object["metadata"]["managedFields"][0][field] = json!(value);
        assert_eq!(
            projected("ConfigMap", &object).unwrap().ownership,
            Ownership::None,
            "{field}"
        );
    }
    let mut object = map();
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("managedFields");
    assert_eq!(
        projected("ConfigMap", &object).unwrap().ownership,
        Ownership::Unsupported
    );
}

#[test]
fn annotations_of_people_are_read_from_the_live_object() {
    let mut object = map();
    object["metadata"]["annotations"] =
        json!({"fairway.dev/reconcile": "disabled", "fairway.dev/prune": "disabled"});
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let object = projected("ConfigMap", &object).unwrap();
    assert!(object.deleting && object.reconcile_disabled && object.prune_disabled);
    assert_eq!(object.health, Health::Terminating);
}

#[test]
fn the_channels_of_a_module_release_meta_are_read() {
    let mut object = map();
    object["spec"] = json!({"channels": [
        {"channel": "regular", "version": "1.2.3"}, {"channel": "NO", "version": "1"}, {"channel": "fast"}, 7,
    ]});
    let meta = projected("ModuleReleaseMeta.operator.kyma-project.io", &object).unwrap();
    let regular = ChannelName::new("regular").unwrap();
    assert_eq!(
        meta.channels,
        Some(BTreeMap::from([(regular, "1.2.3".into())]))
    );
    assert_eq!(projected("ConfigMap", &object).unwrap().channels, None);
    object["spec"] = json!({"mandatory": {"version": "2.0.0"}});
    let meta = projected("ModuleReleaseMeta.operator.kyma-project.io", &object).unwrap();
    let mandatory = ChannelName::new("mandatory").unwrap();
    assert_eq!(
        meta.channels,
        Some(BTreeMap::from([(mandatory, "2.0.0".into())]))
    );
}

#[test]
fn an_object_without_identity_is_none() {
    for field in ["name", "uid", "resourceVersion"] {
        let mut object = map();
        object["metadata"].as_object_mut().unwrap().remove(field);
        assert_eq!(projected("ConfigMap", &object), None, "{field}");
    }
}

#[test]
fn equal_sets_of_fields_are_one_and_those_that_nobody_holds_go() {
    let mut sets = FieldSets::default();
    let set = |name: &str| FieldSet::from_fields_v1(&json!({ name: {} }));
    let one = sets.share(set("f:a"));
    assert!(Arc::ptr_eq(&one, &sets.share(set("f:a"))));
    for number in 0..1000 {
        sets.share(set(&format!("f:{number}")));
    }
    assert!(sets.sets.len() < 200, "{}", sets.sets.len());
    assert!(Arc::ptr_eq(&one, &sets.share(set("f:a"))));
}
