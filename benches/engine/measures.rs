//! What is measured with the agent on a cluster.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use kube::runtime::watcher::{Config, Event, watcher};
use serde_json::json;

use crate::probe::{Requests, api_server, applying, memory, processor};
use crate::raw::{self, file, value};
use crate::report::{Report, number, per, spread};
use crate::support::control_plane::ControlPlane;
use crate::support::world::{Agent, World};

/// The default of `spec.interval`.
const INTERVAL: &str = "5m";
/// Logs the moment before each plan is executed, and nothing else more than usual.
const LOG: &[&str] = &["--log", "info,fairway::execute=debug"];

/// Makes a world whose repository has so many ConfigMaps of one kibibyte, in so many components.
async fn world(count: usize, components: usize) -> World {
    let world = World::on(ControlPlane::minimal()).await;
    write(&world, 0..count, components, "a");
    world.repository.publish("Begin");
    world
}

fn write(world: &World, numbers: std::ops::Range<usize>, components: usize, version: &str) {
    for number in numbers {
        let path = format!("components/c{}/settings-{number}.yaml", number % components);
        let text = file(&world.apps, number, version);
        world.repository.write(&path, text);
    }
}

/// Declares the source and waits until everything is applied; returns the time from the declaration.
async fn start(world: &World, interval: &str) -> (Agent, Duration) {
    let agent = world.agent_direct_with(LOG);
    let begun = Instant::now();
    world.declare(json!({"interval": interval})).await;
    world.until_reason("Synced").await;
    (agent, begun.elapsed())
}

/// Removes what a measure has left, so that etcd and the watches of the next one stay small.
async fn clear(client: &kube::Client, namespace: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    maps.delete_collection(&DeleteParams::default(), &ListParams::default())
        .await
        .unwrap();
}

/// Ends a world: the agent first, so that it restores nothing.
async fn end(world: World, mut agent: Agent) {
    agent.kill();
    let parameters = DeleteParams::default();
    world
        .sources()
        .delete(&world.name, &parameters)
        .await
        .unwrap();
    clear(&world.client, &world.apps).await;
}

/// Publishes a change of one object, rings the bell, and returns the milliseconds until a watch sees it applied.
async fn change_one(world: &World, number: usize, components: usize, version: &str) -> f64 {
    write(world, number..number + 1, components, version);
    world.repository.publish("Change one");
    let wanted = value(version);
    let name = format!("metadata.name=settings-{number}");
    let mut seen = pin!(watcher(
        world.config_maps(),
        Config::default().fields(&name)
    ));
    while !matches!(seen.next().await.unwrap().unwrap(), Event::InitDone) {}
    let begun = Instant::now();
    world.ring().await;
    loop {
        let Event::Apply(found) = seen.next().await.unwrap().unwrap() else {
            continue;
        };
        if found
            .data
            .is_some_and(|data| data.get("value") == Some(&wanted))
        {
            return begun.elapsed().as_secs_f64() * 1_000.0;
        }
    }
}

async fn changes(world: &World, rounds: usize, components: usize) -> Vec<f64> {
    let mut times = Vec::new();
    for round in 0..rounds {
        times.push(change_one(world, round, components, &format!("round-{round}-")).await);
    }
    times
}

fn milliseconds(times: Vec<f64>) -> String {
    let (median, low, high) = spread(times);
    format!("{median:.0} ms ({low:.0}–{high:.0})")
}

/// Ten objects.
pub(crate) async fn small(report: &mut Report) {
    let world = world(10, 1).await;
    let (agent, _) = start(&world, "1h").await;
    let times = changes(&world, 10, 1).await;
    report.row(
        "one of 10 changed: bell → applied, median",
        "≤ 80 ms",
        milliseconds(times),
        "144 ms",
    );
    end(world, agent).await;
}

/// The times of one pair, in seconds.
#[derive(Default)]
struct Pairs {
    raw: [Vec<f64>; 2],
    ours: [Vec<f64>; 2],
    ready: Vec<f64>,
}

impl Pairs {
    fn add(&mut self, raw: [Duration; 2], ours: [Duration; 2]) {
        for which in 0..2 {
            self.raw[which].push(raw[which].as_secs_f64());
            self.ours[which].push(ours[which].as_secs_f64());
        }
    }

    fn ratio(&self, which: usize) -> String {
        let both = self.ours[which].iter().zip(&self.raw[which]);
        let (median, low, high) = spread(both.map(|(ours, raw)| ours / raw).collect());
        let (ours, _, _) = spread(self.ours[which].clone());
        let (raw, _, _) = spread(self.raw[which].clone());
        format!("{median:.2} × ({low:.2}–{high:.2}), {ours:.2} s of {raw:.2} s")
    }
}

