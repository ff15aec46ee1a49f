//! The end of a source: what stays, what goes first and waits for a person, and that nothing hangs or is forgotten.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::wait::{Condition, await_condition};
use serde_json::{Value, json};

use crate::support::agent::{Agent, signal};
use crate::support::proxy::{Fault, Rule, Seen};
use crate::support::world::{World, ready};

const FINALIZER: &str = "fairway.dev/prune";

/// Makes a world with three objects of two components in step.
async fn in_step(spec: Value) -> (World, Agent) {
    let world = World::new().await;
    for (component, name) in [("web", "settings"), ("web", "limits"), ("api", "routes")] {
        world.config_map(component, name, "one");
    }
    world.repository.publish("Add three");
    let agent = world.agent();
    world.declare(spec).await;
    world.until_reason("Synced").await;
    (world, agent)
}

async fn delete(world: &World) {
    world
        .sources()
        .delete(&world.name, &DeleteParams::default())
        .await
        .unwrap();
}

async fn set_policy(world: &World, policy: &str) {
    let patch = json!({"spec": {"deletionPolicy": policy}});
    world
        .sources()
        .patch(&world.name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
}

async fn until_finalizers(world: &World, wanted: &[&str]) {
    let wanted: Vec<String> = wanted.iter().map(|&one| one.to_owned()).collect();
    world
        .until_source("the finalizers are right", move |source: Option<&_>| {
            source.is_some_and(|source: &fairway::model::api::ReleaseSource| {
                source.finalizers() == wanted
            })
        })
        .await;
}

/// Waits until the source and its Target are gone.
async fn until_gone(world: &World) {
    let gone = |found: Option<&fairway::model::api::ReleaseSource>| found.is_none();
    await_gone(world.sources(), &world.name, gone, "the source").await;
    let gone = |found: Option<&fairway::model::api::Target>| found.is_none();
    let name = format!("{}.home", world.name);
    await_gone(world.targets(), &name, gone, "the Target").await;
}

async fn await_gone<K>(api: kube::Api<K>, name: &str, gone: impl Condition<K>, what: &str)
where
    K: kube::Resource + Clone + std::fmt::Debug + Send + serde::de::DeserializeOwned + 'static,
{
    let waiting = await_condition(api.clone(), name, gone);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(60), waiting).await;
    assert!(
        ended.is_ok(),
        "{what} is still there: {:#?}",
        api.get_opt(name).await
    );
}

/// Returns the names of what is there with the source's label.
async fn left(world: &World) -> Vec<String> {
    let labels = ListParams::default().labels(&format!("fairway.dev/source={}", world.name));
    let found = world.config_maps().list(&labels).await.unwrap();
    found
        .items
        .iter()
        .map(kube::ResourceExt::name_any)
        .collect()
}

fn deletions(world: &World) -> usize {
    world.proxy.count("DELETE", "/configmaps/")
}

fn approve(world: &World) {
    let (code, _, err) = world.fairway(&["approve", "prune", &world.name, "--reason", "retired"]);
    assert_eq!(code, 0, "{err}");
}

#[tokio::test]
async fn by_default_everything_stays_and_only_the_record_goes() {
    let (world, _agent) = in_step(json!({})).await;
    assert_eq!(world.source().await.finalizers(), [] as [String; 0]);
    delete(&world).await;
    until_gone(&world).await;
    assert_eq!(left(&world).await, ["limits", "routes", "settings"]);
    assert_eq!(deletions(&world), 0);

    // A source of the same name finds what is in step already, and prunes nothing before a person has adopted it.
    world.repository.remove("components/web/limits.yaml");
    world.repository.publish("Drop one");
    world.declare(json!({})).await;
    let source = world.until_reason("PartiallyApplied").await;
    assert!(
        ready(&source).2.contains("fairway adopt"),
        "{:?}",
        ready(&source)
    );
    let (code, _, err) = world.fairway(&["adopt", &world.name, "--reason", "declared anew"]);
    assert_eq!(code, 0, "{err}");
    world.until_value("limits", None).await;
    assert_eq!(left(&world).await, ["routes", "settings"]);
}

