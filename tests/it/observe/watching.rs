//! Objects that come, change and go, and our own writes among them.

use std::sync::Arc;

use fairway::cluster::{Cluster, Deleted};
use fairway::model::{DesiredObject, limits, names};
use fairway::observe::{Health, KindObservation, ObservedObject, Ownership};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::control_plane::ControlPlane;
use crate::support::desired::{config_map, desired};
use crate::support::proxy::Proxy;
use crate::support::watch::Watched;

struct Setting {
    cluster: Cluster,
    maps: Api<ConfigMap>,
    namespace: String,
    watched: Watched,
}

async fn setting() -> Setting {
    let plane = ControlPlane::minimal();
    let cluster = plane.cluster().await;
    let namespace = plane.namespace().await;
    let maps = Api::namespaced(plane.client().await, &namespace);
    let watched = Watched::start(&cluster, &["ConfigMap"]).await;
    Setting {
        cluster,
        maps,
        namespace,
        watched,
    }
}

async fn patch(maps: &Api<ConfigMap>, change: Value) {
    maps.patch("a", &PatchParams::apply("somebody"), &Patch::Merge(change))
        .await
        .unwrap();
}

/// Applies and tells the observer.
async fn apply(setting: &Setting, object: &DesiredObject) -> bool {
    let before = setting.watched.observer.known(&object.key);
    let answer = setting.cluster.apply(object, &[]).await.unwrap();
    setting
        .watched
        .observer
        .record_applied(before.as_deref(), &answer)
}

fn owns(object: &ObservedObject, key: &str) -> bool {
    let Ownership::Ours { fields, .. } = &object.ownership else {
        return false;
    };
    fields
        .children
        .get("f:data")
        .is_some_and(|data| data.children.contains_key(key))
}

#[tokio::test]
async fn our_own_apply_is_known_at_once() {
    let setting = setting().await;
    let object = config_map(&setting.namespace, "a", &json!({"key": "1"}));
    assert!(apply(&setting, &object).await);
    let seen = setting.watched.object(&object.key).unwrap();
    assert_eq!(seen.digest.as_ref(), Some(&object.digest));
    assert_eq!(seen.component, Some(object.component.to_string()));
    assert!(owns(&seen, "f:key"));
    assert!(
        !apply(&setting, &object).await,
        "the second apply changes nothing"
    );
}

#[tokio::test]
async fn drift_takes_the_field_from_us_and_a_field_of_their_own_does_not() {
    let setting = setting().await;
    let object = config_map(&setting.namespace, "a", &json!({"key": "1", "other": "1"}));
    apply(&setting, &object).await;

    patch(
        &setting.maps,
        json!({"data": {"added": "theirs", "other": "1"}}),
    )
    .await;
    let with_writer = |seen: Option<&ObservedObject>| !seen.unwrap().writers.is_empty();
    setting.watched.until_object(&object.key, with_writer).await;
    let seen = setting.watched.object(&object.key).unwrap();
    assert!(owns(&seen, "f:key") && owns(&seen, "f:other"));

    patch(&setting.maps, json!({"data": {"key": "2"}})).await;
    setting
        .watched
        .until_object(&object.key, |seen| !owns(seen.unwrap(), "f:key"))
        .await;
    patch(&setting.maps, json!({"data": {"other": null}})).await;
    setting
        .watched
        .until_object(&object.key, |seen| !owns(seen.unwrap(), "f:other"))
        .await;

    assert!(apply(&setting, &object).await);
    let seen = setting.watched.object(&object.key).unwrap();
    assert!(owns(&seen, "f:key") && owns(&seen, "f:other"));
    assert_eq!(seen.recent_applies, 1);
}

#[tokio::test]
async fn an_object_that_lost_our_label_is_absent_as_one_that_is_gone() {
    let setting = setting().await;
    let object = config_map(&setting.namespace, "a", &json!({}));
    apply(&setting, &object).await;
    patch(
        &setting.maps,
        json!({"metadata": {"labels": {names::LABEL_SOURCE: null}}}),
    )
    .await;
    setting
        .watched
        .until_object(&object.key, |seen| seen.is_none())
        .await;

    apply(&setting, &object).await;
    assert!(setting.watched.object(&object.key).is_some());
    setting
        .maps
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    setting
        .watched
        .until_object(&object.key, |seen| seen.is_none())
        .await;
}

#[tokio::test]
async fn our_own_deletion_is_known_at_once_and_a_finalizer_shows() {
    let setting = setting().await;
    let object = config_map(&setting.namespace, "a", &json!({}));
    apply(&setting, &object).await;
    patch(
        &setting.maps,
        json!({"metadata": {"finalizers": ["example.com/hold"]}}),
    )
    .await;
    let live = setting.maps.get("a").await.unwrap().metadata;
    let (uid, version) = (live.uid.unwrap(), live.resource_version.unwrap());
    let deleted = setting
        .cluster
        .delete(&object.key, &uid, &version)
        .await
        .unwrap();
    assert_eq!(deleted, Deleted::Deleted);
    setting.watched.observer.record_deleted(&object.key, &uid);

    let terminating = |seen: Option<&ObservedObject>| {
        seen.is_some_and(|seen| seen.deleting && seen.health == Health::Terminating)
    };
    setting.watched.until_object(&object.key, terminating).await;
    patch(&setting.maps, json!({"metadata": {"finalizers": null}})).await;
    setting
        .watched
        .until_object(&object.key, |seen| seen.is_none())
        .await;
}

