//! Kills between writes and effects, and other writers of the record.

use rstest::rstest;
use serde_json::json;

use super::kit::*;
use crate::model::api::{RunPhase, StepState};
use crate::runs::EffectError;
use crate::runs::memory::Fault;

#[rstest]
#[case::after_the_result(3, Fault::StopAfter)]
#[case::before_the_next_attempt(4, Fault::StopBefore)]
#[tokio::test(start_paused = true)]
async fn f01_a_step_that_is_done_is_not_repeated_and_the_next_begins(
    #[case] write: usize,
    #[case] fault: Fault,
) {
    let bench = two();
    bench.world.fault(write, fault);
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    let attempts: Vec<_> = run
        .steps
        .iter()
        .map(|step| (step.attempts, step.restarts))
        .collect();
    assert_eq!(attempts, [(1, 0), (1, 0)]);
    assert_eq!(
        bench.effects(),
        ["patch ConfigMap a/one", "patch ConfigMap a/two"]
    );
}

#[tokio::test(start_paused = true)]
async fn f02_a_kill_after_the_effect_is_verified_by_the_state() {
    let bench = two();
    bench.world.fault(2, Fault::StopAfter);
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert_eq!(run.steps[0].restarts, 1);
    assert_eq!(run.steps[0].state, StepState::Done);
    assert_eq!(
        bench.effects(),
        ["patch ConfigMap a/one", "patch ConfigMap a/two"]
    );
}

#[tokio::test(start_paused = true)]
async fn f03_a_kill_before_the_effect_lets_it_happen_once() {
    let bench = two();
    bench.world.fault(2, Fault::StopBefore);
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert_eq!(run.steps[0].restarts, 1);
    assert_eq!(
        bench.effects(),
        ["patch ConfigMap a/one", "patch ConfigMap a/two"]
    );
}

#[tokio::test(start_paused = true)]
async fn f04_a_conflict_with_a_person_repeats_the_write_and_not_the_effect() {
    let bench = two();
    let driver = bench.agent();
    let run = bench.record().await;
    let world = bench.world.clone();
    // A person annotates the run between every two writes of ours.
    let annotate = move |run: &crate::model::api::Run| {
        if run
            .status
            .as_ref()
            .is_some_and(|status| status.steps.len() < 3)
        {
            world.edit_run(NAME, |run| {
                run.metadata
                    .annotations
                    .get_or_insert_default()
                    .insert("a".into(), "b".into());
            });
        }
    };
    let commands = bench.commands.subscribe();
    let run = driver.drive(run, commands, &bench.stop, annotate).await;
    assert_eq!(status(&run).phase, RunPhase::Succeeded);
    assert_eq!(
        bench.effects(),
        ["patch ConfigMap a/one", "patch ConfigMap a/two"]
    );
    assert!(status(&run).steps.iter().all(|step| step.attempts == 1));
}

