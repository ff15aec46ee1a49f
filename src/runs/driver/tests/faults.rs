//! What goes wrong around a run: silence, lost answers, lost claims, other agents.

use rstest::rstest;
use serde_json::json;

use super::kit::*;
use crate::model::api::{RunPhase, StepState};
use crate::runs::memory::{Fault, Write};
use crate::runs::{EffectError, HttpAnswer};

#[rstest]
#[case::attempt(1)]
#[case::result(3)]
#[tokio::test(start_paused = true)]
async fn f09_a_store_that_is_away_costs_neither_attempts_nor_time(#[case] write: usize) {
    let bench = two();
    let away = EffectError::Transient {
        message: "no answer".to_owned(),
        retry_after: None,
    };
    // 200 ms doubled to 10 s: sixty tries take about ten minutes.
    for attempt in 0..60 {
        bench
            .world
            .fault(write + attempt, Fault::Fail(away.clone()));
    }
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert!(bench.clock.now() > "2026-01-01T00:08:00Z".parse().unwrap());
    assert!(
        run.active_milliseconds < 1_000,
        "{}",
        run.active_milliseconds
    );
    assert!(run.steps.iter().all(|step| step.attempts == 1));
    assert_eq!(bench.effects().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn f09_a_cluster_that_is_away_uses_up_no_attempts() {
    let bench = two();
    let maps = kind("v1", "ConfigMap");
    let run = bench.record().await;
    let world = bench.world.clone();
    let away = EffectError::Transient {
        message: "no answer".to_owned(),
        retry_after: None,
    };
    let driver = bench.agent();
    // It goes away after the first step, and comes back after four minutes.
    let goes = {
        let (world, maps) = (world.clone(), maps.clone());
        move |run: &crate::model::api::Run| {
            let steps = &run.status.as_ref().unwrap().steps;
            if steps.len() == 1 && steps[0].state == StepState::Done {
                world.refuse_reads(&maps, Some(away.clone()));
            }
        }
    };
    tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_secs(240)).await;
        world.refuse_reads(&maps, None);
    });
    let run = driver
        .drive(run, bench.commands.subscribe(), &bench.stop, goes)
        .await;
    let run = status(&run);
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    let second = &run.steps[1];
    assert_eq!(second.attempts - second.free_attempts, 1);
    assert_eq!(bench.effects().len(), 2);
}

#[rstest]
#[case(2)]
#[case(5)]
#[tokio::test(start_paused = true)]
async fn f10_an_answer_that_is_lost_after_the_effect_is_a_success(#[case] write: usize) {
    let bench = two();
    bench.world.fault(write, Fault::Lose);
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert_eq!(bench.effects().len(), 2);
}

