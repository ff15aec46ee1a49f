//! The play that is interrupted: what is there before, and the commit whose pass is killed.

use std::path::Path;

use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::support::world::{World, ready};

/// The kinds that the play touches.
pub(crate) fn kinds() -> Vec<ApiResource> {
    let kyma = |kind| ("operator.kyma-project.io", "v1beta2", kind);
    let core = |kind| ("", "v1", kind);
    [
        core("ConfigMap"),
        core("Namespace"),
        kyma("ModuleTemplate"),
        kyma("ModuleReleaseMeta"),
    ]
    .map(|(group, version, kind)| {
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
    })
    .to_vec()
}

/// Publishes and applies what is there before: two components and a module.
pub(crate) async fn set(world: &World) {
    for name in ["kept", "changed", "dropped", "dropped-too"] {
        world.config_map("web", name, "before");
    }
    world.config_map("api", "limits", "before");
    publish_telemetry(world);
    world.repository.publish("Before");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let (_, well) = agent.terminate();
    assert!(well, "{}", agent.log());
}

/// Publishes the commit: creates with a namespace that must come first, changes, a channel that moves, and prunes.
pub(crate) fn act(world: &World) -> String {
    world.config_map("web", "changed", "after");
    world.config_map("web", "created", "after");
    world.config_map("api", "limits", "after");
    world.repository.remove("components/web/dropped.yaml");
    world.repository.remove("components/web/dropped-too.yaml");
    let namespace = format!("{}-extra", world.apps);
    let text = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: inside, namespace: {namespace}}}\ndata: {{value: after}}\n"
    );
    world.repository.write("components/extra/all.yaml", text);
    let path = "modules/telemetry/module-release-meta.yaml";
    let meta = std::fs::read_to_string(world.repository.path().join(path)).unwrap();
    world
        .repository
        .write(path, meta.replacen("version: 1.41.2", "version: 1.42.0", 1));
    world.repository.publish("After")
}

/// Waits until the commit is applied in full.
pub(crate) async fn settled(world: &World, commit: &str) {
    let revision = format!("main@sha1:{commit}");
    world
        .until_source(
            "the commit is applied in full",
            move |source: Option<&_>| {
                source.is_some_and(|source: &fairway::model::api::ReleaseSource| {
                    let applied = source
                        .status
                        .as_ref()
                        .and_then(|status| status.last_applied_revision.as_ref());
                    applied == Some(&revision) && ready(source).1 == "Synced"
                })
            },
        )
        .await;
}

/// Returns everything that the play has left, in a form that does not depend on names, times or versions of the world.
pub(crate) async fn scenery(world: &World) -> String {
    let mut objects = Vec::new();
    for kind in kinds() {
        let api: Api<DynamicObject> = Api::all_with(world.client.clone(), &kind);
        let ours = ListParams::default().labels(&format!("fairway.dev/source={}", world.name));
        for object in api.list(&ours).await.unwrap() {
            objects.push(essence(&kind, &object));
        }
    }
    let target = world.target().await.status.unwrap();
    let source = world.source().await.status.unwrap();
    let reasons = |conditions: Vec<fairway::model::api::Condition>| -> Vec<String> {
        conditions
            .into_iter()
            .map(|one| format!("{}={:?} {}", one.type_, one.status, one.reason))
            .collect()
    };
    let all = json!({
        "objects": objects,
        "kinds": target.kinds,
        "trusted": target.cluster_uid.is_some(),
        "target": reasons(target.conditions),
        "source": reasons(source.conditions),
    });
    let text = serde_json::to_string_pretty(&all).unwrap();
    text.replace(&world.apps, "APPS")
        .replace(&world.name, "SOURCE")
}

fn essence(kind: &ApiResource, object: &DynamicObject) -> Value {
    let managers: Vec<String> = object
        .managed_fields()
        .iter()
        .map(|entry| format!("{:?} {:?}", entry.manager, entry.operation))
        .collect();
    // The digest covers names that differ from world to world.
    let mut annotations = object.annotations().clone();
    annotations.retain(|key, _| key != "fairway.dev/digest");
    json!({
        "kind": kind.kind,
        "name": object.name_any(),
        "labels": object.labels(),
        "annotations": annotations,
        "managers": managers,
        "spec": object.data.get("spec").filter(|_| kind.kind != "Namespace"),
        "data": object.data.get("data"),
    })
}

/// Writes the module that has three versions.
pub(crate) fn publish_telemetry(world: &World) {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples-repo");
    let module = "modules/telemetry";
    let mut files = vec![format!("{module}/module-release-meta.yaml")];
    for version in ["1.41.2", "1.42.0", "1.43.0-experimental"] {
        for file in [
            "module-template.yaml",
            "manifest.yaml",
            "default-config.yaml",
        ] {
            files.push(format!("{module}/{version}/{file}"));
        }
    }
    for file in files {
        world
            .repository
            .write(&file, std::fs::read(examples.join(&file)).unwrap());
    }
}
