//! Ownership is the drift detector: the corners that ADR 2 settles, end to end.

use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::support::world::{World, ready};

async fn synced(
    file: &str,
    text: impl Fn(&World) -> String,
) -> (World, crate::support::world::Agent) {
    let world = World::new().await;
    world.config_map("web", "bystander", "x");
    world.repository.write(file, text(&world));
    world.repository.publish("Begin");
    let agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    (world, agent)
}

fn config_map(world: &World, data: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, namespace: {}}}\ndata: {data}\n",
        world.apps
    )
}

async fn merge(world: &World, patch: serde_json::Value) {
    let parameters = PatchParams {
        field_manager: Some("kubectl-edit".into()),
        ..PatchParams::default()
    };
    world
        .config_maps()
        .patch("settings", &parameters, &Patch::Merge(&patch))
        .await
        .unwrap();
}

#[tokio::test]
async fn an_object_of_kubectl_apply_is_taken_over_and_loses_what_git_does_not_have() {
    let world = World::new().await;
    let last = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"value":"old","gone":"1"}}"#;
    let object = serde_json::from_value(json!({
        "metadata": {
            "name": "settings",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": last},
        },
        "data": {"value": "old", "gone": "1"},
    }))
    .unwrap();
    let parameters = PostParams {
        field_manager: Some("kubectl-client-side-apply".into()),
        ..PostParams::default()
    };
    world
        .config_maps()
        .create(&parameters, &object)
        .await
        .unwrap();
    merge(&world, json!({"data": {"foreign": "kept"}})).await;
    world.repository.write(
        "components/web/settings.yaml",
        config_map(&world, "{value: new}"),
    );
    world.repository.publish("Take over");
    let _agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let data = world
        .config_maps()
        .get("settings")
        .await
        .unwrap()
        .data
        .unwrap();
    let data: Vec<(&str, &str)> = data
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    assert_eq!(data, [("foreign", "kept"), ("value", "new")]);
}

#[tokio::test]
async fn a_field_that_somebody_keeps_taking_back_is_left_to_them_and_named() {
    let (world, _agent) = synced("components/web/settings.yaml", |world| {
        config_map(world, "{value: ours}")
    })
    .await;
    for number in 0..3 {
        merge(
            &world,
            json!({"data": {"value": format!("theirs-{number}")}}),
        )
        .await;
        world.until_value("settings", Some("ours")).await;
    }
    merge(&world, json!({"data": {"value": "theirs"}})).await;
    let source = world.until_reason("PartiallyApplied").await;
    assert_eq!(world.value("settings").await.as_deref(), Some("theirs"));
    let hold = source.status.unwrap().holds.remove(0);
    assert_eq!(hold.reason, "Contested");
    assert!(hold.message.contains("data.value"), "{}", hold.message);
    assert!(hold.message.contains("`kubectl-edit`"), "{}", hold.message);
}

#[tokio::test]
async fn an_object_that_says_so_is_left_alone() {
    let (world, _agent) = synced("components/web/settings.yaml", |world| {
        config_map(world, "{value: ours}")
    })
    .await;
    let annotations = json!({"fairway.dev/reconcile": "disabled"});
    merge(
        &world,
        json!({"metadata": {"annotations": annotations}, "data": {"value": "theirs"}}),
    )
    .await;
    let source = world.until_reason("PartiallyApplied").await;
    assert_eq!(source.status.unwrap().holds[0].reason, "Disabled");
    assert_eq!(world.value("settings").await.as_deref(), Some("theirs"));
    merge(
        &world,
        json!({"metadata": {"annotations": {"fairway.dev/reconcile": null}}}),
    )
    .await;
    world.until_value("settings", Some("ours")).await;
}

#[tokio::test]
async fn a_field_that_cannot_be_changed_is_held_until_git_allows_a_new_start() {
    let (world, _agent) = synced("components/web/settings.yaml", |world| {
        format!("{}immutable: true\n", config_map(world, "{value: one}"))
    })
    .await;
    let uid = world.config_maps().get("settings").await.unwrap().uid();
    let changed = format!("{}immutable: true\n", config_map(&world, "{value: two}"));
    world
        .repository
        .write("components/web/settings.yaml", &changed);
    let source = world.publish("Change it").await;
    let hold = source.status.clone().unwrap().holds.remove(0);
    assert_eq!(hold.reason, "Immutable", "{hold:?}");
    assert!(
        hold.message.contains("fairway.dev/force: enabled"),
        "{}",
        hold.message
    );
    assert_eq!(world.value("settings").await.as_deref(), Some("one"));

    let forced = changed.replace(
        "metadata: {",
        "metadata: {annotations: {fairway.dev/force: enabled}, ",
    );
    world
        .repository
        .write("components/web/settings.yaml", forced);
    world.publish("Allow a new start").await;
    world.until_value("settings", Some("two")).await;
    assert_ne!(
        world.config_maps().get("settings").await.unwrap().uid(),
        uid
    );
}

#[tokio::test]
async fn an_object_that_is_being_deleted_is_waited_for_and_made_anew() {
    let (world, _agent) = synced("components/web/settings.yaml", |world| {
        config_map(world, "{value: ours}")
    })
    .await;
    merge(
        &world,
        json!({"metadata": {"finalizers": ["example.com/wait"]}}),
    )
    .await;
    let uid = world.config_maps().get("settings").await.unwrap().uid();
    world
        .config_maps()
        .delete("settings", &DeleteParams::default())
        .await
        .unwrap();
    let source = world.until_reason("PartiallyApplied").await;
    assert_eq!(source.status.unwrap().holds[0].reason, "Terminating");
    merge(&world, json!({"metadata": {"finalizers": null}})).await;
    world.until_reason("Synced").await;
    world.until_value("settings", Some("ours")).await;
    assert_ne!(
        world.config_maps().get("settings").await.unwrap().uid(),
        uid
    );
}

#[tokio::test]
async fn a_label_that_was_removed_by_hand_comes_back() {
    let (world, _agent) = synced("components/web/settings.yaml", |world| {
        config_map(world, "{value: ours}")
    })
    .await;
    let uid = world.config_maps().get("settings").await.unwrap().uid();
    merge(
        &world,
        json!({"metadata": {"labels": {"fairway.dev/source": null}}}),
    )
    .await;
    let back = |found: Option<&k8s_openapi::api::core::v1::ConfigMap>| {
        found.is_some_and(|found| found.labels().contains_key("fairway.dev/source"))
    };
    let waiting = kube::runtime::wait::await_condition(world.config_maps(), "settings", back);
    tokio::time::timeout(std::time::Duration::from_secs(10), waiting)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        world.config_maps().get("settings").await.unwrap().uid(),
        uid
    );
}

#[tokio::test]
async fn an_object_that_two_sources_want_stays_with_its_owner() {
    let (world, _agent) = synced("components/web/settings.yaml", |world| {
        config_map(world, "{value: ours}")
    })
    .await;
    let other = World::new().await;
    let text = config_map(&world, "{value: theirs}");
    other.repository.write("components/web/settings.yaml", text);
    other.repository.publish("Want the same");
    let _other_agent = other.agent();
    other.declare(json!({})).await;
    let source = other.until_reason("PartiallyApplied").await;
    let hold = source.status.unwrap().holds.remove(0);
    assert_eq!(hold.reason, "Conflict");
    assert!(hold.message.contains(&world.name), "{}", hold.message);
    assert_eq!(world.value("settings").await.as_deref(), Some("ours"));
    assert_eq!(ready(&world.reconcile().await).1, "Synced");
}
