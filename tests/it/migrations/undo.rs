//! Removing a component whose migrations are taken back, by the agent as a process under the shipped rights.

use fairway::model::api::{Run, RunPhase};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::deploy::stage::{self, Marks};
use crate::support::agent::Agent;
use crate::support::world::World;

const SHOP: &str = "components/shop";

/// Publishes a component that asks for an undo, whose migration changes the ConfigMap `shared`, which is somebody else's, and makes one
/// of its own. `undo` comes first when that is taken back.
pub(crate) async fn set(world: &World, undo: Value) {
    stage::allow(world).await;
    let shared = json!({"metadata": {"name": "shared"}, "data": {"value": "old", "other": "kept"}});
    let shared: ConfigMap = serde_json::from_value(shared).unwrap();
    let maps = world.config_maps();
    maps.create(&PostParams::default(), &shared).await.unwrap();
    world.config_map("web", "settings", "one");
    world.config_map("shop", "prices", "one");
    let component = "apiVersion: fairway.dev/v1alpha1\nkind: Component\nonRemove: Undo\n";
    let file = format!("{SHOP}/component.yaml");
    world.repository.write(&file, component);
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": world.apps, "name": name});
    let mut back = vec![
        json!({"id": "unmake", "delete": {"select": {
            "apiVersion": "v1", "kind": "ConfigMap", "namespace": world.apps, "names": ["made"],
        }}}),
        json!({"id": "unchange", "patch": {"ref": "shared", "body": {"data": {"value": "old"}}}}),
    ];
    if !undo.is_null() {
        back.insert(0, undo);
    }
    let more = json!({
        "lookups": {"shared": map("shared"), "gate": map("gate")},
        "guard": {"needed": "objects.shared.data.value != 'new'"},
        "steps": [
            {"id": "make", "apply": {"manifest": {
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made", "namespace": world.apps},
                "data": {"value": "made"},
            }}},
            {"id": "change", "patch": {"ref": "shared", "body": {"data": {"value": "new"}}}},
        ],
        "undo": back,
    });
    let migration = Marks {
        name: "adopt",
        of: SHOP,
        phase: "pre",
        more,
    };
    stage::marks(world, &migration);
}

/// Takes the component out of git; with an announcement, if it is to go without an approval.
pub(crate) fn remove(world: &World, announced: bool) {
    for file in ["prices.yaml", "component.yaml", "migrations/adopt.yaml"] {
        world.repository.remove(&format!("{SHOP}/{file}"));
    }
    if announced {
        let settings = format!(
            "apiVersion: fairway.dev/v1alpha1\nkind: Repository\nremovals:\n  - component: {SHOP}\n"
        );
        world.repository.write("fairway.yaml", settings);
    }
}

/// Deploys what [`set`] has written, with an agent that goes on.
async fn deployed(world: &World) -> Agent {
    world.repository.publish("A component with a migration");
    let agent = world.agent();
    world.declare(json!({})).await;
    adopted(world).await;
    agent
}

async fn adopted(world: &World) -> Run {
    let run = stage::until_run(world, "adopt", RunPhase::Succeeded).await;
    world.until_reason("Synced").await;
    assert_eq!(world.value("shared").await.as_deref(), Some("new"));
    assert_eq!(world.value("made").await.as_deref(), Some("made"));
    let status = world.target().await.status.unwrap();
    assert_eq!(status.undo_on_remove, [SHOP]);
    run
}

