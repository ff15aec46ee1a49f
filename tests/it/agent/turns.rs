//! Several sources of one agent: they write one after another, and hold each other up in nothing else.

use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::support::proxy::{Fault, Rule};
use crate::support::world::{World, ready};

/// Declares a second source of the same agent, which follows another folder of the same repository.
async fn declare_second(world: &World, name: &str) {
    let body = json!({
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "ReleaseSource",
        "metadata": {"name": name},
        "spec": {
            "url": world.server.url(), "ref": {"branch": "main"}, "interval": "1h", "path": "second",
            "secretRef": {"name": "git-credentials"}, "catalog": {"namespace": world.apps},
        },
    });
    let parameters = PatchParams::apply("test").force();
    let patch = Patch::Apply(&body);
    world
        .sources()
        .patch(name, &parameters, &patch)
        .await
        .unwrap();
}

fn second_config_map(world: &World, name: &str, data: &str) {
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {}}}\ndata: {{value: {data}}}\n",
        world.apps
    );
    world
        .repository
        .write(&format!("second/components/web/{name}.yaml"), text);
}

#[tokio::test]
async fn a_source_whose_record_cannot_be_read_holds_up_no_other() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    second_config_map(&world, "limits", "one");
    world.repository.publish("Two sources");
    let record = format!("/targets/{}.home", world.name);
    world
        .proxy
        .inject(Rule::always("GET", &record, Fault::Hang));
    let _agent = world.agent();
    world.declare(json!({})).await;
    while world.proxy.count("GET", &record) == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    declare_second(&world, "second").await;
    world.until_value("limits", Some("one")).await;
    assert_eq!(ready(&world.source().await).1, "", "the first still waits");
    world.proxy.heal();
    world.until_reason("Synced").await;
}