#[rstest]
#[case(0)]
#[case(1)]
#[case(3)]
#[case(7)]
#[tokio::test(start_paused = true)]
async fn f10_an_answer_that_is_lost_after_a_record_was_written_is_found(#[case] write: usize) {
    let bench = two();
    bench.world.fault(write, Fault::Lose);
    if write == 0 {
        // Whoever creates a record asks again; one of the name that is there is returned.
        let run = crate::model::api::Run::new(NAME, bench.spec.clone());
        assert!(
            crate::runs::RunStore::create(&bench.world, &run)
                .await
                .is_err()
        );
    }
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert!(run.steps.iter().all(|step| step.attempts == 1));
    assert_eq!(bench.effects().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn f11_the_other_side_is_left_alone_as_long_as_it_asks() {
    let mut definition = two_steps();
    definition["steps"][0] =
        json!({"id": "ask", "http": {"method": "GET", "url": "https://registry.example.com/x"}});
    let bench = Bench::new(definition);
    bench.world.put(config_map("two", json!({"size": "10"})));
    let answer = |status, retry_after| HttpAnswer {
        status,
        retry_after,
        body: json!({}),
    };
    let minute = std::time::Duration::from_secs(60);
    bench.world.answer(Ok(answer(429, Some(minute))));
    bench.world.answer(Ok(answer(200, None)));
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert!(
        (60_000..61_000).contains(&run.active_milliseconds),
        "{}",
        run.active_milliseconds
    );
}

#[rstest]
#[case::before_the_attempt(1, 0)]
#[case::before_the_result(3, 1)]
#[tokio::test(start_paused = true)]
async fn f12_who_has_lost_the_claim_writes_nothing_more(
    #[case] write: usize,
    #[case] effects: usize,
) {
    let bench = two();
    let lost = EffectError::ClaimLost("this process does not hold the lease any more".to_owned());
    bench.world.fault(write, Fault::Fail(lost));
    let run = status(&bench.drive().await);
    assert!(!run.phase.is_over());
    assert_eq!(bench.world.writes(), write + 1);
    assert_eq!(bench.effects().len(), effects);
    // The next holder goes on.
    assert_eq!(
        status(&bench.converge().await.unwrap()).phase,
        RunPhase::Succeeded
    );
    assert_eq!(bench.effects().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn f13_of_two_agents_one_works_and_each_effect_happens_once() {
    let bench = two();
    let run = bench.record().await;
    let (one, two) = (bench.agent(), bench.agent());
    let (first, second) = futures::join!(
        bench.drive_with(&one, run.clone()),
        bench.drive_with(&two, run)
    );
    assert!(
        [&first, &second]
            .iter()
            .any(|run| status(run).phase.is_over())
    );
    // Every write that was taken is of one of them; the other one's first was refused, and it sent no second.
    let written = bench.written.lock().unwrap();
    let claims: std::collections::BTreeSet<_> = written.iter().map(|one| &one.claim).collect();
    assert_eq!(claims.len(), 1, "{claims:?}");
    assert_eq!(bench.world.writes(), 8 + 1);
    assert_eq!(bench.effects().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn f17_what_changes_between_guard_and_effect_is_looked_at_again() {
    let bench = two();
    let run = bench.record().await;
    let world = bench.world.clone();
    let driver = bench.agent();
    // Somebody brings it where it should be, after it was looked at and before the patch is sent.
    let meddle = move |run: &crate::model::api::Run| {
        let steps = &run.status.as_ref().unwrap().steps;
        if steps.len() == 1 && steps[0].state == StepState::Running && steps[0].attempts == 1 {
            world.put(config_map("one", json!({"size": "30", "theirs": "kept"})));
        }
    };
    let run = driver
        .drive(run, bench.commands.subscribe(), &bench.stop, meddle)
        .await;
    let run = status(&run);
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    let one = bench
        .world
        .object(&kind("v1", "ConfigMap"), Some("a"), "one")
        .unwrap();
    assert_eq!(one["data"], json!({"size": "30", "theirs": "kept"}));
    assert_eq!(bench.effects(), ["patch ConfigMap a/two"]);
}

#[tokio::test(start_paused = true)]
async fn f19_a_request_carries_the_same_key_each_time() {
    let mut definition = two_steps();
    definition["steps"][0] = json!({
        "id": "move",
        "http": {"method": "POST", "url": "https://registry.example.com/move", "idempotencyKey": "move-1"},
    });
    let bench = Bench::new(definition);
    bench.world.put(config_map("two", json!({"size": "10"})));
    for status in [500, 200] {
        bench.world.answer(Ok(HttpAnswer {
            status,
            retry_after: None,
            body: json!({}),
        }));
    }
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    let keys: Vec<_> = bench
        .world
        .log()
        .into_iter()
        .filter_map(|entry| entry.key)
        .collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test(start_paused = true)]
async fn i2_and_i3_hold_in_every_write() {
    let bench = two();
    bench.converge().await.unwrap();
    let log = bench.world.log();
    for (at, entry) in log.iter().enumerate() {
        if entry.write == Write::Effect {
            assert_eq!(
                log[at - 1].write,
                Write::Record,
                "no effect without a recorded attempt"
            );
            assert!(entry.step.is_some());
        }
    }
    let written = bench.written.lock().unwrap();
    assert!(
        written
            .iter()
            .all(|status| status.phase != RunPhase::Succeeded || !status.evidence.is_empty())
    );
}

#[tokio::test(start_paused = true)]
async fn f19_the_key_of_the_policy_outlives_the_run() {
    let mut definition = two_steps();
    definition["policy"] = json!({"run": "OncePerCluster", "idempotencyKey": "${params.what}"});
    definition["params"] = json!({"what": "move-1"});
    definition["steps"][0] = json!({"id": "move", "http": {"method": "POST", "url": "https://registry.example.com/move"}});
    let bench = Bench::new(definition);
    bench.world.put(config_map("two", json!({"size": "10"})));
    bench
        .world
        .answer(Err(EffectError::Lost("the answer was lost".to_owned())));
    bench.world.answer(Ok(HttpAnswer {
        status: 200,
        retry_after: None,
        body: json!({}),
    }));
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    let keys: Vec<_> = bench
        .world
        .log()
        .into_iter()
        .filter_map(|entry| entry.key)
        .collect();
    assert_eq!(keys, ["move-1/move", "move-1/move"]);
}
