//! Every field of every kind with every wrong type: nothing panics, and what is wrong is said at a place in the file.

use fairway::model::Severity;
use serde_json::{Value, json};

use super::Tree;

/// A good document of each kind, with the path that it stands at.
fn documents() -> Vec<(&'static str, Value)> {
    let metadata =
        |name: &str| json!({"name": name, "labels": {"a": "b"}, "annotations": {"c": "d"}});
    vec![
        (
            "fairway.yaml",
            json!({
                "apiVersion": "fairway.dev/v1alpha1", "kind": "Repository", "release": "1.0.0",
                "channels": {"fast": {"suffixes": ["rc"]}}, "upgrades": {"policy": "Direct"},
                "landscapes": ["stage"], "defaultModules": ["keda"],
                "removals": [{"component": "gone"}, {"object": {"apiVersion": "v1", "kind": "Namespace", "name": "gone"}}],
            }),
        ),
        (
            "components/shop/component.yaml",
            json!({
                "apiVersion": "fairway.dev/v1alpha1", "kind": "Component", "version": "1.0.0",
                "dependsOn": ["modules/keda"], "healthTimeout": "10m",
            }),
        ),
        (
            "components/shop/secret.yaml",
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "b", "labels": {"a": "b"}},
                "data": {"a": "b2xk"}, "stringData": {"b": "new"},
            }),
        ),
        (
            "components/shop/custom.yaml",
            json!({"apiVersion": "v1", "kind": "List", "items": [
                {
                    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                    "metadata": {"name": "widgets.example.com"},
                    "spec": {
                        "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget"},
                        "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": {
                            "type": "object", "required": ["spec"],
                            "properties": {"spec": {"type": "object", "properties": {
                                "sizes": {"type": "array", "items": {"type": "integer", "minimum": 1}},
                            }}},
                        }}}],
                    },
                },
                {
                    "apiVersion": "example.com/v1", "kind": "Widget",
                    "metadata": {"name": "a", "namespace": "b"}, "spec": {"sizes": [1]},
                },
            ]}),
        ),
        (
            "modules/keda/module-release-meta.yaml",
            json!({
                "apiVersion": "operator.kyma-project.io/v1beta2", "kind": "ModuleReleaseMeta", "metadata": metadata("keda"),
                "spec": {
                    "moduleName": "keda", "ocmComponentName": "kyma-project.io/module/keda", "beta": false,
                    "channels": [{"channel": "fast", "version": "1.0.0"}],
                    "versions": [{"version": "0.9.0", "deprecationDate": "2027-03-31", "deprecationMessage": "old"}],
                    "kymaSelector": {
                        "matchLabels": {"a": "b"},
                        "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
                    },
                },
            }),
        ),
        (
            "modules/keda/landscapes/stage/module-releases.yaml",
            json!({
                "targetLandscapes": ["stage"], "ocmComponentName": "kyma-project.io/module/keda",
                "channels": [{"channel": "fast", "version": "1.0.0"}],
            }),
        ),
        (
            "modules/keda/release-graph.yaml",
            json!({
                "apiVersion": "fairway.dev/v1alpha1", "kind": "ReleaseGraph",
                "edges": [{"from": "0.9.0", "to": "1.0.0"}], "yanked": [{"version": "0.9.0", "reason": "old"}],
            }),
        ),
        (
            "modules/keda/1.0.0/module-template.yaml",
            json!({
                "apiVersion": "operator.kyma-project.io/v1beta2", "kind": "ModuleTemplate", "metadata": metadata("keda-1.0.0"),
                "spec": {
                    "moduleName": "keda", "version": "1.0.0", "descriptor": {}, "mandatory": false,
                    "resources": [{"name": "rawManifest", "link": "https://example.com/keda.yaml"}],
                    "manager": {"group": "apps", "version": "v1", "kind": "Deployment", "name": "keda"},
                },
            }),
        ),
        (
            "modules/keda/1.0.0/manifest.yaml",
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata("a"), "stringData": {"b": "c"}}),
        ),
    ]
}

fn tree(documents: &[(&str, Value)]) -> Tree {
    documents
        .iter()
        .fold(Tree::default(), |tree, (path, value)| {
            tree.file(path, &format!("{value:#}\n"))
        })
}

/// Returns the pointers to every value inside a value.
fn pointers(value: &Value, base: &str, found: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.replace('/', "~1"), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, value)| (index.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    for (name, child) in children {
        let pointer = format!("{base}/{name}");
        pointers(child, &pointer, found);
        found.push(pointer);
    }
}

#[test]
fn the_documents_are_good() {
    let desired = tree(&documents()).evaluate_for(Some("stage"));
    let errors: Vec<_> = desired
        .diagnostics
        .iter()
        .filter(|found| found.severity == Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn every_wrong_type_everywhere() {
    let wrong = [
        json!(null),
        json!(true),
        json!(1.5),
        json!(""),
        json!("ü\u{1b}[31m"),
        json!([]),
        json!([null, {}]),
        json!({}),
        json!({"": {"": []}}),
    ];
    let documents = documents();
    for (number, (path, document)) in documents.iter().enumerate() {
        let mut all = Vec::new();
        pointers(document, "", &mut all);
        for (pointer, value) in all
            .iter()
            .flat_map(|pointer| wrong.iter().map(move |value| (pointer, value)))
        {
            let mut mutated = documents.clone();
            *mutated[number]
                .1
                .pointer_mut(pointer)
                .expect("the pointer was found") = value.clone();
            let desired = tree(&mutated).evaluate_for(Some("stage"));
            let what = format!("{path} {pointer} = {value}");
            for object in desired.objects() {
                assert!(
                    !desired.held.contains_key(&object.key),
                    "{what}: {} is wanted and held",
                    object.key
                );
            }
            for found in &desired.diagnostics {
                assert!(found.place.line > 0, "{what}: {found} has no line");
            }
            if !desired.held.is_empty() || !desired.unread.is_empty() {
                assert!(
                    !desired.is_valid(),
                    "{what}: something is held without an error"
                );
            }
        }
    }
}
