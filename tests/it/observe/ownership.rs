//! The facts that drift detection stands on: what takes a field from us, and what does not.

use std::sync::Arc;

use fairway::model::DesiredObject;
use fairway::observe::{ObservedObject, Ownership};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::control_plane::ControlPlane;
use crate::support::desired::desired;
use crate::support::watch::Watched;

fn deployment(namespace: &str) -> DesiredObject {
    desired(
        "test",
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "namespace": namespace, "labels": {"app": "a"}},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "a"}},
                "template": {
                    "metadata": {"labels": {"app": "a"}},
                    "spec": {"containers": [{
                        "name": "a", "image": "one", "command": ["run", "fast"],
                        "resources": {"limits": {"cpu": "1000m"}},
                    }]},
                },
            },
        }),
    )
}

fn number(version: &str) -> u64 {
    version.parse().unwrap()
}

fn ownership(object: Option<&ObservedObject>) -> Ownership {
    object.expect("the Deployment is seen").ownership.clone()
}

/// A change by somebody else: the subresource that it goes to, and the patch.
#[rstest]
#[case::image(None, json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "two"}]}}}}), true)]
#[case::inside_an_atomic_list(None, json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "command": ["run", "slowly"]}]}}}}), true)]
#[case::field_removed(None, json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "resources": null}]}}}}), true)]
#[case::label_removed(None, json!({"metadata": {"labels": {"app": null}}}), true)]
#[case::digest_removed(None, json!({"metadata": {"annotations": {"fairway.dev/digest": null}}}), true)]
#[case::scaled(Some("scale"), json!({"spec": {"replicas": 3}}), true)]
#[case::same_value(None, json!({"spec": {"replicas": 2}}), false)]
#[case::same_quantity(None, json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "1"}}}]}}}}), false)]
#[case::sidecar(None, json!({"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "two"}]}}}}), false)]
#[case::label_added(None, json!({"metadata": {"labels": {"added": "theirs"}}}), false)]
#[case::status(Some("status"), json!({"status": {"observedGeneration": 1, "replicas": 2}}), false)]
#[tokio::test]
async fn ownership_moves_with_what_we_own_and_with_nothing_else(
    #[case] subresource: Option<&str>,
    #[case] change: Value,
    #[case] drift: bool,
) {
    let plane = ControlPlane::minimal();
    let cluster = plane.cluster().await;
    let namespace = plane.namespace().await;
    let object = deployment(&namespace);
    let watched = Watched::start(&cluster, &["Deployment.apps"]).await;
    let answer = cluster.apply(&object, &[]).await.unwrap();
    watched.observer.record_applied(None, &answer);
    let applied = ownership(watched.object(&object.key).as_deref());

    let deployments = Api::<Deployment>::namespaced(plane.client().await, &namespace);
    let somebody = PatchParams {
        field_manager: Some("somebody".into()),
        ..PatchParams::default()
    };
    let change = Patch::Strategic(change);
    match subresource {
        None => drop(deployments.patch("a", &somebody, &change).await.unwrap()),
        Some("scale") => drop(
            deployments
                .patch_scale("a", &somebody, &change)
                .await
                .unwrap(),
        ),
        Some(_) => drop(
            deployments
                .patch_status("a", &somebody, &change)
                .await
                .unwrap(),
        ),
    }
    let now = deployments
        .get("a")
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();
    let is_now = |seen: Option<&Arc<ObservedObject>>| {
        seen.is_some_and(|seen| number(&seen.resource_version) >= number(&now))
    };
    // What planning does not look at rings no bell, so this asks again and again.
    let seen = tokio::time::timeout(std::time::Duration::from_secs(20), async {
        loop {
            let seen = watched.object(&object.key);
            if is_now(seen.as_ref()) {
                return seen;
            }
            tokio::task::yield_now().await;
        }
    });
    let seen = ownership(seen.await.unwrap().as_deref());
    assert_eq!(seen != applied, drift);

    let again = cluster.apply(&object, &[]).await.unwrap();
    watched.observer.record_applied(None, &again);
    assert_eq!(ownership(watched.object(&object.key).as_deref()), applied);
    assert_eq!(again.changed_since(Some(&now)), drift);
}
