//! What migrations cost a deploy, a pass without changes, and an agent that takes open runs over.

use std::time::{Duration, Instant};

use fairway::model::api::RunPhase;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::probe::Requests;
use crate::report::{Report, number, spread};
use crate::stage::{self, Marks};
use crate::support::control_plane::ControlPlane;
use crate::support::world::{Agent, World};

const WEB: &str = "components/web";
const LOG: &[&str] = &["--log", "info"];

async fn world() -> World {
    let world = World::on(ControlPlane::minimal()).await;
    stage::allow(&world).await;
    world
}

/// Writes migrations of a component that are not needed, and what they look at: so many that share each of the lookups.
async fn needless(world: &World, component: &str, lookups: usize, sharing: usize) {
    for lookup in 0..lookups {
        let looked_at = format!("looked-at-{lookup}");
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": looked_at, "namespace": world.apps},
        });
        world.plane.apply_yaml(&object.to_string()).await;
        for number in 0..sharing {
            let name = format!("{}-{lookup}-{number}", component.replace('/', "-"));
            let marks = Marks {
                name: &name,
                of: component,
                phase: "pre",
                more: json!({"lookups": {"mark": {"name": looked_at}}}),
            };
            stage::marks(world, &marks);
        }
    }
}

async fn begin(world: &World) -> Agent {
    world.repository.publish("Begin");
    let agent = world.agent_direct_with(LOG);
    world.declare(json!({"interval": "1h"})).await;
    world.until_reason("Synced").await;
    agent
}

/// Publishes a change of the component, and returns the milliseconds until it is applied.
async fn change(world: &World, version: &str) -> f64 {
    world.config_map("web", "settings", version);
    world.repository.publish("Change one");
    let begun = Instant::now();
    world.ring().await;
    world.until_value("settings", Some(version)).await;
    begun.elapsed().as_secs_f64() * 1_000.0
}

fn judged(agent: &Agent) -> usize {
    agent.log().matches("\"judged a migration\"").count()
}

/// A hundred migrations that find nothing to do, ten for each thing that they look at, before one component that changes; against
/// the same change without them, by turns.
pub(crate) async fn hundred_not_needed(report: &mut Report, rounds: usize) {
    let (with, without) = (world().await, world().await);
    needless(&with, WEB, 10, 10).await;
    for world in [&with, &without] {
        world.config_map("web", "settings", "begin");
    }
    let agents = [begin(&with).await, begin(&without).await];
    let (mut added, mut requests) = (Vec::new(), Vec::new());
    let before = judged(&agents[0]);
    for round in 0..rounds {
        let version = format!("round-{round}");
        let plain = change(&without, &version).await;
        let asked = Requests::so_far(&with.client).await;
        added.push(change(&with, &version).await - plain);
        let asked = Requests::so_far(&with.client).await.since(&asked);
        let (all, writes) = asked.single("configmaps");
        requests.push(number(all - writes));
    }
    assert_eq!(judged(&agents[0]) - before, rounds * 100);
    let (median, low, high) = spread(added);
    report.row(
        "100 migrations that are not needed, before one changed component: added time; requests for their 10 lookups",
        "≤ 150 ms; ≤ 10",
        format!("{median:.0} ms ({low:.0}–{high:.0}); {:.0}", spread(requests).0),
        "",
    );
}

