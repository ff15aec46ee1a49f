//! The volume of the mirrors is full: the condition says so, and what was applied last still holds.

use fairway::model::api::{ConditionStatus, ConditionType, find};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::support::world::World;

#[tokio::test]
async fn a_full_disk_is_named_and_the_last_good_revision_stays() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    let good = world.repository.publish("Add settings");
    let mut agent = world.agent_without_room();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;

    world.repository.write("large.bin", noise(300_000));
    world.config_map("web", "settings", "two");
    let source = world.publish("Add what does not fit").await;
    let status = source.status.unwrap();
    let fetched = find(&status.conditions, ConditionType::Fetched).unwrap();
    assert_eq!(fetched.status, ConditionStatus::False);
    assert!(
        fetched.message.contains("the disk that holds"),
        "{}",
        fetched.message
    );
    assert!(fetched.message.contains("is full"), "{}", fetched.message);
    assert!(fetched.message.contains("more room"), "{}", fetched.message);
    let good = format!("main@sha1:{good}");
    assert_eq!(status.last_attempted_revision, Some(good.clone()));
    assert_eq!(status.last_applied_revision, Some(good));

    let edit = json!({"data": {"value": "by hand"}});
    world
        .config_maps()
        .patch("settings", &PatchParams::default(), &Patch::Merge(&edit))
        .await
        .unwrap();
    world.until_value("settings", Some("one")).await;

    // With room, the same mirror goes on.
    let (_, well) = agent.terminate();
    assert!(well, "{}", agent.log());
    let _agent = world.agent();
    world.until_value("settings", Some("two")).await;
    world.until_reason("Synced").await;
}

/// Bytes that do not compress.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 2_654_435_761_u32;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    })
    .take(length)
    .collect()
}
