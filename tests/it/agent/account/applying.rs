//! Objects are seen, applied, put right and deleted as the account, and only so.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::stage::{ALL, SEE, account, agent_may_nothing, may_act_as, told};
use crate::support::agent::Agent;
use crate::support::http::get;
use crate::support::world::{World, ready};

fn service(world: &World) {
    let text = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: web, namespace: {}}}\nspec: {{ports: [{{port: 80}}]}}\n",
        world.apps
    );
    world.repository.write("components/web/service.yaml", text);
}

/// How many passes the agent has counted.
fn passes(agent: &Agent) -> Vec<String> {
    let metrics = get(&agent.address(), "/metrics");
    let lines = metrics.lines();
    lines
        .filter(|line| line.starts_with("fairway_passes_total"))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn what_the_account_may_not_is_refused_though_the_agent_might() {
    let world = World::new().await;
    account(
        &world,
        "releases",
        &[("configmaps", ALL), ("services", SEE)],
    )
    .await;
    may_act_as(&world, &["releases"]).await;
    world.config_map("api", "settings", "one");
    service(&world);
    world.repository.publish("A ConfigMap and a Service");
    let _agent = world.agent();
    world
        .declare(json!({"serviceAccountName": "releases"}))
        .await;
    world.until_value("settings", Some("one")).await;
    let source = world.until_reason("ApplyFailed").await;
    let (_, _, message) = ready(&source);
    let user = format!("system:serviceaccount:{}:releases", world.name);
    for words in [
        "failed to apply Service",
        user.as_str(),
        "cannot patch resource \\\"services\\\"",
    ] {
        assert!(
            message.replace('"', "\\\"").contains(words),
            "{words}: {message}"
        );
    }
    // What is granted to the account, and to nobody else, mends it.
    account(
        &world,
        "releases",
        &[("configmaps", ALL), ("services", ALL)],
    )
    .await;
    world.until_reason("Synced").await;
}

#[tokio::test]
async fn an_agent_that_may_nothing_does_what_the_account_may() {
    let world = World::new().await;
    account(&world, "releases", &[("configmaps", ALL)]).await;
    may_act_as(&world, &["releases"]).await;
    agent_may_nothing(&world).await;
    for (name, value) in [("settings", "one"), ("limits", "one"), ("routes", "one")] {
        world.config_map("web", name, value);
    }
    world.repository.publish("Three");
    let agent = world.agent();
    world
        .declare(json!({"serviceAccountName": "releases", "prune": {"maxPercent": 100}}))
        .await;
    world.until_reason("Synced").await;

    // Drift is seen and put right.
    let edit = Patch::Merge(json!({"data": {"value": "by hand"}}));
    let parameters = PatchParams::default();
    let config_maps = world.config_maps();
    let edited = config_maps.patch("settings", &parameters, &edit).await;
    edited.unwrap();
    world.until_value("settings", Some("one")).await;

    // What git drops goes.
    world.repository.remove("components/web/limits.yaml");
    world.publish("Without limits").await;
    world.until_value("limits", None).await;
    world.until_reason("Synced").await;

    // A pass that somebody asks for looks at the account again, an idle one asks nothing, and neither writes an object.
    world.proxy.forget();
    world.reconcile().await;
    let seen = world.proxy.seen();
    let of_account: Vec<_> = seen
        .iter()
        .filter(|it| it.path.contains("/serviceaccounts/") || it.path.contains("selfsubject"))
        .map(|it| it.verb.as_str())
        .collect();
    assert_eq!(of_account, ["GET", "POST"], "{seen:#?}");
    let before = passes(&agent);
    world.proxy.forget();
    let touched =
        Patch::Merge(json!({"metadata": {"annotations": {"example.com/touched": "yes"}}}));
    let sources = world.sources();
    sources
        .patch(&world.name, &parameters, &touched)
        .await
        .unwrap();
    while passes(&agent) == before {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let asked = world.proxy.seen();
    let asked: Vec<_> = asked
        .iter()
        .filter(|it| !it.path.contains("/leases") && it.verb != "WATCH")
        .collect();
    assert!(asked.is_empty(), "{asked:#?}");
}

#[tokio::test]
async fn what_the_account_cannot_list_is_not_deleted() {
    let world = World::new().await;
    account(&world, "releases", &[("configmaps", ALL)]).await;
    may_act_as(&world, &["releases"]).await;
    for name in ["settings", "limits", "routes"] {
        world.config_map("web", name, "one");
    }
    world.repository.publish("Three");
    let mut agent = world.agent();
    let spec = json!({"serviceAccountName": "releases", "prune": {"maxPercent": 100}});
    world.declare(spec).await;
    world.until_reason("Synced").await;
    agent.kill();

    // It may still delete, and does not see any more what there is. The agent would.
    let blind: &[&str] = &["get", "create", "patch", "delete"];
    account(&world, "releases", &[("configmaps", blind)]).await;
    world.repository.remove("components/web/limits.yaml");
    world.repository.publish("Without limits");
    let _agent = world.agent();
    let source = world.until_reason("PartiallyApplied").await;
    let text = told(&world).await;
    let user = format!("system:serviceaccount:{}:releases", world.name);
    for words in [user.as_str(), "list and watch on configmaps"] {
        assert!(text.contains(words), "{words}: {text}\n{source:?}");
    }
    world.reconcile().await;
    assert_eq!(world.value("limits").await.as_deref(), Some("one"));

    account(&world, "releases", &[("configmaps", ALL)]).await;
    world.until_value("limits", None).await;
    world.until_reason("Synced").await;
}
