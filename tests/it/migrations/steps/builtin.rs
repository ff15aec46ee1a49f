//! builtin and compiled: helpers that search and compute, against what the API server really says.

use fairway::runs::steps::StepResult;
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::jobs::until;
use super::{Trial, done, message};
use crate::support::control_plane::ControlPlane;
use crate::support::proxy::{Fault, Rule};

#[tokio::test]
async fn a_secret_is_generated_once_whatever_becomes_of_the_answer() {
    let mut trial = Trial::new(json!({"builtin": {"name": "ensure-credentials", "with": {
        "namespace": "NAMESPACE", "name": "credentials", "username": "shop",
    }}}))
    .await;
    trial
        .proxy
        .inject(Rule::first(1, "POST", "/secrets", Fault::ResetAfter));
    let first = trial.attempt().await;
    let secrets: Api<Secret> = Api::namespaced(trial.plane.client().await, &trial.namespace);
    let made = secrets.get("credentials").await.unwrap();
    let data = made.data.clone().unwrap();
    assert_eq!(data["username"].0, b"shop");
    let password = String::from_utf8(data["password"].0.clone()).unwrap();
    assert!(password.len() >= 16, "{password}");

    let again = done(trial.attempt().await);
    assert!(!again.changed, "{again:?}");
    let same = secrets.get("credentials").await.unwrap();
    assert_eq!(same.resource_version(), made.resource_version());
    assert!(
        !format!("{first:?}{again:?}").contains(&password),
        "it is told nowhere"
    );
}

#[tokio::test]
async fn a_node_port_that_is_taken_is_not_found_and_ones_own_is() {
    // Ports belong to the whole cluster: this range is for this test.
    let with =
        json!({"preferred": 31_990, "first": 31_990, "last": 31_992, "service": "NAMESPACE/mine"});
    let mut trial = Trial::new(json!({"builtin": {"name": "find-node-port", "with": with}})).await;
    let free = done(trial.attempt().await);
    assert_eq!(free.result, json!({"port": 31_990, "preferred": true}));
    let services: Api<Service> = Api::namespaced(trial.plane.client().await, &trial.namespace);
    let service = |name: &str, port: u16| -> Service {
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]},
        }))
        .unwrap()
    };
    let create = async |name: &str, port| {
        let made = services
            .create(&PostParams::default(), &service(name, port))
            .await;
        made.unwrap();
    };
    create("theirs", 31_990).await;
    let next = done(trial.attempt().await);
    assert_eq!(next.result, json!({"port": 31_991, "preferred": false}));
    create("mine", 31_992).await;
    let again = done(trial.attempt().await);
    assert_eq!(again.result["port"], 31_991, "{again:?}");
    assert_eq!(trial.proxy.count("POST", ""), 0);
}

const GROUP: &str = "hand-over.example.com";

fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    })
}

fn api_of(client: &kube::Client, namespace: &str, kind: &str) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, "v1", kind));
    Api::namespaced_with(client.clone(), namespace, &kind)
}

#[tokio::test]
async fn a_compiled_migration_hands_objects_over_past_their_finalizers() {
    let side = |kind: &str| json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "namespace": "NAMESPACE", "id": "/spec/id"});
    let mut to = side("New");
    to["ready"] = "/spec/ready".into();
    let with = json!({"from": side("Old"), "to": to});
    // What is deleted as an orphan goes when the garbage collector says so.
    let step = json!({"compiled": {"name": "hand-over", "with": with}});
    let mut trial = Trial::on(ControlPlane::full(), step).await;
    let client = trial.plane.client().await;
    for definition in [definition("olds", "Old"), definition("news", "New")] {
        trial
            .plane
            .apply_texts(&client, &definition.to_string())
            .await;
    }
    let old = api_of(&client, &trial.namespace, "Old");
    let listed = async || {
        let found = old.list(&ListParams::default()).await;
        found.map(|list| {
            list.items
                .iter()
                .map(kube::ResourceExt::name_any)
                .collect::<Vec<_>>()
        })
    };
    // A definition is served a moment after it was answered.
    until("both are served", async || {
        let new = api_of(&client, &trial.namespace, "New");
        let both = listed().await.is_ok() && new.list(&ListParams::default()).await.is_ok();
        both.then_some(())
    })
    .await;
    trial.effects = trial.reconnected().await;
    for name in ["one", "two"] {
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "Old",
            "metadata": {"name": name, "finalizers": ["example.com/operator"]}, "spec": {"id": name},
        });
        trial.put("test", object).await;
    }
    let new = |name: &str, ready: bool| {
        json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "New",
            "metadata": {"name": format!("new-{name}")}, "spec": {"id": name, "ready": ready},
        })
    };
    trial.put("test", new("one", true)).await;
    let result = trial.attempt().await;
    assert!(matches!(result, StepResult::Fail { .. }), "{result:?}");
    assert!(
        message(&result).contains("have no New with the same id"),
        "{result:?}"
    );
    assert_eq!(
        listed().await.unwrap(),
        ["one", "two"],
        "one that is alone stops all"
    );

    trial.put("test", new("two", false)).await;
    let result = trial.attempt().await;
    assert!(matches!(result, StepResult::Wait { .. }), "{result:?}");
    until("the one that is ready is gone", async || {
        (listed().await.unwrap() == ["two"]).then_some(())
    })
    .await;
    trial.put("test", new("two", true)).await;
    assert!(done(trial.attempt().await).changed);
    until("both are gone", async || {
        listed().await.unwrap().is_empty().then_some(())
    })
    .await;
    let again = done(trial.attempt().await);
    assert!(!again.changed, "{again:?}");
}
