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

#[tokio::test(start_paused = true)]
async fn what_the_run_has_not_changed_is_left() {
    let bench = bench();
    // The step is left out, since the object was so already: that is nobody's to take back.
    bench.world.put(config_map("two", json!({"size": "30"})));
    bench.converge().await.unwrap();
    let undone = undo(&bench).await;
    assert_eq!(undone.phase, RunPhase::Succeeded);
    assert_eq!(
        undone.message,
        "step two-back: ConfigMap a/two is left as it is: no change of the run to it is recorded"
    );
    assert_eq!(
        (size(&bench, "one"), size(&bench, "two")),
        (json!("10"), json!("30"))
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_is_left() {
    let bench = bench();
    bench.converge().await.unwrap();
    bench
        .world
        .take(&kind("v1", "ConfigMap"), Some("a"), "two")
        .unwrap();
    let undone = undo(&bench).await;
    assert_eq!(undone.phase, RunPhase::Succeeded);
    assert_eq!(
        undone.message,
        "step two-back: ConfigMap a/two is left as it is: it is gone"
    );
    assert_eq!(size(&bench, "one"), json!("10"));
}

/// A migration that makes an object, deletes one and changes one, and takes all of that back.
fn of_three_kinds() -> Bench {
    let mut definition = two_steps();
    definition["guard"] = json!({"needed": "objects.one != null || objects.two.data.size != '30'"});
    definition["steps"] = json!([
        {"id": "make", "apply": {"manifest": config_map("new", json!({"size": "1"}))}},
        {"id": "change", "patch": {"ref": "two", "body": {"data": {"size": "30"}}}},
        {"id": "remove", "delete": {"ref": "one"}},
    ]);
    definition["undo"] = json!([
        {"id": "remove-back", "apply": {"manifest": config_map("one", json!({"size": "10"}))}},
        {"id": "change-back", "patch": {"ref": "two", "body": {"data": {"size": "10"}}}},
        {"id": "make-back", "delete": {"select": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "names": ["new"]}}},
    ]);
    let bench = Bench::new(definition);
    bench.world.put(config_map("one", json!({"size": "10"})));
    bench.world.put(config_map("two", json!({"size": "10"})));
    bench
}

/// Returns the objects; one that was deleted and made anew is younger.
fn settled(bench: &Bench) -> Vec<Value> {
    let mut objects = bench.world.settled();
    for object in &mut objects {
        object["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("creationTimestamp");
    }
    objects
}

/// Runs and takes back, with and without every pair of kills within so many writes, in the run and in its undo alike: the cluster is as it was before.
async fn all_pairs(make: impl Fn() -> Bench, within_max: usize) -> usize {
    let undisturbed = make();
    let before = settled(&undisturbed);
    undisturbed.converge().await.unwrap();
    assert_ne!(settled(&undisturbed), before);
    undo(&undisturbed).await;
    assert_eq!(settled(&undisturbed), before);
    let kills = [Fault::StopBefore, Fault::StopAfter];
    let mut tried = 0;
    for first in 0..undisturbed.world.writes() {
        for one in &kills {
            for (within, two) in
                (0..=within_max).flat_map(|within| kills.iter().map(move |two| (within, two)))
            {
                if within == 0 && *two == Fault::StopAfter {
                    continue;
                }
                let bench = make();
                bench.world.fault(first, one.clone());
                if within > 0 {
                    bench.world.fault(first + within, two.clone());
                }
                bench.converge().await.unwrap();
                let undone = undo(&bench).await;
                let killed = format!("killed {one:?} {first} and {two:?} {within} later");
                assert_eq!(
                    (
                        undone.phase,
                        undone.reason.as_str(),
                        undone.message.as_str()
                    ),
                    (RunPhase::Succeeded, "Undone", ""),
                    "{killed}"
                );
                assert_eq!(settled(&bench), before, "{killed}");
                tried += 1;
            }
        }
    }
    tried
}

#[tokio::test(start_paused = true)]
async fn patches_are_taken_back_after_every_pair_of_kills() {
    let tried = all_pairs(bench, 5).await;
    assert!(tried >= 14 * 2 * 11, "{tried}");
}

#[tokio::test(start_paused = true)]
async fn what_was_made_and_deleted_is_taken_back_after_every_pair_of_kills() {
    let tried = all_pairs(of_three_kinds, 1).await;
    assert!(tried >= 20 * 2 * 3, "{tried}");
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_process_has_changed_is_guarded_as_well() {
    let bench = bench();
    // Between the effect on the first object and its record.
    bench.world.fault(2, Fault::StopAfter);
    let run = bench.converge().await.unwrap();
    assert!(status(&run).steps[0].effect.is_null());
    bench.world.put(config_map("one", json!({"size": "50"})));
    let undone = undo(&bench).await;
    assert_eq!(
        undone.message,
        "step one-back: ConfigMap a/one is left as it is: `/data/size` was changed by somebody else"
    );
    assert_eq!(size(&bench, "one"), json!("50"));
}