/// Returns the run once it is taken back.
async fn undone(world: &World) -> Run {
    world.until_reason("Synced").await;
    let mut runs = stage::all_runs(world).await;
    let run = runs.pop().expect("it is kept");
    let status = run.status.clone().unwrap();
    assert_eq!(
        (status.phase, status.reason.as_str()),
        (RunPhase::Succeeded, "Undone")
    );
    run
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_announced_removal_is_taken_back_before_its_objects_go() {
    let world = World::new().await;
    set(&world, Value::Null).await;
    let _agent = deployed(&world).await;
    remove(&world, true);
    let (code, plan, err) = world.fairway(&[
        "plan",
        world.repository.path().to_str().unwrap(),
        "--source",
        &world.name,
    ]);
    assert_eq!(code, 0, "{err}");
    for part in [
        "undo        components/shop: what its migrations have changed would be taken back first",
        "can be taken back, the last first:",
        "undo: unmake (delete), unchange (patch)",
    ] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    world.proxy.forget();
    world.publish("The component goes").await;
    let run = undone(&world).await;
    assert_eq!(world.value("shared").await.as_deref(), Some("old"));
    assert_eq!(world.value("made").await, None);
    assert_eq!(world.value("prices").await, None);
    assert_eq!(run.status.clone().unwrap().message, "");
    let effects: Vec<String> = world
        .proxy
        .seen()
        .into_iter()
        .filter(|it| {
            matches!(it.verb.as_str(), "PATCH" | "DELETE") && it.path.contains("/configmaps/")
        })
        .map(|it| format!("{} {}", it.verb, it.path.rsplit('/').next().unwrap()))
        .collect();
    assert_eq!(effects, ["DELETE made", "PATCH shared", "DELETE prices"]);
    assert!(
        world
            .target()
            .await
            .status
            .unwrap()
            .undo_on_remove
            .is_empty()
    );
    // Told on the run and on its source, each once.
    let events = events(&world).await;
    for reason in ["RunBegun", "RunSucceeded", "RunBegun", "RunUndone"] {
        for regarding in ["Run", "ReleaseSource"] {
            assert!(
                events.contains(&format!("{reason} {regarding}")),
                "{reason} {regarding}: {events:#?}"
            );
        }
    }
    assert_eq!(
        events.iter().filter(|it| **it == "RunUndone Run").count(),
        1
    );
    assert_eq!(events.iter().filter(|it| **it == "RunBegun Run").count(), 2);
}

/// Returns `REASON KIND` of all Events about runs; they are written beside the run, so that the last one is waited for.
async fn events(world: &World) -> Vec<String> {
    events_until(world, "RunUndone ReleaseSource").await
}

async fn events_until(world: &World, last: &str) -> Vec<String> {
    let api: kube::Api<k8s_openapi::api::events::v1::Event> =
        kube::Api::namespaced(world.client.clone(), &world.name);
    for _ in 0..600 {
        let list = api.list(&kube::api::ListParams::default()).await.unwrap();
        let mut told: Vec<String> = list
            .items
            .into_iter()
            .filter_map(|event| {
                let kind = event.regarding?.kind?;
                Some(format!("{} {kind}", event.reason?))
            })
            .filter(|it| it.starts_with("Run"))
            .collect();
        told.sort();
        if told.iter().any(|it| it == last) {
            return told;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the events do not come");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unannounced_removal_waits_for_its_approval_and_leaves_what_somebody_has_changed() {
    let world = World::new().await;
    set(&world, Value::Null).await;
    let _agent = deployed(&world).await;
    remove(&world, false);
    world
        .publish("The component goes, and nobody has said so")
        .await;
    world.until_reason("ApprovalNeeded").await;
    let theirs = Patch::Merge(json!({"data": {"value": "theirs"}}));
    world
        .config_maps()
        .patch("shared", &PatchParams::default(), &theirs)
        .await
        .unwrap();
    world.reconcile().await;
    assert_eq!(world.value("made").await.as_deref(), Some("made"));
    let (code, _, err) =
        world.fairway(&["approve", "prune", &world.name, "--reason", "it is over"]);
    assert_eq!(code, 0, "{err}");
    world.until_value("prices", None).await;
    let run = undone(&world).await;
    assert_eq!(world.value("shared").await.as_deref(), Some("theirs"));
    assert_eq!(world.value("made").await, None);
    let message = run.status.unwrap().message;
    assert!(
        message.contains("shared is left as it is: `/data/value` was changed by somebody else"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_that_fails_keeps_the_objects_until_it_has_ended_well() {
    let world = World::new().await;
    let gate =
        json!({"id": "ready", "wait": {"until": "objects.gate != null"}, "attemptTimeout": "1s"});
    set(&world, gate).await;
    let _agent = deployed(&world).await;
    remove(&world, true);
    world.publish("The component goes").await;
    let failed = stage::until_run(&world, "adopt", RunPhase::Failed).await;
    world.until_reason("PartiallyApplied").await;
    assert_eq!(
        stage::holds(&world).await,
        ["MigrationFailed deletion of components/shop"]
    );
    assert_eq!(world.value("prices").await.as_deref(), Some("one"));
    assert_eq!(world.value("shared").await.as_deref(), Some("new"));
    stage::open_gate(&world).await;
    let name = failed.name_any();
    let (code, _, err) = world.fairway(&["run", "retry", &name, "--reason", "the gate is open"]);
    assert_eq!(code, 0, "{err}");
    undone(&world).await;
    assert_eq!(world.value("prices").await, None);
    assert_eq!(world.value("shared").await.as_deref(), Some("old"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_comes_back_waits_for_its_undo_and_is_migrated_anew() {
    let world = World::new().await;
    let gate =
        json!({"id": "ready", "wait": {"until": "objects.gate != null"}, "attemptTimeout": "5m"});
    set(&world, gate).await;
    let _agent = deployed(&world).await;
    remove(&world, true);
    world.publish("The component goes").await;
    stage::until_run(&world, "adopt", RunPhase::Waiting).await;
    world.repository.git(&["revert", "--no-edit", "HEAD"]);
    world.repository.push();
    world.reconcile().await;
    let holds = stage::holds(&world).await;
    assert!(
        holds.contains(&"MigrationPending components/shop".to_owned()),
        "{holds:?}"
    );
    stage::open_gate(&world).await;
    world.reconcile().await;
    world.until_reason("Synced").await;
    assert_eq!(
        stage::outcomes(&world).await,
        ["adopt Succeeded", "adopt Succeeded"]
    );
    assert_eq!(world.value("shared").await.as_deref(), Some("new"));
    assert_eq!(world.value("made").await.as_deref(), Some("made"));
    assert_eq!(world.value("prices").await.as_deref(), Some("one"));
    assert_eq!(world.target().await.status.unwrap().undo_on_remove, [SHOP]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_that_fails_is_given_up_by_a_person_and_the_removal_goes_on() {
    let world = World::new().await;
    let gate =
        json!({"id": "ready", "wait": {"until": "objects.gate != null"}, "attemptTimeout": "1s"});
    set(&world, gate).await;
    let agent = deployed(&world).await;
    remove(&world, true);
    world.publish("The component goes").await;
    let failed = stage::until_run(&world, "adopt", RunPhase::Failed).await;
    world.until_reason("PartiallyApplied").await;
    let (code, page, err) = world.fairway(&["describe", "run", "adopt"]);
    assert_eq!(code, 0, "{err}");
    for part in [
        "Holds back: the deletion of what is left of components/shop",
        "run retry adopt --reason '…'\n      try again",
        "run resolve adopt keep --reason '…'\n      leave what is not taken back as it is",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let say =
        |word: &str| world.fairway(&["run", "resolve", "adopt", word, "--reason", "so be it"]);
    // It is no step of which nobody knows.
    let (code, _, err) = say("done");
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains("is Failed, so that resolve done makes no sense"),
        "{err}"
    );
    let (code, _, err) = say("keep");
    assert_eq!(code, 0, "{err}");
    world.until_reason("Synced").await;
    assert_eq!(world.value("prices").await, None);
    assert_eq!(world.value("shared").await.as_deref(), Some("new"));
    assert_eq!(world.value("made").await.as_deref(), Some("made"));
    let run = stage::all_runs(&world).await.pop().expect("it is kept");
    let status = run.status.clone().unwrap();
    assert_eq!(
        (status.phase, status.reason.as_str()),
        (RunPhase::Cancelled, "UndoGivenUp")
    );
    assert!(
        status
            .message
            .ends_with("leaves it as it is: so be it; not taken back: ready, unmake, unchange"),
        "{}",
        status.message
    );
    let target = world.target().await.status.unwrap();
    assert!(target.undo_on_remove.is_empty());
    let audit: Vec<Value> = agent
        .audit()
        .into_iter()
        .filter(|line| line["action"] == "run-resolve")
        .collect();
    assert_eq!(audit.len(), 1, "{audit:#?}");
    assert_eq!(audit[0]["decision"]["reason"], "so be it");
    assert_eq!(audit[0]["object"]["name"], failed.name_any());
    let told = events_until(&world, "RunUndoGivenUp ReleaseSource").await;
    let count = told
        .iter()
        .filter(|it| **it == "RunUndoGivenUp Run")
        .count();
    assert_eq!(count, 1, "{told:#?}");
    let (code, page, err) = world.fairway(&["plan", "--remove", SHOP, "--source", &world.name]);
    assert_eq!(code, 0, "{err}");
    assert!(
        page.contains("What stays as it is, since somebody has decided that:"),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_published_module_that_is_gone_is_taken_back_before_its_catalog_goes() {
    const MODULE: &str = "modules/telemetry";
    let world = World::new().await;
    stage::allow(&world).await;
    crate::crash::stage::publish_telemetry(&world);
    let component = "apiVersion: fairway.dev/v1alpha1\nkind: Component\nonRemove: Undo\n";
    let file = format!("{MODULE}/component.yaml");
    world.repository.write(&file, component);
    let back = json!({"undo": [{"id": "unmake", "delete": {"select": {
        "apiVersion": "v1", "kind": "ConfigMap", "namespace": world.apps, "names": ["adopt"],
    }}}]});
    stage::marks(&world, &stage::mark("adopt", MODULE, "pre", back));
    world.config_map("web", "settings", "one");
    world.repository.publish("A module with a migration");
    let _agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    assert_eq!(world.value("adopt").await.as_deref(), Some("done"));
    let status = world.target().await.status.unwrap();
    assert_eq!(status.undo_on_remove, [MODULE]);
    let remove = ["plan", "--remove", MODULE, "--source", &world.name];
    let (code, page, err) = world.fairway(&remove);
    assert_eq!(code, 0, "{err}");
    assert!(page.contains("undo: unmake (delete)"), "{page}");
    world.repository.git(&["rm", "-rq", MODULE]);
    let settings = format!(
        "apiVersion: fairway.dev/v1alpha1\nkind: Repository\nremovals:\n  - component: {MODULE}\n"
    );
    world.repository.write("fairway.yaml", settings);
    world.proxy.forget();
    world.publish("The module goes").await;
    undone(&world).await;
    assert_eq!(world.value("adopt").await, None);
    let deleted: Vec<String> = world
        .proxy
        .seen()
        .into_iter()
        .filter(|it| it.verb == "DELETE")
        .map(|it| it.path.split('/').rev().nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(deleted[0], "configmaps", "{deleted:?}");
    let catalog = ["modulereleasemetas", "moduletemplates"];
    assert!(
        deleted[1..].iter().all(|it| catalog.contains(&it.as_str())),
        "{deleted:?}"
    );
    assert_eq!(deleted.len(), 5, "{deleted:?}");
    let status = world.target().await.status.unwrap();
    assert!(status.undo_on_remove.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_that_lacks_a_right_prints_its_role_before_anything_is_taken_back() {
    let world = World::new().await;
    // The shipped roles know nothing of volumes.
    let volumes = json!({"id": "volumes", "delete": {"select": {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": world.apps, "names": ["data"],
    }}});
    set(&world, volumes).await;
    let _agent = deployed(&world).await;
    remove(&world, true);
    world.publish("The component goes").await;
    let blocked = stage::until_run(&world, "adopt", RunPhase::Blocked).await;
    world.until_reason("PartiallyApplied").await;
    assert_eq!(
        stage::holds(&world).await,
        ["MigrationBlocked deletion of components/shop"]
    );
    assert_eq!(world.value("made").await.as_deref(), Some("made"));
    assert_eq!(world.value("prices").await.as_deref(), Some("one"));
    let status = blocked.status.unwrap();
    assert_eq!(status.reason, "RightMissing");
    let (first, role) = status.message.split_once('\n').unwrap();
    let needs = format!("delete persistentvolumeclaims data in {}", world.apps);
    assert!(first.contains(&needs), "{first}");
    let list: Value = serde_yaml::from_str(role).unwrap();
    for item in list["items"].as_array().unwrap() {
        world.plane.apply_yaml(&item.to_string()).await;
    }
    world.reconcile().await;
    undone(&world).await;
    assert_eq!(world.value("made").await, None);
    assert_eq!(world.value("prices").await, None);
}
