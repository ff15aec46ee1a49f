//! The status says what is so, whoever ends the pass or edits it, and a decision is what a person decided once.

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::proxy::{Fault, Rule};
use crate::support::world::{World, ready};

const CONFIG_MAPS: &str = "/configmaps/";

async fn annotate(world: &World, text: &str) {
    let patch = json!({"metadata": {"annotations": {"fairway.dev/approved": text}}});
    world
        .sources()
        .patch(&world.name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
}

async fn annotation(world: &World) -> String {
    let annotations = world.source().await.metadata.annotations.unwrap();
    annotations["fairway.dev/approved"].clone()
}

fn approve(world: &World) {
    let (code, _, err) = world.fairway(&["approve", "prune", &world.name, "--reason", "tested"]);
    assert_eq!(code, 0, "{err}");
}

/// Two components in step, and then the second is dropped: its deletion waits for a person.
async fn waiting() -> (World, crate::support::world::Agent) {
    let world = World::new().await;
    for name in ["one", "two", "three", "four", "five", "six"] {
        world.config_map("web", name, "x");
    }
    world.config_map("api", "limits", "x");
    world.repository.publish("Add seven");
    let agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    drop_component(&world).await;
    (world, agent)
}

async fn drop_component(world: &World) {
    world.repository.remove("components/api");
    let source = world.publish("Drop a component").await;
    assert_eq!(ready(&source).1, "ApprovalNeeded", "{:?}", ready(&source));
}

#[tokio::test]
async fn a_request_is_not_handled_by_a_pass_that_failed() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let _agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    world
        .proxy
        .inject(Rule::always("PATCH", "/targets/", Fault::Status(400)));
    let account = format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: account, namespace: {}}}\n",
        world.apps
    );
    world
        .repository
        .write("components/web/account.yaml", account);
    world.repository.publish("A kind that must be written down");
    let asked = world.ring().await;
    let source = world.until_reason("Retrying").await;
    assert_ne!(
        source.status.unwrap().last_handled_reconcile_at.as_ref(),
        Some(&asked)
    );
    world.proxy.heal();
    let source = world.until_reason("Synced").await;
    assert_eq!(
        source.status.unwrap().last_handled_reconcile_at,
        Some(asked)
    );
}

#[tokio::test]
async fn a_status_that_others_have_edited_is_put_right_by_the_next_pass() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    let commit = world.repository.publish("Add settings");
    let _agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let theirs = json!({
        "type": "Example", "status": "True", "reason": "Theirs", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let lies = json!({"status": {
        "conditions": [theirs],
        "lastAppliedRevision": "main@sha1:0123456789012345678901234567890123456789",
    }});
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(&lies));
    world
        .sources()
        .patch_status(&world.name, &parameters, &patch)
        .await
        .unwrap();
    let uid = world.target().await.status.unwrap().cluster_uid;
    let lies = json!({"status": {"conditions": [], "objects": 7}});
    let (targets, name) = (world.targets(), format!("{}.home", world.name));
    targets
        .patch_status(&name, &parameters, &Patch::Merge(&lies))
        .await
        .unwrap();
    world.reconcile().await;
    // The edit of the Target is met by the first write, and mended by the pass after it.
    let source = world.reconcile().await;
    let status = source.status.clone().unwrap();
    assert_eq!(
        status.last_applied_revision,
        Some(format!("main@sha1:{commit}"))
    );
    assert_eq!(ready(&source).1, "Synced");
    let types: Vec<&str> = status
        .conditions
        .iter()
        .map(|one| one.type_.as_str())
        .collect();
    assert!(types.contains(&"Example"), "theirs stays: {types:?}");
    let target = world.target().await.status.unwrap();
    assert_eq!((target.cluster_uid, target.objects), (uid, Some(1)));
    assert!(!target.conditions.is_empty());
}

