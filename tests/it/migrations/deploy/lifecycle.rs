//! Migrations past their time, and components that go.

use fairway::model::api::RunPhase;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::stage::{self, WEB, mark};
use crate::support::world::World;

/// The agent's ConfigMap `old` has to go before 1.5.0.
fn removes_old(world: &World) -> Value {
    json!({
        "lifecycle": {"never": null, "introducedIn": "1.2.0", "removeIn": "1.5.0"},
        "lookups": {
            "mark": null,
            "old": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": world.apps, "name": "old"},
        },
        "guard": {"needed": "objects.old != null"},
        "steps": [{"id": "remove", "delete": {"ref": "old"}}],
    })
}

fn version(world: &World, version: &str) {
    let text = format!("apiVersion: fairway.dev/v1alpha1\nkind: Component\nversion: {version}\n");
    world
        .repository
        .write("components/web/component.yaml", text);
}

/// A repository whose component is past the release in which its migration goes.
async fn past_its_time() -> World {
    let world = World::new().await;
    stage::allow(&world).await;
    world.config_map("web", "settings", "one");
    version(&world, "1.6.0");
    stage::marks(&world, &mark("tidy", WEB, "pre", removes_old(&world)));
    world.repository.publish("A release without the old object");
    world
}

fn validate(world: &World) -> (i32, String) {
    let folder = world.repository.path().to_str().unwrap().to_owned();
    let (code, out, err) = world.fairway(&["validate", &folder]);
    (code, out + &err)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j13_past_its_time_it_fails_validation_and_is_not_executed() {
    let world = past_its_time().await;
    let (code, told) = validate(&world);
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("error[migration-lifecycle]"), "{told}");

    let agent = world.agent();
    world.declare(json!({})).await;
    stage::until_committed(&world, WEB, None).await;
    world.until_value("settings", Some("one")).await;
    assert_eq!(stage::outcomes(&world).await, [""; 0]);
    assert!(agent.log().contains("judged a migration"), "it was asked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j14_where_it_is_still_needed_the_deploy_waits_for_the_release_that_was_skipped() {
    let world = past_its_time().await;
    stage::put(&world, "old").await;
    let _agent = world.agent();
    world.declare(json!({})).await;
    let blocked = stage::until_run(&world, "tidy", RunPhase::Blocked).await;
    assert_eq!(blocked.status.unwrap().reason, "HopSkipped");
    let hold = stage::until_hold(&world, "MigrationBlocked").await;
    for part in ["skipped", "components/web", "1.2.0", "below 1.5.0"] {
        assert!(hold.message.contains(part), "{part}: {}", hold.message);
    }
    // Nobody may wave it through: nothing of it may run any more.
    let name = blocked.metadata.name.unwrap();
    let wave = ["run", "override", &name, "--for", "1h", "--reason", "late"];
    let (code, _, err) = world.fairway(&wave);
    assert_eq!(code, 2, "{err}");
    assert_eq!(world.value("settings").await, None);
    assert_ne!(world.config_maps().get_opt("old").await.unwrap(), None);

    // The way out that it names.
    version(&world, "1.4.0");
    world.repository.publish("The release that was skipped");
    world.ring().await;
    let target = stage::until_committed(&world, WEB, None).await;
    assert_eq!(world.config_maps().get_opt("old").await.unwrap(), None);
    assert_eq!(world.value("settings").await.as_deref(), Some("one"));
    let first = target.status.unwrap().components[0].digest.clone();
    version(&world, "1.6.0");
    world.repository.publish("The release again");
    world.ring().await;
    stage::until_committed(&world, WEB, first.as_deref()).await;
    let mut outcomes = stage::outcomes(&world).await;
    outcomes.sort();
    assert_eq!(outcomes, ["tidy Succeeded", "tidy Superseded"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j16_what_goes_is_deleted_without_any_migration() {
    let world = World::new().await;
    stage::allow(&world).await;
    world.config_map("web", "settings", "one");
    world.config_map("api", "limits", "one");
    stage::marks(&world, &mark("before", WEB, "pre", json!({})));
    stage::marks(&world, &mark("behind", WEB, "post", json!({})));
    world.repository.publish("A component with migrations");
    let _agent = world.agent();
    world.declare(json!({})).await;
    stage::until_committed(&world, WEB, None).await;
    world.until_reason("Synced").await;
    // They would be needed again, if anybody asked.
    for name in ["before", "behind"] {
        let made = world.config_maps();
        made.delete(name, &DeleteParams::default()).await.unwrap();
    }
    world.repository.remove("components/web");
    world.proxy.forget();
    world.publish("Without the component").await;
    let approve = ["approve", "prune", &world.name, "--reason", "it is over"];
    let (code, _, err) = world.fairway(&approve);
    assert_eq!(code, 0, "{err}");
    world.until_value("settings", None).await;
    world.reconcile().await;
    let seen = world.proxy.seen();
    let judged = |name: &str| {
        let path = format!("/configmaps/{name}");
        seen.iter().any(|it| it.path.ends_with(&path))
    };
    assert!(!judged("before") && !judged("behind"), "{seen:#?}");
    let runs = stage::all_runs(&world).await;
    let names: Vec<String> = runs.iter().map(kube::ResourceExt::name_any).collect();
    assert_eq!(runs.len(), 2, "{names:?}");
    // The record of what is gone is gone as well: if it comes back, it is installed anew.
    let status = world.target().await.status.unwrap();
    assert!(status.components.is_empty(), "{:#?}", status.components);

    let uninstalls = json!({"bind": {"on": ["uninstall"]}});
    world.config_map("web", "settings", "one");
    stage::marks(&world, &mark("never", WEB, "pre", uninstalls));
    let (code, told) = validate(&world);
    assert_eq!(code, 1, "{told}");
    assert!(
        told.contains("components/web/migrations/never.yaml:"),
        "{told}"
    );
    assert!(told.contains("uninstall"), "{told}");
}
