//! Example migrations, for crash points: a component whose upgrade has to change what is on the cluster first.

use serde_json::json;

use super::migrations::runs;
use crate::migrations::examples::{allow, copy, copy_changed, old_operator, small_volumes};
use crate::support::world::World;

/// Loki with volumes that are too small, under a component that has nothing to do with them yet.
pub(super) async fn set_volumes(world: &World) {
    let smaller = [("30Gi", "10Gi")];
    copy_changed(world, "components/logging/config.yaml", &smaller);
    deploy(world, "logging", "1.22.0").await;
    small_volumes(world).await;
}

/// An operator with what it made, beside a component that makes the same in another way.
pub(super) async fn set_operator(world: &World) {
    copy(world, "components/nats");
    world.repository.remove("components/nats/migrations");
    deploy(world, "nats", "2.9.0").await;
    old_operator(world).await;
}

/// Deploys the version before.
async fn deploy(world: &World, component: &str, version: &str) {
    let text = format!("apiVersion: fairway.dev/v1alpha1\nkind: Component\nversion: {version}\n");
    let file = format!("components/{component}/component.yaml");
    world.repository.write(&file, text);
    world.repository.publish("Before");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let (_, well) = agent.terminate();
    assert!(well, "{}", agent.log());
    // The rights that the migrations of the next version need.
    copy(world, &format!("components/{component}"));
    allow(world).await;
}

/// Publishes the version that the migrations belong to.
pub(super) fn act(world: &World, component: &str) -> String {
    copy(world, &format!("components/{component}"));
    world.repository.publish("After")
}

/// Returns what became of the runs and of what they change.
pub(super) async fn scenery(world: &World, of_cluster: Vec<String>) -> String {
    let mut lines = runs(world).await;
    lines.extend(of_cluster);
    lines.join("\n").replace(&world.apps, "APPS")
}