#[tokio::test]
async fn a_decision_that_is_none_decides_nothing_and_holds_nothing_up() {
    let (world, agent) = waiting().await;
    let digest = world.target().await.status.unwrap().pending_prune.unwrap();
    let decision = |reason: &str| {
        json!({
            "kind": "prune", "digest": digest.digest, "by": "eve", "reason": reason,
            "at": "2126-01-01T00:00:00Z",
        })
    };
    let with_more = |key: &str| {
        let mut decision = decision("more");
        decision[key] = json!(true);
        decision.to_string()
    };
    for text in [
        "{not JSON".to_owned(),
        with_more("force"),
        decision(&"x".repeat(100_000)).to_string(),
        json!({"kind": "prune"}).to_string(),
    ] {
        annotate(&world, &text).await;
        let source = world.reconcile().await;
        assert_eq!(ready(&source).1, "ApprovalNeeded", "{:?}", ready(&source));
        assert_eq!(world.value("limits").await.as_deref(), Some("x"));
    }
    assert!(agent.log().contains("decides nothing"), "it is said");
    // A long reason is a decision all the same, and what is kept of it fits the record.
    annotate(&world, &decision(&"y".repeat(4_000)).to_string()).await;
    world.until_value("limits", None).await;
    let approval = world.target().await.status.unwrap().approval.unwrap();
    assert_eq!(approval.reason.len(), 1_024);
}

#[tokio::test]
async fn an_approval_does_not_outlive_the_wish_that_it_was_given_for() {
    let (world, agent) = waiting().await;
    world
        .proxy
        .inject(Rule::always("DELETE", CONFIG_MAPS, Fault::Status(403)));
    approve(&world);
    world.until_reason("ApplyFailed").await;
    let audit = agent.audit();
    let decided = audit.iter().find(|line| line["action"] == "approve-prune");
    assert_eq!(
        decided.unwrap()["decision"]["reason"],
        "tested",
        "{audit:?}"
    );
    let approval = annotation(&world).await;
    world.config_map("api", "limits", "x");
    let source = world.publish("Want it again").await;
    assert_eq!(ready(&source).1, "Synced", "{:?}", ready(&source));
    world.proxy.heal();

    drop_component(&world).await;
    annotate(&world, "{}").await;
    annotate(&world, &approval).await;
    let source = world.reconcile().await;
    assert_eq!(ready(&source).1, "ApprovalNeeded", "a replay");
    assert_eq!(world.value("limits").await.as_deref(), Some("x"));
    approve(&world);
    world.until_value("limits", None).await;
    world.until_reason("Synced").await;
}

#[tokio::test]
async fn an_adoption_does_not_adopt_a_second_time() {
    let (world, _agent) = waiting().await;
    let (targets, name) = (world.targets(), format!("{}.home", world.name));
    let lose = || async {
        targets
            .delete(&name, &DeleteParams::default())
            .await
            .unwrap();
        world
            .repository
            .write("README.md", annotation_or_none(&world).await);
        world.publish("Look again").await;
        world.until_reason("PartiallyApplied").await;
    };
    let (code, _, err) = world.fairway(&["adopt", &world.name, "--reason", "tested"]);
    assert_eq!(code, 2, "there is nothing to adopt: {err}");
    lose().await;
    let (code, _, err) = world.fairway(&["adopt", &world.name, "--reason", "tested"]);
    assert_eq!(code, 0, "{err}");
    world.until_reason("ApprovalNeeded").await;
    // Dates count to the second, and the decision is dated up to one after the record that it is about.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    lose().await;
    let source = world.reconcile().await;
    assert_eq!(ready(&source).1, "PartiallyApplied", "{:?}", ready(&source));
    assert!(ready(&source).2.contains("fairway adopt"));
}

async fn annotation_or_none(world: &World) -> String {
    let annotations = world.source().await.metadata.annotations;
    format!("{annotations:?}")
}

#[tokio::test]
async fn a_source_that_is_deleted_in_mid_pass_begins_nothing_more_and_what_is_there_stays() {
    let world = World::new().await;
    for number in 0..200 {
        world.config_map("web", &format!("settings-{number}"), "one");
    }
    world.repository.publish("Two hundred");
    let slow = Fault::Delay(std::time::Duration::from_millis(300));
    world.proxy.inject(Rule::always("PATCH", CONFIG_MAPS, slow));
    let agent = world.agent();
    world.declare(json!({})).await;
    while world.proxy.count("PATCH", CONFIG_MAPS) < 16 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let deleted = world
        .sources()
        .delete(&world.name, &DeleteParams::default())
        .await;
    deleted.unwrap();
    while !agent.log().contains("no longer following a source") {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    // What was under way ends; a second later nothing is.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let sent = world.proxy.count("PATCH", CONFIG_MAPS);
    assert!(sent < 200, "{sent}");
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(world.proxy.count("PATCH", CONFIG_MAPS), sent);
    assert_eq!(world.proxy.count("DELETE", CONFIG_MAPS), 0);

    world.proxy.heal();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let target: Value = serde_json::to_value(world.target().await.status).unwrap();
    assert_eq!(target["objects"], 200, "{target}");
}
