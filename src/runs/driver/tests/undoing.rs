//! Taking back.

use serde_json::{Value, json};

use super::kit::*;
use crate::model::api::{Resolution, RunPhase, RunStatus, RunVerb, StepState};
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

/// Like [`bench`], with an undo that waits between its two steps for something that does not come.
fn stuck() -> Bench {
    let mut bench = bench();
    bench.spec.definition.lookups.insert(
        "gate".to_owned(),
        serde_json::from_value(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "gate"}),
        )
        .unwrap(),
    );
    let wait = json!({
        "id": "gate", "wait": {"until": "objects.gate != null"}, "attemptTimeout": "1m", "retry": {"maxAttempts": 1},
    });
    let undo = &mut bench.spec.definition.undo;
    undo.insert(1, serde_json::from_value(wait).unwrap());
    bench
}

async fn drive_again(bench: &Bench) -> RunStatus {
    let run = bench.world.run(NAME).unwrap();
    status(&bench.drive_with(&bench.agent(), run).await)
}

#[tokio::test(start_paused = true)]
async fn an_undo_that_has_failed_is_given_up_and_says_what_stays() {
    let bench = stuck();
    bench.converge().await.unwrap();
    let failed = undo(&bench).await;
    assert_eq!(failed.phase, RunPhase::Failed);
    let ways = "to leave the rest as it is: fairway run resolve modules.home.grow-1 keep";
    assert!(failed.message.contains(ways), "{}", failed.message);
    assert!(has_open_undo(&bench.world.run(NAME).unwrap()));
    bench.resolve(Resolution::Keep);
    let kept = drive_again(&bench).await;
    assert_eq!(
        (kept.phase, kept.reason.as_str()),
        (RunPhase::Cancelled, "UndoGivenUp")
    );
    assert_eq!(
        kept.message,
        "anna leaves it as it is: because; not taken back: gate, one-back"
    );
    assert_eq!(
        (size(&bench, "one"), size(&bench, "two")),
        (json!("30"), json!("10"))
    );
    assert!(!has_open_undo(&bench.world.run(NAME).unwrap()));
    assert!(kept.resolutions().is_empty());
    // Who changes their mind tries again.
    bench.world.put(config_map("gate", json!({})));
    bench.say(RunVerb::Retry);
    let mut command = bench.commands.borrow().clone().unwrap();
    command.at += jiff::SignedDuration::from_secs(1);
    bench.commands.send_replace(Some(command));
    let undone = drive_again(&bench).await;
    assert!(undone.is_undone(), "{undone:#?}");
    assert_eq!(size(&bench, "one"), json!("10"));
}

#[tokio::test(start_paused = true)]
async fn only_an_undo_that_does_not_go_on_by_itself_is_given_up() {
    let bench = stuck();
    let run = bench.converge().await.unwrap();
    bench.resolve(Resolution::Keep);
    // The run itself has ended well, and there is nothing to give up.
    let same = drive_again(&bench).await;
    assert_eq!(same.phase, status(&run).phase);
    // While it is under way the word has no meaning; a cancelled one is given up.
    let mut keep = bench.commands.borrow().clone().unwrap();
    let mut cancel = bench.say(RunVerb::Cancel);
    bench.commands.send_replace(None);
    let commands = bench.commands.clone();
    tokio::spawn(async move {
        let second = jiff::SignedDuration::from_secs(1);
        keep.at += second;
        cancel.at += second * 2;
        for command in [keep.clone(), cancel] {
            tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            commands.send_replace(Some(command));
        }
    });
    let cancelled = undo(&bench).await;
    assert_eq!(
        (cancelled.phase, cancelled.reason.as_str()),
        (RunPhase::Cancelled, "Cancelled")
    );
    let told = cancelled.timeline.iter().map(|it| it.what.as_str());
    let deaf = "resolve by anna has no meaning while Waiting";
    assert!(told.collect::<Vec<_>>().contains(&deaf), "{cancelled:#?}");
    assert!(cancelled.can_keep());
    let mut command = bench.say(RunVerb::Resolve);
    command.at += jiff::SignedDuration::from_secs(60);
    command.resolution = Some(Resolution::Keep);
    bench.commands.send_replace(Some(command));
    let kept = drive_again(&bench).await;
    assert!(kept.is_undo_given_up(), "{kept:#?}");
}

