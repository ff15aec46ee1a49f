//! Taking back.

use serde_json::{Value, json};

use super::kit::*;
use crate::model::api::{RunPhase, RunStatus, StepState};
use crate::runs::machine::has_open_undo;
use crate::runs::memory::Fault;

fn bench() -> Bench {
    let mut definition = two_steps();
    definition["undo"] = json!([
        {"id": "two-back", "patch": {"ref": "two", "body": {"data": {"size": "10"}}}},
        {"id": "one-back", "patch": {"ref": "one", "body": {"data": {"size": "10"}}}},
    ]);
    let bench = Bench::new(definition);
    bench.world.put(config_map("one", json!({"size": "10"})));
    bench.world.put(config_map("two", json!({"size": "10"})));
    bench
}

fn size(bench: &Bench, name: &str) -> Value {
    let object = bench
        .world
        .object(&kind("v1", "ConfigMap"), Some("a"), name);
    object.unwrap()["data"]["size"].clone()
}

async fn undo(bench: &Bench) -> RunStatus {
    loop {
        let life = async {
            let run = bench.world.run(NAME).unwrap();
            let commands = bench.commands.subscribe();
            let driver = bench.agent();
            driver
                .undo(
                    run,
                    "the component is removed",
                    commands,
                    &bench.stop,
                    |_| {},
                )
                .await
        };
        tokio::select! {
            biased;
            () = bench.world.stopped() => bench.world.restart(),
            run = life => return status(&run),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_run_has_done_is_taken_back_in_the_order_of_its_undo() {
    let bench = bench();
    let run = bench.converge().await.unwrap();
    assert!(has_open_undo(&run));
    let undone = undo(&bench).await;
    assert_eq!(
        (undone.phase, undone.reason.as_str()),
        (RunPhase::Succeeded, "Undone")
    );
    assert_eq!(
        (size(&bench, "one"), size(&bench, "two")),
        (json!("10"), json!("10"))
    );
    let ids: Vec<_> = undone.undone.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["two-back", "one-back"]);
    assert!(!has_open_undo(&bench.world.run(NAME).unwrap()));
    // Once more changes nothing.
    let writes = bench.world.writes();
    undo(&bench).await;
    assert_eq!(bench.world.writes(), writes);
}

#[tokio::test(start_paused = true)]
async fn what_somebody_has_changed_since_is_left_and_reported() {
    let bench = bench();
    bench.converge().await.unwrap();
    bench.world.put(config_map("two", json!({"size": "50"})));
    let undone = undo(&bench).await;
    assert_eq!(undone.phase, RunPhase::Succeeded);
    assert!(
        undone.message.contains("ConfigMap a/two is left as it is"),
        "{}",
        undone.message
    );
    assert!(undone.message.contains("/data/size"), "{}", undone.message);
    assert_eq!(undone.undone[0].state, StepState::Skipped);
    assert_eq!(
        (size(&bench, "one"), size(&bench, "two")),
        (json!("10"), json!("50"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_undo_survives_a_kill_at_every_write() {
    let whole = bench();
    whole.converge().await.unwrap();
    let before = whole.world.writes();
    undo(&whole).await;
    for write in before..whole.world.writes() {
        for fault in [Fault::StopBefore, Fault::StopAfter] {
            let bench = bench();
            bench.converge().await.unwrap();
            bench.world.fault(write, fault);
            let undone = undo(&bench).await;
            assert_eq!(
                (undone.phase, undone.reason.as_str()),
                (RunPhase::Succeeded, "Undone")
            );
            assert_eq!(
                (size(&bench, "one"), size(&bench, "two")),
                (json!("10"), json!("10"))
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_not_over_is_not_taken_back() {
    let bench = bench();
    bench.record().await;
    let run = undo(&bench).await;
    assert_eq!(run, RunStatus::default());
    assert_eq!(bench.world.writes(), 1);
}
