//! Preflight, with a world in memory.

use std::collections::BTreeMap;

use serde_json::json;

use super::tests::{Stage, gated, hook, kind, migration, put};
use super::*;
use crate::model::api::RunPhase;
use crate::model::limits;
use crate::model::migration::{DeployAction, DeployComponent, HookPhase, HookScope};
use crate::plan::hooks::{DueMigration, Preflight};
use crate::runs::EffectError;

fn of_web(phase: HookPhase, migrations: Vec<DueMigration>) -> AheadHook {
    let mut due = hook("v1:one", migrations);
    due.hook.scope = HookScope::Component("components/web".parse().unwrap());
    due.hook.phase = phase;
    due.component = Some(DeployComponent {
        name: "components/web".to_owned(),
        from: None,
        to: None,
        action: DeployAction::Upgrade,
    });
    AheadHook {
        is_under_way: false,
        comes_first: phase == HookPhase::Pre,
        late: BTreeMap::new(),
        installs: BTreeSet::new(),
        due,
    }
}

fn global(migrations: Vec<DueMigration>) -> AheadHook {
    AheadHook {
        due: hook("v1:one", migrations),
        is_under_way: false,
        comes_first: true,
        late: BTreeMap::new(),
        installs: BTreeSet::new(),
    }
}

/// Makes a hook one that comes after changes, with these lookups open.
fn late(mut ahead: AheadHook, open: &[&str]) -> AheadHook {
    let open: BTreeSet<String> = open.iter().map(|&name| name.to_owned()).collect();
    let migrations = ahead.due.migrations.iter();
    ahead.late = migrations
        .map(|it| (it.migration.name.clone(), open.clone()))
        .collect();
    ahead
}

impl Stage {
    fn preflight(&self, hook: &AheadHook) -> Option<Preflight> {
        self.conductor.states().preflight.remove(&hook.due.hook)
    }