#[tokio::test(start_paused = true)]
async fn that_an_undo_is_given_up_survives_a_kill_at_its_write() {
    for fault in [Fault::StopBefore, Fault::StopAfter] {
        let bench = stuck();
        bench.converge().await.unwrap();
        undo(&bench).await;
        bench.resolve(Resolution::Keep);
        bench.world.fault(bench.world.writes(), fault);
        let kept = loop {
            tokio::select! {
                biased;
                () = bench.world.stopped() => bench.world.restart(),
                kept = drive_again(&bench) => break kept,
            }
        };
        assert!(kept.is_undo_given_up(), "{kept:#?}");
        assert_eq!(kept.commands.len(), 1);
        assert_eq!(size(&bench, "one"), json!("30"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_undo_that_lacks_a_right_is_blocked_before_its_first_step_and_goes_on_with_it() {
    let bench = of_three_kinds();
    bench.converge().await.unwrap();
    let (before, evidence) = (settled(&bench), {
        let run = bench.world.run(NAME).unwrap();
        status(&run).evidence
    });
    bench.world.refuse_right("delete", "configmaps", true);
    let blocked = undo(&bench).await;
    assert_eq!(
        (blocked.phase, blocked.reason.as_str()),
        (RunPhase::Blocked, "RightMissing")
    );
    let needs = "account fairway in fairway-system needs the right to delete configmaps new in a;";
    assert!(blocked.message.starts_with(needs), "{}", blocked.message);
    assert!(
        blocked.message.contains("kind: Role\n"),
        "{}",
        blocked.message
    );
    assert_eq!(blocked.evidence, evidence);
    assert_eq!(settled(&bench), before);
    assert!(blocked.undone.is_empty());
    // Looked at again it is the same, and nothing is written.
    let writes = bench.world.writes();
    assert_eq!(drive_again(&bench).await, blocked);
    assert_eq!(bench.world.writes(), writes);
    // No precondition is false that could be overridden.
    bench.say(RunVerb::Override);
    assert_eq!(drive_again(&bench).await.phase, RunPhase::Blocked);
    bench.world.refuse_right("delete", "configmaps", false);
    let undone = drive_again(&bench).await;
    assert!(undone.is_undone(), "{undone:#?}");
}

#[tokio::test(start_paused = true)]
async fn an_undo_that_is_blocked_can_be_paused_resumed_and_given_up() {
    let bench = bench();
    bench.converge().await.unwrap();
    bench.world.refuse_right("patch", "configmaps", true);
    let blocked = undo(&bench).await;
    assert_eq!(blocked.phase, RunPhase::Blocked);
    let later = |verb, seconds| {
        let mut command = bench.say(verb);
        command.at += jiff::SignedDuration::from_secs(seconds);
        bench.commands.send_replace(Some(command));
    };
    later(RunVerb::Pause, 1);
    assert_eq!(drive_again(&bench).await.phase, RunPhase::Paused);
    later(RunVerb::Cancel, 2);
    assert_eq!(drive_again(&bench).await.phase, RunPhase::Cancelled);
    let mut command = bench.say(RunVerb::Resolve);
    command.at += jiff::SignedDuration::from_secs(3);
    command.resolution = Some(Resolution::Keep);
    bench.commands.send_replace(Some(command));
    let kept = drive_again(&bench).await;
    assert!(kept.is_undo_given_up(), "{kept:#?}");
    assert!(
        kept.message.ends_with("not taken back: two-back, one-back"),
        "{}",
        kept.message
    );
    assert_eq!(size(&bench, "one"), json!("30"));
}