#[tokio::test]
async fn a_target_whose_source_went_while_no_agent_was_there_is_cleared_away() {
    let (world, mut agent) = in_step(json!({})).await;
    agent.kill();
    delete(&world).await;
    let _agent = world.agent();
    until_gone(&world).await;
    assert_eq!(left(&world).await, ["limits", "routes", "settings"]);
}

#[tokio::test]
async fn with_delete_everything_waits_for_a_person_and_goes_without_git() {
    let (world, mut agent) = in_step(json!({"deletionPolicy": "Delete"})).await;
    assert_eq!(world.source().await.finalizers(), [FINALIZER]);
    // Somebody else's object with a copied label is none of ours.
    let copied = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "copied", "namespace": world.apps, "labels": {"fairway.dev/source": world.name}},
    });
    world.plane.apply_yaml(&copied.to_string()).await;

    world.server.fault("deny");
    delete(&world).await;
    let source = world.until_reason("ApprovalNeeded").await;
    let (_, _, message) = ready(&source);
    assert!(message.contains("the source is being deleted"), "{message}");
    assert!(message.contains("disappears as a whole"), "{message}");
    assert!(!message.contains("announce"), "{message}");
    assert_eq!(deletions(&world), 0);

    agent.kill();
    let _agent = world.agent();
    let (code, out, _) = world.fairway(&["get", "approvals"]);
    assert_eq!(code, 0);
    assert!(
        out.contains(&format!("fairway approve prune {}", world.name)),
        "{out}"
    );
    approve(&world);
    until_gone(&world).await;
    assert_eq!(left(&world).await, ["copied"]);
    assert_eq!(deletions(&world), 3);
}

#[tokio::test]
async fn the_finalizer_follows_the_policy_also_while_the_source_is_suspended_or_being_deleted() {
    let (world, _agent) = in_step(json!({})).await;
    set_policy(&world, "Delete").await;
    until_finalizers(&world, &[FINALIZER]).await;
    set_policy(&world, "Orphan").await;
    until_finalizers(&world, &[]).await;
    let (code, _, err) = world.fairway(&["suspend", &world.name]);
    assert_eq!(code, 0, "{err}");
    set_policy(&world, "Delete").await;
    until_finalizers(&world, &[FINALIZER]).await;

    delete(&world).await;
    let source = world.until_reason("Deleting").await;
    let (_, _, message) = ready(&source);
    assert!(
        message.contains(&format!("fairway resume {}", world.name)),
        "{message}"
    );
    assert!(message.contains("deletionPolicy: Orphan"), "{message}");
    set_policy(&world, "Orphan").await;
    until_gone(&world).await;
    assert_eq!(left(&world).await, ["limits", "routes", "settings"]);
    assert_eq!(deletions(&world), 0);
}

#[tokio::test]
async fn what_cannot_be_listed_is_neither_deleted_nor_forgotten() {
    let (world, mut agent) = in_step(json!({"deletionPolicy": "Delete"})).await;
    agent.kill();
    delete(&world).await;
    world
        .proxy
        .inject(Rule::always("GET", "/configmaps", Fault::Status(403)));
    let _agent = world.agent();
    let source = world.until_reason("Deleting").await;
    assert!(
        ready(&source).2.contains("ConfigMap"),
        "{:?}",
        ready(&source)
    );
    assert_eq!(left(&world).await.len(), 3);
    world.proxy.heal();
    world.until_reason("ApprovalNeeded").await;
    approve(&world);
    until_gone(&world).await;
    assert_eq!(left(&world).await, [] as [String; 0]);
}

