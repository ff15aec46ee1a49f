//! The agent's own life on a cluster: checked, installed, installed again, in use, and uninstalled with nothing left hanging.

use std::collections::BTreeMap;

use fairway::model::api::ReleaseSource;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{ResourceExt as _, runtime::wait::await_condition};
use serde_json::json;

use super::fairway;
use crate::support::control_plane::ControlPlane;

const NAMESPACE: &str = "fairway-system";

struct Cluster {
    plane: ControlPlane,
    client: kube::Client,
}

impl Cluster {
    async fn new() -> Self {
        let plane = ControlPlane::of_its_own("lifecycle");
        let client = plane.client().await;
        Self { plane, client }
    }

    /// Runs a command as the administrator; returns its exit code, stdout and stderr.
    fn fairway(&self, arguments: &[&str]) -> (i32, String, String) {
        let kubeconfig = self.plane.kubeconfig().to_str().unwrap();
        let mut all = vec!["--kubeconfig", kubeconfig];
        all.extend(arguments);
        let output = fairway(&all).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code().unwrap(),
            text(&output.stdout),
            text(&output.stderr),
        )
    }

    /// Returns everything that Fairway is installed from, by name with its resourceVersion.
    async fn installed(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for (group, version, kind) in [
            ("", "v1", "Namespace"),
            ("", "v1", "ServiceAccount"),
            ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
            ("apps", "v1", "Deployment"),
            ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
            ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
            ("rbac.authorization.k8s.io", "v1", "Role"),
            ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
        ] {
            let kind = GroupVersionKind::gvk(group, version, kind);
            let api: Api<DynamicObject> =
                Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind));
            for object in api.list(&ListParams::default()).await.unwrap() {
                let name = object.name_any();
                if name.contains("fairway") && object.metadata.deletion_timestamp.is_none() {
                    let version = object.resource_version().unwrap();
                    found.insert(format!("{} {name}", kind.kind), version);
                }
            }
        }
        found
    }

    async fn declare(&self, name: &str, finalizers: &[&str]) {
        let api: Api<ReleaseSource> = Api::namespaced(self.client.clone(), NAMESPACE);
        let body = json!({
            "apiVersion": "fairway.dev/v1alpha1", "kind": "ReleaseSource",
            "metadata": {"name": name, "finalizers": finalizers},
            "spec": {"url": "https://git.example.com/m.git", "ref": {"branch": "main"}, "deletionPolicy": "Delete"},
        });
        let parameters = PatchParams::apply("test").force();
        api.patch(name, &parameters, &Patch::Apply(&body))
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_gets_the_agent_and_loses_it_again_with_nothing_hanging() {
    let cluster = Cluster::new().await;
    before_it_is_installed(&cluster).await;
    installing_twice_writes_once(&cluster).await;
    what_is_broken_is_named(&cluster).await;
    uninstalling_leaves_what_was_applied(&cluster).await;
}

async fn before_it_is_installed(cluster: &Cluster) {
    let (code, out, err) = cluster.fairway(&["check", "--pre"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("you may install Fairway"), "{out}");
    let (code, out, err) = cluster.fairway(&["check"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(
        out.contains("releasesources.fairway.dev is not installed"),
        "{out}"
    );
    assert!(out.contains("fairway install --image"), "{out}");

    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/examples-repo");
    let (code, out, err) = cluster.fairway(&["sync", examples, "--yes"]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    for part in [
        "fairway is not installed on this cluster: there is no namespace fairway-system, and its kinds (Target, Run) are not served\n",
        "help: fairway install --namespace fairway-system --image IMAGE",
    ] {
        assert!(err.contains(part), "{part}\n{err}");
    }
    assert!(
        !err.contains("to create"),
        "it says so before it plans: {err}"
    );
    let (code, _, err) = cluster.fairway(&["describe", "target", "modules"]);
    assert_eq!(code, 2);
    assert!(err.contains("help: fairway install"), "{err}");

    let (code, _, err) = cluster.fairway(&["install"]);
    assert_eq!(code, 2);
    assert!(err.contains("--image"), "{err}");
    let (code, out, err) = cluster.fairway(&["install", "--image", "fairway:test", "--dry-run"]);
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("deployment/fairway created (dry run)"),
        "{out}"
    );
    assert_eq!(cluster.installed().await, BTreeMap::new());
}

async fn installing_twice_writes_once(cluster: &Cluster) {
    let arguments = [
        "install",
        "--image",
        "fairway:test",
        "--kyma-crds",
        "--timeout",
        "90s",
    ];
    let (code, out, err) = cluster.fairway(&arguments);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.lines().all(|line| line.ends_with(" created")), "{out}");
    assert_eq!(out.lines().count(), 17, "{out}");
    assert!(err.contains("fairway create secret git"), "{err}");

    let before = cluster.installed().await;
    assert_eq!(before.len(), 12, "{before:?}");
    let (code, out, err) = cluster.fairway(&["install", "--output", "json"]);
    assert_eq!(code, 0, "{err}");
    let lines: Vec<BTreeMap<String, String>> = serde_json::from_str(&out).unwrap();
    assert!(
        lines.iter().all(|line| line["result"] == "unchanged"),
        "{out}"
    );
    // Controllers write the Deployment's status at their leisure; the spec has not moved.
    let mut after = cluster.installed().await;
    for changing in ["Deployment fairway", "Namespace fairway-system"] {
        after.insert(changing.to_owned(), before[changing].clone());
    }
    assert_eq!(after, before);

    let (code, out, err) = cluster.fairway(&["install", "--replicas", "2"]);
    assert_eq!(code, 0, "{err}");
    let configured: Vec<&str> = out
        .lines()
        .filter(|line| !line.ends_with(" unchanged"))
        .collect();
    assert_eq!(configured, ["deployment/fairway configured"]);

    let (code, out, err) = cluster.fairway(&["check"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("is available with fairway:test"), "{out}");
    assert!(out.contains("may do all that the agent needs"), "{out}");
}

async fn what_is_broken_is_named(cluster: &Cluster) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "fairway", "namespace": NAMESPACE}, "rules": [],
    });
    let kind = GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", "Role");
    let roles: Api<DynamicObject> = Api::namespaced_with(
        cluster.client.clone(),
        NAMESPACE,
        &ApiResource::from_gvk(&kind),
    );
    roles
        .patch("fairway", &PatchParams::default(), &Patch::Merge(&role))
        .await
        .unwrap();
    let definition = json!({"spec": {"names": {"shortNames": ["other"]}}});
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> =
        Api::all_with(cluster.client.clone(), &ApiResource::from_gvk(&kind));
    definitions
        .patch(
            "targets.fairway.dev",
            &PatchParams::default(),
            &Patch::Merge(&definition),
        )
        .await
        .unwrap();
    let own =
        json!({"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]});
    let kind = GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", "ClusterRole");
    Api::<DynamicObject>::all_with(cluster.client.clone(), &ApiResource::from_gvk(&kind))
        .patch(
            "fairway-apply",
            &PatchParams::default(),
            &Patch::Merge(&own),
        )
        .await
        .unwrap();
    let (code, out, err) = cluster.fairway(&["check"]);
    assert_eq!(code, 1, "{err}");
    assert!(
        out.contains("targets.fairway.dev differs from what this version"),
        "{out}"
    );
    assert!(
        out.contains("may not get releasesources.fairway.dev in fairway-system"),
        "{out}"
    );
    let (code, out, err) = cluster.fairway(&["install", "--wait", "false"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("role/fairway configured"), "{out}");
    assert!(
        out.contains("clusterrole/fairway-apply kept as it is"),
        "{out}"
    );
    let (code, out, err) = cluster.fairway(&["check"]);
    assert_eq!(code, 0, "{out}{err}");
}

async fn uninstalling_leaves_what_was_applied(cluster: &Cluster) {
    // Nobody acts on these sources: the Deployment's pods are simulated.
    cluster.declare("modules", &["fairway.dev/prune"]).await;
    cluster.declare("ended", &["fairway.dev/prune"]).await;
    // Deleted while no agent is there to go on with it.
    let sources: Api<ReleaseSource> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let parameters = kube::api::DeleteParams::default();
    sources.delete("ended", &parameters).await.unwrap();
    assert!(sources.get("ended").await.is_ok(), "its finalizer keeps it");
    let applied = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "applied", "namespace": "default", "labels": {"fairway.dev/source": "modules"}},
    });
    cluster.plane.apply_yaml(&applied.to_string()).await;

    let (code, _, err) = cluster.fairway(&["uninstall", "--yes"]);
    assert_eq!(code, 2);
    assert!(err.contains("deletionPolicy: Delete"), "{err}");
    assert!(err.contains("--orphan"), "{err}");
    let (code, _, err) = cluster.fairway(&["uninstall", "--orphan"]);
    assert_eq!(code, 2);
    assert!(err.contains("say --yes"), "{err}");
    assert_eq!(cluster.installed().await.len(), 12);

    let (code, out, err) = cluster.fairway(&["uninstall", "--orphan", "--yes"]);
    assert_eq!(code, 0, "{out}{err}");
    for source in ["modules", "ended"] {
        let line = format!("releasesource/{source} released; its objects stay");
        assert!(out.contains(&line), "{out}");
    }
    assert!(
        err.contains("with the label fairway.dev/source=modules"),
        "{err}"
    );
    let left: Vec<String> = cluster.installed().await.into_keys().collect();
    assert_eq!(left, ["Namespace fairway-system"]);
    let objects: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), "default");
    let there = await_condition(objects, "applied", |found: Option<&ConfigMap>| {
        found.is_some()
    });
    there.await.unwrap();
    let (code, out, err) = cluster.fairway(&["uninstall", "--yes"]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
}
