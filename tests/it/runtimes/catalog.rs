//! What a runtime gets, and when.

use std::collections::BTreeMap;

use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;

use crate::support::fleet::{Runtime, ready};
use crate::support::world::World;

async fn world() -> World {
    let world = World::new().await;
    world.publish_modules();
    world
}

async fn declare(world: &World, catalog: &str) {
    world
        .declare(json!({"runtimes": {"catalog": catalog, "tolerate": "0"}}))
        .await;
}

/// Returns the resourceVersions of a runtime's catalog.
async fn versions(world: &World, runtime: &Runtime) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    for kind in ["ModuleTemplate", "ModuleReleaseMeta"] {
        for object in world.catalog(runtime, kind).await {
            let name = format!("{kind} {}", object.metadata.name.unwrap());
            versions.insert(name, object.metadata.resource_version.unwrap());
        }
    }
    versions
}

#[tokio::test]
async fn each_runtime_gets_what_it_may_see_and_nothing_that_points_at_nothing() {
    let world = world().await;
    let plain = world.runtime("plain", json!({}), json!([])).await;
    let beta = world
        .runtime(
            "beta",
            json!({"operator.kyma-project.io/beta": "true"}),
            json!([]),
        )
        .await;
    let _agent = world.agent_with(&["--allow-local-runtimes"]);
    declare(&world, "Sync").await;
    world.until_runtime(&plain, "Synced").await;
    world.until_runtime(&beta, "Synced").await;
    let source = world.until_reason("Synced").await;
    let status = source.status.unwrap();
    let counts = status.runtimes.unwrap();
    assert_eq!((counts.total, counts.synced), (2, 2));

    world
        .until_channel(
            &beta,
            ("telemetry", "experimental"),
            Some("1.43.0-experimental"),
        )
        .await;
    world
        .until_channel(&plain, ("telemetry", "experimental"), None)
        .await;
    world
        .until_channel(&plain, ("telemetry", "regular"), Some("1.41.2"))
        .await;
    for runtime in [&plain, &beta] {
        let templates = world.catalog(runtime, "ModuleTemplate").await;
        let releases = world.catalog(runtime, "ModuleReleaseMeta").await;
        assert_eq!(releases.len(), 5);
        let mut named = 0;
        for release in &releases {
            let module = release.metadata.name.clone().unwrap();
            for channel in release.data["spec"]["channels"].as_array().unwrap() {
                let name = format!("{module}-{}", channel["version"].as_str().unwrap());
                let there = templates
                    .iter()
                    .any(|one| one.metadata.name.as_ref() == Some(&name));
                assert!(
                    there,
                    "{module} points at {name}, which is not on {}",
                    runtime.name
                );
                named += 1;
            }
        }
        assert!(named >= 14, "{named}");
        for object in templates.iter().chain(&releases) {
            let labels = object.metadata.labels.clone().unwrap();
            assert_eq!(labels["operator.kyma-project.io/managed-by"], "kyma");
            assert_eq!(labels["fairway.dev/source"], world.name);
        }
    }
    let target = world.until_runtime(&plain, "Synced").await.status.unwrap();
    assert_eq!(target.left_out.len(), 1, "{:?}", target.left_out);
    assert_eq!(target.left_out[0].what, "modules/telemetry in experimental");
    assert!(
        target.left_out[0]
            .reason
            .contains("operator.kyma-project.io/beta=true")
    );
    // Home has all versions, and is not confused by copies on the same cluster.
    let home = world.target().await.status.unwrap();
    assert!(home.objects > target.objects);

    // The label is all that is missing.
    world
        .kyma_of(
            "plain",
            json!({"operator.kyma-project.io/beta": "true"}),
            json!([]),
        )
        .await;
    world
        .until_channel(
            &plain,
            ("telemetry", "experimental"),
            Some("1.43.0-experimental"),
        )
        .await;
}