    /// Waits until a hook was judged; returns the migrations that must not begin, and whether there is nothing to do.
    async fn until_judged(&self, hooks: &[AheadHook], hook: &AheadHook) -> (Vec<String>, bool) {
        for _ in 0..10_000 {
            self.offer_with(&[], hooks);
            if let Some(Preflight::Judged { findings, is_clear }) = self.preflight(hook) {
                let found = findings.into_iter().map(|stand| stand.migration);
                return (found.collect(), is_clear);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it is not judged: {:#?}", self.conductor.states());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_needed_is_asked_once_for_preflight_and_hook() {
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    put(&stage.world, "a");
    let ahead = global(vec![migration("a", json!({}))]);
    let judged = stage
        .until_judged(std::slice::from_ref(&ahead), &ahead)
        .await;
    assert_eq!(judged, (Vec::new(), true));
    // The plan that was told so has the hook begin, which then has nothing to ask.
    stage.offer_with(std::slice::from_ref(&ahead.due), &[]);
    stage.until_done(&ahead.due).await;
    assert_eq!(stage.world.writes(), 0);
    let heard = stage.heard();
    let asked = heard.iter().filter(|line| *line == "a NotNeeded");
    assert_eq!(asked.count(), 1, "{heard:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_long_ago_is_asked_again() {
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    put(&stage.world, "a");
    let ahead = global(vec![migration("a", json!({}))]);
    stage
        .until_judged(std::slice::from_ref(&ahead), &ahead)
        .await;
    tokio::time::sleep(limits::PREFLIGHT_FRESH).await;
    let judged = stage
        .until_judged(std::slice::from_ref(&ahead), &ahead)
        .await;
    assert_eq!(judged, (Vec::new(), false));
    stage.world.take(&kind(), Some("default"), "a");
    stage.offer_with(std::slice::from_ref(&ahead.due), &[]);
    stage.until_done(&ahead.due).await;
    assert!(stage.value("a").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_precondition_that_is_false_has_a_run_before_its_hook_comes_and_no_effect() {
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    let pre = of_web(HookPhase::Pre, vec![migration("a", json!({}))]);
    let post = of_web(HookPhase::Post, vec![migration("b", gated())]);
    let hooks = [pre.clone(), post.clone()];
    assert_eq!(stage.until_judged(&hooks, &post).await.0, ["b"]);
    let run = stage.run_of("b");
    let status = run.status.unwrap();
    assert_eq!(
        (status.phase, status.reason.as_str()),
        (RunPhase::Blocked, "RequirementFalse")
    );
    assert!(status.message.contains("the gate is closed"));
    assert!(
        status.message.contains("fairway run override"),
        "{}",
        status.message
    );
    tokio::time::sleep(Duration::from_secs(600)).await;
    // The gate opens: it may begin, and does not before its hook comes.
    put(&stage.world, "gate");
    for _ in 0..40 {
        stage.offer_with(&[], &hooks);
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(stage.until_judged(&hooks, &post).await.0, [""; 0]);
    assert!(stage.value("b").is_none());
    assert_eq!(stage.run_of("b").status.unwrap().phase, RunPhase::Pending);
    stage.offer_with(std::slice::from_ref(&post.due), &[]);
    stage.until_done(&post.due).await;
    assert!(stage.value("b").is_some());
    assert_eq!(stage.run_of("b").status.unwrap().phase, RunPhase::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn what_a_person_has_overridden_counts_when_the_hook_comes() {
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    let mut post = of_web(HookPhase::Post, vec![migration("b", gated())]);
    stage.until_judged(std::slice::from_ref(&post), &post).await;
    let command = crate::model::api::RunCommand {
        verb: crate::model::api::RunVerb::Override,
        by: "ada".to_owned(),
        reason: "a test".to_owned(),
        at: Timestamp::from_second(1).unwrap(),
        until: Some(Timestamp::from_second(3_600).unwrap()),
        step: None,
        resolution: None,
    };
    let mut run = stage.run_of("b");
    let name = run.metadata.name.clone().unwrap();
    let annotations = run.metadata.annotations.get_or_insert_default();
    let text = serde_json::to_string(&command).unwrap();
    annotations.insert(crate::model::names::ANNOTATION_COMMAND.to_owned(), text);
    let annotations = annotations.clone();
    stage
        .world
        .edit_run(&name, |run| run.metadata.annotations = Some(annotations));
    stage.conductor.seen(stage.world.run(&name).unwrap());
    tokio::time::sleep(Duration::from_secs(5)).await;
    let judged = stage.until_judged(std::slice::from_ref(&post), &post).await;
    assert_eq!(judged.0, [""; 0]);
    // Its component is applied meanwhile.
    post.is_under_way = true;
    stage.offer_with(&[], std::slice::from_ref(&post));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(stage.value("b").is_none());
    stage.offer_with(std::slice::from_ref(&post.due), &[]);
    stage.until_done(&post.due).await;
    assert!(stage.value("b").is_some());
}

#[tokio::test(start_paused = true)]
async fn what_the_deploy_brings_first_does_not_block_it() {
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    let post = of_web(HookPhase::Post, vec![migration("b", gated())]);
    let open = late(post.clone(), &["gate"]);
    let judged = stage.until_judged(std::slice::from_ref(&open), &open).await;
    assert_eq!(judged, (Vec::new(), false));
    assert_eq!(stage.world.writes(), 0);
    // Right before its work it is asked in earnest.
    stage.offer_with(std::slice::from_ref(&post.due), &[]);
    stage
        .until_open(&post.due, "b", crate::plan::hooks::Stand::Blocked)
        .await;
}

#[tokio::test(start_paused = true)]
async fn work_that_comes_first_opens_what_it_may_change() {
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    // `gate` is made by the migration before it: in the same hook, and in another one.
    let mut after = gated();
    after["after"] = json!(["gate"]);
    let first = global(vec![migration("gate", json!({})), migration("b", after)]);
    assert_eq!(
        stage
            .until_judged(std::slice::from_ref(&first), &first)
            .await
            .0,
        [""; 0]
    );
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    let first = global(vec![migration("gate", json!({}))]);
    let second = late(of_web(HookPhase::Post, vec![migration("b", gated())]), &[]);
    let hooks = [first, second.clone()];
    assert_eq!(stage.until_judged(&hooks, &second).await.0, [""; 0]);
    // Without that work it blocks.
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    assert_eq!(
        stage
            .until_judged(std::slice::from_ref(&second), &second)
            .await
            .0,
        ["b"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_blocks_with_a_role_that_can_be_applied() {
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    stage.world.refuse_right("patch", "configmaps", true);
    let ahead = of_web(HookPhase::Pre, vec![migration("a", json!({}))]);
    let hooks = std::slice::from_ref(&ahead);
    assert_eq!(stage.until_judged(hooks, &ahead).await.0, ["a"]);
    let status = stage.run_of("a").status.unwrap();
    assert_eq!(status.reason, "RightMissing");
    let first = status.message.lines().next().unwrap();
    assert_eq!(
        first,
        "account fairway in fairway-system needs the right to patch configmaps a in default; `fairway describe run` prints a role for it, and `fairway migration rbac` those of all migrations"
    );
    let (_, roles) = status.message.split_once("apiVersion: v1").unwrap();
    let roles: serde_json::Value = serde_yaml::from_str(&format!("apiVersion: v1{roles}")).unwrap();
    assert_eq!(roles["kind"], "List");
    assert_eq!(roles["items"][0]["metadata"]["name"], "fairway-migration-a");
    assert_eq!(roles["items"][1]["subjects"][0]["name"], "fairway");
    // Granted, it goes on by itself.
    stage.world.refuse_right("patch", "configmaps", false);
    for _ in 0..40 {
        stage.offer_with(&[], hooks);
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(stage.until_judged(hooks, &ahead).await.0, [""; 0]);
    assert!(stage.value("a").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_blocks_unless_the_deploy_installs_it() {
    let cart = json!({"steps": [{"id": "cart", "apply": {"manifest": {
        "apiVersion": "example.com/v1", "kind": "Cart", "metadata": {"name": "a", "namespace": "default"},
    }}}]});
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    stage.world.withdraw_kind(&crate::runs::ResourceKind {
        api_version: "example.com/v1".to_owned(),
        kind: "Cart".to_owned(),
    });
    let mut ahead = of_web(HookPhase::Pre, vec![migration("a", cart.clone())]);
    assert_eq!(
        stage
            .until_judged(std::slice::from_ref(&ahead), &ahead)
            .await
            .0,
        ["a"]
    );
    let status = stage.run_of("a").status.unwrap();
    assert_eq!(status.reason, "KindNotServed");
    assert!(
        status.message.starts_with("step cart needs a cluster that serves example.com/v1 Cart; nothing of this deploy installs it"),
        "{}",
        status.message
    );
    // One that is left out by its own condition writes nothing.
    let mut left_out = cart;
    left_out["steps"][0]["when"] = json!("objects.gate != null");
    let out = of_web(HookPhase::Post, vec![migration("b", left_out)]);
    assert_eq!(
        stage.until_judged(std::slice::from_ref(&out), &out).await.0,
        [""; 0]
    );
    ahead.installs = [("example.com/v1".to_owned(), "Cart".to_owned())].into();
    ahead.due.hook.deploy = crate::model::Digest::from_text("v1:two");
    assert_eq!(
        stage
            .until_judged(std::slice::from_ref(&ahead), &ahead)
            .await
            .0,
        [""; 0]
    );
}

#[tokio::test(start_paused = true)]
async fn what_nobody_knows_is_asked_again_and_then_left_to_the_hook() {
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    let busy = EffectError::Transient {
        message: "the server is busy".to_owned(),
        retry_after: None,
    };
    stage.world.refuse_reads(&kind(), Some(busy));
    let ahead = global(vec![migration("a", json!({}))]);
    let judged = stage
        .until_judged(std::slice::from_ref(&ahead), &ahead)
        .await;
    assert_eq!(judged, (Vec::new(), false));
    let heard = stage.heard();
    let asked = heard.iter().filter(|line| *line == "a Unknown").count();
    assert_eq!(
        u32::try_from(asked).unwrap(),
        limits::GUARD_TRIES,
        "{heard:#?}"
    );
    assert_eq!(stage.world.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_from_before_a_restart_is_not_driven_before_its_hook_comes() {
    let world = crate::runs::memory::Memory::default();
    let first = Stage::in_world(world.clone());
    first.conductor.listed(Vec::new());
    let post = of_web(HookPhase::Post, vec![migration("b", gated())]);
    first.until_judged(std::slice::from_ref(&post), &post).await;
    let run = first.run_of("b");
    first.stop.cancel();
    first.conductor.end().await;

    put(&world, "gate");
    let second = Stage::in_world(world);
    second.conductor.listed(vec![run]);
    assert!(second.conductor.states().begun.is_empty());
    let judged = second
        .until_judged(std::slice::from_ref(&post), &post)
        .await;
    assert_eq!(judged.0, [""; 0]);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(second.value("b").is_none());
    // Nobody wants it any more.
    second.offer_with(&[], &[]);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(
        second.run_of("b").status.unwrap().phase,
        RunPhase::Superseded
    );
}
