//! An account that cannot be acted as: nothing is read or done, the condition has the command that mends it, and the API server takes no
//! name that is none.

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use rstest::rstest;
use serde_json::{Value, json};

use super::stage::{ALL, account, accounts, may_act_as, one_setting};
use crate::support::world::{World, ready};

/// Runs the commands that a message ends with, as they stand there.
fn type_commands(world: &World, message: &str) {
    let (_, commands) = message.split_once("kubectl ").expect("it has a command");
    for command in commands.split(" && ") {
        let words: Vec<&str> = command
            .trim_start_matches("kubectl ")
            .split_whitespace()
            .collect();
        world.plane.kubectl(&world.name, &words);
    }
}

#[tokio::test]
async fn without_the_right_to_act_as_it_nothing_is_done_and_the_commands_are_told() {
    let world = World::new().await;
    account(&world, "releases", &[("configmaps", ALL)]).await;
    let _agent = one_setting(&world).await;
    let source = world.until_reason("AccountRefused").await;
    let (status, _, message) = ready(&source);
    assert_eq!(status, "False");
    assert_eq!(
        world.value("settings").await,
        None,
        "not as the agent either"
    );
    assert!(message.contains("cannot impersonate"), "{message}");
    let stalled = source.status.unwrap().conditions;
    assert!(
        stalled.iter().any(|one| one.type_ == "Stalled"),
        "{stalled:#?}"
    );
    // Who asks for a pass hears that it has ended.
    let source = world.reconcile().await;
    assert_eq!(ready(&source).1, "AccountRefused");
    let lists = world.proxy.count("GET", "/api/v1/configmaps");
    assert_eq!(lists, 0, "nothing is read for the source");

    type_commands(&world, &message);
    world.until_value("settings", Some("one")).await;
    world.until_reason("Synced").await;
}

#[tokio::test]
async fn the_right_to_look_alone_is_not_enough() {
    let world = World::new().await;
    account(&world, "releases", &[("configmaps", ALL)]).await;
    let only_get = |text: String| text.replace("[get, impersonate]", "[get]");
    world.opt_in("role-impersonate.yaml", only_get).await;
    let _agent = one_setting(&world).await;
    let source = world.until_reason("AccountRefused").await;
    let (_, _, message) = ready(&source);
    assert!(message.contains("cannot impersonate"), "{message}");
    assert_eq!(world.value("settings").await, None);
    type_commands(&world, &message);
    world.until_value("settings", Some("one")).await;
}

#[tokio::test]
async fn an_account_that_is_not_there_is_told_and_what_was_applied_stays() {
    let world = World::new().await;
    account(&world, "releases", &[("configmaps", ALL)]).await;
    may_act_as(&world, &["releases", "other"]).await;
    for name in ["settings", "limits", "routes"] {
        world.config_map("web", name, "one");
    }
    world.repository.publish("Three");
    let _agent = world.agent();
    let spec = json!({"serviceAccountName": "releases", "prune": {"maxPercent": 100}});
    world.declare(spec).await;
    world.until_reason("Synced").await;

    // It is deleted, though its rights are not: what carries them is not there any more.
    let gone = accounts(&world)
        .delete("releases", &DeleteParams::default())
        .await;
    gone.unwrap();
    world.repository.remove("components/web/limits.yaml");
    world.config_map("web", "settings", "two");
    let source = world.publish("Without limits").await;
    let (_, reason, message) = ready(&source);
    assert_eq!(reason, "AccountRefused", "{message}");
    assert_eq!(world.value("settings").await.as_deref(), Some("one"));
    assert_eq!(world.value("limits").await.as_deref(), Some("one"));

    type_commands(&world, &message);
    world.until_value("limits", None).await;
    world.until_value("settings", Some("two")).await;
    world.until_reason("Synced").await;
}

/// The sources as they are sent, with what no type would let through.
fn raw(world: &World) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("fairway.dev", "v1alpha1", "ReleaseSource");
    Api::namespaced_with(
        world.client.clone(),
        &world.name,
        &ApiResource::from_gvk(&kind),
    )
}

#[rstest]
#[case(json!(""))]
#[case(json!(" "))]
#[case(json!("Releases"))]
#[case(json!("kube-system:admin"))]
#[case(json!("releases\nImpersonate-Group: system:masters"))]
#[tokio::test]
async fn what_is_no_name_never_means_the_agent_itself(#[case] name: Value) {
    let world = World::new().await;
    world
        .declare(json!({"serviceAccountName": "releases"}))
        .await;
    let body = |of: &str| {
        json!({
            "apiVersion": "fairway.dev/v1alpha1", "kind": "ReleaseSource", "metadata": {"name": of},
            "spec": {"url": "/nowhere", "ref": {"branch": "main"}, "serviceAccountName": name},
        })
    };
    let sources = raw(&world);
    let created: DynamicObject = serde_json::from_value(body("created")).unwrap();
    let refused = sources.create(&PostParams::default(), &created).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("spec.serviceAccountName"), "{error}");
    let applied = Patch::Apply(body(&world.name));
    let parameters = PatchParams::apply("test").force();
    let refused = sources.patch(&world.name, &parameters, &applied).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("spec.serviceAccountName"), "{error}");
    // What is stored is what was there before.
    let stored = world.source().await.spec.service_account_name;
    assert_eq!(stored.as_deref(), Some("releases"));
}
