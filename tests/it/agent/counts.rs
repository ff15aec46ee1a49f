//! Costs are exact: how many requests a pass sends, counted in front of the API server.

use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;

use crate::support::world::World;

/// Requests that write an object of the repository, or read a single one.
fn on_objects(world: &World) -> Vec<String> {
    let seen = world.proxy.seen().into_iter();
    let objects = seen.filter(|seen| {
        seen.path.contains(&format!("/namespaces/{}/", world.apps)) && seen.verb != "WATCH"
    });
    objects
        .map(|seen| format!("{} {}", seen.verb, seen.path))
        .collect()
}

/// Everything that is written, of any kind; the agent's own lease aside, which is renewed all the time.
fn writes(world: &World) -> Vec<String> {
    let seen = world.proxy.seen().into_iter();
    let writes =
        seen.filter(|seen| matches!(seen.verb.as_str(), "PATCH" | "POST" | "PUT" | "DELETE"));
    writes
        .filter(|seen| !seen.path.contains("/leases"))
        .map(|seen| format!("{} {}", seen.verb, seen.path))
        .collect()
}

async fn versions(world: &World) -> Vec<(String, String)> {
    let found = world
        .config_maps()
        .list(&ListParams::default())
        .await
        .unwrap();
    found
        .items
        .iter()
        .map(|one| (one.name_any(), one.resource_version().unwrap()))
        .collect()
}

#[tokio::test]
async fn what_is_in_step_costs_nothing_and_what_changed_costs_one_request() {
    let world = World::new().await;
    for number in 0..100 {
        world.config_map("web", &format!("settings-{number}"), "one");
    }
    world.repository.publish("A hundred");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let applied = on_objects(&world).len();
    assert_eq!(applied, 100, "each object is created with one request");

    world.proxy.forget();
    let before = versions(&world).await;
    world.reconcile().await;
    assert_eq!(
        on_objects(&world),
        Vec::<String>::new(),
        "nothing has changed"
    );
    agent.kill();
    world.proxy.forget();
    agent = world.agent();
    world.reconcile().await;
    assert_eq!(
        on_objects(&world),
        Vec::<String>::new(),
        "a restart changes nothing"
    );
    assert_eq!(versions(&world).await, before);

    world.proxy.forget();
    world.config_map("web", "settings-42", "two");
    world.publish("Change one").await;
    let wanted = format!(
        "PATCH /api/v1/namespaces/{}/configmaps/settings-42",
        world.apps
    );
    assert_eq!(on_objects(&world), [wanted]);
    drop(agent);
}

#[tokio::test]
async fn a_commit_that_changes_no_object_writes_the_statuses_and_nothing_else() {
    let world = World::new().await;
    for component in 0..20 {
        for number in 0..4 {
            world.config_map(
                &format!("c{component}"),
                &format!("c{component}-{number}"),
                "one",
            );
        }
    }
    world.repository.publish("Twenty components");
    let _agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;

    world.proxy.forget();
    world.repository.write("README.md", "about this repository");
    world.publish("Write a README").await;
    assert_eq!(on_objects(&world), Vec::<String>::new());
    let statuses = writes(&world);
    assert!(
        statuses
            .iter()
            .all(|write| write.contains("/status") || write.contains("/events")),
        "{statuses:?}"
    );

    world.proxy.forget();
    world.config_map("c7", "c7-2", "two");
    world.publish("Change one of eighty").await;
    assert_eq!(on_objects(&world).len(), 1);
    // Nobody else has written the statuses, so that no write of them has met another one.
    let read_again = world
        .proxy
        .count("GET", &format!("/releasesources/{}", world.name));
    assert_eq!(read_again, 0);
}

#[tokio::test]
async fn a_resync_moves_no_version_and_no_transition_time() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let source = world.reconcile().await;
    let (target, objects) = (world.target().await, versions(&world).await);
    for _ in 0..2 {
        agent.kill();
        world.proxy.forget();
        agent = world.agent();
        // The agent has looked at everything when its last list is answered; a pass with nothing to do writes nothing.
        let again = world.reconcile().await;
        let (before, after) = (source.status.clone().unwrap(), again.status.unwrap());
        assert_eq!(before.conditions, after.conditions);
        assert_eq!(before.history, after.history);
        assert_eq!(
            world.target().await.resource_version(),
            target.resource_version()
        );
        assert_eq!(versions(&world).await, objects);
        let written = writes(&world);
        assert_eq!(
            written.len(),
            1,
            "only that the request was handled: {written:?}"
        );
    }
}
