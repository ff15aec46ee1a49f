//! An agent whose clock differs from the cluster's: it says so, and does what it does otherwise.

use serde_json::json;

use crate::support::proxy::{Fault, Rule};
use crate::support::world::{World, ready};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f14_an_agent_whose_clock_is_wrong_says_so_and_goes_on() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    // What the agent writes as the time of its renewals is hours ahead, as it would be by such a clock.
    let lease = format!("/namespaces/{}/leases", world.name);
    let wrong = Rule::always("", lease, Fault::ClockAhead(10_000));
    world.proxy.inject(wrong);
    let agent = world.agent_with(&["--lease-duration", "2s"]);
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let says = |wanted: bool| {
        move |source: Option<&fairway::model::api::ReleaseSource>| {
            source
                .is_some_and(|source| ready(source).2.contains("ahead of the cluster's") == wanted)
        }
    };
    world.until_source("its clock is told of", says(true)).await;
    assert_eq!(world.value("settings").await.as_deref(), Some("one"));
    let warned = |agent: &crate::support::world::Agent| {
        agent
            .log()
            .matches("the clock of the agent is more than 30 s")
            .count()
    };
    assert_eq!(warned(&agent), 1, "{}", agent.log());
    let (_, out, _) = world.fairway(&["check"]);
    assert!(
        out.contains("the clock of who holds lease fairway-home is 2h ahead"),
        "{out}"
    );

    // It is mended: that is said as well, once.
    world.proxy.heal();
    world.until_source("its clock is right", says(false)).await;
    assert_eq!(
        world.source().await.status.map(|it| it.hold_count),
        Some(Some(0))
    );
    assert_eq!(warned(&agent), 1, "{}", agent.log());
    let (_, out, _) = world.fairway(&["check"]);
    assert!(!out.contains("the clock of who holds"), "{out}");
}
