//! What people say.

use std::time::Duration;

use serde_json::{Value, json};

use super::kit::*;
use crate::model::api::{Resolution, RunPhase, RunVerb, StepState};
use crate::runs::EffectError;

/// A migration that waits between its two patches until somebody puts a map there.
fn waiting() -> Value {
    let mut definition = two_steps();
    definition["lookups"]["go"] =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "go"});
    let steps = definition["steps"].as_array_mut().unwrap();
    steps.insert(
        1,
        json!({"id": "wait", "wait": {"until": "objects.go != null"}, "attemptTimeout": "5m"}),
    );
    definition
}

fn bench() -> Bench {
    let bench = Bench::new(waiting());
    bench.world.put(config_map("one", json!({"size": "10"})));
    bench.world.put(config_map("two", json!({"size": "10"})));
    bench
}

/// The same with a Job in the place of the wait, which goes on until it is told to end.
fn working() -> Bench {
    let mut definition = waiting();
    let image = format!("registry.example.com/work@sha256:{}", "0".repeat(64));
    definition["steps"][1] =
        json!({"id": "wait", "job": {"namespace": "a", "image": image}, "attemptTimeout": "5m"});
    let bench = Bench::new(definition);
    bench.world.put(config_map("one", json!({"size": "10"})));
    bench.world.put(config_map("two", json!({"size": "10"})));
    bench.world.hold_jobs();
    bench
}

fn patches(bench: &Bench) -> Vec<String> {
    let mut effects = bench.effects();
    effects.retain(|it| it.contains("ConfigMap"));
    effects
}

/// Says something after a while.
fn later(bench: &Bench, seconds: u64, verb: RunVerb) {
    let mut command = bench.say(verb);
    bench.commands.send_replace(None);
    command.at += jiff::SignedDuration::from_secs(i64::try_from(seconds).unwrap());
    let commands = bench.commands.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        commands.send_replace(Some(command));
    });
}

