//! What deploys with migrations have in common: the rights that they need, definitions, and what is looked at.

use fairway::model::api::{HeldItem, ReleaseSource, Run, RunPhase, Target};
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::support::proxy::Seen;
use crate::support::world::World;

/// How long anything may take before a test gives up.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(90);

/// The component that most deploys are of.
pub(crate) const WEB: &str = "components/web";

/// Returns a migration of a folder.
pub(crate) fn mark<'a>(name: &'a str, of: &'a str, phase: &'a str, more: Value) -> Marks<'a> {
    Marks {
        name,
        of,
        phase,
        more,
    }
}

/// Returns the lookup of a ConfigMap that the test makes, as `objects.gate`, with more of a definition.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a value from json! has no other use"
)]
pub(crate) fn gate(world: &World, more: Value) -> Value {
    let mut spec = json!({"lookups": {"gate": {
        "apiVersion": "v1", "kind": "ConfigMap", "namespace": world.apps, "name": "gate",
    }}});
    json_patch::merge(&mut spec, &more);
    spec
}

/// Returns a step that applies a ConfigMap.
pub(crate) fn applies(world: &World, id: &str, name: &str) -> Value {
    json!({"id": id, "apply": {"manifest": {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": world.apps}, "data": {"value": "done"},
    }}})
}

/// Makes what [`gate`] looks for.
pub(crate) async fn open_gate(world: &World) {
    put(world, "gate").await;
}

/// Makes an empty ConfigMap as somebody else.
pub(crate) async fn put(world: &World, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": world.apps}});
    world
        .plane
        .apply_texts(&world.client, &object.to_string())
        .await;
}

/// Gives the agent what the operator binds for migrations of ConfigMaps and Jobs.
pub(crate) async fn allow(world: &World) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "migrations", "namespace": world.apps},
        "rules": [
            {"apiGroups": [""], "resources": ["configmaps"],
             "verbs": ["get", "list", "watch", "create", "patch", "update", "delete"]},
            {"apiGroups": ["batch"], "resources": ["jobs"],
             "verbs": ["get", "list", "watch", "create", "patch", "delete"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "migrations", "namespace": world.apps},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "migrations"},
        "subjects": [{"kind": "ServiceAccount", "name": "fairway", "namespace": world.name}],
    });
    world.plane.apply_yaml(&role.to_string()).await;
    world.plane.apply_yaml(&binding.to_string()).await;
}

/// A migration that marks a ConfigMap of its own once: needed while `mark` is not there, or has no `NAME`.
pub(crate) struct Marks<'a> {
    pub(crate) name: &'a str,
    /// The folder below which it stands: `components/web`, or the root where it is empty.
    pub(crate) of: &'a str,
    pub(crate) phase: &'a str,
    /// Merged over the definition's `spec`; what is null goes.
    pub(crate) more: Value,
}

