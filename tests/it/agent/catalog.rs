//! The catalog: ModuleTemplates and ModuleReleaseMetas of the example repository on a cluster, and what a channel may do.

use kube::api::ListParams;
use kube::core::DynamicObject;
use serde_json::json;

use crate::support::world::{World, ready};

async fn channel(world: &World, channel: &str) -> String {
    let found: DynamicObject = world
        .kyma("ModuleReleaseMeta")
        .get("telemetry")
        .await
        .unwrap();
    let channels = found.data["spec"]["channels"].as_array().unwrap().clone();
    let found = channels
        .iter()
        .find(|one| one["channel"] == channel)
        .unwrap();
    found["version"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn channels_move_and_what_may_not_move_is_held_against_the_live_object() {
    let world = World::new().await;
    world.publish_modules();
    let agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let templates = world
        .kyma("ModuleTemplate")
        .list(&ListParams::default())
        .await
        .unwrap();
    let metas = world
        .kyma("ModuleReleaseMeta")
        .list(&ListParams::default())
        .await
        .unwrap();
    assert_eq!(metas.items.len(), 5);
    for meta in &metas.items {
        for channel in meta.data["spec"]["channels"].as_array().unwrap() {
            let module = meta.metadata.name.clone().unwrap();
            let template = format!("{module}-{}", channel["version"].as_str().unwrap());
            let there = templates
                .items
                .iter()
                .any(|one| one.metadata.name.as_ref() == Some(&template));
            assert!(there, "{module} points at {template}, which is not there");
        }
    }
    let order: Vec<String> = agent
        .audit()
        .iter()
        .map(|line| line["object"]["kind"]["kind"].as_str().unwrap().to_owned())
        .filter(|kind| kind.starts_with("Module"))
        .collect();
    let first_meta = order
        .iter()
        .position(|kind| kind == "ModuleReleaseMeta")
        .unwrap();
    assert!(
        order[first_meta..]
            .iter()
            .all(|kind| kind == "ModuleReleaseMeta"),
        "templates come first: {order:?}"
    );

    world.set_version("1.41.2", "1.42.0");
    world.publish("Move telemetry in regular").await;
    assert_eq!(channel(&world, "regular").await, "1.42.0");

    // Two commits later the way back is still refused, since the live object is what counts.
    world.set_version("1.42.0", "1.41.2");
    world.repository.publish("Go back");
    world.repository.write("README.md", "unrelated");
    let source = world.publish("Unrelated").await;
    assert_eq!(channel(&world, "regular").await, "1.42.0");
    let (_, reason, message) = ready(&source);
    assert_eq!(reason, "PartiallyApplied", "{message}");
    let hold = source
        .status
        .unwrap()
        .holds
        .into_iter()
        .find(|hold| hold.reason == "Channel")
        .unwrap();
    assert!(
        hold.place
            .unwrap()
            .starts_with("modules/telemetry/module-release-meta.yaml"),
        "{}",
        hold.message
    );
}

#[tokio::test]
async fn a_published_version_that_is_changed_is_held() {
    let world = World::new().await;
    world.publish_modules();
    let _agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let path = "modules/telemetry/1.41.2/default-config.yaml";
    let text = std::fs::read_to_string(world.repository.path().join(path)).unwrap();
    world.repository.write(path, format!("{text}# changed\n"));
    let source = world.publish("Change what is published").await;
    let holds = source.status.unwrap().holds;
    assert!(
        holds.iter().any(|hold| hold.reason == "VersionChanged"),
        "{holds:?}"
    );
}

/// Makes Manifests a kind of the cluster, as lifecycle-manager does, with none of its fields.
async fn serve_manifests(world: &World) {
    let text = "apiVersion: apiextensions.k8s.io/v1\n\
        kind: CustomResourceDefinition\n\
        metadata: {name: manifests.operator.kyma-project.io}\n\
        spec:\n\
        \x20 group: operator.kyma-project.io\n\
        \x20 scope: Namespaced\n\
        \x20 names: {kind: Manifest, listKind: ManifestList, plural: manifests, singular: manifest}\n\
        \x20 versions:\n\
        \x20 - name: v1beta2\n\
        \x20   served: true\n\
        \x20   storage: true\n\
        \x20   schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n";
    world.plane.apply_yaml(text).await;
    let manifests = world.kyma("Manifest");
    while manifests.list(&ListParams::default()).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_template_stays_as_long_as_a_manifest_was_made_from_it() {
    let world = World::new().await;
    world.publish_modules();
    serve_manifests(&world).await;
    let manifest = json!({
        "apiVersion": "operator.kyma-project.io/v1beta2",
        "kind": "Manifest",
        "metadata": {
            "name": "one-telemetry", "namespace": world.apps,
            "labels": {"operator.kyma-project.io/module-name": "telemetry"},
        },
        "spec": {"version": "1.41.1"},
    });
    world.plane.apply_yaml(&manifest.to_string()).await;
    let _agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    world.repository.remove("modules/telemetry/1.41.1");
    let source = world.publish("Retire a version").await;
    let hold = source.status.unwrap().holds.remove(0);
    assert_eq!(hold.reason, "InUse", "{hold:?}");
    assert!(hold.message.contains("one-telemetry"), "{}", hold.message);
    let templates = world.kyma("ModuleTemplate");
    let there = templates.get_opt("telemetry-1.41.1").await.unwrap();
    assert!(there.is_some());

    let manifests = world.kyma("Manifest");
    manifests
        .delete("one-telemetry", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    let source = world.reconcile().await;
    assert_eq!(ready(&source).1, "Synced", "{:?}", ready(&source));
    let there = templates.get_opt("telemetry-1.41.1").await.unwrap();
    assert!(there.is_none());
}
