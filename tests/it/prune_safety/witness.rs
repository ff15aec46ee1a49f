//! What must not be lost, and a look whether it was.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;

use crate::support::world::{Agent, World};

/// The objects that git wants all the time, by name with their uids.
pub(super) type Wanted = BTreeMap<String, String>;

/// Makes a world with two components in step.
pub(super) async fn in_step() -> (World, Agent, Wanted) {
    let world = World::new().await;
    for name in ["one", "two", "three", "four", "five", "six"] {
        world.config_map("web", name, "x");
    }
    for name in ["seven", "eight", "nine", "ten"] {
        world.config_map("api", name, "x");
    }
    world.repository.publish("Ten");
    let agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let wanted = present(&world).await;
    assert_eq!(wanted.len(), 10);
    (world, agent, wanted)
}

/// Returns what is there.
pub(super) async fn present(world: &World) -> Wanted {
    let labels = ListParams::default().labels(&format!("fairway.dev/source={}", world.name));
    let found = world.config_maps().list(&labels).await.unwrap();
    found
        .items
        .iter()
        .map(|one| (one.name_any(), one.uid().unwrap()))
        .collect()
}

/// Fails when anything was deleted, or is another object than before.
pub(super) async fn nothing_is_lost(world: &World, wanted: &Wanted, fault: &str) {
    let deletions: Vec<String> = world
        .proxy
        .seen()
        .into_iter()
        .filter(|seen| seen.verb == "DELETE")
        .map(|seen| seen.path)
        .collect();
    assert!(deletions.is_empty(), "{fault}: {deletions:?}");
    let there = present(world).await;
    for (name, uid) in wanted {
        assert_eq!(there.get(name), Some(uid), "{fault}: {name}");
    }
}

/// Waits until every object but `gone` is as before, and `gone` is gone.
pub(super) async fn only_this_goes(world: &World, wanted: &Wanted, gone: &str, fault: &str) {
    world.until_value(gone, None).await;
    let there = present(world).await;
    for (name, uid) in wanted.iter().filter(|(name, _)| *name != gone) {
        assert_eq!(there.get(name), Some(uid), "{fault}: {name}");
    }
}