#[tokio::test]
async fn a_channel_moves_on_every_runtime_and_a_runtime_in_step_is_not_written() {
    let world = world().await;
    let user = json!([{"name": "telemetry"}]);
    let runtime = world.runtime("user", json!({}), user).await;
    let other = world.runtime("other", json!({}), json!([])).await;
    let agent = world.agent_with(&["--allow-local-runtimes"]);
    declare(&world, "Sync").await;
    world.until_runtime(&runtime, "Synced").await;
    world.until_runtime(&other, "Synced").await;
    world.until_reason("Synced").await;
    let before = versions(&world, &runtime).await;
    world.reconcile().await;
    world.repository.write("README.md", "unrelated");
    world.publish("Unrelated").await;
    world.until_reason("Synced").await;
    assert_eq!(versions(&world, &runtime).await, before);

    world.set_version("1.41.2", "1.42.0");
    world.publish("Move telemetry in regular").await;
    for one in [&runtime, &other] {
        world
            .until_channel(one, ("telemetry", "regular"), Some("1.42.0"))
            .await;
    }
    world.until_reason("Synced").await;
    let after = versions(&world, &runtime).await;
    let changed: Vec<&String> = after
        .iter()
        .filter(|(name, version)| before.get(*name) != Some(*version))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(changed, ["ModuleReleaseMeta telemetry"]);
    // The template that nothing names any more has gone, after the release that named it.
    assert!(!after.contains_key("ModuleTemplate telemetry-1.41.2"));
    let lines = agent.audit();
    let of_user = lines.iter().filter(|line| line["cluster"] == "user");
    let last: Vec<String> = of_user
        .map(|line| format!("{} {}", line["action"], line["object"]["name"]))
        .collect();
    assert_eq!(
        last[last.len() - 2..],
        ["\"apply\" \"telemetry\"", "\"delete\" \"telemetry-1.41.2\""]
    );
}

