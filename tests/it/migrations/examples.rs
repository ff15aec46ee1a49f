//! The example migrations on clusters with a past, with their controllers: what is there before, and what must be there afterwards.

use std::path::Path;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{
    ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::steps::jobs::until;
use crate::support::world::World;

/// Puts what belongs to one test only in the place of what would be there once in a cluster.
pub(crate) fn local(world: &World, text: &str) -> String {
    let apps = &world.apps;
    let mut text = text.to_owned();
    for namespace in ["ingress", "logging", "nats", "observability", "warden"] {
        let of_example = format!("namespace: {namespace}\n");
        text = text.replace(&of_example, &format!("namespace: {apps}\n"));
    }
    text.replace("nats.io", &format!("{apps}.example.com"))
        .replace(
            "telemetry.kyma-project.io",
            &format!("logs-{apps}.example.com"),
        )
        // It is looked for in all namespaces, those of other tests included.
        .replace(
            "selector: app.kubernetes.io/name=dashboards\n",
            &format!("selector: app.kubernetes.io/name={apps}-dashboards\n"),
        )
        .replace("name: nats-operator\n", &format!("name: {apps}-operator\n"))
        .replace("[nats-operator]", &format!("[{apps}-operator]"))
}

/// Writes a folder of the example repository into that of the test; namespaces are there already.
pub(crate) fn copy(world: &World, folder: &str) {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples-repo");
    for entry in std::fs::read_dir(examples.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            copy(world, &name);
        } else if !name.ends_with("/namespace.yaml") {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            world.repository.write(&name, local(world, &text));
        }
    }
}

/// Writes a file of the example repository with changes; each must be one.
pub(crate) fn copy_changed(world: &World, file: &str, changes: &[(&str, &str)]) {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples-repo");
    let mut text = std::fs::read_to_string(examples.join(file)).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from} is not in {file}");
        text = text.replace(from, to);
    }
    world.repository.write(file, local(world, &text));
}

/// Gives the agent what `fairway migration rbac` says that the migrations of the repository need, and nothing else.
pub(crate) async fn allow(world: &World) {
    let folder = world.repository.path().to_str().unwrap().to_owned();
    let (code, out, err) = world.fairway(&["migration", "rbac", &folder]);
    assert_eq!(code, 0, "{err}");
    let out = out
        .replace("fairway-system", &world.name)
        .replace("fairway-migrations", &format!("{}-migrations", world.name));
    world.plane.apply_texts(&world.client, &out).await;
}

/// Applies an object as somebody who was there before.
pub(crate) async fn put(world: &World, mut object: Value) {
    if object["metadata"].get("namespace").is_none() {
        object["metadata"]["namespace"] = world.apps.as_str().into();
    }
    let text = object.to_string();
    world.plane.apply_texts(&world.client, &text).await;
}

/// A kind that the examples know, in the namespace of the test.
pub(crate) fn api(world: &World, kind: (&str, &str, &str)) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(kind.0, kind.1, kind.2));
    Api::namespaced_with(world.client.clone(), &world.apps, &kind)
}

fn claims(world: &World) -> Api<PersistentVolumeClaim> {
    Api::namespaced(world.client.clone(), &world.apps)
}

pub(crate) async fn pods(world: &World, selector: &str) -> Vec<Pod> {
    let api: Api<Pod> = Api::namespaced(world.client.clone(), &world.apps);
    let list = ListParams::default().labels(selector);
    api.list(&list).await.unwrap().items
}

/// Loki as it was before its volumes had to grow: two claims of 10Gi, and the set that made them with its pods.
pub(crate) async fn small_volumes(world: &World) {
    let class = format!("{}-expandable", world.apps);
    let storage_class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": class},
        "provisioner": "volumes.example.com", "allowVolumeExpansion": true,
    });
    world
        .plane
        .apply_texts(&world.client, &storage_class.to_string())
        .await;
    let labels = json!({"app.kubernetes.io/name": "loki"});
    let template = json!({
        "metadata": {"name": "storage", "labels": labels},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": "10Gi"}},
        },
    });
    put(world, json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "loki"},
        "spec": {
            "replicas": 2, "serviceName": "loki", "podManagementPolicy": "Parallel", "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "loki", "image": "loki"}]}},
            "volumeClaimTemplates": [template],
        },
    }))
    .await;
    let made = until("the set has made its claims and pods", async || {
        let selector = "app.kubernetes.io/name=loki";
        let list = ListParams::default().labels(selector);
        let made = claims(world).list(&list).await.unwrap().items;
        let is_complete = made.len() == 2 && pods(world, selector).await.len() == 2;
        is_complete.then_some(made)
    })
    .await;
    for claim in made {
        // As the driver of the volumes says it.
        let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "10Gi"}}});
        claims(world)
            .patch_status(
                &claim.name_any(),
                &PatchParams::default(),
                &Patch::Merge(&bound),
            )
            .await
            .unwrap();
    }
}

