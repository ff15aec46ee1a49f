//! The CustomResourceDefinitions of our kinds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use super::{ReleaseSource, Run, Target};

/// Returns the definitions of our kinds, as they are checked in below `deploy/crds/`.
pub fn crds() -> Vec<CustomResourceDefinition> {
    [ReleaseSource::crd(), Run::crd(), Target::crd()]
        .map(tidied)
        .to_vec()
}

/// Takes out what the derived schema says but Kubernetes has no use for: an absent field is left out and never null, and
/// formats of unsigned numbers are unknown to the API server, which warns about them.
fn tidied(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let mut value = serde_json::to_value(crd).expect("a definition is plain data");
    tidy(&mut value);
    serde_json::from_value(value).expect("a definition without these keywords is one still")
}

fn tidy(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, entry| match key.as_str() {
                "nullable" => !entry.is_boolean(),
                "format" => !entry
                    .as_str()
                    .is_some_and(|format| format.starts_with("uint")),
                _ => true,
            });
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}