#[tokio::test(start_paused = true)]
async fn j09_a_cancel_gives_its_grace_and_then_ends_and_the_next_round_goes_on() {
    let bench = working();
    later(&bench, 20, RunVerb::Cancel);
    let run = status(&bench.drive().await);
    assert_eq!(run.phase, RunPhase::Cancelled, "{}", run.message);
    for part in [
        "cancelled by anna: because",
        "1 of 3 steps",
        "step wait was still under way",
    ] {
        assert!(run.message.contains(part), "{}", run.message);
    }
    let grace = run.active_milliseconds - 20_000;
    assert!((30_000..31_000).contains(&grace), "{grace}");
    assert_eq!(patches(&bench), ["patch ConfigMap a/one"]);

    bench.world.finish_jobs();
    let run = bench.world.run(NAME).unwrap();
    let driver = bench.agent();
    let run = driver.restart(run, &bench.stop, |_| {}).await;
    assert_eq!(status(&run).phase, RunPhase::Pending);
    let run = status(&bench.drive_with(&driver, run).await);
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert_eq!(run.rounds, 1);
    let created = bench
        .effects()
        .into_iter()
        .filter(|it| it.starts_with("create Job"));
    assert_eq!(created.count(), 1);
    assert_eq!(
        patches(&bench),
        ["patch ConfigMap a/one", "patch ConfigMap a/two"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancel_of_a_step_that_only_waits_ends_at_once() {
    let bench = bench();
    later(&bench, 20, RunVerb::Cancel);
    let run = status(&bench.drive().await);
    assert_eq!(run.phase, RunPhase::Cancelled, "{}", run.message);
    assert!(
        run.active_milliseconds < 21_000,
        "{}",
        run.active_milliseconds
    );
    assert!(run.message.contains("step wait was still under way"));
    // It goes on waiting with the next round.
    bench.world.put(config_map("go", json!({})));
    let driver = bench.agent();
    let run = bench.world.run(NAME).unwrap();
    let run = driver.restart(run, &bench.stop, |_| {}).await;
    let run = status(&bench.drive_with(&driver, run).await);
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
}

#[tokio::test(start_paused = true)]
async fn j09_a_cancel_before_the_first_step_ends_at_once() {
    let bench = bench();
    bench.say(RunVerb::Cancel);
    let run = status(&bench.drive().await);
    assert_eq!(run.phase, RunPhase::Cancelled);
    assert!(run.message.contains("0 of 3 steps"), "{}", run.message);
    assert!(bench.effects().is_empty());
    // The command was written down before it counted.
    assert_eq!(bench.written.lock().unwrap()[0].commands.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn i12_what_ends_within_the_grace_is_written_down_and_nothing_begins_after_it() {
    let bench = working();
    later(&bench, 15, RunVerb::Cancel);
    let world = bench.world.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(25)).await;
        world.finish_jobs();
    });
    let run = status(&bench.drive().await);
    assert_eq!(run.phase, RunPhase::Cancelled);
    assert_eq!(run.steps[1].state, StepState::Done);
    assert_eq!(run.steps.len(), 2);
    assert_eq!(patches(&bench), ["patch ConfigMap a/one"]);
}

#[tokio::test(start_paused = true)]
async fn a_pause_waits_for_the_step_that_is_under_way() {
    let bench = bench();
    later(&bench, 15, RunVerb::Pause);
    let world = bench.world.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        world.put(config_map("go", json!({})));
    });
    let run = status(&bench.drive().await);
    assert_eq!(run.phase, RunPhase::Paused, "{}", run.message);
    assert!(
        run.message.contains("fairway run resume"),
        "{}",
        run.message
    );
    assert_eq!(run.steps[1].state, StepState::Done);
    assert_eq!(bench.effects().len(), 1);
    // It stays so, also for the next agent, and that is no active time.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(status(&bench.drive().await), run);
    bench.say(RunVerb::Resume);
    let resumed = status(&bench.drive().await);
    assert_eq!(resumed.phase, RunPhase::Succeeded, "{}", resumed.message);
    assert!(resumed.active_milliseconds < run.active_milliseconds + 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_is_taken_back_before_it_began_never_begins() {
    let bench = bench();
    later(&bench, 15, RunVerb::Pause);
    later(&bench, 20, RunVerb::Resume);
    let world = bench.world.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        world.put(config_map("go", json!({})));
    });
    let run = status(&bench.drive().await);
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert_eq!(run.commands.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_command_counts_once_however_often_it_is_sent() {
    let bench = bench();
    bench.world.put(config_map("go", json!({})));
    let command = bench.say(RunVerb::Pause);
    assert_eq!(status(&bench.drive().await).phase, RunPhase::Paused);
    let mut resume = command.clone();
    resume.verb = RunVerb::Resume;
    resume.at += jiff::SignedDuration::from_secs(1);
    // The wish to pause still stands in the annotation.
    let text = serde_json::to_string(&command).unwrap();
    bench.world.edit_run(NAME, |run| {
        let annotations = run.metadata.annotations.get_or_insert_default();
        annotations.insert(crate::model::names::ANNOTATION_COMMAND.to_owned(), text);
    });
    bench.commands.send_replace(Some(resume));
    let run = status(&bench.drive().await);
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert_eq!(run.commands.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_retry_gives_new_attempts_to_what_has_failed_and_keeps_what_is_done() {
    let bench = bench();
    bench.world.put(config_map("go", json!({})));
    let maps = kind("v1", "ConfigMap");
    let run = bench.record().await;
    let world = bench.world.clone();
    let breaks = {
        let maps = maps.clone();
        move |run: &crate::model::api::Run| {
            let steps = &run.status.as_ref().unwrap().steps;
            if steps.len() == 1 && steps[0].state == StepState::Done {
                let refused = EffectError::Forbidden("forbidden: get configmaps".to_owned());
                world.refuse_reads(&maps, Some(refused));
            }
        }
    };
    let driver = bench.agent();
    let run = driver
        .drive(run, bench.commands.subscribe(), &bench.stop, breaks)
        .await;
    let failed = status(&run);
    assert_eq!(failed.phase, RunPhase::Failed);
    assert!(
        failed.message.contains("fairway run retry"),
        "{}",
        failed.message
    );

    bench.world.refuse_reads(&maps, None);
    bench.say(RunVerb::Retry);
    let run = status(&bench.drive().await);
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert_eq!(run.rounds, 1);
    assert_eq!(run.steps[0].attempts, 1);
    assert_eq!(
        bench.effects(),
        ["patch ConfigMap a/one", "patch ConfigMap a/two"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_person_says_what_became_of_a_step() {
    for (resolution, phase, requests) in [
        (Resolution::Done, RunPhase::Succeeded, 1),
        (Resolution::Again, RunPhase::Succeeded, 2),
        (Resolution::Fail, RunPhase::Failed, 1),
    ] {
        let mut definition = two_steps();
        definition["steps"][0] = json!({"id": "call", "http": {"method": "POST", "url": "https://registry.example.com/x"}});
        let bench = Bench::new(definition);
        bench.world.put(config_map("two", json!({"size": "10"})));
        bench
            .world
            .answer(Err(EffectError::Lost("lost".to_owned())));
        bench.world.answer(Ok(crate::runs::HttpAnswer {
            status: 200,
            retry_after: None,
            body: json!({}),
        }));
        assert_eq!(status(&bench.drive().await).phase, RunPhase::Manual);
        bench.resolve(resolution);
        let run = status(&bench.drive().await);
        assert_eq!(run.phase, phase, "{}", run.message);
        let sent = bench
            .world
            .log()
            .into_iter()
            .filter(|entry| entry.verb == "http");
        assert_eq!(sent.count(), requests);
        if resolution == Resolution::Done {
            assert_eq!(said(&run.steps[0].evidence), ["resolve: said by anna"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_outside_an_effect_is_superseded_and_one_inside_is_not() {
    let bench = bench();
    let run = bench.record().await;
    let driver = bench.agent();
    let over = driver
        .supersede(run, "the definition has changed", &bench.stop, |_| {})
        .await;
    assert_eq!(status(&over).phase, RunPhase::Superseded);
    assert_eq!(status(&over).message, "the definition has changed");

    let bench = super::kit::Bench::new(waiting());
    bench.world.put(config_map("one", json!({"size": "10"})));
    let mut running = bench.record().await;
    running.status = Some(crate::model::api::RunStatus {
        phase: RunPhase::Running,
        steps: vec![crate::model::api::StepRecord {
            id: "one".to_owned(),
            attempts: 1,
            ..Default::default()
        }],
        ..Default::default()
    });
    let writes = bench.world.writes();
    let same = driver
        .supersede(running.clone(), "why", &bench.stop, |_| {})
        .await;
    assert_eq!(same, running);
    assert_eq!(bench.world.writes(), writes);
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_no_cancel() {
    let bench = bench();
    let stop = bench.stop.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(15)).await;
        stop.cancel();
    });
    let mut run = bench.drive().await;
    assert_eq!(status(&run).phase, RunPhase::Waiting);
    assert_eq!(status(&run).steps[1].state, StepState::Waiting);
    bench.world.put(config_map("go", json!({})));
    // Another process goes on, and spends no attempt on it.
    let driver = bench.agent();
    let stop = tokio_util::sync::CancellationToken::new();
    run = driver
        .drive(run, bench.commands.subscribe(), &stop, |_| {})
        .await;
    assert_eq!(status(&run).phase, RunPhase::Succeeded);
    assert_eq!(status(&run).steps[1].attempts, 1);
}
