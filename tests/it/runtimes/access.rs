//! How runtimes come and go: Kymas, Secrets, identities.

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::support::fleet::ready;
use crate::support::world::World;

async fn world() -> World {
    let world = World::new().await;
    world.publish_modules();
    world
        .declare(json!({"runtimes": {"catalog": "Sync", "tolerate": "0"}}))
        .await;
    world
}

fn secrets(world: &World) -> Api<Secret> {
    Api::namespaced(world.client.clone(), &world.apps)
}

#[tokio::test]
async fn a_secret_that_goes_or_changes_is_acted_on_at_once() {
    let world = world().await;
    let runtime = world.runtime("one", json!({}), json!([])).await;
    let _agent = world.agent_with(&["--allow-local-runtimes"]);
    world.until_runtime(&runtime, "Synced").await;
    secrets(&world)
        .delete("kubeconfig-one", &DeleteParams::default())
        .await
        .unwrap();
    let target = world.until_runtime(&runtime, "AccessRefused").await;
    let (_, message) = ready(&target);
    assert!(
        message.contains("operator.kyma-project.io/kyma-name=one"),
        "{message}"
    );
    let source = world.until_reason("Held").await;
    assert_eq!(source.status.unwrap().runtimes.unwrap().behind, 1);

    let hostile = world.kubeconfig_of(&runtime);
    let hostile = hostile.replace(
        "\"server\"",
        "\"proxy-url\": \"http://127.0.0.1:1\", \"server\"",
    );
    world.access(&runtime, &hostile).await;
    let refused =
        |message: &str| message.contains("kubeconfig-one") && message.contains("proxy-url");
    world
        .until_target(&runtime, "refused for its proxy", |ready| refused(&ready.1))
        .await;
    world.access(&runtime, &world.kubeconfig_of(&runtime)).await;
    world.until_runtime(&runtime, "Synced").await;
    world.until_reason("Synced").await;
}

#[tokio::test]
async fn two_secrets_for_one_runtime_are_one_too_many() {
    let world = world().await;
    let runtime = world.runtime("one", json!({}), json!([])).await;
    let body = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "second", "namespace": world.apps, "labels": {"operator.kyma-project.io/kyma-name": "one"}},
    });
    world.plane.apply_yaml(&body.to_string()).await;
    let _agent = world.agent_with(&["--allow-local-runtimes"]);
    let target = world.until_runtime(&runtime, "AccessRefused").await;
    let (_, message) = ready(&target);
    assert!(message.contains("kubeconfig-one, second"), "{message}");
    secrets(&world)
        .delete("second", &DeleteParams::default())
        .await
        .unwrap();
    world.until_runtime(&runtime, "Synced").await;
}

#[tokio::test]
async fn a_runtime_that_goes_keeps_what_it_has_and_is_no_longer_counted() {
    let world = world().await;
    let runtime = world.runtime("one", json!({}), json!([])).await;
    let stays = world.runtime("two", json!({}), json!([])).await;
    let _agent = world.agent_with(&["--allow-local-runtimes"]);
    world.until_runtime(&runtime, "Synced").await;
    world.until_runtime(&stays, "Synced").await;
    world
        .kyma("Kyma")
        .delete("one", &DeleteParams::default())
        .await
        .unwrap();
    world
        .until_source(
            "one runtime is left",
            |source: Option<&fairway::model::api::ReleaseSource>| {
                let status = source
                    .and_then(|source| source.status.clone())
                    .unwrap_or_default();
                status.runtimes.is_some_and(|runtimes| runtimes.total == 1)
            },
        )
        .await;
    let target = world.until_runtime(&runtime, "Gone").await;
    let (_, message) = ready(&target);
    let name = format!("{}.one", world.name);
    assert!(
        message.contains(&format!("no Kyma {}/one", world.apps))
            && message.ends_with(&format!(
                "kubectl delete target --namespace {} {name}",
                world.name
            )),
        "{message}"
    );
    assert_eq!(world.catalog(&runtime, "ModuleReleaseMeta").await.len(), 5);
    // It comes back as it was, and what git has dropped meanwhile goes.
    world.set_version("1.41.2", "1.42.0");
    world.publish("Move telemetry in regular").await;
    world.kyma_of("one", json!({}), json!([])).await;
    world
        .until_channel(&runtime, ("telemetry", "regular"), Some("1.42.0"))
        .await;
    world.until_runtime(&runtime, "Synced").await;
    world.until_reason("Synced").await;
}

#[tokio::test]
async fn a_runtime_that_goes_while_no_agent_runs_is_said_to_be_gone() {
    let world = world().await;
    let runtime = world.runtime("one", json!({}), json!([])).await;
    let mut agent = world.agent_with(&["--allow-local-runtimes"]);
    world.until_runtime(&runtime, "Synced").await;
    world.until_reason("Synced").await;
    agent.terminate();
    world
        .kyma("Kyma")
        .delete("one", &DeleteParams::default())
        .await
        .unwrap();
    let _agent = world.agent_with(&["--allow-local-runtimes"]);
    let target = world.until_runtime(&runtime, "Gone").await;
    assert!(
        target.status.unwrap().cluster_uid.is_some(),
        "which cluster it was stays known"
    );
}

#[tokio::test]
async fn a_kubeconfig_that_leads_to_another_cluster_is_not_written_to_until_it_is_adopted() {
    let world = world().await;
    let runtime = world.runtime("one", json!({}), json!([])).await;
    let mut agent = world.agent_with(&["--allow-local-runtimes"]);
    world.until_runtime(&runtime, "Synced").await;
    world.until_reason("Synced").await;
    agent.terminate();
    // As if it had been another cluster before.
    let status = json!({"status": {"clusterUid": "00000000-0000-0000-0000-000000000000"}});
    let name = format!("{}.one", world.name);
    world
        .targets()
        .patch_status(&name, &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();
    world.set_version("1.41.2", "1.42.0");
    world.repository.publish("Move telemetry in regular");
    let _agent = world.agent_with(&["--allow-local-runtimes"]);
    let target = world.until_runtime(&runtime, "IdentityChanged").await;
    let (_, message) = ready(&target);
    assert!(
        message.contains("fairway adopt") && message.contains("--target one"),
        "{message}"
    );
    world
        .until_channel(&runtime, ("telemetry", "regular"), Some("1.41.2"))
        .await;
    let (code, _, stderr) = world.fairway(&[
        "adopt",
        &world.name,
        "--target",
        "one",
        "--reason",
        "it was moved",
    ]);
    assert_eq!(code, 0, "{stderr}");
    world
        .until_channel(&runtime, ("telemetry", "regular"), Some("1.42.0"))
        .await;
    world.until_runtime(&runtime, "Synced").await;
}
