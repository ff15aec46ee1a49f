//! Two migrations of one hook.

use std::time::Duration;

use fairway::model::api::{Run, RunPhase};
use serde_json::{Value, json};

use super::stage::{self, WEB, gate, mark};
use crate::support::http::get;
use crate::support::world::World;

fn active(run: &Run) -> Duration {
    Duration::from_millis(run.status.as_ref().unwrap().active_milliseconds)
}

/// Returns a sample of the hook's times.
fn sample(metrics: &str, name: &str) -> f64 {
    let line = metrics
        .lines()
        .find(|line| line.starts_with(name) && line.contains("hook=\"component-pre\""));
    let value = line.and_then(|line| line.rsplit(' ').next());
    value.expect(metrics).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j08_two_of_one_hook_overlap_and_both_durations_are_told() {
    let world = World::new().await;
    stage::allow(&world).await;
    world.config_map("web", "settings", "one");
    for name in ["one", "two"] {
        let wait = json!({"id": "wait", "wait": {"until": "objects.gate != null"}});
        let steps = json!({"steps": [wait, stage::applies(&world, "mark", name)]});
        stage::marks(&world, &mark(name, WEB, "pre", gate(&world, steps)));
    }
    world.repository.publish("Two migrations that wait");
    let agent = world.agent();
    world.declare(json!({})).await;
    // Both are in the middle of their first step, and neither can end: they do overlap.
    stage::until_run(&world, "one", RunPhase::Waiting).await;
    stage::until_run(&world, "two", RunPhase::Waiting).await;
    stage::open_gate(&world).await;
    stage::until_committed(&world, WEB, None).await;

    let runs = stage::all_runs(&world).await;
    let times: Vec<_> = runs
        .iter()
        .map(|run| {
            let status = run.status.clone().unwrap();
            (status.started_at.unwrap().0, status.ended_at.unwrap().0)
        })
        .collect();
    assert!(
        times[0].0 <= times[1].1 && times[1].0 <= times[0].1,
        "{times:?}"
    );

    // What is told of the time of the hook holds both, whatever the machine made of them.
    let metrics = get(&agent.address(), "/metrics");
    let count = sample(&metrics, "fairway_hook_wall_seconds_count");
    assert!((count - 1.0).abs() < f64::EPSILON, "{metrics}");
    let wall = sample(&metrics, "fairway_hook_wall_seconds_sum");
    let summed = sample(&metrics, "fairway_hook_summed_seconds_sum");
    let each: Vec<f64> = runs.iter().map(|run| active(run).as_secs_f64()).collect();
    assert!(summed >= each[0] + each[1], "{summed} of {each:?}");
    assert!(wall > each[0] && wall > each[1], "{wall} of {each:?}");
    let log = agent.log();
    let told: Value = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|line| line["message"] == "the migrations of a deploy have ended")
        .unwrap();
    assert_eq!(told["migrations"], 2);
    assert_eq!(told["hook"], "pre of components/web");
    for (name, value) in [("wall_milliseconds", wall), ("summed_milliseconds", summed)] {
        let milliseconds = told[name].as_f64().unwrap();
        assert!((milliseconds / 1000.0 - value).abs() < 0.002, "{told}");
    }
    let slowest = told["slowest"].as_str().unwrap();
    assert!(
        slowest.contains("one ") && slowest.contains("two "),
        "{told}"
    );
}
