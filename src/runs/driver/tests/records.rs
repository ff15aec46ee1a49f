//! Records that were deleted, restored, or have grown to their limit.

use serde_json::json;

use super::kit::*;
use crate::model::api::{Evidence, RunPhase, RunStatus, StepRecord, StepState, TimelineEntry};
use crate::model::limits;

#[tokio::test(start_paused = true)]
async fn f15_a_record_that_was_deleted_or_is_old_lets_the_state_decide() {
    let bench = two();
    let mut old = None;
    let run = bench.record().await;
    let written = std::sync::Mutex::new(Vec::new());
    let keep = |run: &crate::model::api::Run| written.lock().unwrap().push(run.clone());
    let driver = bench.agent();
    driver
        .drive(run, bench.commands.subscribe(), &bench.stop, keep)
        .await;
    for run in written.lock().unwrap().iter() {
        if status(run).steps.len() == 1 {
            old.get_or_insert_with(|| run.clone());
        }
    }
    // Deleted: nothing is needed, and nothing is done.
    bench.world.forget_run(NAME);
    assert_eq!(bench.converge().await, None);
    // Restored from a time when the first step was under way: it is found done, and nothing happens twice.
    bench.record().await;
    let old = status(&old.unwrap());
    assert_eq!(old.steps[0].state, StepState::Running);
    bench.world.edit_run(NAME, |run| run.status = Some(old));
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert_eq!(bench.effects().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn f15_a_record_that_is_deleted_meanwhile_ends_the_driving_and_nothing_else() {
    let bench = two();
    let run = bench.record().await;
    let world = bench.world.clone();
    let forget = move |_: &crate::model::api::Run| world.forget_run(NAME);
    let driver = bench.agent();
    let run = driver
        .drive(run, bench.commands.subscribe(), &bench.stop, forget)
        .await;
    assert!(!status(&run).phase.is_over());
    assert_eq!(
        status(&bench.converge().await.unwrap()).phase,
        RunPhase::Succeeded
    );
    assert_eq!(bench.effects().len(), 2);
}

#[test]
fn f16_a_record_at_its_limit_loses_its_story_and_never_its_present_attempt() {
    let long = "x".repeat(3_000);
    let evidence = |about: &str| Evidence {
        about: about.to_owned(),
        expression: "objects.a".to_owned(),
        result: "true".to_owned(),
        values: [("a".to_owned(), json!(long))].into(),
        at: None,
    };
    let mut status = RunStatus::default();
    for number in 0..256 {
        status.steps.push(StepRecord {
            id: "each".to_owned(),
            item: (number > 0).then(|| format!("a/{number}")),
            state: if number == 255 {
                StepState::Running
            } else {
                StepState::Done
            },
            evidence: vec![evidence("when")],
            effect: json!({"objects": [{"name": number}]}),
            ..StepRecord::default()
        });
    }
    for _ in 0..64 {
        status.timeline.push(TimelineEntry {
            at: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH),
            what: "y".repeat(500),
        });
    }
    let before = status.clone();
    crate::runs::machine::fit(&mut status);
    let size = serde_json::to_vec(&status).unwrap().len();
    assert!(size <= limits::RUN_SIZE_MAX, "{size}");
    assert_eq!(status.steps.last(), before.steps.last());
    assert_eq!(status.steps.len(), before.steps.len());
    let effects = |status: &RunStatus| -> Vec<_> {
        status
            .steps
            .iter()
            .map(|step| step.effect.clone())
            .collect()
    };
    assert_eq!(effects(&status), effects(&before));
    assert_eq!(status.timeline.len(), 8);
}
