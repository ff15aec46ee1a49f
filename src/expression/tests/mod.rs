mod fuzz;
mod language;
mod limits;
mod quantities;
mod refusals;

use serde_json::{Value, json};

use super::{Bindings, Expression, GROUPS};

/// What most cases look at.
fn bindings() -> Bindings {
    let mut bindings = Bindings::default();
    bindings.set(
        "objects",
        json!({
            "claim": {
                "metadata": {"name": "storage-logging-loki-0", "labels": {"app.kubernetes.io/name": "loki"}},
                "spec": {"storageClassName": "std", "resources": {"requests": {"storage": "30Mi"}}},
            },
            "gone": null,
            "set": {"spec": {"replicas": 3, "ratio": 2.5, "whole": 3.0, "volumeClaimTemplates": [
                {"spec": {"resources": {"requests": {"storage": "10Gi"}}}},
            ]}},
            "classes": [
                {"metadata": {"name": "std"}, "allowVolumeExpansion": true},
                {"metadata": {"name": "old"}},
            ],
        }),
    );
    bindings.set("params", json!({"size": "30Gi"}));
    bindings
}

fn evaluate(text: &str) -> Result<Value, String> {
    Expression::compile(text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .evaluate(&bindings())
        .map_err(|error| error.message)
}

#[test]
fn every_function_has_an_example_that_is_true() {
    for function in GROUPS.iter().flat_map(|group| group.functions) {
        assert_eq!(
            evaluate(function.example),
            Ok(Value::Bool(true)),
            "{}",
            function.example
        );
        assert!(
            function.example.contains(function.name),
            "the example of {} does not call it",
            function.name
        );
    }
}

#[test]
fn no_two_functions_have_the_same_name() {
    let mut names: Vec<_> = GROUPS
        .iter()
        .flat_map(|group| group.functions)
        .map(|function| function.name)
        .collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}
