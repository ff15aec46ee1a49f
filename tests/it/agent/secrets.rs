//! Digests of Secrets are keyed, and the key lasts.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::support::world::World;

/// Lets the account of the agent apply Secrets, which the shipped role leaves to the operator.
async fn allow_secrets(world: &World) {
    let name = format!("{}-secrets", world.name);
    let text = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {name}}}\nrules:\n\
         - {{apiGroups: [''], resources: [secrets], verbs: [get, list, watch, create, patch, delete]}}\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {name}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}\n\
         subjects: [{{kind: ServiceAccount, name: fairway, namespace: {}}}]\n",
        world.name
    );
    world.plane.apply_yaml(&text).await;
}

async fn annotation(world: &World) -> String {
    let api: Api<Secret> = Api::namespaced(world.client.clone(), &world.apps);
    let secret = api.get("login").await.unwrap();
    secret.annotations()["fairway.dev/digest"].clone()
}

fn applied(world: &World) -> usize {
    let path = format!("/api/v1/namespaces/{}/secrets/login", world.apps);
    world.proxy.count("PATCH", &path)
}

#[tokio::test]
async fn a_digest_of_a_secret_is_keyed_and_a_lost_key_costs_one_apply() {
    let world = World::new().await;
    allow_secrets(&world).await;
    let text = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: login, namespace: {}}}\nstringData: {{pin: '0000'}}\n",
        world.apps
    );
    world.repository.write("components/web/login.yaml", text);
    world.repository.publish("Add a Secret");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let first = annotation(&world).await;
    assert!(first.starts_with("k1:"), "{first}");
    let audit = agent.audit();
    assert_eq!(audit[0]["digest"], Value::Null, "no digest is told");
    let directory = world.repository.path().to_str().unwrap();
    let plan = [
        "plan",
        directory,
        "--exit-code",
        "--source",
        &world.name,
        "--catalog-namespace",
        &world.apps,
    ];
    let (code, out, err) = world.fairway(&plan);
    assert_eq!(
        code, 0,
        "whoever may read the key sees no change: {out}{err}"
    );

    agent.kill();
    world.proxy.forget();
    let mut agent = world.agent();
    world.reconcile().await;
    assert_eq!(applied(&world), 0, "the key is kept over a restart");
    agent.kill();
    let keys: Api<Secret> = Api::namespaced(world.client.clone(), &world.name);
    let lost = Patch::Merge(json!({"data": null}));
    keys.patch("fairway-digest-key", &PatchParams::default(), &lost)
        .await
        .unwrap();
    let (_, out, _) = world.fairway(&plan);
    assert!(
        out.contains("the key of its digest cannot be read"),
        "{out}"
    );
    let _agent = world.agent();
    world.reconcile().await;
    assert_eq!(applied(&world), 1, "a lost key costs one apply");
    assert_ne!(annotation(&world).await, first);
}
