//! Several sources of one agent: they write one after another, and hold each other up in nothing else.

use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::support::proxy::{Fault, Rule};
use crate::support::world::{World, ready};

/// Returns reason and transition time of `Ready`, and the reasons of the holds.
async fn state(world: &World, name: &str) -> (String, String, Vec<String>) {
    let status = world
        .sources()
        .get(name)
        .await
        .unwrap()
        .status
        .unwrap_or_default();
    let ready = status.conditions.iter().find(|one| one.type_ == "Ready");
    let (reason, since) = ready.map_or_else(Default::default, |one| {
        (
            one.reason.clone(),
            format!("{:?}", one.last_transition_time),
        )
    });
    let holds = status.holds.into_iter().map(|hold| hold.reason).collect();
    (reason, since, holds)
}

pub(super) async fn until_reason(world: &World, name: &str, wanted: &str) {
    let reached = async {
        while state(world, name).await.0 != wanted {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let limit = std::time::Duration::from_secs(60);
    let ended = tokio::time::timeout(limit, reached).await;
    let (reason, _, holds) = state(world, name).await;
    assert!(
        ended.is_ok(),
        "{name} is not {wanted} but {reason}, {holds:?}"
    );
}

/// Names the second source; the label with its name is seen by every agent of the cluster.
fn second_name(world: &World) -> String {
    format!("{}-second", world.name)
}

/// Declares a second source of the same agent, which follows another folder of the same repository.
async fn declare_second(world: &World, name: &str) {
    world.declare_as(name, json!({"path": "second"})).await;
}

fn second_config_map(world: &World, name: &str, data: &str) {
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {}}}\ndata: {{value: {data}}}\n",
        world.apps
    );
    world
        .repository
        .write(&format!("second/components/web/{name}.yaml"), text);
}

#[tokio::test]
async fn a_source_whose_record_cannot_be_read_holds_up_no_other() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    second_config_map(&world, "limits", "one");
    world.repository.publish("Two sources");
    let record = format!("/targets/{}.home", world.name);
    world
        .proxy
        .inject(Rule::always("GET", &record, Fault::Hang));
    let _agent = world.agent();
    world.declare(json!({})).await;
    while world.proxy.count("GET", &record) == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let second = second_name(&world);
    declare_second(&world, &second).await;
    world.until_value("limits", Some("one")).await;
    assert_eq!(ready(&world.source().await).1, "", "the first still waits");
    world.proxy.heal();
    world.until_reason("Synced").await;
}

#[tokio::test]
async fn an_object_that_two_sources_want_is_reported_by_both_and_stays_with_its_owner() {
    let world = World::new().await;
    world.config_map("web", "settings", "ours");
    second_config_map(&world, "settings", "theirs");
    second_config_map(&world, "limits", "theirs");
    world.repository.publish("Want the same");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    world.until_value("settings", Some("ours")).await;
    world.until_reason("Synced").await;
    let second = second_name(&world);
    declare_second(&world, &second).await;
    until_reason(&world, &second, "PartiallyApplied").await;
    until_reason(&world, &world.name, "Conflict").await;
    let (_, since, holds) = state(&world, &world.name).await;
    assert_eq!(holds, ["Conflict"]);
    assert_eq!(state(&world, &second).await.2, ["Conflict"]);
    assert_eq!(world.value("settings").await.as_deref(), Some("ours"));
    assert_eq!(world.value("limits").await.as_deref(), Some("theirs"));

    agent.kill();
    let _agent = world.agent();
    world.reconcile().await;
    until_reason(&world, &world.name, "Conflict").await;
    let again = state(&world, &world.name).await;
    assert_eq!(again.1, since, "a restart is no end of a conflict");

    world
        .repository
        .remove("second/components/web/settings.yaml");
    world.repository.publish("Give it up");
    let (parameters, ask) = (
        PatchParams::default(),
        json!({"metadata": {"annotations": {"fairway.dev/requestedAt": "now"}}}),
    );
    world
        .sources()
        .patch(&second, &parameters, &Patch::Merge(&ask))
        .await
        .unwrap();
    until_reason(&world, &second, "Synced").await;
    until_reason(&world, &world.name, "Synced").await;
    assert_eq!(world.value("settings").await.as_deref(), Some("ours"));
}
