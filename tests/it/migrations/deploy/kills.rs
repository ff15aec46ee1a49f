//! The agent as a process is killed right before an effect of a step.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use fairway::model::api::RunPhase;
use serde_json::json;

use super::stage::{self, WEB, mark};
use crate::support::agent::signal;
use crate::support::proxy::Seen;
use crate::support::world::World;

/// Kills a process when it is about to send a write to a path, before the server has seen it; says whether it has.
fn kill_before(world: &World, path: String) -> (Arc<AtomicU32>, Arc<AtomicBool>) {
    let (process, died) = (
        Arc::new(AtomicU32::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let (of_it, has) = (Arc::clone(&process), Arc::clone(&died));
    world.proxy.before(Arc::new(move |_, seen: &Seen| {
        let is_write = matches!(seen.verb.as_str(), "POST" | "PUT" | "PATCH" | "DELETE");
        if !is_write || !seen.path.ends_with(&path) || has.swap(true, Ordering::SeqCst) {
            return true;
        }
        signal(of_it.load(Ordering::SeqCst), "KILL");
        false
    }));
    (process, died)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f03_an_agent_that_is_killed_right_before_an_effect_has_it_happen_once() {
    let world = World::new().await;
    stage::allow(&world).await;
    world.config_map("web", "settings", "one");
    stage::marks(&world, &mark("late", WEB, "pre", json!({})));
    world.repository.publish("A migration");
    let (process, died) = kill_before(&world, "/configmaps/late".to_owned());
    let mut agent = world.agent();
    process.store(agent.id(), Ordering::SeqCst);
    world.declare(json!({})).await;
    let begun = std::time::Instant::now();
    while !died.load(Ordering::SeqCst) {
        assert!(begun.elapsed() < Duration::from_secs(90), "{}", agent.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    agent.kill();
    let run = stage::all_runs(&world).await.remove(0);
    assert_eq!(
        run.status.unwrap().steps[0].attempts,
        1,
        "it was written first"
    );
    assert_eq!(world.value("late").await, None);
    world.proxy.forget();
    let _agent = world.agent();
    let run = stage::until_run(&world, "late", RunPhase::Succeeded).await;
    assert!(run.status.unwrap().steps[0].attempts <= 2);
    assert_eq!(world.proxy.count("PATCH", "/configmaps/late"), 1);
    world.until_value("settings", Some("one")).await;
}
