//! The git server is down while the agent starts: what was applied last still holds, and the condition says what is wrong.

use fairway::model::api::{ConditionType, ReleaseSource, find};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::support::world::{Agent, World};

/// A world that was in step, whose agent and git server have ended, and an object that somebody has edited since.
async fn edited_while_everything_was_down() -> (World, String) {
    let mut world = World::new().await;
    world.config_map("web", "settings", "one");
    let commit = world.repository.publish("Add settings");
    let mut agent: Agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    agent.terminate();
    world.server.stop();
    let edit = json!({"data": {"value": "by hand"}});
    world
        .config_maps()
        .patch("settings", &PatchParams::default(), &Patch::Merge(&edit))
        .await
        .unwrap();
    (world, commit)
}

/// Returns status and message of `Fetched`.
fn fetched(source: &ReleaseSource) -> (String, String) {
    let conditions = source.status.as_ref().map(|status| &status.conditions[..]);
    find(conditions.unwrap_or_default(), ConditionType::Fetched)
        .map_or_else(Default::default, |one| {
            (format!("{:?}", one.status), one.message.clone())
        })
}

#[tokio::test]
async fn drift_is_put_right_from_the_mirror() {
    let (mut world, commit) = edited_while_everything_was_down().await;
    let _agent = world.agent();
    world.until_value("settings", Some("one")).await;
    let source = world
        .until_source("Fetched is False", |source: Option<&ReleaseSource>| {
            source.is_some_and(|source| fetched(source).0 == "False")
        })
        .await;
    let (_, message) = fetched(&source);
    assert!(message.contains("Connection refused"), "{message}");
    let status = source.status.unwrap();
    let revision = format!("main@sha1:{commit}");
    assert_eq!(status.last_attempted_revision, Some(revision.clone()));
    assert_eq!(status.last_applied_revision, Some(revision));

    world.server.restart();
    world.config_map("web", "settings", "two");
    world.publish("Change settings").await;
    world.until_value("settings", Some("two")).await;
}

#[tokio::test]
async fn a_declaration_that_was_changed_meanwhile_takes_nothing_from_the_mirror() {
    let (world, _) = edited_while_everything_was_down().await;
    world.declare(json!({"path": "components"})).await;
    let _agent = world.agent();
    let source = world.reconcile().await;
    assert_eq!(fetched(&source).0, "False");
    assert_eq!(world.value("settings").await.as_deref(), Some("by hand"));
}

#[tokio::test]
async fn a_damaged_mirror_is_named_beside_the_server_that_is_down() {
    let (world, _) = edited_while_everything_was_down().await;
    let packs = world.cache().join(&world.name).join("objects/pack");
    for entry in std::fs::read_dir(packs).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let _agent = world.agent();
    let source = world.reconcile().await;
    let (status, message) = fetched(&source);
    assert_eq!(status, "False");
    assert!(message.contains("Connection refused"), "{message}");
    assert!(message.contains("from the mirror either"), "{message}");
    assert_eq!(world.value("settings").await.as_deref(), Some("by hand"));
}
