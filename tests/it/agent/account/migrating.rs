//! Migrations look and act as the account, are blocked where it lacks a right, and freed by the Role that is printed for it.

use fairway::model::api::RunPhase;
use serde_json::{Value, json};

use super::stage::{ALL, account, may_act_as};
use crate::migrations::deploy::stage::{self, WEB, mark};
use crate::support::world::World;

/// Returns the manifests that a page of `describe run` prints, from their indented lines.
fn printed(page: &str) -> Vec<Value> {
    let begin = page.find("apiVersion: v1\n").expect("a role is printed");
    let indented = " ".repeat(12);
    let of_it = |line: &&str| line.starts_with(&indented) || line.starts_with("apiVersion");
    let lines: Vec<&str> = page[begin..]
        .lines()
        .take_while(of_it)
        .map(|line| line.strip_prefix(&indented).unwrap_or(line))
        .collect();
    let list: Value = serde_yaml::from_str(&lines.join("\n")).unwrap();
    list["items"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_needs_the_rights_of_the_account_and_the_printed_role_gives_it_them() {
    let world = World::new().await;
    account(&world, "releases", &[("configmaps", ALL)]).await;
    may_act_as(&world, &["releases"]).await;
    world.config_map("web", "settings", "one");
    // The agent itself may read and apply Services; the account may not.
    let more = json!({
        "lookups": {"front": {
            "apiVersion": "v1", "kind": "Service", "namespace": world.apps, "name": "front",
        }},
        "guard": {"needed": "objects.front == null"},
        "steps": [{"id": "front", "apply": {"manifest": {
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "front", "namespace": world.apps},
            "spec": {"ports": [{"port": 80}]},
        }}}],
    });
    stage::marks(&world, &mark("front", WEB, "pre", more));
    world.repository.publish("A migration");
    let _agent = world.agent();
    world
        .declare(json!({"serviceAccountName": "releases"}))
        .await;
    // What the account may not look at is not known, and is told as a right that is missing.
    let run = stage::until_run(&world, "front", RunPhase::Blocked).await;
    assert_eq!(world.value("settings").await, None);
    let message = run.status.unwrap().message;
    let who = format!("account releases in {} needs the right to", world.name);
    assert!(message.contains(&who), "{message}");
    let (code, page, err) = world.fairway(&["describe", "run", "front"]);
    assert_eq!(code, 0, "{err}");
    for item in printed(&page) {
        if item["kind"] == "RoleBinding" {
            assert_eq!(item["subjects"][0]["name"], "releases", "{item}");
        }
        world.plane.apply_yaml(&item.to_string()).await;
    }
    world.reconcile().await;
    stage::until_committed(&world, WEB, None).await;
    world.until_reason("Synced").await;
    assert_eq!(stage::outcomes(&world).await, ["front Succeeded"]);
    assert_eq!(world.value("settings").await.as_deref(), Some("one"));
}
