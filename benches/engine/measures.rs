//! What is measured with the agent on a cluster.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DeleteParams;
use kube::runtime::wait::await_condition;
use serde_json::json;

use crate::probe::{api_server, memory, processor, requests};
use crate::raw::{self, value};
use crate::report::{Report, spread};
use crate::support::control_plane::ControlPlane;
use crate::support::world::{Agent, World};

/// Makes a world whose repository has so many ConfigMaps of one kibibyte, in so many components.
async fn world(count: usize, components: usize) -> World {
    let world = World::on(ControlPlane::minimal()).await;
    write(&world, count, components, "a");
    world.repository.publish("Begin");
    world
}

fn write(world: &World, count: usize, components: usize, version: &str) {
    for number in 0..count {
        let component = format!("c{}", number % components);
        world.config_map(&component, &format!("settings-{number}"), &value(version));
    }
}

/// Declares the source and waits until everything is applied; returns the time from the declaration.
async fn start(world: &World) -> (Agent, Duration) {
    let agent = world.agent_direct();
    let begun = Instant::now();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    (agent, begun.elapsed())
}

/// Time from the first to the last audit line that was written after so many.
fn applying(agent: &Agent, after: usize) -> Duration {
    let lines = agent.audit();
    let time = |line: &serde_json::Value| {
        line["time"]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .unwrap()
    };
    let (first, last) = (time(&lines[after]), time(&lines[lines.len() - 1]));
    Duration::try_from(last.duration_since(first)).unwrap()
}

/// Publishes a change of one object, rings the bell, and returns the time until a watch sees it applied.
async fn change_one(world: &World, name: &str, component: &str, version: &str) -> Duration {
    world.config_map(component, name, &value(version));
    world.repository.publish("Change one");
    let wanted = value(version);
    let seen = move |found: Option<&ConfigMap>| {
        found
            .and_then(|found| found.data.as_ref())
            .and_then(|data| data.get("value"))
            == Some(&wanted)
    };
    let maps = world.config_maps();
    let name = name.to_owned();
    let watching = tokio::spawn(async move {
        await_condition(maps, &name, seen).await.unwrap();
        Instant::now()
    });
    // The watch is there before the bell rings.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let begun = Instant::now();
    world.ring().await;
    watching.await.unwrap().duration_since(begun)
}

async fn changes(world: &World, rounds: usize, components: usize) -> (f64, f64, f64) {
    let mut times = Vec::new();
    for round in 0..rounds {
        let (name, component) = (
            format!("settings-{round}"),
            format!("c{}", round % components),
        );
        let time = change_one(world, &name, &component, &format!("round-{round}-")).await;
        times.push(time.as_secs_f64() * 1_000.0);
    }
    spread(times)
}

/// Ten objects.
pub(crate) async fn small(report: &mut Report) {
    let world = world(10, 1).await;
    let (_agent, _) = start(&world).await;
    let (median, low, high) = changes(&world, 11, 1).await;
    report.row(
        "one of 10 changed: bell → applied, median",
        "≤ 80 ms",
        format!("{median:.0} ms ({low:.0}–{high:.0})"),
        "144 ms",
    );
}

/// A thousand objects: first apply, nothing changed, everything changed, one changed, one deleted by hand.
pub(crate) async fn thousand(report: &mut Report, pairs: usize) {
    let client = ControlPlane::minimal().client().await;
    let (mut cold, mut all) = (Vec::new(), Vec::new());
    let mut times = Vec::new();
    for pair in 0..pairs {
        let world = world(1_000, 1).await;
        let other = ControlPlane::minimal().namespace().await;
        let raw_first = raw::apply(&client, &other, 1_000, "a").await;
        let (mut agent, bell) = start(&world).await;
        let ours = applying(&agent, 0);
        cold.push(ours.as_secs_f64() / raw_first.as_secs_f64());
        times.push(bell.as_secs_f64());
        let raw_changed = raw::apply(&client, &other, 1_000, "b").await;
        write(&world, 1_000, 1, "b");
        world.publish("Change all").await;
        all.push(applying(&agent, 1_000).as_secs_f64() / raw_changed.as_secs_f64());
        if pair + 1 == pairs {
            rest_of_thousand(report, &world, &mut agent, (&cold, &all, &times)).await;
        }
    }
}

