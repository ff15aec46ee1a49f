//! Identity, discovery, applying and deleting.

use fairway::cluster::{Cluster, ClusterError, Deleted};
use fairway::model::{ClusterUid, GroupKind, Scope};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::control_plane::ControlPlane;
use crate::support::desired::{config_map, desired};

#[tokio::test]
async fn the_identity_is_the_uid_of_kube_system_and_another_one_is_refused() {
    let plane = ControlPlane::minimal();
    let namespaces = Api::<Namespace>::all(plane.client().await);
    let uid = namespaces
        .get("kube-system")
        .await
        .unwrap()
        .metadata
        .uid
        .unwrap();
    let cluster = plane.cluster().await;
    assert_eq!(cluster.uid().as_str(), uid);

    let same = Cluster::connect(plane.config().await, Some(cluster.uid())).await;
    assert!(same.is_ok());
    let other = ClusterUid::new("another").unwrap();
    let refused = Cluster::connect(plane.config().await, Some(&other))
        .await
        .err()
        .unwrap();
    assert_eq!(
        refused.to_string(),
        format!("this is cluster {uid}, but another was expected")
    );
    assert!(!refused.is_retryable());
}

#[tokio::test]
async fn discovery_knows_scope_plural_and_versions_and_finds_a_new_kind() {
    let plane = ControlPlane::minimal();
    let cluster = plane.cluster().await;
    let served = cluster.served().await.unwrap();
    let deployment = &served.kinds[&GroupKind::new("apps", "Deployment")];
    assert_eq!(
        (deployment.plural.as_str(), deployment.scope),
        ("deployments", Scope::Namespaced)
    );
    let role = &served.kinds[&GroupKind::new("rbac.authorization.k8s.io", "ClusterRole")];
    assert_eq!(
        (role.versions.as_slice(), role.scope),
        (&["v1".to_owned()][..], Scope::Cluster)
    );
    assert!(served.unavailable.is_empty());

    let namespace = plane.namespace().await;
    let group = format!("{namespace}.example.com");
    let object = desired(
        "test",
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "Widget",
            "metadata": {"name": "a", "namespace": namespace}, "spec": {"size": 1},
        }),
    );
    let unknown = cluster.apply(&object, &[]).await.unwrap_err();
    assert!(
        matches!(unknown, ClusterError::KindUnknown { .. }),
        "{unknown}"
    );

    plane.apply_yaml(&widget_definition(&group)).await;
    wait_until_served(&cluster, &object.key.kind).await;
    let answer = cluster.apply(&object, &[]).await.unwrap();
    assert!(answer.created);
}

async fn wait_until_served(cluster: &Cluster, kind: &GroupKind) {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    while !cluster
        .refresh_served()
        .await
        .unwrap()
        .kinds
        .contains_key(kind)
    {
        assert!(
            tokio::time::Instant::now() < deadline,
            "{kind} was never served"
        );
    }
}

fn widget_definition(group: &str) -> String {
    format!(
        r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{kind: Widget, plural: widgets, singular: widget}}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
    )
}

#[tokio::test]
async fn a_second_apply_of_the_same_object_moves_nothing() {
    let plane = ControlPlane::minimal();
    let cluster = plane.cluster().await;
    let namespace = plane.namespace().await;
    let object = config_map(&namespace, "a", &json!({"key": "value"}));

    let first = cluster.apply(&object, &[]).await.unwrap();
    assert!(first.created && first.changed_since(None));
    let again = cluster.apply(&object, &[]).await.unwrap();
    assert!(!again.created);
    assert!(!again.changed_since(first.metadata.resource_version.as_deref()));
    assert_eq!(again.read::<Value>().unwrap()["data"]["key"], "value");

    let changed = config_map(&namespace, "a", &json!({"key": "other"}));
    let changed = cluster.apply(&changed, &[]).await.unwrap();
    assert!(changed.changed_since(first.metadata.resource_version.as_deref()));
}

#[tokio::test]
async fn an_apply_takes_back_what_another_manager_has_taken() {
    let plane = ControlPlane::minimal();
    let cluster = plane.cluster().await;
    let namespace = plane.namespace().await;
    let object = config_map(&namespace, "a", &json!({"key": "ours"}));
    cluster.apply(&object, &[]).await.unwrap();
    plane
        .apply_as(
            &plane.client().await,
            "somebody",
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "a", "namespace": namespace}, "data": {"key": "theirs"},
            }),
        )
        .await;
    let answer = cluster.apply(&object, &[]).await.unwrap();
    assert_eq!(answer.read::<Value>().unwrap()["data"]["key"], "ours");
}

#[tokio::test]
async fn text_that_json_allows_and_yaml_does_not_arrives_as_it_is() {
    let plane = ControlPlane::minimal();
    let cluster = plane.cluster().await;
    let namespace = plane.namespace().await;
    let text: String = (1..=0xffff)
        .filter_map(char::from_u32)
        .step_by(7)
        .chain('\u{7f}'..='\u{a0}')
        .chain(['\u{feff}', '\u{fffe}', '\u{ffff}', '\u{2028}', '😀'])
        .collect();
    let object = config_map(&namespace, "a", &json!({"text": text}));
    let answer = cluster.apply(&object, &[]).await.unwrap();
    assert_eq!(answer.read::<Value>().unwrap()["data"]["text"], text);
}

