//! F15: records are deleted or put back by a tool for backups. The state decides; what happens once is never run again by itself, and a
//! person is asked.

use fairway::model::api::{Run, RunPhase};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use super::stage::{self, WEB, mark};
use crate::support::world::{Agent, World};

/// The commands of `fairway run` wait for the agent.
const ASKED: [&str; 2] = ["--reason", "I looked"];

/// Publishes a component with a migration that happens once and one that happens when it is needed, and lets both run.
async fn done(policy: &str) -> (World, Agent) {
    let world = World::new().await;
    stage::allow(&world).await;
    world.config_map("web", "settings", "one");
    let once = json!({
        "policy": {"run": policy, "idempotencyKey": "bill"}, "guard": {"needed": "true"},
    });
    for (name, more) in [("bill", once), ("grow", json!({}))] {
        stage::marks(&world, &mark(name, WEB, "pre", more));
    }
    world.repository.publish("Two migrations");
    let agent = world.agent();
    world.declare(json!({})).await;
    stage::until_committed(&world, WEB, None).await;
    world.until_reason("Synced").await;
    assert_eq!(
        stage::outcomes(&world).await,
        ["bill Succeeded", "grow Succeeded"]
    );
    let bill = stage::all_runs(&world).await.remove(0);
    assert_eq!(remembered(&world).await, [(bill.name_any(), uid(&bill))]);
    // Nothing but the cluster's own state would tell that it ran again.
    delete(&world, "bill").await;
    (world, agent)
}

async fn remembered(world: &World) -> Vec<(String, String)> {
    let status = world.target().await.status.unwrap();
    let runs = status.once_runs.into_iter();
    runs.map(|one| (one.run, one.uid)).collect()
}

fn uid(run: &Run) -> String {
    run.metadata.uid.clone().unwrap()
}

async fn delete(world: &World, config_map: &str) {
    let api = world.config_maps();
    api.delete(config_map, &DeleteParams::default())
        .await
        .unwrap();
    world.until_value(config_map, None).await;
}

async fn delete_run(world: &World, run: &Run) {
    let api = stage::runs(world);
    api.delete(&run.name_any(), &DeleteParams::default())
        .await
        .unwrap();
}

