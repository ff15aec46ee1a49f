//! Accounts with their rights, in a world that lets the agent act as them.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::support::world::{Agent, World};

/// What is looked at and done with a kind.
pub(super) const ALL: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
/// What is only looked at.
pub(super) const SEE: &[&str] = &["get", "list", "watch"];

/// Makes an account that may do something with resources of the core group, everywhere; called again, it may do just that.
pub(super) async fn account(world: &World, name: &str, rights: &[(&str, &[&str])]) {
    let rules: Vec<Value> = rights
        .iter()
        .map(
            |(resource, verbs)| json!({"apiGroups": [""], "resources": [resource], "verbs": verbs}),
        )
        .collect();
    let of = format!("{}-{name}", world.name);
    for object in [
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": world.name},
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": of}, "rules": rules,
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": of},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": of},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": world.name}],
        }),
    ] {
        world
            .plane
            .apply_texts(&world.client, &object.to_string())
            .await;
    }
}

/// Publishes one ConfigMap, and starts an agent for a source that acts as `releases`.
pub(super) async fn one_setting(world: &World) -> Agent {
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let agent = world.agent();
    let account = json!({"serviceAccountName": "releases"});
    world.declare(account).await;
    agent
}

/// Installs the shipped role by which the agent may act as these accounts.
pub(super) async fn may_act_as(world: &World, names: &[&str]) {
    let list = format!("resourceNames: [{}]", names.join(", "));
    let change = |text: String| {
        assert!(text.contains("resourceNames: [releases]"), "{text}");
        text.replace("resourceNames: [releases]", &list)
    };
    world.opt_in("role-impersonate.yaml", change).await;
}

/// Takes from the agent what it may do itself with what a repository holds.
pub(super) async fn agent_may_nothing(world: &World) {
    let bindings: Api<ClusterRoleBinding> = Api::all(world.client.clone());
    let name = format!("{}-fairway-apply", world.name);
    let gone = bindings.delete(&name, &DeleteParams::default()).await;
    gone.expect("it is shipped under this name");
}

/// The ServiceAccounts of the agent's namespace.
pub(super) fn accounts(world: &World) -> Api<ServiceAccount> {
    Api::namespaced(world.client.clone(), &world.name)
}

/// Returns everything that the status of the source says.
pub(super) async fn told(world: &World) -> String {
    let status = world.source().await.status.expect("it has one");
    serde_json::to_string_pretty(&status).expect("it is JSON")
}
