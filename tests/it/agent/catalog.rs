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
