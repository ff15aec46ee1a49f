//! Beside people with the real kubectl: what they applied is taken over, what they change is put right, what they add stays.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, ObjectMeta};
use kube::runtime::wait::{Condition, await_condition};
use serde_json::json;

use crate::support::world::World;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";

fn deployment(world: &World) -> String {
    let labels = json!({"app": "web"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": world.apps},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{
                "name": "web", "image": "one", "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
            }]}},
        },
    })
    .to_string()
}

async fn until(world: &World, what: &str, condition: impl Condition<Deployment>) -> Deployment {
    let api: Api<Deployment> = Api::namespaced(world.client.clone(), &world.apps);
    let waiting = await_condition(api.clone(), "web", condition);
    let waited = tokio::time::timeout(std::time::Duration::from_secs(15), waiting).await;
    match waited {
        Ok(found) => found.unwrap().unwrap(),
        Err(tokio::time::error::Elapsed { .. }) => {
            panic!("not so: {what}; {:#?}", api.get("web").await.unwrap().spec)
        }
    }
}

/// Returns the image, the replicas, and when kubectl has restarted it.
fn seen(deployment: &Deployment) -> (Option<&str>, Option<i32>, bool) {
    let spec = deployment.spec.as_ref().unwrap();
    let pod = spec.template.spec.as_ref().unwrap();
    let annotations = spec
        .template
        .metadata
        .as_ref()
        .and_then(|one| one.annotations.as_ref());
    let restarted = annotations.is_some_and(|all| all.contains_key(RESTARTED));
    (pod.containers[0].image.as_deref(), spec.replicas, restarted)
}

#[tokio::test]
async fn what_people_change_is_put_right_and_what_they_add_stays() {
    let world = World::new().await;
    world
        .repository
        .write("components/web/deployment.yaml", deployment(&world));
    world.repository.publish("Add a Deployment");
    let _agent = world.agent();
    world.declare(json!({})).await;
    world
        .until_source(
            "all but its health is done",
            |source: Option<&fairway::model::api::ReleaseSource>| {
                source
                    .and_then(|one| one.status.as_ref())
                    .is_some_and(|status| status.last_attempted_revision.is_some())
            },
        )
        .await;
    let kubectl = |arguments: &[&str]| world.plane.kubectl(&world.apps, arguments);
    let writes = || world.proxy.count("PATCH", "/deployments/web");

    world.proxy.forget();
    world.reconcile().await;
    assert_eq!(
        writes(),
        0,
        "1000m that became 1, and defaults, are no drift"
    );

    kubectl(&["rollout", "restart", "deployment/web"]);
    world.reconcile().await;
    assert_eq!(writes(), 0, "an annotation of theirs is no drift");

    kubectl(&["set", "image", "deployment/web", "web=two"]);
    until(&world, "the image is ours", |one: Option<&Deployment>| {
        one.is_some_and(|one| seen(one) == (Some("one"), Some(2), true))
    })
    .await;
    kubectl(&["scale", "deployment/web", "--replicas=5"]);
    until(
        &world,
        "the replicas are ours",
        |one: Option<&Deployment>| one.is_some_and(|one| seen(one) == (Some("one"), Some(2), true)),
    )
    .await;
    assert_eq!(writes(), 2, "one for each of the two");
}

#[tokio::test]
async fn what_kubectl_applied_is_taken_over_with_the_fields_that_git_drops() {
    let world = World::new().await;
    let kubectl = |arguments: &[&str]| world.plane.kubectl(&world.apps, arguments);
    let by_hand = world.repository.path().join("by-hand.yaml");
    let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {gone: x}}, data: {value: old, gone: x}}";
    std::fs::write(&by_hand, text).unwrap();
    kubectl(&["apply", "--filename", by_hand.to_str().unwrap()]);
    kubectl(&["label", "configmap/settings", "theirs=kept"]);
    kubectl(&[
        "patch",
        "configmap/settings",
        "--field-manager=somebody",
        "--patch",
        "{\"data\": {\"theirs\": \"kept\"}}",
    ]);
    std::fs::remove_file(by_hand).unwrap();
    world.config_map("web", "settings", "new");
    world.repository.publish("Take over");
    let _agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;

    let settings = world.config_maps().get("settings").await.unwrap();
    let texts = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    };
    assert_eq!(
        settings.data,
        Some(texts(&[("theirs", "kept"), ("value", "new")]))
    );
    let ObjectMeta {
        labels,
        annotations,
        ..
    } = settings.metadata;
    let labels = labels.unwrap();
    assert_eq!(labels.get("theirs").map(String::as_str), Some("kept"));
    assert!(!labels.contains_key("gone"), "{labels:?}");
    assert!(!annotations.unwrap().contains_key(LAST_APPLIED));
}