/// Asserts that a person is asked about `bill`, that it was not run again and that its component waits; returns the Run.
async fn asked(world: &World, says: &str) -> Run {
    let asked = stage::until_run(world, "bill", RunPhase::Manual).await;
    let status = asked.status.clone().unwrap();
    assert_eq!(status.reason, "RecordLost");
    assert!(status.message.contains(says), "{}", status.message);
    world
        .until_source("it is held", |source: Option<&_>| {
            let source: Option<&fairway::model::api::ReleaseSource> = source;
            let holds = source.and_then(|it| it.status.as_ref()).map(|it| &it.holds);
            holds.is_some_and(|holds| {
                holds.iter().any(|hold| {
                    hold.reason == "MigrationManual"
                        && hold.what == "migration bill of pre of components/web"
                        && hold.message.contains("done|again|fail --reason")
                })
            })
        })
        .await;
    assert_eq!(world.value("bill").await, None, "it ran again");
    asked
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f15_a_record_that_is_deleted_is_a_question_where_it_decides_and_none_where_the_state_does()
{
    let (world, mut agent) = done("OncePerCluster").await;
    // An idle pass writes neither the memory nor a record.
    world.proxy.forget();
    world.reconcile().await;
    let seen = world.proxy.seen();
    let writes = |it: &&crate::support::proxy::Seen| {
        it.verb != "GET" && (it.path.contains("/targets/") || it.path.contains("/runs"))
    };
    assert_eq!(seen.iter().filter(writes).count(), 0, "{seen:#?}");

    for run in stage::all_runs(&world).await {
        delete_run(&world, &run).await;
    }
    world.config_map("web", "settings", "two");
    world.publish("Another deploy").await;
    let first = asked(&world, "was begun on this cluster before").await;
    // The state says that there is nothing to do: it has no record, and needs none.
    assert_eq!(stage::outcomes(&world).await, ["bill Manual"]);
    agent.kill();
    let _agent = world.agent();
    world.reconcile().await;
    let still = asked(&world, "was begun on this cluster before").await;
    assert_eq!(uid(&still), uid(&first));
    assert_eq!(world.value("settings").await.as_deref(), Some("one"));

    let (code, _, err) = world.fairway(&[&["run", "resolve", "bill", "done"][..], &ASKED].concat());
    assert_eq!(code, 0, "{err}");
    world.until_value("settings", Some("two")).await;
    world.until_reason("Synced").await;
    assert_eq!(stage::outcomes(&world).await, ["bill Succeeded"]);
    assert_eq!(world.value("bill").await, None);
    assert_eq!(remembered(&world).await, [(first.name_any(), uid(&first))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f15_a_record_that_was_put_back_decides_nothing_by_itself() {
    let (world, mut agent) = done("OncePerCluster").await;
    agent.kill();
    delete(&world, "grow").await;
    for run in stage::all_runs(&world).await {
        delete_run(&world, &run).await;
        // As tools for backups do: what it is, and a word of long ago, but not how it stands.
        let wish = r#"{"verb":"resolve","resolution":"again","by":"old","reason":"long ago","at":"2020-01-01T00:00:00Z"}"#;
        let mut back: Value = serde_json::to_value(&run).unwrap();
        back.as_object_mut().unwrap().remove("status");
        back["metadata"] = json!({
            "name": run.name_any(), "labels": run.labels(), "annotations": {"fairway.dev/command": wish},
        });
        let back: Run = serde_json::from_value(back).unwrap();
        let api = stage::runs(&world);
        api.create(&PostParams::default(), &back).await.unwrap();
    }
    world.config_map("web", "settings", "two");
    world.repository.publish("Another deploy");
    let _agent = world.agent();
    asked(&world, "was begun on this cluster before").await;
    let (code, _, err) =
        world.fairway(&[&["run", "resolve", "bill", "again"][..], &ASKED].concat());
    assert_eq!(code, 0, "{err}");
    // A person has said that it did not happen: it happens, and the other one as well, since the state needs it.
    world.until_value("settings", Some("two")).await;
    world.until_reason("Synced").await;
    assert_eq!(world.value("bill").await.as_deref(), Some("done"));
    assert_eq!(world.value("grow").await.as_deref(), Some("done"));
    let mut outcomes = stage::outcomes(&world).await;
    outcomes.sort();
    assert_eq!(
        outcomes,
        ["bill Succeeded", "grow Succeeded", "grow Superseded"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f15_a_target_that_is_lost_learns_from_the_runs_and_asks_where_there_is_none() {
    let (world, mut agent) = done("OncePerHop").await;
    let before = remembered(&world).await;
    agent.kill();
    let name = format!("{}.home", world.name);
    let lose = async || {
        let api = world.targets();
        api.delete(&name, &DeleteParams::default()).await.unwrap();
    };
    lose().await;
    world.config_map("web", "settings", "two");
    world.repository.publish("Another deploy");
    let mut agent = world.agent();
    world.until_value("settings", Some("two")).await;
    stage::until_committed(&world, WEB, None).await;
    assert_eq!(remembered(&world).await, before);
    assert_eq!(world.value("bill").await, None, "it ran again");

    // Both are lost. Where the source has been is to be seen, so that this is no fresh cluster.
    agent.kill();
    lose().await;
    delete_run(&world, &stage::all_runs(&world).await[0]).await;
    world.config_map("web", "settings", "three");
    world.repository.publish("One more");
    let _agent = world.agent();
    asked(&world, "was lost, and so was the record").await;
    let (code, _, err) = world.fairway(&["adopt", &world.name, "--reason", "restored"]);
    assert_eq!(code, 0, "{err}");
    world.reconcile().await;
    asked(&world, "was lost, and so was the record").await;
    let (code, _, err) = world.fairway(&[&["run", "resolve", "bill", "done"][..], &ASKED].concat());
    assert_eq!(code, 0, "{err}");
    world.until_value("settings", Some("three")).await;
    world.until_reason("Synced").await;
    assert_eq!(world.value("bill").await, None);
}