#[tokio::test]
async fn a_version_that_is_installed_stays_until_the_runtime_has_left_it() {
    let world = world().await;
    let user = json!([{"name": "telemetry"}]);
    let runtime = world.runtime("user", json!({}), user).await;
    let status = json!({"status": {"modules": [{"name": "telemetry", "channel": "regular", "version": "1.41.2"}]}});
    let kymas = world.kyma("Kyma");
    kymas
        .patch_status("user", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();
    let _agent = world.agent_with(&["--allow-local-runtimes"]);
    declare(&world, "Sync").await;
    world.until_runtime(&runtime, "Synced").await;
    world.set_version("1.41.2", "1.42.0");
    world.publish("Move telemetry in regular").await;
    world
        .until_channel(&runtime, ("telemetry", "regular"), Some("1.42.0"))
        .await;
    world.until_reason("Synced").await;
    let templates = world.catalog_api(&runtime, "ModuleTemplate");
    assert!(
        templates
            .get_opt("telemetry-1.41.2")
            .await
            .unwrap()
            .is_some()
    );

    let status = json!({"status": {"modules": [{"name": "telemetry", "channel": "regular", "version": "1.42.0"}]}});
    kymas
        .patch_status("user", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();
    let gone = |found: Option<&DynamicObject>| found.is_none();
    kube::runtime::wait::await_condition(templates, "telemetry-1.41.2", gone)
        .await
        .unwrap();
}

#[tokio::test]
async fn what_is_changed_on_a_runtime_is_put_right_and_what_others_have_made_stays() {
    let world = world().await;
    let runtime = world.runtime("one", json!({}), json!([])).await;
    let _agent = world.agent_with(&["--allow-local-runtimes"]);
    declare(&world, "Sync").await;
    world.until_runtime(&runtime, "Synced").await;
    let releases = world.catalog_api(&runtime, "ModuleReleaseMeta");
    let mut own = releases.get("keda").await.unwrap();
    own.metadata = kube::core::ObjectMeta {
        name: Some("own".to_owned()),
        ..kube::core::ObjectMeta::default()
    };
    own.data["spec"]["moduleName"] = json!("own");
    releases
        .create(&kube::api::PostParams::default(), &own)
        .await
        .unwrap();
    let edit = json!({"spec": {"channels": [{"channel": "regular", "version": "9.9.9"}]}});
    releases
        .patch("telemetry", &PatchParams::default(), &Patch::Merge(&edit))
        .await
        .unwrap();
    world
        .until_channel(&runtime, ("telemetry", "regular"), Some("1.41.2"))
        .await;
    releases
        .delete("keda", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    world
        .until_channel(&runtime, ("keda", "regular"), Some("1.7.0"))
        .await;
    assert!(releases.get_opt("own").await.unwrap().is_some());
}

#[tokio::test]
async fn a_catalog_that_somebody_else_syncs_is_watched_and_not_written() {
    let world = world().await;
    let runtime = world.runtime("one", json!({}), json!([])).await;
    let agent = world.agent_with(&["--allow-local-runtimes"]);
    declare(&world, "Observe").await;
    let target = world.until_runtime(&runtime, "Behind").await;
    assert!(
        ready(&target).1.contains("not as home has them"),
        "{}",
        ready(&target).1
    );
    assert!(versions(&world, &runtime).await.is_empty());
    // lifecycle-manager copies labels and annotations along.
    for kind in ["ModuleTemplate", "ModuleReleaseMeta"] {
        let home = world
            .kyma(kind)
            .list(&kube::api::ListParams::default())
            .await
            .unwrap();
        for mut object in home {
            object.metadata.namespace = Some(runtime.namespace.clone());
            object.metadata.resource_version = None;
            object.metadata.uid = None;
            object.metadata.managed_fields = None;
            object.metadata.creation_timestamp = None;
            let name = object.metadata.name.clone().unwrap();
            world
                .catalog_api(&runtime, kind)
                .patch(
                    &name,
                    &PatchParams::apply("catalog-sync").force(),
                    &Patch::Apply(&object),
                )
                .await
                .unwrap();
        }
    }
    let before = versions(&world, &runtime).await;
    world.until_runtime(&runtime, "Synced").await;
    world.until_reason("Synced").await;
    assert_eq!(versions(&world, &runtime).await, before);
    assert!(agent.audit().iter().all(|line| line["cluster"] == "home"));
}

#[tokio::test]
async fn a_catalog_that_somebody_else_keeps_writing_is_left_to_them() {
    let world = world().await;
    let runtime = world.runtime("one", json!({}), json!([])).await;
    let agent = world.agent_with(&["--allow-local-runtimes"]);
    declare(&world, "Sync").await;
    world.until_runtime(&runtime, "Synced").await;
    let releases = world.catalog_api(&runtime, "ModuleReleaseMeta");
    // As lifecycle-manager does in each of its loops: with force, and what home has in its eyes.
    for version in ["1.40.0", "1.40.1"] {
        let theirs = json!({
            "apiVersion": "operator.kyma-project.io/v1beta2", "kind": "ModuleReleaseMeta",
            "metadata": {"name": "telemetry"},
            "spec": {"moduleName": "telemetry", "channels": [{"channel": "regular", "version": version}]},
        });
        releases
            .patch(
                "telemetry",
                &PatchParams::apply("catalog-sync").force(),
                &Patch::Apply(&theirs),
            )
            .await
            .unwrap();
        if version == "1.40.0" {
            world
                .until_channel(&runtime, ("telemetry", "regular"), Some("1.41.2"))
                .await;
        }
    }
    let target = world.until_runtime(&runtime, "Contested").await;
    let (_, message) = ready(&target);
    assert!(
        message.contains("`catalog-sync`") && message.contains("Observe"),
        "{message}"
    );
    world.until_reason("Held").await;
    world
        .until_channel(&runtime, ("telemetry", "regular"), Some("1.40.1"))
        .await;
    let writes = agent.audit().len();
    world.reconcile().await;
    assert_eq!(agent.audit().len(), writes, "nobody fights");
}
