//! Following a repository: what is merged is applied, what is edited by hand is put right, what is bad is held.

use std::time::Duration;

use serde_json::json;

use crate::support::world::{World, ready};

#[tokio::test]
async fn a_commit_reaches_the_cluster_and_moves_the_statuses() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    let commit = world.repository.publish("Add settings");
    let _agent = world.agent();
    world.declare(json!({})).await;
    let source = world.until_reason("Synced").await;
    assert_eq!(world.value("settings").await.as_deref(), Some("one"));
    let status = source.status.unwrap();
    assert_eq!(
        status.last_applied_revision,
        Some(format!("main@sha1:{commit}"))
    );
    let target = world.target().await.status.unwrap();
    assert_eq!(target.kinds, ["ConfigMap"]);
    assert_eq!(target.objects, Some(1));

    world.config_map("web", "settings", "two");
    let source = world.publish("Change settings").await;
    assert_eq!(world.value("settings").await.as_deref(), Some("two"));
    assert_eq!(ready(&source).1, "Synced");
}

#[tokio::test]
async fn an_object_edited_or_deleted_by_hand_is_put_right() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let _agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;

    let edit = json!({"data": {"value": "by hand", "other": "kept"}});
    let parameters = kube::api::PatchParams::default();
    let patch = kube::api::Patch::Merge(&edit);
    world
        .config_maps()
        .patch("settings", &parameters, &patch)
        .await
        .unwrap();
    world.until_value("settings", Some("one")).await;
    let data = world
        .config_maps()
        .get("settings")
        .await
        .unwrap()
        .data
        .unwrap();
    assert_eq!(
        data.get("other").map(String::as_str),
        Some("kept"),
        "a field of somebody else stays"
    );

    world
        .config_maps()
        .delete("settings", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    world.until_value("settings", Some("one")).await;
}

#[tokio::test]
async fn one_bad_file_is_held_at_its_place_while_everything_else_goes_on() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.config_map("api", "limits", "one");
    world.repository.publish("Add both");
    let _agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;

    world.repository.write(
        "components/web/settings.yaml",
        "apiVersion: v1\nkind: ConfigMap\n  oops: here\n",
    );
    world.config_map("api", "limits", "two");
    let source = world.publish("Break one of two").await;
    let (status, reason, message) = ready(&source);
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "PartiallyApplied")
    );
    assert!(
        message.contains("components/web/settings.yaml:3:7"),
        "{message}"
    );
    assert!(message.contains("Ada Example"), "{message}");
    assert_eq!(world.value("limits").await.as_deref(), Some("two"));
    assert_eq!(
        world.value("settings").await.as_deref(),
        Some("one"),
        "the last good state stays"
    );
}

#[tokio::test]
async fn what_git_drops_is_deleted_and_a_whole_component_waits_for_a_person() {
    let world = World::new().await;
    for name in ["one", "two", "three", "four", "five", "six"] {
        world.config_map("web", name, "x");
    }
    world.config_map("api", "limits", "x");
    world.repository.publish("Add seven");
    let _agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;

    world.repository.remove("components/web/one.yaml");
    world.publish("Drop one").await;
    assert_eq!(world.value("one").await, None);

    world.repository.remove("components/api");
    let source = world.publish("Drop a component").await;
    assert_eq!(ready(&source).1, "ApprovalNeeded");
    assert_eq!(world.value("limits").await.as_deref(), Some("x"));
    let (code, out, _) = world.fairway(&["get", "approvals"]);
    assert_eq!(code, 0);
    assert!(out.contains("components/api"), "{out}");
    let (code, _, err) = world.fairway(&["approve", "prune", &world.name, "--reason", "tested"]);
    assert_eq!(code, 0, "{err}");
    world.until_value("limits", None).await;
    world.until_reason("Synced").await;
}

#[tokio::test]
async fn the_agent_stops_within_seconds_of_being_told_and_goes_on_where_it_was() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let (took, well) = agent.terminate();
    assert!(well, "{}", agent.log());
    assert!(took < Duration::from_secs(10), "{took:?}");

    let before = world.config_maps().get("settings").await.unwrap().metadata;
    let _agent = world.agent();
    world.reconcile().await;
    let after = world.config_maps().get("settings").await.unwrap().metadata;
    assert_eq!(
        before.resource_version, after.resource_version,
        "nothing is written without a difference"
    );
}

#[tokio::test]
async fn a_local_directory_is_followed_as_it_is_edited() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let _agent = world.agent();
    let directory = world.repository.path().to_str().unwrap();
    world.declare(json!({"url": directory, "ref": {}})).await;
    let source = world.until_reason("Synced").await;
    let revision = source.status.unwrap().last_applied_revision.unwrap();
    assert!(revision.starts_with("worktree@sha256:"), "{revision}");
    world.config_map("web", "settings", "two");
    world.until_value("settings", Some("two")).await;
}

#[tokio::test]
async fn a_remote_repository_must_say_what_is_followed() {
    let world = World::new().await;
    let body = json!({
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "ReleaseSource",
        "metadata": {"name": "none"},
        "spec": {"url": world.server.url(), "ref": {}},
    });
    let parameters = kube::api::PatchParams::apply("test");
    let patch = kube::api::Patch::Apply(&body);
    let refused = world
        .sources()
        .patch("none", &parameters, &patch)
        .await
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("one of branch, tag, semver and commit"),
        "{refused}"
    );
}
