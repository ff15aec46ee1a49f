//! What people want of runs, with a living agent that takes it up.

use fairway::model::api::{Run, RunPhase};
use kube::ResourceExt as _;
use kube::api::ListParams;
use kube::runtime::wait::await_condition;
use serde_json::json;

use super::records::runs;
use crate::support::world::World;

/// A migration that waits for the ConfigMap `go` and then writes the ConfigMap `gone`.
fn waiting_migration(apps: &str) -> String {
    let config_map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": apps, "name": name});
    let gone = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gone", "namespace": apps}});
    json!({
        "apiVersion": "fairway.dev/v1alpha1", "kind": "Migration", "metadata": {"name": "go-first"},
        "spec": {
            "owner": "team-web", "bind": {"phase": "pre"}, "lifecycle": {"never": "it is a test"},
            "lookups": {"go": config_map("go"), "gone": config_map("gone")},
            "guard": {"needed": "objects.gone == null"},
            "policy": {"cancelGrace": "1s"},
            "steps": [
                {"id": "go", "wait": {"until": "objects.go != null"}, "retry": {"interval": "1s"}},
                {"id": "leave", "apply": {"manifest": gone}},
            ],
        },
    })
    .to_string()
}

async fn until(world: &World, name: &str, phase: RunPhase) -> Run {
    let reached = move |run: Option<&Run>| {
        run.and_then(|run| run.status.as_ref())
            .is_some_and(|status| status.phase == phase)
    };
    let waiting = await_condition(runs(world), name, reached);
    let Ok(found) = tokio::time::timeout(std::time::Duration::from_secs(60), waiting).await else {
        panic!("not {phase}: {:#?}", runs(world).get(name).await);
    };
    found.unwrap().unwrap()
}

async fn the_run(world: &World) -> String {
    for _ in 0..600 {
        if let Some(run) = runs(world)
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .first()
        {
            return run.name_any();
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("there is no run; {:#?}", world.source().await.status);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_living_agent_takes_up_what_people_want() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.repository.write(
        "components/web/migrations/go-first.yaml",
        waiting_migration(&world.apps),
    );
    world.repository.publish("Add a component with a migration");
    let _agent = world.agent();
    world.declare(json!({})).await;
    let name = the_run(&world).await;
    until(&world, &name, RunPhase::Waiting).await;
    assert_eq!(
        world.value("settings").await,
        None,
        "the migration comes first"
    );

    let say = |arguments: &[&str]| {
        let (code, out, err) =
            world.fairway(&[&["run"], arguments, &["--timeout", "30s"]].concat());
        assert_eq!(code, 0, "{arguments:?}: {out}{err}");
        assert!(err.contains("the agent has taken this up"), "{err}");
    };
    say(&[
        "cancel",
        "go-first",
        "--reason",
        "not tonight",
        "--by",
        "jane",
    ]);
    let cancelled = until(&world, &name, RunPhase::Cancelled).await;
    assert!(cancelled.status.unwrap().message.contains("jane"));
    assert_eq!(world.value("settings").await, None, "it is still held back");
    let (_, out, _) = world.fairway(&["get", "approvals"]);
    assert!(out.contains("run retry go-first --reason"), "{out}");

    say(&["retry", "go-first", "--reason", "now", "--by", "jane"]);
    until(&world, &name, RunPhase::Waiting).await;
    world.plane.apply_yaml(&json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "go", "namespace": world.apps},
    }).to_string()).await;
    let (code, out, err) = world.fairway(&["run", "logs", "go-first", "--follow"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.contains("cancel by jane: not tonight") && out.contains("leave: done"),
        "{out}"
    );
    world.until_value("settings", Some("one")).await;
    let (code, out, err) = world.fairway(&["describe", "run", &name]);
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("Holds back: nothing\n") && !out.contains("You can:"),
        "{out}"
    );
}
