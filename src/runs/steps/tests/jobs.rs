//! job.

use serde_json::{Value, json};

use super::{Trial, done, message};
use crate::runs::memory::{Fault, Script};
use crate::runs::steps::{StepResult, stop};
use crate::runs::{EffectError, Effects as _, ResourceKind};

fn trial() -> Trial {
    Trial::of(json!({"job": {
        "namespace": "web",
        "image": "example.com/migrate@sha256:0000000000000000000000000000000000000000000000000000000000000000",
        "args": ["--size", "${params.size}"],
        "env": {"MODE": "fast", "FAIRWAY_RUN": "forged"},
        "envFromSecrets": {"PASSWORD": {"name": "db", "key": "password"}},
    }}))
}

fn kind() -> ResourceKind {
    ResourceKind {
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
    }
}

async fn jobs(trial: &Trial) -> Vec<Value> {
    let listing = trial
        .world
        .list(&kind(), Some("web"), None, (100, None))
        .await;
    listing.unwrap().objects
}

/// Lets the world's next Jobs end so. Scripts go by the step that the record names, so a run is there.
fn script(trial: &Trial, exit_code: i32, result: &Value) {
    trial.world.script(
        "the-step",
        Script {
            exit_code,
            result: result.clone(),
            ..Script::default()
        },
    );
}

async fn under_way(trial: &Trial) {
    use crate::model::api::{Run, RunStatus};
    use crate::runs::RunStore;
    let run = Run::new("modules.home.grow-1", trial.spec.clone());
    let run = RunStore::create(&trial.world, &run).await.unwrap();
    let status = RunStatus {
        current_step: Some("the-step".to_owned()),
        ..RunStatus::default()
    };
    trial.world.write(&run, status).await.unwrap();
}

#[tokio::test]
async fn a_job_is_created_as_it_must_be() {
    let mut trial = trial();
    under_way(&trial).await;
    assert!(matches!(trial.attempt().await, StepResult::Wait { .. }));
    let job = jobs(&trial).await.remove(0);
    let spec = &job["spec"];
    assert_eq!(spec["backoffLimit"], 0);
    assert_eq!(spec["podReplacementPolicy"], "Failed");
    assert_eq!(spec["activeDeadlineSeconds"], 120);
    assert!(
        spec.get("ttlSecondsAfterFinished").is_none(),
        "not before its result is recorded"
    );
    assert_eq!(spec["podFailurePolicy"]["rules"][0]["action"], "Ignore");
    assert_eq!(
        spec["podFailurePolicy"]["rules"][1]["onExitCodes"]["values"],
        json!([78])
    );
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["restartPolicy"], "Never");
    assert_eq!(pod["automountServiceAccountToken"], false);
    let container = &pod["containers"][0];
    assert_eq!(container["args"], json!(["--size", "30Gi"]));
    let variable = |name: &str| {
        let all = container["env"].as_array().unwrap();
        let found: Vec<_> = all.iter().filter(|one| one["name"] == name).collect();
        assert_eq!(found.len(), 1, "{name}");
        found[0].clone()
    };
    assert_eq!(variable("FAIRWAY_RUN")["value"], "modules.home.grow-1");
    assert_eq!(
        variable("FAIRWAY_IDEMPOTENCY_KEY")["value"],
        "modules.home.grow-1/the-step"
    );
    assert_eq!(variable("FAIRWAY_ATTEMPT")["value"], "1");
    assert_eq!(
        variable("PASSWORD")["valueFrom"]["secretKeyRef"],
        json!({"name": "db", "key": "password"})
    );
}

#[tokio::test]
async fn its_result_is_recorded_before_it_goes() {
    let mut trial = trial();
    under_way(&trial).await;
    script(&trial, 0, &json!({"moved": 3}));
    trial.attempt().await;
    trial.attempt().await;
    assert_eq!(
        trial.record.progress["ended"]["result"],
        json!({"moved": 3})
    );
    assert_eq!(
        jobs(&trial).await.len(),
        1,
        "its result is in no record yet"
    );
    let outcome = done(trial.attempt().await);
    assert_eq!(outcome.result, json!({"moved": 3}));
    assert!(jobs(&trial).await.is_empty());
}

