//! What waits for a person: each kind is listed with since when and why, and the command that is printed ends it.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::world::{Agent, World};

async fn in_step() -> (World, Agent) {
    let world = World::new().await;
    for name in ["one", "two", "three", "four", "five", "six"] {
        world.config_map("web", name, "x");
    }
    world.config_map("api", "limits", "x");
    world.repository.publish("Add seven");
    let agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    (world, agent)
}

/// Returns the one thing that waits.
fn waiting(world: &World) -> Value {
    let (code, out, err) = world.fairway(&["get", "approvals", "--output", "json"]);
    assert_eq!(code, 0, "{err}");
    let waiting: Vec<Value> = serde_json::from_str(&out).unwrap();
    let [one] = waiting.as_slice() else {
        panic!("not one thing waits: {out}");
    };
    assert!(one["since"].is_string(), "{one}");
    assert!(!one["why"].as_array().unwrap().is_empty(), "{one}");
    let (_, text, _) = world.fairway(&["get", "approvals"]);
    let command = one["command"].as_str().unwrap();
    assert!(text.contains(&format!("approve it: {command}")), "{text}");
    one.clone()
}

/// Runs the command that is printed, with a reason in the place of the dots.
fn run(world: &World, one: &Value) {
    let command = one["command"].as_str().unwrap();
    let (words, reason) = command.split_once(" --reason ").unwrap();
    assert_eq!(reason, "'…'");
    let mut words: Vec<&str> = words.split(' ').collect();
    assert_eq!(words.remove(0), "fairway");
    words.extend(["--reason", "tested as printed", "--by", "Ada Example"]);
    let (code, out, err) = world.fairway(&words);
    assert_eq!((code, out.as_str()), (0, ""), "{command}: {err}");
}

async fn nothing_waits(world: &World) {
    world.reconcile().await;
    let (code, out, err) = world.fairway(&["get", "approvals"]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    assert_eq!(err, "nothing waits for a person\n");
}

/// Returns the audit lines of a person's decisions of one kind.
fn decisions(agent: &Agent, action: &str) -> Vec<Value> {
    let lines = agent.audit().into_iter();
    lines.filter(|line| line["action"] == action).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_waits_goes_with_the_command_that_is_printed() {
    let (world, agent) = in_step().await;
    world.repository.remove("components/api");
    world.publish("Drop a component").await;
    let one = waiting(&world);
    assert_eq!(one["kind"], "prune");
    run(&world, &one);
    world.until_value("limits", None).await;
    nothing_waits(&world).await;

    let [line] = decisions(&agent, "approve-prune").try_into().unwrap();
    assert_eq!(line["schema"], "fairway.dev/audit/v1");
    assert_eq!(line["result"], "accepted");
    assert_eq!(line["decision"]["by"], "Ada Example");
    assert_eq!(line["decision"]["reason"], "tested as printed");
    let deleted = decisions(&agent, "delete");
    assert_eq!(deleted.len(), 1, "{deleted:?}");
    assert_eq!(deleted[0]["object"]["name"], "limits");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rewound_branch_is_followed_with_the_command_that_is_printed() {
    let (world, agent) = in_step().await;
    world
        .repository
        .git(&["commit", "--amend", "--quiet", "--message", "Another seven"]);
    let commit = world.repository.git(&["rev-parse", "HEAD"]);
    world.repository.push();
    world.reconcile().await;
    let one = waiting(&world);
    assert_eq!(one["kind"], "rewind");
    run(&world, &one);
    world.until_reason("Synced").await;
    nothing_waits(&world).await;
    let [line] = decisions(&agent, "approve-rewind").try_into().unwrap();
    let step = line["digest"].as_str().unwrap();
    assert!(step.ends_with(&format!("..{commit}")), "{step}");
    assert_eq!(line["object"]["kind"]["kind"], "ReleaseSource");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_of_another_cluster_is_trusted_with_the_command_that_is_printed() {
    let (world, mut agent) = in_step().await;
    agent.kill();
    // A backup of another cluster was restored here.
    let status = json!({"status": {"clusterUid": "0f9d2b6e-another-cluster"}});
    world
        .targets()
        .patch_status(
            &format!("{}.home", world.name),
            &PatchParams::default(),
            &Patch::Merge(&status),
        )
        .await
        .unwrap();
    let one = waiting(&world);
    assert_eq!(one["kind"], "identity");
    assert!(
        one["what"].as_str().unwrap().contains("another-cluster"),
        "{one}"
    );
    world.repository.remove("components/web/one.yaml");
    world.repository.publish("Drop one");
    let agent = world.agent();
    world.until_reason("PartiallyApplied").await;
    assert_eq!(world.value("one").await.as_deref(), Some("x"));
    let one = waiting(&world);
    let (_, described, _) = world.fairway(&["describe", "source", &world.name]);
    assert!(
        described.contains("fairway approve identity"),
        "{described}"
    );
    run(&world, &one);
    world.until_value("one", None).await;
    nothing_waits(&world).await;
    let [line] = decisions(&agent, "approve-identity").try_into().unwrap();
    assert_eq!(line["decision"]["by"], "Ada Example");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suspending_and_resuming_and_the_end_of_a_source_are_audit_lines() {
    let (world, agent) = in_step().await;
    for (command, action) in [("suspend", "suspend"), ("resume", "resume")] {
        let (code, _, err) = world.fairway(&[command, &world.name]);
        assert_eq!(code, 0, "{err}");
        let name = world.name.clone();
        let generation = world.source().await.metadata.generation;
        world
            .until_source(
                "it was seen",
                move |source: Option<&fairway::model::api::ReleaseSource>| {
                    let status = source.and_then(|source| source.status.as_ref());
                    status.is_some_and(|status| status.observed_generation == generation)
                },
            )
            .await;
        let lines = decisions(&agent, action);
        assert_eq!(lines.len(), 1, "{action}: {lines:?}");
        assert_eq!(lines[0]["object"]["name"], name);
    }
    world
        .sources()
        .delete(&world.name, &kube::api::DeleteParams::default())
        .await
        .unwrap();
    let targets = world.targets();
    let gone = kube::runtime::wait::await_condition(
        targets,
        &format!("{}.home", world.name),
        |found: Option<&fairway::model::api::Target>| found.is_none(),
    )
    .await;
    assert!(gone.is_ok());
    let [line] = decisions(&agent, "delete-source").try_into().unwrap();
    assert_eq!(line["details"], json!(["deletionPolicy: Orphan"]));
}