/// Writes a migration that puts `NAME: done` into the ConfigMap `mark`.
pub(crate) fn marks(world: &World, it: &Marks<'_>) {
    let (name, apps) = (it.name, &world.apps);
    let mut spec = json!({
        "description": "Marks a ConfigMap.",
        "owner": "team-web",
        "bind": {"phase": it.phase},
        "lifecycle": {"never": "it is a test"},
        "lookups": {"mark": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": apps, "name": name}},
        "guard": {"needed": "objects.mark == null"},
        "steps": [applies(world, "mark", name)],
        "policy": {"retry": {"maxAttempts": 2, "interval": "100ms"}},
    });
    json_patch::merge(&mut spec, &it.more);
    let body = json!({
        "apiVersion": "fairway.dev/v1alpha1", "kind": "Migration", "metadata": {"name": name}, "spec": spec,
    });
    let folder = if it.of.is_empty() {
        "migrations".to_owned()
    } else {
        format!("{}/migrations", it.of)
    };
    let text = serde_yaml::to_string(&body).expect("JSON is YAML");
    world
        .repository
        .write(&format!("{folder}/{name}.yaml"), text);
}

/// The runs of a world.
pub(crate) fn runs(world: &World) -> Api<Run> {
    Api::namespaced(world.client.clone(), &world.name)
}

/// Returns all runs by the migration's name, sorted by it.
pub(crate) async fn all_runs(world: &World) -> Vec<Run> {
    let mut found = runs(world)
        .list(&ListParams::default())
        .await
        .expect("they can be listed")
        .items;
    found.sort_by_key(|run| (run.spec.migration.clone(), run.name_any()));
    found
}

/// Returns `MIGRATION PHASE` of all runs.
pub(crate) async fn outcomes(world: &World) -> Vec<String> {
    let runs = all_runs(world).await;
    runs.iter()
        .map(|run| format!("{} {}", run.spec.migration, phase(run)))
        .collect()
}

pub(crate) fn phase(run: &Run) -> RunPhase {
    run.status
        .as_ref()
        .map(|status| status.phase)
        .unwrap_or_default()
}

/// Waits until there is a run of a migration in a phase, and returns it.
pub(crate) async fn until_run(world: &World, migration: &str, wanted: RunPhase) -> Run {
    let begun = std::time::Instant::now();
    loop {
        let runs = all_runs(world).await;
        let mut of_it = runs
            .into_iter()
            .filter(|run| run.spec.migration == migration);
        let found = of_it.find(|run| phase(run) == wanted);
        if let Some(run) = found {
            return run;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{migration} is not {wanted}: {:?}; {:#?}",
            outcomes(world).await,
            world.source().await.status
        );
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Waits until the target has committed a component under a version's digest that differs from one before.
pub(crate) async fn until_committed(
    world: &World,
    component: &str,
    before: Option<&str>,
) -> Target {
    let (component, before) = (component.to_owned(), before.map(str::to_owned));
    let condition = move |target: Option<&Target>| {
        let status = target.and_then(|target| target.status.as_ref());
        status.is_some_and(|status| {
            status
                .components
                .iter()
                .any(|it| it.name == component && it.digest.is_some() && it.digest != before)
        })
    };
    let name = format!("{}.home", world.name);
    let waiting = await_condition(world.targets(), &name, condition);
    match tokio::time::timeout(PATIENCE, waiting).await {
        Ok(found) => found.expect("it can be watched").expect("it is there"),
        Err(tokio::time::error::Elapsed { .. }) => panic!(
            "not committed after {PATIENCE:?}: {:#?} {:#?}",
            world.target().await.status,
            world.source().await.status
        ),
    }
}

/// Says what a person wants of a run, as the command line does.
#[expect(clippy::disallowed_methods, reason = "a test says when it speaks")]
pub(crate) async fn say(world: &World, run: &Run, command: Value) {
    let mut wish = json!({
        "by": "ada", "reason": "a test", "at": jiff::Timestamp::now().to_string(),
    });
    json_patch::merge(&mut wish, &command);
    let patch = json!({"metadata": {"annotations": {"fairway.dev/command": wish.to_string()}}});
    runs(world)
        .patch(
            &run.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&patch),
        )
        .await
        .expect("it is there");
}

/// Waits until the source tells of a hold with a reason, and returns it.
pub(crate) async fn until_hold(world: &World, reason: &'static str) -> HeldItem {
    let of = move |source: &ReleaseSource| {
        let holds = source.status.as_ref().map(|status| status.holds.iter());
        holds
            .into_iter()
            .flatten()
            .find(|hold| hold.reason == reason)
            .cloned()
    };
    let condition = move |source: Option<&ReleaseSource>| source.and_then(of).is_some();
    let found = world.until_source(reason, condition).await;
    of(&found).expect("it was waited for")
}

/// Returns `REASON WHAT` of each hold of the source.
pub(crate) async fn holds(world: &World) -> Vec<String> {
    let status = world.source().await.status.unwrap_or_default();
    let holds = status.holds.iter();
    holds
        .map(|hold| format!("{} {}", hold.reason, hold.what))
        .collect()
}

/// Returns whether a request looks at what migrations look at, or writes a run.
pub(crate) fn is_work(seen: &Seen) -> bool {
    let writes = matches!(seen.verb.as_str(), "POST" | "PUT" | "PATCH" | "DELETE");
    seen.path.contains("/configmaps/") || (writes && seen.path.contains("/runs"))
}
