//! Desired objects made from JSON, as if they had been read from git.

use std::sync::Arc;

use fairway::model::{ComponentName, DesiredObject, Digest, GroupKind, ObjectKey, Place, names};
use serde_json::{Value, json};

/// Makes a desired object: adds our label and annotations as the `desired` stage does.
pub(crate) fn desired(source: &str, mut body: Value) -> DesiredObject {
    let api_version = body["apiVersion"].as_str().unwrap().to_owned();
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let kind = GroupKind::new(group, body["kind"].as_str().unwrap());
    let metadata = &mut body["metadata"];
    let namespace = metadata["namespace"].as_str().map(str::to_owned);
    let name = metadata["name"].as_str().unwrap().to_owned();
    let component = ComponentName::folder("test").unwrap();
    metadata["labels"][names::LABEL_SOURCE] = json!(source);
    metadata["annotations"][names::ANNOTATION_COMPONENT] = json!(component.to_string());
    let digest = Digest::of(&body);
    body["metadata"]["annotations"][names::ANNOTATION_DIGEST] = json!(digest.as_str());
    DesiredObject {
        key: ObjectKey::new(kind, namespace.as_deref(), name),
        version: version.to_owned(),
        component,
        place: Place::whole_file("components/test/objects.yaml"),
        digest,
        body: Arc::new(body),
    }
}

/// Makes a desired ConfigMap.
pub(crate) fn config_map(namespace: &str, name: &str, data: &Value) -> DesiredObject {
    desired(
        "test",
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace}, "data": data,
        }),
    )
}