/// Applies so many ConfigMaps in a new namespace in a bare loop, and then all of them changed.
async fn raw_pair(world: &World, count: usize) -> [Duration; 2] {
    let client = raw::client(world).await;
    let namespace = world.plane.namespace().await;
    let mut times = [Duration::ZERO; 2];
    for (time, version) in times.iter_mut().zip(["a", "b"]) {
        let objects = raw::desired(&world.name, &namespace, count, version);
        *time = raw::apply(&client, &objects).await;
    }
    clear(&world.client, &namespace).await;
    times
}

/// A thousand objects: first apply, nothing changed, everything changed, one changed, one deleted by hand.
pub(crate) async fn thousand(report: &mut Report, count: usize) {
    let mut pairs = Pairs::default();
    for pair in 0..count {
        let world = world(1_000, 1).await;
        // One goes first in one pair and the other in the next; neither is there while the other is measured.
        let before = match pair % 2 {
            0 => Some(raw_pair(&world, 1_000).await),
            _ => None,
        };
        let (mut agent, ready) = start(&world, "1h").await;
        pairs.ready.push(ready.as_secs_f64());
        let cold = applying(&agent, 1_000);
        write(&world, 0..1_000, 1, "b");
        world.publish("Change all").await;
        let ours = [cold, applying(&agent, 1_000)];
        if pair + 1 == count {
            in_step(report, &world, &mut agent).await;
        }
        agent.kill();
        clear(&world.client, &world.apps).await;
        let raw = match before {
            Some(raw) => raw,
            None => raw_pair(&world, 1_000).await,
        };
        pairs.add(raw, ours);
        end(world, agent).await;
    }
    let (ready, _, _) = spread(pairs.ready.clone());
    report.row(
        "1,000 ConfigMaps of 1 KiB, one file each, cold: time against the raw limit",
        "≤ 1.3 ×",
        format!("{}; declared → Ready {ready:.1} s", pairs.ratio(0)),
        "6.0 s, 10 ×",
    );
    report.row("all 1,000 changed", "≤ 1.3 × raw", pairs.ratio(1), "6.0 s");
}

