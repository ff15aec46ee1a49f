//! A deploy with migrations of a component and of the whole, for crash points. Those of the component happen once: no kill may make a
//! person be asked.

use serde_json::{Value, json};

use crate::migrations::deploy::stage;
use crate::migrations::undo;
use crate::support::world::World;

/// Publishes and applies what is there before: two components without migrations.
pub(super) async fn set(world: &World) {
    stage::allow(world).await;
    world.config_map("web", "settings", "before");
    world.config_map("api", "limits", "before");
    world.repository.publish("Before");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let (_, well) = agent.terminate();
    assert!(well, "{}", agent.log());
}

/// Publishes the commit: a change of one component with a pre and a post migration, between two global ones.
pub(super) fn act(world: &World) -> String {
    world.config_map("web", "settings", "after");
    for (name, of, phase, run) in [
        ("first", "", "pre", "WhenNeeded"),
        ("before", "components/web", "pre", "OncePerCluster"),
        ("behind", "components/web", "post", "OncePerHop"),
        ("last", "", "post", "WhenNeeded"),
    ] {
        let more = json!({"policy": {"run": run, "idempotencyKey": name}});
        stage::marks(world, &stage::mark(name, of, phase, more));
    }
    world.repository.publish("After")
}

/// Publishes and applies a component whose migration has changed something that is not its own.
pub(super) async fn set_undo(world: &World) {
    undo::set(world, Value::Null).await;
    world.repository.publish("Before");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let (_, well) = agent.terminate();
    assert!(well, "{}", agent.log());
}

/// Publishes the commit: the component goes.
pub(super) fn act_undo(world: &World) -> String {
    undo::remove(world, true);
    world.repository.publish("After")
}

/// Returns what became of what the migration had changed.
pub(super) async fn undone(world: &World) -> String {
    let mut lines = Vec::new();
    for run in stage::all_runs(world).await {
        let status = run.status.clone().unwrap_or_default();
        let steps: Vec<String> = status
            .undone
            .iter()
            .map(|step| {
                assert!(step.attempts <= 2, "{status:#?}");
                format!("{} {:?}", step.id, step.state)
            })
            .collect();
        lines.push(format!(
            "{} {} {}{} {steps:?}",
            run.spec.migration, status.phase, status.reason, status.message
        ));
    }
    for name in ["shared", "made", "prices", "settings"] {
        lines.push(format!("{name}: {:?}", world.value(name).await));
    }
    let status = world.target().await.status.unwrap_or_default();
    lines.push(format!("to undo: {:?}", status.undo_on_remove));
    lines.join("\n")
}

/// Returns what became of the migrations, without what differs from world to world.
pub(super) async fn scenery(world: &World) -> String {
    let mut lines = runs(world).await;
    for name in ["first", "before", "behind", "last"] {
        lines.push(format!("{name}: {:?}", world.value(name).await));
    }
    let status = world.target().await.status.unwrap_or_default();
    lines.push(format!("remembered: {}", status.once_runs.len()));
    let deploy = status.deploy.unwrap_or_default();
    lines.push(format!(
        "whole: {}",
        deploy.pre.is_some() && deploy.pre == deploy.post
    ));
    lines.join("\n")
}

/// Returns how each run has ended and by what evidence, and which components are committed.
pub(super) async fn runs(world: &World) -> Vec<String> {
    let mut lines = Vec::new();
    for run in stage::all_runs(world).await {
        let status = run.status.clone().unwrap_or_default();
        assert!(
            !status.evidence.is_empty(),
            "no success without evidence: {status:#?}"
        );
        assert!(
            status.commands.is_empty()
                && !status
                    .timeline
                    .iter()
                    .any(|it| it.what.contains("by itself")),
            "a person was asked: {status:#?}"
        );
        let steps: Vec<String> = status
            .steps
            .iter()
            .map(|step| {
                // An attempt whose result was lost may be made once more, and no more.
                assert!(step.attempts <= 2, "{status:#?}");
                format!("{} {:?}", step.id, step.state)
            })
            .collect();
        let evidence: Vec<String> = status
            .evidence
            .iter()
            .map(|one| format!("{} is {}", one.about, one.result))
            .collect();
        let (migration, phase) = (&run.spec.migration, status.phase);
        lines.push(format!("{migration} {phase} {steps:?} {evidence:?}"));
    }
    let status = world.target().await.status.unwrap_or_default();
    for component in &status.components {
        let is_committed = component.digest.is_some() && component.begun.is_none();
        lines.push(format!("{} committed: {is_committed}", component.name));
    }
    lines
}
