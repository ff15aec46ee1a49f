//! The process is killed before and after every write, and once more within the next five: the cluster and the evidence end as
//! they do undisturbed.

use serde_json::{Value, json};

use super::kit::*;
use crate::model::api::{RunPhase, RunStatus, StepState};
use crate::runs::memory::{Fault, Write};

/// What is the same whatever was killed.
#[derive(Debug, PartialEq)]
struct End {
    objects: Vec<Value>,
    phase: RunPhase,
    guard: Vec<String>,
    steps: Vec<(String, Option<String>, bool)>,
    effects: Vec<String>,
}

async fn end(bench: &Bench) -> End {
    let run = status(&bench.converge().await.expect("there is work"));
    check(bench, &run);
    let mut effects = bench.effects();
    effects.sort();
    End {
        objects: bench.world.settled(),
        phase: run.phase,
        guard: said(&run.evidence),
        steps: run
            .steps
            .iter()
            .map(|step| {
                let ended = matches!(step.state, StepState::Done | StepState::Skipped);
                (step.id.clone(), step.item.clone(), ended)
            })
            .collect(),
        effects,
    }
}

/// The invariants, over everything that was written.
fn check(bench: &Bench, run: &RunStatus) {
    let written = bench.written.lock().unwrap();
    for status in written.iter() {
        // I3.
        assert!(status.phase != RunPhase::Succeeded || !status.evidence.is_empty());
        for step in &status.steps {
            assert!(
                step.state != StepState::Done || !step.evidence.is_empty() || step.item.is_none()
            );
            // I5.
            assert!(step.attempts - step.free_attempts <= 5);
        }
    }
    // I4: what is done stays done.
    for pair in written.windows(2) {
        for before in pair[0]
            .steps
            .iter()
            .filter(|step| step.state == StepState::Done)
        {
            let after = pair[1]
                .steps
                .iter()
                .find(|step| step.id == before.id && step.item == before.item);
            assert_eq!(after.map(|step| step.state), Some(StepState::Done));
        }
    }
    // I2: the record named the step of every effect before it.
    let log = bench.world.log();
    for entry in log.iter().filter(|entry| entry.write == Write::Effect) {
        assert!(entry.step.is_some(), "{entry:?}");
    }
    // I11: every failure has left a line.
    for step in &run.steps {
        assert_eq!(
            step.failures > 0,
            run.timeline.iter().any(|line| line.what.contains("failed")) && step.failures > 0
        );
    }
}

/// Runs a bench without and with every pair of kills. Returns how many were tried.
async fn all_pairs(make: impl Fn() -> Bench) -> usize {
    let undisturbed = make();
    let wanted = end(&undisturbed).await;
    assert_eq!(wanted.phase, RunPhase::Succeeded);
    let writes = undisturbed.world.writes();
    let kills = [Fault::StopBefore, Fault::StopAfter];
    let mut tried = 0;
    for first in 0..writes {
        for one in &kills {
            for within in 0..=5 {
                for two in &kills {
                    if within == 0 && *two == Fault::StopAfter {
                        continue;
                    }
                    let bench = make();
                    bench.world.fault(first, one.clone());
                    if within > 0 {
                        bench.world.fault(first + within, two.clone());
                    }
                    let end = end(&bench).await;
                    assert_eq!(
                        end, wanted,
                        "killed {one:?} {first} and {two:?} {within} later"
                    );
                    tried += 1;
                }
            }
        }
    }
    tried
}

#[tokio::test(start_paused = true)]
async fn i13_two_patches_converge_after_every_pair_of_kills() {
    let tried = all_pairs(|| {
        let bench = Bench::new(two_steps());
        bench.world.put(config_map("one", json!({"size": "10"})));
        bench.world.put(config_map("two", json!({"size": "10"})));
        bench
    })
    .await;
    assert_eq!(tried, 8 * 2 * 11);
}

#[tokio::test(start_paused = true)]
async fn i13_m1_converges_after_every_pair_of_kills() {
    let tried = all_pairs(|| {
        let bench = Bench::new(logging());
        bench.world.put(claim("10Gi"));
        bench.world.put(set("10Gi"));
        bench.world.put(class(true));
        bench
    })
    .await;
    assert!(tried >= 8 * 2 * 11, "{tried}");
}

#[tokio::test(start_paused = true)]
async fn i13_a_step_for_each_element_converges_after_every_pair_of_kills() {
    let tried = all_pairs(|| {
        let bench = Bench::new(json!({
            "lookups": {"all": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "list": true}},
            "guard": {"needed": "objects.all.exists(c, c.data.size != '30')"},
            "steps": [
                {"id": "grow", "forEach": {"as": "map", "in": "objects.all.filter(c, c.data.size != '30')"},
                 "patch": {"ref": "map", "body": {"data": {"size": "30"}}}},
            ],
        }));
        for name in ["one", "two", "three"] {
            bench.world.put(config_map(name, json!({"size": "10"})));
        }
        bench
    })
    .await;
    assert!(tried > 200, "{tried}");
}

#[tokio::test(start_paused = true)]
async fn i13_a_job_runs_once_after_every_pair_of_kills() {
    let tried = all_pairs(|| {
        Bench::new(json!({
            "lookups": {"done": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "done"}},
            "guard": {"needed": "objects.done == null"},
            "steps": [
                {"id": "move", "job": {"namespace": "a", "image": format!("registry.example.com/move@sha256:{}", "0".repeat(64))}},
                {"id": "tell", "apply": {"manifest": config_map("done", json!({"by": "${run.id}"}))}},
            ],
        }))
    })
    .await;
    assert!(tried > 100, "{tried}");
}