#[tokio::test]
async fn a_record_that_was_lost_is_not_taken_for_nothing_to_delete() {
    let (world, mut agent) = in_step(json!({"deletionPolicy": "Delete"})).await;
    agent.kill();
    let name = format!("{}.home", world.name);
    world
        .targets()
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    delete(&world).await;
    let _agent = world.agent();
    let source = world.until_reason("Deleting").await;
    assert!(
        ready(&source).2.contains("fairway adopt"),
        "{:?}",
        ready(&source)
    );
    assert_eq!(left(&world).await.len(), 3);
    let (code, _, err) = world.fairway(&["adopt", &world.name, "--reason", "tested"]);
    assert_eq!(code, 0, "{err}");
    world.until_reason("ApprovalNeeded").await;
    approve(&world);
    until_gone(&world).await;
    assert_eq!(left(&world).await, [] as [String; 0]);
}

#[tokio::test]
async fn an_agent_that_is_killed_half_way_goes_on_where_it_was() {
    let (world, mut agent) = in_step(json!({"deletionPolicy": "Delete"})).await;
    delete(&world).await;
    world.until_reason("ApprovalNeeded").await;
    world.proxy.inject(Rule::always(
        "DELETE",
        "/configmaps/routes",
        Fault::Status(500),
    ));
    approve(&world);
    world.until_value("settings", None).await;
    world.until_value("limits", None).await;
    agent.kill();
    world.proxy.heal();
    assert_eq!(left(&world).await, ["routes"]);
    let _agent = world.agent();
    until_gone(&world).await;
    assert_eq!(left(&world).await, [] as [String; 0]);
}

#[tokio::test]
async fn a_source_that_has_applied_nothing_goes_at_once() {
    let world = World::new().await;
    world.server.fault("deny");
    let _agent = world.agent();
    world.declare(json!({"deletionPolicy": "Delete"})).await;
    until_finalizers(&world, &[FINALIZER]).await;
    delete(&world).await;
    until_gone(&world).await;
}

/// Kills the agent when its write with this number was answered, and lets the next one go on; returns what that write was.
async fn killed_after_write(number: usize) -> Option<String> {
    let (world, mut agent) = in_step(json!({"deletionPolicy": "Delete"})).await;
    delete(&world).await;
    world.until_reason("ApprovalNeeded").await;
    agent.kill();
    approve(&world);
    let (process, died) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(None)));
    let (pid, at, writes) = (Arc::clone(&process), Arc::clone(&died), AtomicUsize::new(0));
    world.proxy.after(Arc::new(move |_, seen: &Seen| {
        let is_write = matches!(seen.verb.as_str(), "PATCH" | "POST" | "DELETE");
        if !is_write || writes.fetch_add(1, Ordering::SeqCst) + 1 != number {
            return true;
        }
        *at.lock().unwrap() = Some(format!("{} {}", seen.verb, seen.path));
        signal(pid.load(Ordering::SeqCst), "KILL");
        false
    }));
    world.proxy.forget();
    let mut agent = world.agent();
    process.store(agent.id(), Ordering::SeqCst);
    let dead = async {
        while died.lock().unwrap().is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = dead => {}
        () = until_gone(&world) => {}
    }
    agent.kill();
    let _agent = world.agent();
    until_gone(&world).await;
    assert_eq!(left(&world).await, [] as [String; 0]);
    died.lock().unwrap().take()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_write_is_the_last_of_an_agent_the_next_one_brings_the_source_to_its_end() {
    let mut crashes = Vec::new();
    for number in 1.. {
        match killed_after_write(number).await {
            Some(write) => crashes.push(write),
            None => break,
        }
    }
    let count = |verb: &str, part: &str| {
        let fits = |write: &&String| write.starts_with(verb) && write.contains(part);
        crashes.iter().filter(fits).count()
    };
    // The approval, each object, the finalizer, and the Target after all of these.
    assert_eq!(count("PATCH", "/targets/"), 1, "{crashes:?}");
    assert_eq!(count("DELETE", "/configmaps/"), 3, "{crashes:?}");
    assert_eq!(count("PATCH", "/releasesources/"), 1, "{crashes:?}");
    assert_eq!(count("DELETE", "/targets/"), 1, "{crashes:?}");
    assert!(crashes.last().unwrap().contains("/targets/"), "{crashes:?}");
}
