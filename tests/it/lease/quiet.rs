//! What a lease costs: one request a renewal, and nothing for who stands by.

use std::time::Duration;

use serde_json::json;

use super::replicas::{Replica, SHORT};
use crate::support::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_leader_renews_and_who_stands_by_is_silent() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let one = Replica::start(&world, "one", SHORT).await;
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let two = Replica::start(&world, "two", SHORT).await;
    two.until_logged("the lease has a holder", 1).await;
    world.reconcile().await;
    let path = format!(
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases/fairway-home",
        world.name
    );
    // A first renewal, so that what the pass has begun has ended.
    renewals(&one, &path, 1).await;
    one.proxy.forget();
    two.proxy.forget();
    renewals(&one, &path, 5).await;
    let seen: Vec<String> = one
        .proxy
        .seen()
        .into_iter()
        .map(|seen| format!("{} {}", seen.verb, seen.path))
        .collect();
    assert!(
        seen.iter().all(|seen| *seen == format!("PUT {path}")),
        "{seen:?}"
    );
    assert_eq!(two.proxy.seen(), []);
}

async fn renewals(one: &Replica, path: &str, wanted: usize) {
    let before = one.proxy.count("PUT", path);
    let renewed = async {
        while one.proxy.count("PUT", path) < before + wanted {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), renewed).await;
    assert!(ended.is_ok(), "it does not renew: {}", one.agent.log());
}
