//! Credentials that change: a fetch at once, whatever the back-off says, and no harm where the Secret may not be watched.

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;

use crate::support::proxy::{Fault, Rule};
use crate::support::world::{Agent, PASSWORD, World, ready};

/// Starts an agent that cannot fetch, and lets it fail so often that its back-off is longer than a test waits: eight times
/// are more than four minutes.
async fn backed_off(world: &World) -> Agent {
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("FetchFailed").await;
    for _ in 0..7 {
        world.reconcile().await;
    }
    agent
}

#[tokio::test]
async fn changed_credentials_end_a_back_off_at_once() {
    let world = World::new().await;
    world.secret("wrong-password").await;
    let _agent = backed_off(&world).await;
    let refused = world.server.requests().len();
    assert!(refused >= 8, "{refused}");
    world.secret(PASSWORD).await;
    world.until_value("settings", Some("one")).await;
    assert_eq!(
        world.server.requests()[refused..],
        ["advertise 200", "fetch 200"]
    );

    let seen = world.proxy.seen();
    let watches: Vec<_> = seen
        .iter()
        .filter(|seen| seen.fits("WATCH", "/secrets"))
        .collect();
    assert_eq!(watches.len(), 1);
    let query = &watches[0].query;
    assert!(
        query.contains("fieldSelector=metadata.name%3Dgit-credentials"),
        "{query}"
    );
    let accept = &watches[0].accept;
    assert!(accept.contains("as=PartialObjectMetadata"), "{accept}");
}

#[tokio::test]
async fn credentials_that_come_later_are_seen_at_once() {
    let world = World::new().await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.name);
    secrets
        .delete("git-credentials", &DeleteParams::default())
        .await
        .unwrap();
    let _agent = backed_off(&world).await;
    let (_, _, message) = ready(&world.source().await);
    assert!(message.contains("does not exist"), "{message}");
    assert_eq!(world.server.requests(), Vec::<String>::new());
    world.secret(PASSWORD).await;
    world.until_value("settings", Some("one")).await;
    assert_eq!(world.server.requests(), ["advertise 200", "fetch 200"]);
}

#[tokio::test]
async fn a_change_while_the_watch_was_broken_is_seen_when_it_runs_again() {
    let world = World::new().await;
    world.secret("wrong-password").await;
    let broken = Rule::always("WATCH", "/secrets", Fault::ResetBefore);
    world.proxy.inject(broken);
    let _agent = backed_off(&world).await;
    world.secret(PASSWORD).await;
    world.proxy.heal();
    world.until_value("settings", Some("one")).await;
}

#[tokio::test]
async fn without_the_right_to_watch_the_next_fetch_sees_the_change() {
    let world = World::new().await;
    world.secret("wrong-password").await;
    let refused = Rule::always("WATCH", "/secrets", Fault::Status(403));
    world.proxy.inject(refused);
    let agent = backed_off(&world).await;
    world.secret(PASSWORD).await;
    world.reconcile().await;
    world.until_value("settings", Some("one")).await;
    let seen = world.proxy.seen();
    let watches = seen.iter().filter(|seen| seen.fits("WATCH", "/secrets"));
    assert_eq!(watches.count(), 1, "it is not asked again and again");
    assert!(agent.log().contains("cannot be watched"), "{}", agent.log());
}
