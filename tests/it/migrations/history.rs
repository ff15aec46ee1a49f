//! How long runs are kept: `spec.history` of the source.

use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::deploy::stage;
use super::records::{minutes_ago, record};
use crate::support::world::World;

const DAY: i64 = 24 * 60;

async fn over(world: &World, migration: &str, days: i64, definition: Value) {
    let ended = minutes_ago(days * DAY);
    let status = json!({
        "phase": "Succeeded", "since": ended, "startedAt": ended, "endedAt": ended,
        "steps": [{"id": "relabel", "state": "Done", "attempts": 1}],
    });
    record(
        world,
        (migration, "0123456789"),
        json!({}),
        definition,
        status,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_are_kept_as_the_source_says_and_what_still_decides_is_kept_for_good() {
    let world = World::new().await;
    stage::allow(&world).await;
    world.config_map("web", "settings", "one");
    for (migration, days) in [("first", 1), ("second", 2), ("third", 3), ("old", 31)] {
        over(&world, migration, days, json!({})).await;
    }
    let once = json!({"policy": {"run": "OncePerCluster", "idempotencyKey": "once"}});
    over(&world, "once", 400, once).await;
    let undo = json!({"undo": [{"id": "back", "wait": {"until": "true"}}]});
    over(&world, "undoable", 400, undo).await;
    world.repository.publish("Nothing to migrate");
    let agent = world.agent();
    world
        .declare(json!({"history": {"runs": 10, "days": 30}}))
        .await;
    until_kept(&world, &["first", "once", "second", "third", "undoable"]).await;
    // What the source says counts from the moment in which it says so.
    world
        .declare(json!({"history": {"runs": 2, "days": 30}}))
        .await;
    until_kept(&world, &["first", "once", "second", "undoable"]).await;
    let trimmed: Vec<Value> = agent
        .audit()
        .into_iter()
        .filter(|line| line["action"] == "run-trim")
        .collect();
    assert_eq!(trimmed.len(), 2, "{trimmed:#?}");
    for (line, migration) in trimmed.iter().zip(["old", "third"]) {
        assert!(line.to_string().contains(migration), "{line}");
    }
}

async fn until_kept(world: &World, wanted: &[&str]) {
    let mut kept: Vec<String> = Vec::new();
    for _ in 0..1_200 {
        let runs = stage::all_runs(world).await;
        kept = runs.into_iter().map(|run| run.spec.migration).collect();
        if kept == wanted {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{kept:?} are kept instead of {wanted:?}");
}

#[tokio::test]
async fn a_history_that_makes_no_sense_is_refused() {
    let world = World::new().await;
    world.declare(json!({})).await;
    let stored = world.source().await;
    assert_eq!(
        (stored.spec.history.runs, stored.spec.history.days),
        (100, 90)
    );
    for history in [
        json!({"runs": 0}),
        json!({"runs": 1_001}),
        json!({"days": 0}),
        json!({"days": 3_651}),
        json!({"days": "30d"}),
    ] {
        let patch = Patch::Merge(json!({"spec": {"history": history}}));
        let patched = world
            .sources()
            .patch(&stored.name_any(), &PatchParams::default(), &patch)
            .await;
        let refused = patched.expect_err("it is refused").to_string();
        assert!(refused.contains("spec.history"), "{refused}");
    }
}