async fn rest_of_thousand(
    report: &mut Report,
    world: &World,
    agent: &mut Agent,
    (cold, all, bells): (&[f64], &[f64], &[f64]),
) {
    let ratio = |values: &[f64]| {
        let (median, low, high) = spread(values.to_vec());
        format!("{median:.2} × ({low:.2}–{high:.2})")
    };
    let (bell, _, _) = spread(bells.to_vec());
    report.row(
        "1,000 ConfigMaps of 1 KiB, one file each, cold: time against the raw limit",
        "≤ 1.3 ×",
        format!("{}; declared → Ready {bell:.1} s", ratio(cold)),
        "6.0 s, 10 ×",
    );
    let before = requests(&world.client, "configmaps").await;
    world.reconcile().await;
    agent.kill();
    *agent = world.agent_direct();
    world.reconcile().await;
    let after = requests(&world.client, "configmaps").await;
    report.row(
        "the same again, and after a restart: requests for single objects, writes",
        "0 and 0",
        format!(
            "{} and {}",
            after.all - before.all,
            after.writes - before.writes
        ),
        "2.9 s, 2,010 requests",
    );
    report.row("all 1,000 changed", "≤ 1.3 × raw", ratio(all), "6.0 s");
    let before = requests(&world.client, "configmaps").await;
    let (median, low, high) = changes(world, 11, 1).await;
    let writes = requests(&world.client, "configmaps").await.writes - before.writes;
    report.row(
        "one of 1,000 changed: object writes; bell → applied, median",
        "1; ≤ 120 ms",
        format!(
            "{:.1}; {median:.0} ms ({low:.0}–{high:.0})",
            f64::from(u32::try_from(writes).unwrap()) / 11.0
        ),
        "4.9 s",
    );
    let mut times = Vec::new();
    for round in 0..5 {
        let name = format!("settings-{}", 500 + round);
        let begun = Instant::now();
        world
            .config_maps()
            .delete(&name, &DeleteParams::default())
            .await
            .unwrap();
        world.until_value(&name, Some(&value("b"))).await;
        times.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    let (median, low, high) = spread(times);
    report.row(
        "an object deleted by hand is back",
        "≤ 0.5 s",
        format!("{median:.0} ms ({low:.0}–{high:.0})"),
        "1.5–60 s at 1 m",
    );
}

/// A hundred components of four objects.
pub(crate) async fn components(report: &mut Report) {
    let world = world(400, 100).await;
    let (_agent, _) = start(&world).await;
    let before = requests(&world.client, "configmaps").await;
    let (median, low, high) = changes(&world, 5, 100).await;
    let changed = requests(&world.client, "configmaps").await;
    let mut none = Vec::new();
    for round in 0..5 {
        world.repository.write("README.md", format!("{round}"));
        world.repository.publish("Change nothing");
        let begun = Instant::now();
        world.reconcile().await;
        none.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    let after = requests(&world.client, "configmaps").await;
    let (nothing, _, _) = spread(none);
    report.row(
        "100 components × 4 objects, a commit that changes one, and one that changes none: object writes; time",
        "1 and 0; ≤ 150 ms",
        format!(
            "{:.1} and {}; {median:.0} ms ({low:.0}–{high:.0}) and {nothing:.0} ms",
            f64::from(u32::try_from(changed.writes - before.writes).unwrap()) / 5.0,
            after.writes - changed.writes
        ),
        "2,700 requests; 10 s",
    );
}

/// Nothing happens, for so many seconds.
pub(crate) async fn steady(report: &mut Report, seconds: u64) {
    let world = world(1_000, 1).await;
    let (agent, _) = start(&world).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (before, used) = (requests(&world.client, "").await, processor(agent.id()));
    let (server, begun) = (processor(api_server(world.plane)), Instant::now());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let after = requests(&world.client, "").await;
    let (used, server) = (
        processor(agent.id()).saturating_sub(used),
        processor(api_server(world.plane)).saturating_sub(server),
    );
    let minutes = begun.elapsed().as_secs_f64() / 60.0;
    let (now, _) = memory(agent.id());
    // The look at the metrics itself is one request.
    let requests = (after.all - before.all).saturating_sub(1);
    report.row(
        "steady with 1,000 objects, a minute: requests other than watches; writes; CPU; memory",
        "≤ 1; 0; ≤ 0.1 s; ≤ 50 MiB",
        format!(
            "{requests} in {seconds} s; {}; {:.2} s; {now:.0} MiB (server CPU {:.1} s)",
            after.writes - before.writes,
            used.as_secs_f64() / minutes,
            server.as_secs_f64() / minutes
        ),
        "1,810 at 1 m; 4 CPU-s; 180 MiB",
    );
}

/// Ten thousand objects.
pub(crate) async fn ten_thousand(report: &mut Report) {
    let world = world(10_000, 1).await;
    let client = ControlPlane::minimal().client().await;
    let other = ControlPlane::minimal().namespace().await;
    let raw = raw::apply(&client, &other, 10_000, "a").await;
    let (agent, bell) = start(&world).await;
    let (_, peak) = memory(agent.id());
    let (median, low, high) = changes(&world, 5, 1).await;
    report.row(
        "10,000 ConfigMaps, one file each, cold: bell → all applied against raw; one changed; peak memory",
        "≤ 1.5 ×; ≤ 300 ms; ≤ 120 MiB",
        format!(
            "{:.2} × ({:.1} s of {:.1} s); {median:.0} ms ({low:.0}–{high:.0}); {peak:.0} MiB",
            bell.as_secs_f64() / raw.as_secs_f64(),
            bell.as_secs_f64(),
            raw.as_secs_f64()
        ),
        "112 s; 85 s; 460 MiB",
    );
}
