//! Runtimes that do not answer: they delay nobody, and are picked up where they were.

use serde_json::json;

use crate::support::line::State;
use crate::support::proxy::{Fault, Rule};
use crate::support::world::World;

#[tokio::test]
async fn a_dead_runtime_delays_nobody_and_gets_everything_when_it_is_back() {
    let world = World::new().await;
    world.publish_modules();
    let dead = world.runtime("dead", json!({}), json!([])).await;
    let alive = world.runtime("alive", json!({}), json!([])).await;
    let _agent = world.agent_with(&["--allow-local-runtimes"]);
    world
        .declare(json!({"runtimes": {"catalog": "Sync", "tolerate": "1"}}))
        .await;
    world.until_runtime(&dead, "Synced").await;
    world.until_runtime(&alive, "Synced").await;
    dead.line.set(State::Cut);
    world.set_version("1.41.2", "1.42.0");
    world.publish("Move telemetry in regular").await;
    world
        .until_channel(&alive, ("telemetry", "regular"), Some("1.42.0"))
        .await;
    world.until_runtime(&dead, "Unreachable").await;
    // One of two is within what the source tolerates.
    let source = world.until_reason("Synced").await;
    let counts = source.status.unwrap().runtimes.unwrap();
    assert_eq!((counts.total, counts.synced, counts.unreachable), (2, 1, 1));

    dead.line.set(State::Whole);
    world
        .until_channel(&dead, ("telemetry", "regular"), Some("1.42.0"))
        .await;
    world.until_runtime(&dead, "Synced").await;
}

#[tokio::test]
async fn a_runtime_that_never_answers_holds_up_no_other() {
    let world = World::new().await;
    world.publish_modules();
    let silent = world.runtime("silent", json!({}), json!([])).await;
    silent.line.set(State::Silent);
    let alive = world.runtime("alive", json!({}), json!([])).await;
    let _agent = world.agent_with(&["--allow-local-runtimes"]);
    world
        .declare(json!({"runtimes": {"catalog": "Sync", "tolerate": "0"}}))
        .await;
    world.until_runtime(&alive, "Synced").await;
    world.until_runtime(&silent, "Unreachable").await;
    let source = world.until_reason("Unreachable").await;
    let status = source.status.unwrap();
    assert_eq!(status.runtimes.unwrap().unreachable, 1);
    assert!(
        status.last_applied_revision.is_some(),
        "home has it all the same"
    );
    silent.line.set(State::Whole);
    world.until_runtime(&silent, "Synced").await;
}

#[tokio::test]
async fn a_pass_whose_record_could_not_be_written_is_tried_again() {
    let world = World::new().await;
    world.publish_modules();
    let runtime = world.runtime("one", json!({}), json!([])).await;
    // The first write of the record, with all its attempts: nothing can have been applied before it, so no watch will ring.
    let path = format!("targets/{}.one/status", world.name);
    let fault = Rule::first(3, "PATCH", path, Fault::Status(500));
    world.proxy.inject(fault);
    let agent = world.agent_with(&["--allow-local-runtimes"]);
    world
        .declare(json!({"runtimes": {"catalog": "Sync", "tolerate": "0"}}))
        .await;
    world.until_runtime(&runtime, "Synced").await;
    world.until_reason("Synced").await;
    let log = agent.log();
    assert!(
        log.contains("a pass over the runtime has ended early"),
        "{log}"
    );
}
