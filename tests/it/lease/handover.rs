//! Handing over: after a kill, after a clean stop, and to whom was stopped in its tracks.

use kube::ResourceExt as _;
use serde_json::json;

use super::replicas::{LONG, Replica, SHORT, until_holder};
use crate::support::http::get;
use crate::support::proxy::{Fault, Rule};
use crate::support::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_leader_is_followed_when_its_lease_is_over() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let mut one = Replica::start(&world, "one", SHORT).await;
    world.declare(json!({})).await;
    let first = until_holder(&world, "one").await;
    let two = Replica::start(&world, "two", SHORT).await;
    two.until_logged("the lease has a holder", 1).await;
    world.until_reason("Synced").await;
    let settings = world.config_maps().get("settings").await.unwrap();
    assert_eq!(
        two.writes(),
        Vec::<String>::new(),
        "who stands by writes nothing"
    );

    one.agent.kill();
    world.config_map("web", "settings", "two");
    world.publish("Change settings").await;
    world.until_value("settings", Some("two")).await;
    let lease = until_holder(&world, "two").await;
    assert_eq!(lease.uid(), first.uid());
    assert_eq!(lease.spec.unwrap().lease_transitions, Some(1));
    two.asks_first();
    let changed = world.config_maps().get("settings").await.unwrap();
    assert_eq!(
        changed.uid(),
        settings.uid(),
        "it was changed, not made anew"
    );
    assert_eq!(changed.metadata.generation, settings.metadata.generation);
    let applied = format!(
        "PATCH /api/v1/namespaces/{}/configmaps/settings",
        world.apps
    );
    assert_eq!(
        two.writes()
            .iter()
            .filter(|write| **write == applied)
            .count(),
        1
    );
}

/// The lease would last longer than the test waits: it is given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_told_to_stop_hands_over_at_once() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let mut one = Replica::start(&world, "one", LONG).await;
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let mut two = Replica::start(&world, "two", LONG).await;
    two.until_logged("the lease has a holder", 1).await;
    let (leads, stands_by) = (one.agent.address(), two.agent.address());
    for address in [&leads, &stands_by] {
        assert_eq!(get(address, "/healthz"), "ok\n");
        assert_eq!(get(address, "/readyz"), "ok\n");
        let metrics = get(address, "/metrics");
        let holder = r#"fairway_lease_holder{lease="fairway-home",holder="one"} 1"#;
        assert!(metrics.contains(holder), "{metrics}");
    }
    let idle = r#"fairway_lease_remaining_seconds{lease="fairway-home"} 0.0"#;
    assert!(!get(&leads, "/metrics").contains(idle));
    assert!(get(&stands_by, "/metrics").contains(idle));

    let (_, well) = one.agent.terminate();
    assert!(well, "{}", one.agent.log());
    world.config_map("web", "settings", "two");
    world.publish("Change settings").await;
    until_holder(&world, "two").await;
    world.until_value("settings", Some("two")).await;
    // And once more, to nobody.
    let (_, well) = two.agent.terminate();
    assert!(well, "{}", two.agent.log());
    let one = Replica::start(&world, "one", LONG).await;
    until_holder(&world, "one").await;
    world.reconcile().await;
    assert_eq!(
        one.writes().len(),
        1,
        "nothing but that the request was handled: {:?}",
        one.writes()
    );
}

/// The first replica is stopped in the middle of a pass, with requests that were not answered, until another has led and has
/// applied a later commit that changes everything and drops something.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_wakes_up_late_writes_nothing_more() {
    let world = World::new().await;
    for number in 0..60 {
        world.config_map("web", &format!("settings-{number}"), "one");
    }
    world.repository.publish("Sixty");
    let one = Replica::start(&world, "one", SHORT).await;
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let two = Replica::start(&world, "two", SHORT).await;
    two.until_logged("the lease has a holder", 1).await;

    one.proxy.inject(Rule {
        skip: 10,
        ..Rule::always("PATCH", "/configmaps/settings-", Fault::Hang)
    });
    one.proxy.forget();
    for number in 0..60 {
        world.config_map("web", &format!("settings-{number}"), "two");
    }
    world.config_map("web", "short-lived", "two");
    world.repository.publish("Change all of them");
    world.ring().await;
    // Ten were applied, and everything that may be in flight hangs.
    let full = async {
        while one.proxy.count("PATCH", "/configmaps/settings-") < 26 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), full)
        .await
        .unwrap();
    one.signal("STOP");
    for number in 0..60 {
        world.config_map("web", &format!("settings-{number}"), "three");
    }
    world.repository.remove("components/web/short-lived.yaml");
    world.publish("Change all of them again").await;
    until_holder(&world, "two").await;
    world.until_value("settings-59", Some("three")).await;
    world.until_reason("Synced").await;
    // The Event of that comes after its status, and before anything of the next pass.
    world.reconcile().await;
    two.proxy.forget();

    one.proxy.heal();
    one.proxy.disconnect();
    one.proxy.forget();
    one.signal("CONT");
    one.until_logged("the lease is lost", 1).await;
    world.reconcile().await;
    assert_eq!(one.writes(), Vec::<String>::new());
    let handled = format!(
        "PATCH /apis/fairway.dev/v1alpha1/namespaces/{0}/releasesources/{0}/status",
        world.name
    );
    assert_eq!(two.writes(), [handled], "nothing of it was undone");
    for number in [0, 9, 10, 30, 59] {
        let value = world.value(&format!("settings-{number}")).await;
        assert_eq!(value.as_deref(), Some("three"));
    }
    assert_eq!(world.value("short-lived").await, None);
}
