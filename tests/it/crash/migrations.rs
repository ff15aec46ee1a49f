//! A deploy with migrations of a component and of the whole, for crash points.

use serde_json::json;

use crate::migrations::deploy::stage::{self, Marks};
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
    for (name, of, phase) in [
        ("first", "", "pre"),
        ("before", "components/web", "pre"),
        ("behind", "components/web", "post"),
        ("last", "", "post"),
    ] {
        let more = json!({});
        stage::marks(
            world,
            &Marks {
                name,
                of,
                phase,
                more,
            },
        );
    }
    world.repository.publish("After")
}

/// Returns what became of the migrations, without what differs from world to world.
pub(super) async fn scenery(world: &World) -> String {
    let mut lines = Vec::new();
    for run in stage::all_runs(world).await {
        let status = run.status.clone().unwrap_or_default();
        assert!(
            !status.evidence.is_empty(),
            "no success without evidence: {status:#?}"
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
        lines.push(format!("{} {} {steps:?}", run.spec.migration, status.phase));
    }
    for name in ["first", "before", "behind", "last"] {
        lines.push(format!("{name}: {:?}", world.value(name).await));
    }
    let status = world.target().await.status.unwrap_or_default();
    for component in &status.components {
        let is_committed = component.digest.is_some() && component.begun.is_none();
        lines.push(format!("{} committed: {is_committed}", component.name));
    }
    let deploy = status.deploy.unwrap_or_default();
    lines.push(format!(
        "whole: {}",
        deploy.pre.is_some() && deploy.pre == deploy.post
    ));
    lines.join("\n")
}