#[tokio::test]
async fn the_bell_rings_for_others_and_not_for_us() {
    let setting = setting().await;
    // A second object tells when the watch has caught up.
    let object = config_map(&setting.namespace, "a", &json!({"key": "1"}));
    let marker = config_map(&setting.namespace, "marker", &json!({}));
    apply(&setting, &object).await;
    apply(
        &setting,
        &config_map(&setting.namespace, "a", &json!({"key": "2"})),
    )
    .await;
    let before = setting.watched.rings();
    setting.cluster.apply(&marker, &[]).await.unwrap();
    setting
        .watched
        .until_object(&marker.key, |seen| seen.is_some())
        .await;
    // Other tests share the cluster; what rang for us must be the marker and no more than theirs.
    let ours = setting.watched.object(&object.key).unwrap();
    assert!(owns(&ours, "f:key"));
    assert!(setting.watched.rings() > before);
}

#[tokio::test]
async fn somebody_who_keeps_writing_is_counted_and_a_change_in_git_is_not() {
    let setting = setting().await;
    let mut object = config_map(&setting.namespace, "a", &json!({"key": "1"}));
    apply(&setting, &object).await;
    for round in 2..5 {
        object = config_map(&setting.namespace, "a", &json!({"key": round.to_string()}));
        apply(&setting, &object).await;
    }
    assert_eq!(
        setting.watched.object(&object.key).unwrap().recent_applies,
        0
    );
    for _ in 0..limits::CONTESTED_APPLIES {
        patch(&setting.maps, json!({"data": {"key": "theirs"}})).await;
        setting
            .watched
            .until_object(&object.key, |seen| !owns(seen.unwrap(), "f:key"))
            .await;
        apply(&setting, &object).await;
    }
    let seen = setting.watched.object(&object.key).unwrap();
    assert_eq!(seen.recent_applies, limits::CONTESTED_APPLIES);
}

#[tokio::test]
async fn a_secret_is_seen_without_its_contents_ever_being_read() {
    let plane = ControlPlane::minimal();
    let proxy = Proxy::start(plane).await;
    let cluster = Cluster::connect(proxy.config(), None).await.unwrap();
    let namespace = plane.namespace().await;
    let secret = desired(
        "test",
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "a", "namespace": namespace}, "data": {"password": "aHVudGVyMg=="},
        }),
    );
    let watched = Watched::start(&cluster, &["Secret"]).await;
    let answer = cluster.apply(&secret, &[]).await.unwrap();
    assert!(
        !answer
            .read::<Value>()
            .unwrap()
            .to_string()
            .contains("aHVudGVyMg")
    );
    watched
        .until_object(&secret.key, |seen| seen.is_some())
        .await;
    for seen in proxy
        .seen()
        .iter()
        .filter(|seen| seen.path.contains("secrets"))
    {
        assert!(seen.accept.contains("as=PartialObjectMetadata"), "{seen:?}");
    }
}

#[tokio::test]
async fn a_kind_that_is_not_served_has_nothing_until_it_is() {
    let plane = ControlPlane::minimal();
    let cluster = plane.cluster().await;
    let namespace = plane.namespace().await;
    let group = format!("{namespace}.example.com");
    let kind = format!("Gadget.{group}");
    let watched = Watched::start(&cluster, &[&kind]).await;
    assert!(matches!(watched.kind(&kind), KindObservation::Listed(objects) if objects.is_empty()));

    plane
        .apply_yaml(&format!(
            r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: gadgets.{group}}}
spec:
  group: {group}
  scope: Cluster
  names: {{kind: Gadget, plural: gadgets, singular: gadget}}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
        ))
        .await;
    let object = desired(
        "test",
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "Gadget", "metadata": {"name": "a"},
            "status": {"conditions": [{"type": "Ready", "status": "False", "message": "soon"}]},
        }),
    );
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    while !cluster
        .refresh_served()
        .await
        .unwrap()
        .kinds
        .contains_key(&object.key.kind)
    {
        assert!(tokio::time::Instant::now() < deadline);
    }
    watched.ensure(&[&kind]);
    cluster.apply(&object, &[]).await.unwrap();
    watched
        .until_object(&object.key, |seen| seen.is_some())
        .await;
    let seen: Arc<ObservedObject> = watched.object(&object.key).unwrap();
    assert_eq!(seen.health, Health::InProgress("soon".into()));
}

/// A Deployment in a namespace.
fn deployment(namespace: &str) -> DesiredObject {
    desired(
        "test",
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "namespace": namespace},
            "spec": {
                "selector": {"matchLabels": {"app": "a"}},
                "template": {
                    "metadata": {"labels": {"app": "a"}},
                    "spec": {"containers": [{"name": "a", "image": "a"}]},
                },
            },
        }),
    )
}

#[tokio::test]
async fn a_deployment_is_in_progress_before_its_controller_has_seen_it() {
    // Without controllers, so that none can be quicker than the look.
    let plane = ControlPlane::minimal();
    let cluster = plane.cluster().await;
    let deployment = deployment(&plane.namespace().await);
    let watched = Watched::start(&cluster, &["Deployment.apps"]).await;
    let answer = cluster.apply(&deployment, &[]).await.unwrap();
    watched.observer.record_applied(None, &answer);
    let seen = watched.object(&deployment.key).unwrap();
    assert_eq!(
        seen.health,
        Health::InProgress("its controller has not seen it".into())
    );
}

#[tokio::test]
async fn a_deployment_becomes_healthy() {
    let plane = ControlPlane::full();
    let cluster = plane.cluster().await;
    let deployment = deployment(&plane.namespace().await);
    let watched = Watched::start(&cluster, &["Deployment.apps"]).await;
    let answer = cluster.apply(&deployment, &[]).await.unwrap();
    watched.observer.record_applied(None, &answer);
    let current = |seen: Option<&ObservedObject>| seen.unwrap().health == Health::Current;
    watched.until_object(&deployment.key, current).await;
}