/// The driver of the volumes, which grows them when it is asked to, until it is dropped. No control plane has one.
pub(crate) fn volume_driver(world: &World) -> DropGuard {
    let stop = CancellationToken::new();
    let claims = claims(world);
    let growing = async move {
        loop {
            let list = claims.list(&ListParams::default()).await;
            for claim in list.map(|list| list.items).unwrap_or_default() {
                let claim_json = serde_json::to_value(&claim).unwrap();
                let wanted = &claim_json["spec"]["resources"]["requests"]["storage"];
                if claim_json["status"]["phase"] == "Bound"
                    && claim_json["status"]["capacity"]["storage"] != *wanted
                {
                    let grown = json!({"status": {"capacity": {"storage": wanted}}});
                    let (name, how) = (claim.name_any(), PatchParams::default());
                    drop(
                        claims
                            .patch_status(&name, &how, &Patch::Merge(&grown))
                            .await,
                    );
                }
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    tokio::spawn(stop.clone().run_until_cancelled_owned(growing));
    stop.drop_guard()
}

/// Returns how the claims, the set and the pods of Loki are.
pub(crate) async fn volumes(world: &World) -> Vec<String> {
    let selector = "app.kubernetes.io/name=loki";
    let mut lines = Vec::new();
    let list = ListParams::default().labels(selector);
    for claim in claims(world).list(&list).await.unwrap() {
        let all = serde_json::to_value(&claim).unwrap();
        let (asked, has) = (
            &all["spec"]["resources"]["requests"],
            &all["status"]["capacity"],
        );
        lines.push(format!("{}: {asked} {has}", claim.name_any()));
    }
    let set = api(world, ("apps", "v1", "StatefulSet"))
        .get_opt("loki")
        .await
        .unwrap();
    lines.push(format!("set: {}", set.is_some()));
    for pod in pods(world, selector).await {
        lines.push(format!(
            "{}: {} owners",
            pod.name_any(),
            pod.owner_references().len()
        ));
    }
    lines
}

/// What an operator had made until 2.9, itself and its kinds included.
pub(crate) async fn old_operator(world: &World) {
    let apps = &world.apps;
    let operator = format!("{apps}-operator");
    let labels = json!({"app": operator});
    put(world, json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": operator},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "operator"}]}},
        },
    }))
    .await;
    let role =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": operator});
    let rbac = "rbac.authorization.k8s.io/v1";
    let mut whole = vec![
        json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": operator}, "rules": []}),
        json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": operator}, "roleRef": role}),
    ];
    for (plural, kind) in [
        ("natsclusters", "NatsCluster"),
        ("natsserviceroles", "NatsServiceRole"),
    ] {
        whole.push(definition(
            (&format!("{apps}.example.com"), plural, kind),
            &["v1"],
        ));
    }
    for object in whole {
        world
            .plane
            .apply_texts(&world.client, &object.to_string())
            .await;
    }
    for name in ["nats-1", "nats-2"] {
        put(world, json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"nats_cluster": "nats"}},
            "spec": {"containers": [{"name": "nats", "image": "nats"}]},
        }))
        .await;
    }
}

/// Returns what is left of the operator, and what took its place.
pub(crate) async fn operator(world: &World) -> Vec<String> {
    let operator = format!("{}-operator", world.apps);
    let mut lines = Vec::new();
    for (group, kind, name) in [
        ("apps", "Deployment", operator.clone()),
        ("rbac.authorization.k8s.io", "ClusterRole", operator.clone()),
        (
            "rbac.authorization.k8s.io",
            "ClusterRoleBinding",
            operator.clone(),
        ),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            format!("natsclusters.{}.example.com", world.apps),
        ),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            format!("natsserviceroles.{}.example.com", world.apps),
        ),
        ("apps", "StatefulSet", "nats".to_owned()),
        ("", "Service", "nats".to_owned()),
    ] {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        let api: Api<DynamicObject> = match group {
            "apps" | "" => Api::namespaced_with(world.client.clone(), &world.apps, &resource),
            _ => Api::all_with(world.client.clone(), &resource),
        };
        let found = api.get_opt(&name).await.unwrap();
        let name = name.replace(&world.apps, "APPS");
        let more = found
            .as_ref()
            .map(|it| it.data["spec"]["clusterIP"] == "None");
        lines.push(format!("{kind} {name}: {more:?}"));
    }
    lines.push(format!(
        "{} old pods",
        pods(world, "nats_cluster=nats").await.len()
    ));
    lines
}

/// Returns the definition of a kind of which any object is valid.
pub(crate) fn definition((group, plural, kind): (&str, &str, &str), versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            json!({"name": name, "served": true, "storage": index == 0, "schema": {"openAPIV3Schema": any}})
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "versions": versions,
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
        },
    })
}

/// Creates an object of a kind that was defined just now; it is served a moment later.
pub(crate) async fn put_soon(world: &World, kind: (&str, &str, &str), name: &str, more: Value) {
    let api = api(world, kind);
    let mut object = json!({
        "apiVersion": format!("{}/{}", kind.0, kind.1), "kind": kind.2, "metadata": {"name": name},
    });
    json_patch::merge(&mut object, &more);
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    until("it is created", async || {
        api.create(&PostParams::default(), &object).await.ok()
    })
    .await;
}
