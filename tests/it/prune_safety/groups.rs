//! Groups of the API whose server does not answer: what they serve is not known, which is not the same as nothing.

use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::support::proxy::{Fault, Rule};
use crate::support::world::{World, ready};

const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Makes a kind that belongs to this world alone, with the rights to use it; returns its group.
async fn own_kind(world: &World) -> String {
    let group = format!("{}.example.com", world.apps);
    let verbs = ["get", "list", "watch", "create", "patch", "delete"];
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": group},
        "rules": [{"apiGroups": [group], "resources": ["things"], "verbs": verbs}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": group},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": group},
        "subjects": [{"kind": "ServiceAccount", "name": "fairway", "namespace": world.name}],
    });
    world.plane.apply_yaml(&role.to_string()).await;
    world.plane.apply_yaml(&binding.to_string()).await;
    group
}

fn definition(group: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object", "properties": {"size": {"type": "integer"}},
                }}}},
            }],
        },
    })
}

fn write_thing(world: &World, group: &str, name: &str) {
    let thing = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Thing",
        "metadata": {"name": name, "namespace": world.apps}, "spec": {"size": 1},
    });
    world
        .repository
        .write(&format!("components/web/{name}.yaml"), thing.to_string());
}

async fn things(world: &World, group: &str) -> Vec<(String, String)> {
    let kind =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", "Thing"), "things");
    let api: kube::Api<DynamicObject> =
        kube::Api::namespaced_with(world.client.clone(), &world.apps, &kind);
    let found = api
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter();
    found
        .map(|one| (one.metadata.name.unwrap(), one.metadata.uid.unwrap()))
        .collect()
}

/// What discovery says when the server of one group does not answer.
async fn without(world: &World, group: &str) -> String {
    let request = http::Request::get("/apis")
        .header(http::header::ACCEPT, DISCOVERY)
        .body(vec![])
        .unwrap();
    let text = world.client.request_text(request).await.unwrap();
    let mut groups: Value = serde_json::from_str(&text).unwrap();
    let items = groups["items"].as_array_mut().unwrap();
    let found = items
        .iter_mut()
        .find(|one| one["metadata"]["name"] == group);
    found.expect("it is served")["versions"] = json!([{"version": "v1", "freshness": "Stale"}]);
    groups.to_string()
}

#[tokio::test]
async fn a_definition_and_its_object_come_in_one_pass_and_stay_while_their_group_does_not_answer() {
    let world = World::new().await;
    let group = own_kind(&world).await;
    world.repository.write(
        "components/web/definition.yaml",
        definition(&group).to_string(),
    );
    for name in ["one", "two", "three"] {
        write_thing(&world, &group, name);
    }
    world.config_map("web", "bystander", "x");
    world.repository.publish("A definition with its objects");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let history = world.source().await.status.unwrap().history;
    assert_eq!(history.len(), 1, "{history:?}");
    let wanted = things(&world, &group).await;
    assert_eq!(wanted.len(), 3);

    agent.kill();
    let answer = without(&world, &group).await;
    // The text lives as long as the rule, which is as long as the test.
    world
        .proxy
        .inject(Rule::exactly("GET", "/apis", Fault::Answer(answer.leak())));
    world.repository.remove("components/web/one.yaml");
    world.config_map("web", "bystander", "y");
    world.repository.publish("Drop one");
    agent = world.agent();
    let source = world.reconcile().await;
    assert_eq!(ready(&source).1, "PartiallyApplied", "{:?}", ready(&source));
    assert_eq!(world.value("bystander").await.as_deref(), Some("y"));
    assert_eq!(things(&world, &group).await, wanted);

    agent.kill();
    world.proxy.heal();
    let _agent = world.agent();
    let source = world.reconcile().await;
    assert_eq!(ready(&source).1, "Synced", "{:?}", ready(&source));
    let left: Vec<_> = wanted
        .into_iter()
        .filter(|(name, _)| name != "one")
        .collect();
    assert_eq!(things(&world, &group).await, left);
}