#[tokio::test]
async fn a_refusal_has_its_kind() {
    let plane = ControlPlane::minimal();
    let cluster = plane.cluster().await;
    let namespace = plane.namespace().await;

    let homeless = config_map("no-such-namespace", "a", &json!({}));
    let error = cluster.apply(&homeless, &[]).await.unwrap_err();
    assert!(matches!(error, ClusterError::NotFound { .. }), "{error}");

    let unknown_field = desired(
        "test",
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": namespace}, "dota": {},
        }),
    );
    let error = cluster.apply(&unknown_field, &[]).await.unwrap_err();
    assert!(error.to_string().contains("dota"), "{error}");
    assert!(matches!(error, ClusterError::Invalid { .. }), "{error:?}");

    let service_account = |name: &str| {
        desired(
            "test",
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": "a", "namespace": namespace},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            }),
        )
    };
    cluster.apply(&service_account("view"), &[]).await.unwrap();
    let error = cluster
        .apply(&service_account("edit"), &[])
        .await
        .unwrap_err();
    assert!(
        matches!(&error, ClusterError::Immutable { field, .. } if field == "roleRef"),
        "{error:?}"
    );

    let deployment = |app: &str| {
        desired(
            "test",
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "a", "namespace": namespace},
                "spec": {
                    "selector": {"matchLabels": {"app": app}},
                    "template": {
                        "metadata": {"labels": {"app": app}},
                        "spec": {"containers": [{"name": "a", "image": "a"}]},
                    },
                },
            }),
        )
    };
    cluster.apply(&deployment("one"), &[]).await.unwrap();
    let error = cluster.apply(&deployment("two"), &[]).await.unwrap_err();
    assert!(
        matches!(&error, ClusterError::Immutable { field, .. } if field == "spec.selector"),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_error_about_a_secret_does_not_quote_it() {
    let plane = ControlPlane::minimal();
    let cluster = plane.cluster().await;
    let namespace = plane.namespace().await;
    let secret = desired(
        "test",
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "a", "namespace": namespace}, "data": {"password": "hunter2 is no base64"},
        }),
    );
    let error = cluster.apply(&secret, &[]).await.unwrap_err();
    assert!(
        !format!("{error} {error:?}").contains("hunter2"),
        "{error:?}"
    );
}

#[tokio::test]
async fn only_the_object_that_was_observed_is_deleted() {
    let plane = ControlPlane::minimal();
    let cluster = plane.cluster().await;
    let namespace = plane.namespace().await;
    let object = config_map(&namespace, "a", &json!({"key": "value"}));
    let observed = cluster.apply(&object, &[]).await.unwrap().metadata;
    let (uid, version) = (observed.uid.unwrap(), observed.resource_version.unwrap());

    let maps = Api::<ConfigMap>::namespaced(plane.client().await, &namespace);
    let change = json!({"data": {"added": "by somebody"}});
    maps.patch("a", &PatchParams::default(), &Patch::Merge(change))
        .await
        .unwrap();
    assert_eq!(
        cluster.delete(&object.key, &uid, &version).await.unwrap(),
        Deleted::Replaced
    );

    let now = cluster.get_metadata(&object.key).await.unwrap().unwrap();
    let version = now.resource_version.unwrap();
    assert_eq!(
        cluster
            .delete(&object.key, "another", &version)
            .await
            .unwrap(),
        Deleted::Replaced
    );

    assert_eq!(
        cluster.delete(&object.key, &uid, &version).await.unwrap(),
        Deleted::Deleted
    );
    assert_eq!(
        cluster.delete(&object.key, &uid, &version).await.unwrap(),
        Deleted::AlreadyGone
    );
    assert_eq!(cluster.get_metadata(&object.key).await.unwrap(), None);

    let mut unserved = object.key.clone();
    unserved.kind = GroupKind::new("no.such.group", "Thing");
    assert_eq!(
        cluster.delete(&unserved, &uid, &version).await.unwrap(),
        Deleted::AlreadyGone
    );
}

#[tokio::test]
async fn typed_objects_are_read_listed_created_and_patched() {
    let plane = ControlPlane::minimal();
    let cluster = plane.cluster().await;
    let namespace = plane.namespace().await;
    assert!(
        cluster
            .get::<ConfigMap>(&namespace, "a")
            .await
            .unwrap()
            .is_none()
    );
    let map: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": "a", "labels": {"app": "one"}}, "data": {"key": "value"},
    }))
    .unwrap();
    let created = cluster.create(&namespace, &map).await.unwrap();
    let twice = cluster.create(&namespace, &map).await.unwrap_err();
    assert!(matches!(twice, ClusterError::Conflict { .. }), "{twice}");
    assert_eq!(
        cluster
            .list::<ConfigMap>(&namespace, "app=one")
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        cluster
            .list::<ConfigMap>(&namespace, "app=two")
            .await
            .unwrap()
            .len(),
        0
    );

    let patch = json!({"data": {"key": "patched"}});
    let patch = (fairway::cluster::Patch::Merge, &patch);
    let patched: ConfigMap = cluster
        .patch(&namespace, "a", None, "test", patch)
        .await
        .unwrap();
    assert_eq!(patched.data.unwrap()["key"], "patched");
    let stale = cluster
        .replace(&namespace, &created, None)
        .await
        .unwrap_err();
    assert!(matches!(stale, ClusterError::Conflict { .. }), "{stale}");
}

#[tokio::test]
async fn a_list_has_all_its_pages() {
    let plane = ControlPlane::minimal();
    let cluster = plane.cluster().await;
    let namespace = plane.namespace().await;
    let maps = Api::<ConfigMap>::namespaced(plane.client().await, &namespace);
    for number in 0..120 {
        let map = json!({"metadata": {"name": format!("map-{number}")}});
        maps.create(
            &PostParams::default(),
            &serde_json::from_value(map).unwrap(),
        )
        .await
        .unwrap();
    }
    assert_eq!(
        cluster
            .list::<ConfigMap>(&namespace, "")
            .await
            .unwrap()
            .len(),
        120
    );
}