/// A thousand migrations, and commits that change nothing.
pub(crate) async fn thousand_idle(report: &mut Report, rounds: usize) {
    let world = world().await;
    for component in 0..10 {
        world.config_map(
            &format!("c{component}"),
            &format!("settings-{component}"),
            "begin",
        );
        needless(&world, &format!("components/c{component}"), 10, 10).await;
    }
    let agent = begin(&world).await;
    let before = (judged(&agent), Requests::so_far(&world.client).await);
    let mut times = Vec::new();
    for round in 0..rounds {
        world.repository.write("README.md", format!("{round}"));
        world.repository.publish("Change nothing");
        let begun = Instant::now();
        world.reconcile().await;
        times.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    let asked = Requests::so_far(&world.client).await.since(&before.1);
    let (median, low, high) = spread(times);
    report.row(
        "a commit that changes nothing, with 1,000 migrations: evaluations, requests for what they look at, writes of runs; time to the report",
        "0, 0, 0",
        format!(
            "{}, {}, {}; {median:.0} ms ({low:.0}–{high:.0})",
            judged(&agent) - before.0,
            asked.single("configmaps").0,
            asked.single("runs").1
        ),
        "",
    );
}

/// Runs of 10 and of 20 steps, whose writes differ by those of ten steps.
pub(crate) async fn writes_of_a_step(report: &mut Report) {
    let mut writes = Vec::new();
    for count in [10, 20] {
        let world = world().await;
        let step = |number: usize| {
            json!({"id": format!("s{number}"), "apply": {"manifest": {
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "steps", "namespace": world.apps}, "data": {"value": format!("{number}")},
            }}})
        };
        let steps: Vec<Value> = (0..count).map(step).collect();
        world.config_map("web", "settings", "begin");
        let marks = Marks {
            name: "steps",
            of: WEB,
            phase: "pre",
            more: json!({"steps": steps, "guard": {
                "needed": format!("objects.mark == null || objects.mark.data.value != '{}'", count - 1),
            }}),
        };
        stage::marks(&world, &marks);
        let before = Requests::so_far(&world.client).await;
        let _agent = begin(&world).await;
        let asked = Requests::so_far(&world.client).await.since(&before);
        writes.push(number(asked.single("runs").1));
    }
    report.row(
        "record writes per executed step",
        "2",
        format!(
            "{:.1} (a run of 10 steps: {:.0})",
            (writes[1] - writes[0]) / 10.0,
            writes[0]
        ),
        "",
    );
}

/// Fifty runs that wait, a kill, and what they wait for while nobody is there: from the next one's lease to the last run's end.
pub(crate) async fn fifty_open(report: &mut Report) {
    const RUNS: usize = 50;
    let world = world().await;
    for number in 0..RUNS {
        let name = format!("waits-{number}");
        world.config_map(
            &format!("c{number}"),
            &format!("settings-{number}"),
            "begin",
        );
        let marks = Marks {
            name: &name,
            of: &format!("components/c{number}"),
            phase: "pre",
            more: json!({
                "lookups": {"gate": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": world.apps, "name": "gate"}},
                "guard": {"needed": "objects.gate == null"},
                "steps": [{"id": "wait", "wait": {"until": "objects.gate != null"}}],
            }),
        };
        stage::marks(&world, &marks);
    }
    world.repository.publish("Begin");
    let mut agent = world.agent_direct_with(LOG);
    world.declare(json!({"interval": "1h"})).await;
    until_all(&world, RUNS, RunPhase::Waiting).await;
    agent.kill();
    let gate = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gate", "namespace": world.apps},
    });
    world.plane.apply_yaml(&gate.to_string()).await;
    let already = agent.log().len();
    let next = world.agent_direct_with(LOG);
    let ended = until_all(&world, RUNS, RunPhase::Succeeded).await;
    let took = ended.duration_since(leads_since(&next.log()[already..]));
    report.row(
        "kill -9 with 50 open runs: from the lease until all have seen what they waited for and are over",
        "≤ 2 s",
        format!("{:.2} s", took.as_secs_f64()),
        "",
    );
}

/// Waits until so many runs are in a phase, and returns when that was seen.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
async fn until_all(world: &World, count: usize, phase: RunPhase) -> Timestamp {
    let begun = Instant::now();
    loop {
        let runs = stage::all_runs(world).await;
        if runs.iter().filter(|run| stage::phase(run) == phase).count() == count {
            return Timestamp::now();
        }
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "{:?}",
            stage::outcomes(world).await
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Returns when an agent has found the lease, by its log. It goes on at once, since it has the name of the one that was killed.
fn leads_since(log: &str) -> Timestamp {
    let line = log
        .lines()
        .find(|line| line.contains("\"the lease has a holder\""))
        .unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    line["timestamp"].as_str().unwrap().parse().unwrap()
}