#[tokio::test]
async fn a_lost_creation_and_a_lost_record_find_the_same_job_again() {
    let mut trial = trial();
    under_way(&trial).await;
    trial.world.fault(trial.world.writes(), Fault::Lose);
    assert!(matches!(trial.attempt().await, StepResult::Wait { .. }));
    // The agent dies before it could write down which Job it has created.
    trial.record.progress.clear();
    assert!(matches!(trial.recover().await, StepResult::Wait { .. }));
    assert_eq!(jobs(&trial).await.len(), 1);
    done(trial.until_over().await);
}

#[tokio::test]
async fn exit_codes_say_what_is_next() {
    for (code, expected) in [(75, "later"), (78, "never"), (1, "counts")] {
        let mut trial = trial();
        under_way(&trial).await;
        script(&trial, code, &Value::Null);
        let result = trial.until_over().await;
        let found = match &result {
            StepResult::Retry { counts: false, .. } => "later",
            StepResult::Retry { counts: true, .. } => "counts",
            StepResult::Fail { .. } => "never",
            other => panic!("{code}: {other:?}"),
        };
        assert_eq!(found, expected, "{code}: {result:?}");
        let kept = jobs(&trial).await.remove(0);
        assert_eq!(
            kept["spec"]["ttlSecondsAfterFinished"], 3600,
            "its logs may be wanted"
        );
        if expected == "never" {
            continue;
        }
        script(&trial, 0, &Value::Null);
        done(trial.until_over().await);
        assert_eq!(
            jobs(&trial).await.len(),
            1,
            "the second one has gone, with a name of its own"
        );
        // A new round, with an empty record, takes up none that is recorded.
        trial.record.progress.clear();
        done(trial.until_over().await);
    }
}

#[tokio::test]
async fn a_job_that_vanished_is_unknown_and_never_a_success() {
    let mut trial = trial();
    under_way(&trial).await;
    trial.attempt().await;
    let job = jobs(&trial).await.remove(0);
    trial.world.take(
        &kind(),
        Some("web"),
        job["metadata"]["name"].as_str().unwrap(),
    );
    let result = trial.attempt().await;
    assert!(matches!(result, StepResult::Unknown { .. }), "{result:?}");
    assert!(message(&result).ends_with("vanished before its result was recorded"));
}

#[tokio::test]
async fn an_error_on_the_way_does_not_lose_the_job() {
    let mut trial = trial();
    under_way(&trial).await;
    trial.attempt().await;
    let away = EffectError::Transient {
        message: "away".to_owned(),
        retry_after: None,
    };
    trial.world.refuse_reads(&kind(), Some(away));
    assert!(matches!(
        trial.attempt().await,
        StepResult::Retry { counts: false, .. }
    ));
    trial.world.refuse_reads(&kind(), None);
    done(trial.until_over().await);
    assert_eq!(
        trial
            .effects()
            .iter()
            .filter(|(verb, _)| *verb == "create")
            .count(),
        1
    );
}

#[tokio::test]
async fn a_job_of_somebody_else_is_not_taken_up() {
    let mut trial = trial();
    under_way(&trial).await;
    trial.attempt().await;
    let name = jobs(&trial).await[0]["metadata"]["name"].clone();
    trial
        .world
        .take(&kind(), Some("web"), name.as_str().unwrap());
    trial.record.progress.clear();
    trial.world.put(json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "web", "name": name},
    }));
    let result = trial.attempt().await;
    assert!(
        message(&result).contains("is not of this step"),
        "{result:?}"
    );
}

#[tokio::test]
async fn a_job_that_was_asked_to_stop_goes_on_with_the_next_look() {
    let mut trial = trial();
    under_way(&trial).await;
    trial.attempt().await;
    let mut job = jobs(&trial).await.remove(0);
    job["status"] = json!({});
    trial.world.put(job);
    stop(&trial.world, &trial.step, &trial.record)
        .await
        .unwrap();
    let suspended = jobs(&trial).await.remove(0);
    assert_eq!(suspended["spec"]["suspend"], true);
    assert!(message(&trial.attempt().await).ends_with("goes on"));
    let job = jobs(&trial).await.remove(0);
    assert_eq!(job["spec"]["suspend"], false);
    assert!(message(&trial.attempt().await).ends_with("runs"));
}
