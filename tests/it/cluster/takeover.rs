//! Taking over from writers that we replace.

use fairway::model::names;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::control_plane::ControlPlane;
use crate::support::desired::config_map;

const KUBECTL: &str = "kubectl-client-side-apply";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What `kubectl apply` on the client's side leaves behind.
async fn as_kubectl_left_it(maps: &Api<ConfigMap>) {
    let map = json!({
        "metadata": {"name": "a", "annotations": {LAST_APPLIED: "{}"}},
        "data": {"kept": "1", "removed": "1"},
    });
    let params = PostParams {
        field_manager: Some(KUBECTL.into()),
        ..PostParams::default()
    };
    maps.create(&params, &serde_json::from_value(map).unwrap())
        .await
        .unwrap();
    let theirs = PatchParams {
        field_manager: Some("somebody".into()),
        ..PatchParams::default()
    };
    maps.patch(
        "a",
        &theirs,
        &Patch::Merge(json!({"data": {"theirs": "1"}})),
    )
    .await
    .unwrap();
}

#[tokio::test]
async fn what_kubectl_applied_and_git_has_not_goes_and_what_others_set_stays() {
    let plane = ControlPlane::minimal();
    let cluster = plane.cluster().await;
    let namespace = plane.namespace().await;
    let maps = Api::<ConfigMap>::namespaced(plane.client().await, &namespace);
    as_kubectl_left_it(&maps).await;

    let object = config_map(&namespace, "a", &json!({"kept": "1"}));
    let answer = cluster.apply(&object, &[KUBECTL.to_owned()]).await.unwrap();
    let data = &answer.read::<Value>().unwrap()["data"];
    assert_eq!(*data, json!({"kept": "1", "theirs": "1"}));
    let annotations = answer.metadata.annotations.as_ref().unwrap();
    assert!(!annotations.contains_key(LAST_APPLIED));
    let managers: Vec<_> = answer
        .metadata
        .managed_fields
        .iter()
        .flatten()
        .map(|entry| entry.manager.as_deref().unwrap())
        .collect();
    assert_eq!(managers, [names::MANAGER, "somebody"]);

    let again = cluster.apply(&object, &[KUBECTL.to_owned()]).await.unwrap();
    assert!(!again.changed_since(answer.metadata.resource_version.as_deref()));
}

#[tokio::test]
async fn a_manager_that_is_not_named_keeps_its_fields() {
    let plane = ControlPlane::minimal();
    let cluster = plane.cluster().await;
    let namespace = plane.namespace().await;
    let maps = Api::<ConfigMap>::namespaced(plane.client().await, &namespace);
    as_kubectl_left_it(&maps).await;
    let object = config_map(&namespace, "a", &json!({"kept": "1"}));
    let answer = cluster.apply(&object, &[]).await.unwrap();
    assert_eq!(
        answer.read::<Value>().unwrap()["data"],
        json!({"kept": "1", "removed": "1", "theirs": "1"})
    );
}

#[tokio::test]
async fn an_object_from_before_managed_fields_is_taken_over() {
    let plane = ControlPlane::minimal();
    let cluster = plane.cluster().await;
    let namespace = plane.namespace().await;
    let maps = Api::<ConfigMap>::namespaced(plane.client().await, &namespace);
    as_kubectl_left_it(&maps).await;
    let emptied = json!({"metadata": {"managedFields": [{}]}});
    maps.patch("a", &PatchParams::default(), &Patch::Merge(emptied))
        .await
        .unwrap();

    let object = config_map(&namespace, "a", &json!({"kept": "1"}));
    let answer = cluster
        .apply(&object, &["before-first-apply".to_owned()])
        .await
        .unwrap();
    assert_eq!(
        answer.read::<Value>().unwrap()["data"],
        json!({"kept": "1"})
    );
}
