//! Killed between the record of an approval and the last deletion in its name.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;

use crate::support::agent::signal;
use crate::support::proxy::{Fault, Rule, Seen};
use crate::support::world::{World, ready};

const DELETED: [&str; 5] = ["a1", "a2", "a3", "a4", "a5"];

async fn present(world: &World) -> Vec<String> {
    let ours = ListParams::default().labels(&format!("fairway.dev/source={}", world.name));
    let found = world.config_maps().list(&ours).await.unwrap();
    found.items.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rest_of_an_approved_set_goes_after_a_crash_and_nothing_else_does() {
    let world = World::new().await;
    for name in DELETED {
        world.config_map("api", name, "x");
    }
    for name in ["b1", "b2"] {
        world.config_map("backup", name, "x");
    }
    world.config_map("web", "settings", "x");
    world.repository.publish("Three components");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    world.repository.remove("components/api");
    world.publish("Drop one").await;
    let (process, deletions) = (AtomicU32::new(agent.id()), AtomicUsize::new(0));
    world.proxy.before(Arc::new(move |_, seen: &Seen| {
        if seen.verb != "DELETE" || deletions.fetch_add(1, Ordering::SeqCst) < 2 {
            return true;
        }
        signal(process.load(Ordering::SeqCst), "KILL");
        false
    }));
    // Two of the five are let through, one after another.
    let late = Fault::Delay(std::time::Duration::from_millis(200));
    world
        .proxy
        .inject(Rule::always("DELETE", "/configmaps/", late));
    let (code, _, err) = world.fairway(&["approve", "prune", &world.name, "--reason", "tested"]);
    assert_eq!(code, 0, "{err}");
    while present(&world).await.len() == 8 && agent.is_alive() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    agent.kill();
    let left = present(&world).await;
    assert!((6..=8).contains(&left.len()), "{left:?}");
    let approval = world.target().await.status.unwrap().approval.unwrap();
    assert_eq!(approval.objects.len(), 5);

    world.proxy.before(Arc::new(|_, _| true));
    world.proxy.heal();
    let _agent = world.agent();
    world.until_reason("Synced").await;
    assert_eq!(present(&world).await, ["b1", "b2", "settings"]);
    let spent = world.target().await.status.unwrap().approval.unwrap();
    assert_eq!((spent.digest, spent.objects.len()), (approval.digest, 0));

    world.repository.remove("components/backup");
    let source = world.publish("Drop another").await;
    assert_eq!(ready(&source).1, "ApprovalNeeded", "{:?}", ready(&source));
    assert_eq!(present(&world).await, ["b1", "b2", "settings"]);
}