#[rstest]
#[case(1)]
#[case(3)]
#[case(6)]
#[tokio::test(start_paused = true)]
async fn f04_a_foreign_claim_stops_the_run_here(#[case] write: usize) {
    let bench = two();
    let driver = bench.agent();
    let run = bench.record().await;
    let world = bench.world.clone();
    let seen = std::sync::atomic::AtomicUsize::new(1);
    let take_over = |_: &crate::model::api::Run| {
        // The write before `write` was done; now another agent writes.
        if world.writes() <= write && world.writes() + 2 > write {
            seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            world.edit_run(NAME, |run| {
                run.status.get_or_insert_default().claim = Some("lease/other".to_owned());
            });
        }
    };
    if write == 1 {
        bench.world.edit_run(NAME, |run| {
            run.status.get_or_insert_default().claim = Some("lease/other".to_owned());
        });
    }
    let commands = bench.commands.subscribe();
    let run = driver.drive(run, commands, &bench.stop, take_over).await;
    assert!(!status(&run).phase.is_over());
    assert_eq!(status(&run).claim.as_deref(), Some("lease/other"));
    let effects = bench.effects().len();
    // Only what was under way took effect, and the one who took over finishes without repeating it.
    assert!(effects <= write / 3, "{effects}");
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded);
    assert_eq!(bench.effects().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn f07_a_program_of_which_nobody_knows_waits_for_a_person() {
    let mut definition = two_steps();
    definition["steps"][0] = json!({"id": "call", "http": {"method": "POST", "url": "https://registry.example.com/move"}});
    let bench = Bench::new(definition);
    bench.world.put(config_map("one", json!({"size": "10"})));
    bench.world.put(config_map("two", json!({"size": "30"})));
    bench
        .world
        .answer(Err(EffectError::Lost("the answer was lost".to_owned())));
    let run = status(&bench.drive().await);
    assert_eq!(
        (run.phase, run.reason.as_str()),
        (RunPhase::Manual, "StepUnknown")
    );
    assert_eq!(run.steps[0].state, StepState::Unknown);
    assert!(
        run.message.contains("fairway run resolve"),
        "{}",
        run.message
    );
    // Looking again changes nothing.
    let writes = bench.world.writes();
    assert_eq!(status(&bench.drive().await), run);
    assert_eq!(bench.world.writes(), writes + 1);
}

#[tokio::test(start_paused = true)]
async fn f07_what_nobody_knows_is_done_where_the_state_proves_it() {
    let mut definition = two_steps();
    definition["guard"] = json!({"needed": "objects.one.data.size != '30'"});
    definition["steps"] = json!([{"id": "call", "http": {"method": "POST", "url": "https://registry.example.com/move"}}]);
    let bench = Bench::new(definition);
    bench.world.put(config_map("one", json!({"size": "10"})));
    bench
        .world
        .answer(Err(EffectError::Lost("the answer was lost".to_owned())));
    let world = bench.world.clone();
    // The other side has acted: by the time somebody looks, the state says so.
    let run = bench.record().await;
    let driver = bench.agent();
    let acted = move |_: &crate::model::api::Run| {
        world.put(config_map("one", json!({"size": "30"})));
    };
    let run = driver
        .drive(run, bench.commands.subscribe(), &bench.stop, acted)
        .await;
    let run = status(&run);
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert_eq!(said(&run.steps[0].evidence), ["needed: false"]);
}

#[tokio::test(start_paused = true)]
async fn f20_a_step_that_kills_the_agent_each_time_comes_to_an_end() {
    let bench = two();
    bench.record().await;
    let mut lives = 0;
    let run = loop {
        // The agent dies at its next effect, whatever it is.
        let run = bench.world.run(NAME).unwrap();
        if status(&run).phase.is_over() {
            break status(&run);
        }
        for write in 0..4 {
            let number = bench.world.writes() + write;
            bench
                .world
                .fault(number, Fault::Fail(EffectError::Conflict("x".to_owned())));
        }
        lives += 1;
        assert!(lives < 20, "it is bounded");
        let driver = bench.agent();
        let life = async {
            let mut found = bench.world.run(NAME).unwrap();
            // A kill in mid-step: the attempt is in the record, and the process is gone.
            if let Some(step) = found.status.get_or_insert_default().steps.first_mut() {
                step.state = StepState::Running;
            }
            found
        };
        let found = life.await;
        bench
            .world
            .edit_run(NAME, |run| run.status.clone_from(&found.status));
        let found = bench.world.run(NAME).unwrap();
        let stop = tokio_util::sync::CancellationToken::new();
        let kill = stop.clone();
        let ends = move |run: &crate::model::api::Run| {
            if run
                .status
                .as_ref()
                .is_some_and(|status| !status.phase.is_over())
            {
                kill.cancel();
            }
        };
        driver
            .drive(found, bench.commands.subscribe(), &stop, ends)
            .await;
    };
    assert_eq!(run.phase, RunPhase::Failed);
    assert!(
        run.message.contains("the agent has ended"),
        "{}",
        run.message
    );
}