/// What a thousand objects cost that are in step.
async fn in_step(report: &mut Report, world: &World, agent: &mut Agent) {
    let before = Requests::so_far(&world.client).await;
    world.reconcile().await;
    agent.kill();
    *agent = world.agent_direct_with(LOG);
    world.reconcile().await;
    let found = Requests::so_far(&world.client).await.since(&before);
    let (all, writes) = found.single("configmaps");
    report.row(
        "the same again, and after a restart: requests for single objects, writes",
        "0 and 0",
        format!("{all} and {writes}"),
        "2.9 s, 2,010 requests",
    );
    let before = Requests::so_far(&world.client).await;
    let times = changes(world, 11, 1).await;
    let found = Requests::so_far(&world.client).await.since(&before);
    report.row(
        "one of 1,000 changed: object writes; bell → applied, median",
        "1; ≤ 120 ms",
        format!(
            "{}; {}",
            per(found.single("configmaps").1, 11),
            milliseconds(times)
        ),
        "4.9 s",
    );
    let mut times = Vec::new();
    for number in 500..505 {
        let name = format!("settings-{number}");
        let begun = Instant::now();
        let maps = world.config_maps();
        maps.delete(&name, &DeleteParams::default()).await.unwrap();
        world.until_value(&name, Some(&value("b"))).await;
        times.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    report.row(
        "an object deleted by hand is back",
        "≤ 0.5 s",
        milliseconds(times),
        "1.5–60 s at 1 m",
    );
}

/// A hundred components of four objects.
pub(crate) async fn components(report: &mut Report) {
    let world = world(400, 100).await;
    let (agent, _) = start(&world, "1h").await;
    let before = Requests::so_far(&world.client).await;
    let one = changes(&world, 11, 100).await;
    let changed = Requests::so_far(&world.client).await;
    let mut none = Vec::new();
    for round in 0..11 {
        world.repository.write("README.md", format!("{round}"));
        world.repository.publish("Change nothing");
        let begun = Instant::now();
        world.reconcile().await;
        none.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    let after = Requests::so_far(&world.client).await;
    report.row(
        "100 components × 4 objects, a commit that changes one, and one that changes none: object writes; time to the object, and to the report",
        "1 and 0; ≤ 150 ms",
        format!(
            "{} and {}; {} and {}",
            per(changed.since(&before).single("configmaps").1, 11),
            after.since(&changed).single("configmaps").1,
            milliseconds(one),
            milliseconds(none)
        ),
        "2,700 requests; 10 s",
    );
    end(world, agent).await;
}

/// Nothing happens, for so many seconds.
pub(crate) async fn steady(report: &mut Report, seconds: u64) {
    let world = world(1_000, 1).await;
    let third = Duration::from_secs(seconds / 3);
    let before = Requests::so_far(&world.client).await;
    tokio::time::sleep(third).await;
    let own = Requests::so_far(&world.client).await.since(&before);
    let (agent, _) = start(&world, INTERVAL).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let server = api_server(world.plane);
    let before = Requests::so_far(&world.client).await;
    let used = (processor(agent.id()), processor(server));
    tokio::time::sleep(third * 3).await;
    let spent = (
        processor(agent.id()).saturating_sub(used.0),
        processor(server).saturating_sub(used.1),
    );
    let found = Requests::so_far(&world.client).await.since(&before);
    let found = found.without(&own, 3);
    let (now, _) = memory(agent.id());
    let minutes = (third * 3).as_secs_f64() / 60.0;
    let minutely = |count: u64| format!("{:.1}", number(count) / minutes);
    report.row(
        "steady with 1,000 objects, a minute: requests other than watches and lease renewals; writes; CPU; memory",
        "≤ 1; 0; ≤ 0.1 s; ≤ 50 MiB",
        format!(
            "{}; {}; {:.2} s; {now:.0} MiB (and {} lease renewals; server CPU {:.1} s)",
            minutely(found.ordinary()),
            minutely(found.writes()),
            spent.0.as_secs_f64() / minutes,
            minutely(found.renewals()),
            spent.1.as_secs_f64() / minutes
        ),
        "1,810 at 1 m; 4 CPU-s; 180 MiB",
    );
    end(world, agent).await;
}

/// What our watch costs the API server: its CPU time for a raw apply, with an agent that watches the objects and without.
pub(crate) async fn server_processor(report: &mut Report, rounds: usize) {
    const APPLIES: usize = 2_000;
    let world = world(10, 1).await;
    let (mut agent, _) = start(&world, "1h").await;
    let client = raw::client(&world).await;
    let namespace = world.plane.namespace().await;
    let server = api_server(world.plane);
    let mut costs = [Vec::new(), Vec::new()];
    for round in 0..2 * rounds {
        // Without and with in one round, with and without in the next; the very first apply of all makes the objects.
        let watched = matches!(round % 4, 1 | 2);
        agent.kill();
        if watched {
            agent = world.agent_direct();
            world.reconcile().await;
        }
        let prepared = raw::desired("another", &namespace, APPLIES, &format!("round-{round}-"));
        if round == 0 {
            let first = raw::desired("another", &namespace, APPLIES, "a");
            raw::apply(&client, &first).await;
        }
        let before = processor(server);
        raw::apply(&client, &prepared).await;
        // What the watch is still to be told belongs to it.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let spent = processor(server).saturating_sub(before);
        costs[usize::from(watched)].push(spent.as_secs_f64() * 1e6 / 2_000.0);
    }
    let [without, with] = costs.map(spread);
    report.row(
        "the API server's CPU for one apply, with our watch and without",
        "–",
        format!(
            "{:.2} × ({:.0} µs of {:.0} µs)",
            with.0 / without.0,
            with.0,
            without.0
        ),
        "–",
    );
    agent.kill();
    clear(&world.client, &namespace).await;
    end(world, agent).await;
}

/// Ten thousand objects.
pub(crate) async fn ten_thousand(report: &mut Report) {
    let world = world(10_000, 1).await;
    let client = raw::client(&world).await;
    let namespace = world.plane.namespace().await;
    let objects = raw::desired(&world.name, &namespace, 10_000, "a");
    let raw = raw::apply(&client, &objects).await;
    clear(&world.client, &namespace).await;
    let (agent, bell) = start(&world, "1h").await;
    let ours = applying(&agent, 10_000);
    let (_, peak) = memory(agent.id());
    let times = changes(&world, 5, 1).await;
    report.row(
        "10,000 ConfigMaps, one file each, cold against raw; one changed; peak memory",
        "≤ 1.5 ×; ≤ 300 ms; ≤ 120 MiB",
        format!(
            "{:.2} × ({:.1} s of {:.1} s; declared → Ready {:.1} s); {}; {peak:.0} MiB",
            ours.as_secs_f64() / raw.as_secs_f64(),
            ours.as_secs_f64(),
            raw.as_secs_f64(),
            bell.as_secs_f64(),
            milliseconds(times),
        ),
        "112 s; 85 s; 460 MiB",
    );
    end(world, agent).await;
}
