//! Acceptance cases of deploys.

use fairway::model::api::RunPhase;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::stage::{self, WEB, gate, mark};
use crate::support::world::World;

/// A step that fails for good: it applies what the API server refuses.
fn refused(world: &World) -> Value {
    json!({"steps": [{"id": "refused", "apply": {"manifest": {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "refused", "namespace": world.apps}, "data": {"value": {"not": "a text"}},
    }}}]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j03_a_pre_migration_that_fails_keeps_its_component_as_it_is_and_siblings_finish() {
    let world = World::new().await;
    stage::allow(&world).await;
    world.config_map("web", "settings", "one");
    world.config_map("api", "limits", "one");
    stage::marks(&world, &mark("fails", WEB, "pre", refused(&world)));
    stage::marks(&world, &mark("sibling", WEB, "pre", json!({})));
    stage::marks(&world, &mark("behind", WEB, "post", json!({})));
    stage::marks(&world, &mark("last", "", "post", json!({})));
    world.repository.publish("A migration that fails");
    let _agent = world.agent();
    world.declare(json!({})).await;
    let failed = stage::until_run(&world, "fails", RunPhase::Failed).await;
    stage::until_run(&world, "sibling", RunPhase::Succeeded).await;
    world.until_value("limits", Some("one")).await;
    world.reconcile().await;
    world.until_reason("PartiallyApplied").await;
    assert_eq!(world.value("settings").await, None);
    assert_eq!(
        stage::outcomes(&world).await,
        ["fails Failed", "sibling Succeeded"]
    );
    let holds = stage::holds(&world).await;
    assert_eq!(
        holds,
        ["MigrationFailed migration fails of pre of components/web"]
    );
    let status = world.source().await.status.unwrap();
    let retry = format!("fairway run retry {}", failed.name_any());
    assert!(
        status.holds[0].message.contains(&retry),
        "{:#?}",
        status.holds
    );
    assert!(status.holds[0].message.contains("owner team-web"));
    let place = status.holds[0].place.clone().unwrap();
    assert!(
        place.starts_with("components/web/migrations/fails.yaml:"),
        "{place}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j04_a_global_pre_migration_that_fails_keeps_everything_as_it_is() {
    let world = World::new().await;
    stage::allow(&world).await;
    world.config_map("web", "settings", "one");
    stage::marks(&world, &mark("first", "", "pre", refused(&world)));
    world.repository.publish("A global migration that fails");
    let _agent = world.agent();
    world.declare(json!({})).await;
    stage::until_run(&world, "first", RunPhase::Failed).await;
    world.until_reason("PartiallyApplied").await;
    assert_eq!(world.value("settings").await, None);
    let status = world.target().await.status.unwrap();
    assert_eq!(status.objects, Some(0));
    assert_eq!(status.deploy, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j05_a_component_that_fails_suppresses_its_post_and_the_global_post_only() {
    let world = World::new().await;
    stage::allow(&world).await;
    world.config_map("api", "limits", "one");
    // The API server refuses it, and validation without its schema does not.
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: broken, namespace: {}}}\ndata: {{\"a/b\": text}}\n",
        world.apps
    );
    world.repository.write("components/web/broken.yaml", text);
    stage::marks(&world, &mark("behind", WEB, "post", json!({})));
    stage::marks(&world, &mark("other", "components/api", "post", json!({})));
    stage::marks(&world, &mark("last", "", "post", json!({})));
    world.repository.publish("A component that fails");
    let _agent = world.agent();
    world.declare(json!({})).await;
    stage::until_committed(&world, "components/api", None).await;
    world.reconcile().await;
    assert_eq!(stage::outcomes(&world).await, ["other Succeeded"]);
    let holds = stage::holds(&world).await;
    for wanted in [
        "MigrationSuppressed post of components/web",
        "MigrationSuppressed post of the whole deploy",
    ] {
        assert!(holds.iter().any(|hold| hold == wanted), "{holds:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j02_j06_only_what_a_deploy_changes_is_judged_and_a_second_one_writes_nothing() {
    let world = World::new().await;
    stage::allow(&world).await;
    world.config_map("web", "settings", "one");
    world.config_map("api", "limits", "one");
    stage::marks(&world, &mark("of-web", WEB, "pre", json!({})));
    stage::marks(&world, &mark("of-api", "components/api", "pre", json!({})));
    world.repository.publish("Two components");
    let agent = world.agent();
    world.declare(json!({})).await;
    stage::until_committed(&world, WEB, None).await;
    let target = stage::until_committed(&world, "components/api", None).await;
    let digest = target.status.unwrap().components[1].digest.clone();
    world.until_reason("Synced").await;

    world.proxy.forget();
    world.reconcile().await;
    let seen = world.proxy.seen();
    assert!(!seen.iter().any(stage::is_work), "{seen:#?}");

    world.config_map("web", "settings", "two");
    world.publish("Only one of them").await;
    stage::until_committed(&world, WEB, digest.as_deref()).await;
    world.until_value("settings", Some("two")).await;
    let seen = world.proxy.seen();
    assert!(
        !seen
            .iter()
            .any(|it| it.path.ends_with("/configmaps/of-api")),
        "{seen:#?}"
    );
    assert!(
        seen.iter()
            .any(|it| it.path.ends_with("/configmaps/of-web"))
    );
    // Nothing was needed, so that there is no second run.
    assert_eq!(
        stage::outcomes(&world).await,
        ["of-api Succeeded", "of-web Succeeded"]
    );
    assert!(agent.log().contains("judged a migration"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j11_a_precondition_that_is_false_blocks_without_any_effect_until_it_is_true() {
    let world = World::new().await;
    stage::allow(&world).await;
    world.config_map("web", "settings", "one");
    let more = gate(
        &world,
        json!({"guard": {"requires": [{
            "cel": "objects.gate != null", "message": "The gate has to be open.",
        }]}}),
    );
    stage::marks(&world, &mark("careful", WEB, "pre", more));
    stage::marks(&world, &mark("sibling", WEB, "pre", json!({})));
    world.repository.publish("A precondition");
    let _agent = world.agent();
    world.declare(json!({})).await;
    let blocked = stage::until_run(&world, "careful", RunPhase::Blocked).await;
    let hold = stage::until_hold(&world, "MigrationBlocked").await;
    assert_eq!(world.value("settings").await, None);
    // The sibling has not begun either: a deploy that cannot go on leaves the cluster as it was.
    assert_eq!(world.value("sibling").await, None);
    assert!(
        hold.message.contains("The gate has to be open."),
        "{}",
        hold.message
    );
    assert!(
        hold.message
            .contains(&format!("fairway run override {}", blocked.name_any()))
    );

    // A command ends it as well; here the cluster does.
    stage::open_gate(&world).await;
    world.reconcile().await;
    stage::until_committed(&world, WEB, None).await;
    assert_eq!(
        stage::outcomes(&world).await,
        ["careful Succeeded", "sibling Succeeded"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j09_j17_a_wait_can_be_cancelled_and_retried_and_a_new_definition_is_another_run() {
    let world = World::new().await;
    stage::allow(&world).await;
    world.config_map("web", "settings", "one");
    let waits = |world: &World, description: &str| {
        gate(
            world,
            json!({
                "description": description,
                "policy": {"cancelGrace": "1s"},
                "steps": [
                    {"id": "wait", "wait": {"until": "objects.gate != null"}},
                    stage::applies(world, "mark", "patient"),
                ],
            }),
        )
    };
    stage::marks(&world, &mark("patient", WEB, "pre", waits(&world, "One.")));
    world.repository.publish("A migration that waits");
    let _agent = world.agent();
    world.declare(json!({})).await;
    let run = stage::until_run(&world, "patient", RunPhase::Waiting).await;
    stage::say(&world, &run, json!({"verb": "cancel"})).await;
    stage::until_run(&world, "patient", RunPhase::Cancelled).await;
    world.until_reason("PartiallyApplied").await;
    assert_eq!(world.value("settings").await, None);

    stage::say(&world, &run, json!({"verb": "retry"})).await;
    stage::until_run(&world, "patient", RunPhase::Waiting).await;
    // The definition changes while its run waits: what is begun ends from its own copy, and the new one is judged after it.
    stage::marks(&world, &mark("patient", WEB, "pre", waits(&world, "Two.")));
    world.publish("Another definition").await;
    stage::open_gate(&world).await;
    stage::until_committed(&world, WEB, None).await;
    let runs = stage::all_runs(&world).await;
    let ended: Vec<RunPhase> = runs.iter().map(stage::phase).collect();
    assert_eq!(
        ended,
        [RunPhase::Succeeded],
        "{:#?}",
        stage::outcomes(&world).await
    );
    assert_eq!(runs[0].spec.definition.description, "One.");
    let commands = &runs[0].status.as_ref().unwrap().commands;
    assert_eq!(commands.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f01_f13_f18_an_agent_that_is_killed_goes_on_from_the_runs_own_copy() {
    let world = World::new().await;
    stage::allow(&world).await;
    world.config_map("web", "settings", "one");
    let more = gate(
        &world,
        json!({"steps": [
            stage::applies(&world, "first", "first"),
            {"id": "wait", "wait": {"until": "objects.gate != null"}},
            stage::applies(&world, "mark", "long"),
        ]}),
    );
    stage::marks(&world, &mark("long", WEB, "pre", more));
    world.repository.publish("A long migration");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    stage::until_run(&world, "long", RunPhase::Waiting).await;
    agent.kill();
    // It vanishes from git, and two agents start at once.
    world.repository.remove("components/web/migrations");
    world.repository.publish("Without the migration");
    world.proxy.forget();
    let (_one, _two) = (world.agent(), world.agent_direct());
    stage::open_gate(&world).await;
    let run = stage::until_run(&world, "long", RunPhase::Succeeded).await;
    let steps = run.status.unwrap().steps;
    let attempts: Vec<_> = steps
        .iter()
        .map(|step| (step.id.as_str(), step.attempts))
        .collect();
    assert_eq!(attempts[0], ("first", 1));
    assert_eq!(attempts[2], ("mark", 1));
    assert_eq!(world.value("long").await.as_deref(), Some("done"));
    world.until_value("settings", Some("one")).await;
}
