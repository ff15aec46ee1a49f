//! `fairway sync` with migrations: without an agent, and with the same records.

use fairway::model::api::RunPhase;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use serde_json::json;

use super::deploy::stage::{self, WEB, gate, mark};
use crate::support::world::World;

fn sync(world: &World) -> (i32, String, String) {
    let folder = world.repository.path().to_str().unwrap().to_owned();
    world.fairway(&["sync", &folder, "--source", &world.name, "--yes"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_works_alone_migrates_around_what_it_applies_and_says_how() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    stage::marks(&world, &mark("first", "", "pre", json!({})));
    stage::marks(&world, &mark("before", WEB, "pre", json!({})));
    stage::marks(&world, &mark("behind", WEB, "post", json!({})));
    let (code, out, err) = sync(&world);
    assert_eq!(code, 0, "{out}{err}");
    for name in ["settings", "first", "before", "behind"] {
        assert!(world.value(name).await.is_some(), "{name}: {err}");
    }
    assert_eq!(
        stage::outcomes(&world).await,
        ["before Succeeded", "behind Succeeded", "first Succeeded"]
    );
    // What happens streams by: each run with its end, and what each hook took.
    for run in stage::all_runs(&world).await {
        let succeeded = format!("run {} Succeeded: ", run.metadata.name.unwrap());
        assert!(err.contains(&succeeded), "{err}");
    }
    for hook in [
        "global pre: 1 migration in ",
        "pre of components/web: 1 migration in ",
        "post of components/web: 1 migration in ",
    ] {
        assert!(err.contains(hook), "{hook}: {err}");
    }
    assert!(out.contains("settings applied"), "{out}");

    let (code, out, err) = sync(&world);
    assert_eq!(code, 0, "{out}{err}");
    assert!(!err.contains("run "), "nothing is done twice: {err}");
    assert_eq!(stage::outcomes(&world).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_it_has_done_is_there_to_be_looked_at_without_a_source() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    stage::marks(&world, &mark("before", WEB, "pre", json!({})));
    let folder = world.repository.path().to_str().unwrap().to_owned();
    let plan = || {
        let arguments = ["migration", "plan", &folder, "--source", &world.name];
        let (code, out, err) = world.fairway(&arguments);
        assert_eq!(code, 0, "{out}{err}");
        out
    };
    assert!(!plan().contains("not now"), "nothing of it is there yet");
    let (code, out, err) = sync(&world);
    assert_eq!(code, 0, "{out}{err}");
    let not_now = format!("not now: a deploy of these files leaves {WEB} as it is");
    assert!(plan().contains(&not_now), "{}", plan());

    let (code, out, err) = world.fairway(&["describe", "target", &world.name]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains(&format!("{}.home", world.name)), "{out}");
    let (code, _, err) = world.fairway(&["describe", "source", &world.name]);
    assert_eq!(code, 2);
    let way = format!("fairway describe target {}", world.name);
    assert!(err.contains(&way), "{err}");

    world.config_map("web", "settings", "two");
    assert!(!plan().contains("not now"), "the component changes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_blocked_is_no_success_and_says_what_to_do() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.config_map("api", "limits", "one");
    let open = json!([{"cel": "objects.gate != null", "message": "The gate has to be open."}]);
    let needs_gate = gate(&world, json!({"guard": {"requires": open}}));
    stage::marks(&world, &mark("careful", WEB, "pre", needs_gate));
    let (code, out, err) = sync(&world);
    assert_eq!(code, 1, "{out}{err}");
    let run = stage::until_run(&world, "careful", RunPhase::Blocked).await;
    let name = run.metadata.name.unwrap();
    assert!(err.contains("The gate has to be open."), "{err}");
    assert!(
        err.contains(&format!("fairway run override {name}")),
        "{err}"
    );
    assert_eq!(world.value("settings").await, None);
    assert_eq!(world.value("careful").await, None);
    // What has nothing to do with it is there, and the lease is free again.
    assert_eq!(world.value("limits").await.as_deref(), Some("one"));
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), &world.name);
    let lease = leases.get("fairway-home").await.unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity, None);

    stage::open_gate(&world).await;
    let (code, out, err) = sync(&world);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(world.value("settings").await.as_deref(), Some("one"));
    let runs = stage::all_runs(&world).await;
    assert_eq!(runs.len(), 1, "the same run went on");
    assert_eq!(stage::phase(&runs[0]), RunPhase::Succeeded);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_says_without_an_agent_counts_with_the_next_one() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    let open = json!([{"cel": "objects.gate != null", "message": "The gate has to be open."}]);
    let needs_gate = gate(&world, json!({"guard": {"requires": open}}));
    stage::marks(&world, &mark("careful", WEB, "pre", needs_gate));
    let (code, out, err) = sync(&world);
    assert_eq!(code, 1, "{out}{err}");
    assert!(err.contains("run fairway sync again"), "{err}");
    let say = |verb: &str| {
        let words = [
            "run",
            verb,
            "careful",
            "--reason",
            "a test",
            "--timeout",
            "1s",
        ];
        let (code, out, err) = world.fairway(&words);
        assert_eq!(code, 1, "{out}{err}");
        assert!(err.contains("no agent has taken this up"), "{err}");
    };

    say("cancel");
    let (code, out, err) = sync(&world);
    assert_eq!(code, 1, "{out}{err}");
    stage::until_run(&world, "careful", RunPhase::Cancelled).await;

    say("retry");
    stage::open_gate(&world).await;
    let (code, out, err) = sync(&world);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(stage::outcomes(&world).await, ["careful Succeeded"]);
    assert_eq!(world.value("settings").await.as_deref(), Some("one"));
}
