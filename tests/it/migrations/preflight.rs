//! Preflight: what can be judged before the first change of a deploy is judged then, by the agent as a process under the shipped rights.

use fairway::model::api::{Run, RunPhase};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::deploy::stage::{self, Marks};
use crate::support::proxy::{Fault, Rule};
use crate::support::world::World;

const WEB: &str = "components/web";

/// A commit with a component `web` that has one migration, and a component `api` without any.
fn commit(world: &World, phase: &str, more: Value) {
    world.config_map("web", "settings", "one");
    world.config_map("api", "limits", "one");
    let (name, of) = ("careful", WEB);
    stage::marks(
        world,
        &Marks {
            name,
            of,
            phase,
            more,
        },
    );
    world.repository.publish("A component with a migration");
}

/// A precondition on a StorageClass, which nothing of a deploy makes.
fn needs_class(world: &World) -> Value {
    json!({
        "lookups": {"class": {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "name": format!("{}-fast", world.name),
        }},
        "guard": {"requires": [{
            "cel": "objects.class != null",
            "message": "The storage class has to be there.",
            "runbook": "https://runbooks.example.com/class",
        }]},
    })
}

async fn allow_classes(world: &World) {
    let name = format!("{}-classes", world.name);
    for object in [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [{"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": ["get"]}],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "fairway", "namespace": world.name}],
        }),
    ] {
        world.plane.apply_yaml(&object.to_string()).await;
    }
}

async fn make_class(world: &World) {
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": format!("{}-fast", world.name)}, "provisioner": "example.com/none",
    });
    world.plane.apply_yaml(&class.to_string()).await;
}

/// How often the agent has asked what it may do.
fn reviews(world: &World) -> usize {
    let seen = world.proxy.seen();
    let asked = seen.iter().filter(|it| it.path.contains("selfsubject"));
    asked.count()
}

fn reason(run: &Run) -> String {
    run.status.clone().unwrap_or_default().reason
}

fn message(run: &Run) -> String {
    run.status.clone().unwrap_or_default().message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_precondition_of_a_post_migration_is_found_before_its_component_is_touched() {
    let world = World::new().await;
    allow_classes(&world).await;
    commit(&world, "post", needs_class(&world));
    let _agent = world.agent();
    world.declare(json!({})).await;
    let run = stage::until_run(&world, "careful", RunPhase::Blocked).await;
    world.until_value("limits", Some("one")).await;
    world.until_reason("PartiallyApplied").await;
    assert_eq!(world.value("settings").await, None);
    assert_eq!(reason(&run), "RequirementFalse");
    assert_eq!(
        stage::holds(&world).await,
        ["MigrationBlocked migration careful of post of components/web"]
    );
    let status = world.source().await.status.unwrap();
    let hold = &status.holds[0];
    let command = format!("fairway run override {}", run.name_any());
    for words in [
        "owner team-web",
        "The storage class has to be there",
        "https://runbooks.example.com/class",
        command.as_str(),
        "nothing of components/web is changed before it may begin",
    ] {
        assert!(hold.message.contains(words), "{words}: {hold:#?}");
    }
    let place = hold.place.clone().unwrap();
    assert!(
        place.starts_with("components/web/migrations/careful.yaml:"),
        "{place}"
    );
    // Somebody knows better: the component is applied, then the migration runs.
    let until = json!({"verb": "override", "until": "2199-01-01T00:00:00Z"});
    stage::say(&world, &run, until).await;
    stage::until_committed(&world, WEB, None).await;
    assert_eq!(world.value("settings").await.as_deref(), Some("one"));
    assert_eq!(stage::outcomes(&world).await, ["careful Succeeded"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_blocks_the_deploy_is_found_before_anything_is_changed() {
    let world = World::new().await;
    allow_classes(&world).await;
    let mut more = needs_class(&world);
    more["policy"] = json!({"onFailure": "BlockDeploy"});
    commit(&world, "post", more);
    let _agent = world.agent();
    world.declare(json!({})).await;
    stage::until_run(&world, "careful", RunPhase::Blocked).await;
    world.until_reason("PartiallyApplied").await;
    world.reconcile().await;
    assert_eq!(world.value("settings").await, None);
    assert_eq!(world.value("limits").await, None);
    let seen = world.proxy.seen();
    let applied: Vec<_> = seen
        .iter()
        .filter(|it| it.verb == "PATCH" && it.path.contains("/configmaps/"))
        .collect();
    assert!(applied.is_empty(), "{applied:#?}");
    // Once it is so, it goes on by itself.
    make_class(&world).await;
    world.reconcile().await;
    stage::until_committed(&world, WEB, None).await;
    assert_eq!(world.value("limits").await.as_deref(), Some("one"));
    assert_eq!(stage::outcomes(&world).await, ["careful Succeeded"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_deploy_brings_does_not_block_it() {
    let world = World::new().await;
    let more = json!({
        "lookups": {"settings": {
            "apiVersion": "v1", "kind": "ConfigMap", "namespace": world.apps, "name": "settings",
        }},
        "guard": {"requires": [{"cel": "objects.settings.data.value == 'one'", "message": "The settings have to be there."}]},
        "policy": {"onFailure": "BlockDeploy"},
    });
    commit(&world, "post", more);
    let _agent = world.agent();
    world.declare(json!({})).await;
    stage::until_committed(&world, WEB, None).await;
    world.until_reason("Synced").await;
    assert_eq!(stage::outcomes(&world).await, ["careful Succeeded"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_that_is_missing_is_printed_as_a_role_that_mends_it() {
    let world = World::new().await;
    // The shipped roles know nothing of volumes.
    let more = json!({"steps": [{"id": "claim", "apply": {"manifest": {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": world.apps},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }}}, {"id": "mark", "apply": {"manifest": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "careful", "namespace": world.apps},
    }}}]});
    commit(&world, "pre", more);
    let mut agent = world.agent();
    world.declare(json!({})).await;
    let run = stage::until_run(&world, "careful", RunPhase::Blocked).await;
    world.until_value("limits", Some("one")).await;
    assert_eq!(world.value("settings").await, None);
    assert_eq!(reason(&run), "RightMissing");
    let text = message(&run);
    let who = format!(
        "account fairway in {} needs the right to create persistentvolumeclaims in {} (and 2 more rights)",
        world.name, world.apps
    );
    assert!(text.starts_with(&who), "{text}");
    world.until_reason("PartiallyApplied").await;
    let status = world.source().await.status.unwrap();
    assert!(
        status.holds[0]
            .message
            .contains("needs the right to create persistentvolumeclaims"),
        "{:#?}",
        status.holds
    );
    // What is printed can be applied, as it stands on the page.
    let (code, page, err) = world.fairway(&["describe", "run", "careful"]);
    assert_eq!(code, 0, "{err}");
    let begin = page.find("apiVersion: v1\n").expect("a role is printed");
    let indented = " ".repeat(12);
    let printed: Vec<&str> = page[begin..].lines().collect();
    let of_it = |line: &&str| line.starts_with(&indented) || line.starts_with("apiVersion");
    let lines: Vec<&str> = printed
        .into_iter()
        .take_while(of_it)
        .map(|line| line.strip_prefix(&indented).unwrap_or(line))
        .collect();
    let list: Value = serde_yaml::from_str(&lines.join("\n")).unwrap();
    for item in list["items"].as_array().unwrap() {
        world.plane.apply_yaml(&item.to_string()).await;
    }
    world.reconcile().await;
    stage::until_committed(&world, WEB, None).await;
    world.until_reason("Synced").await;
    assert_eq!(stage::outcomes(&world).await, ["careful Succeeded"]);

    // A pass without a change asks for nothing, nor does what is not needed.
    world.proxy.forget();
    world.reconcile().await;
    assert_eq!(reviews(&world), 0);
    world.config_map("web", "settings", "two");
    world.publish("Another value").await;
    world.until_value("settings", Some("two")).await;
    assert_eq!(reviews(&world), 0);
    let (_, well) = agent.terminate();
    assert!(well, "{}", agent.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lookup_that_is_forbidden_says_which_right_is_missing() {
    let world = World::new().await;
    let more = json!({"lookups": {"claim": {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": world.apps, "name": "data",
    }}, "guard": {"needed": "objects.claim != null"}});
    commit(&world, "pre", more);
    let _agent = world.agent();
    world.declare(json!({})).await;
    let run = stage::until_run(&world, "careful", RunPhase::Blocked).await;
    assert_eq!(reason(&run), "RightMissing");
    let text = message(&run);
    assert!(
        text.contains("needs the right to get persistentvolumeclaims data"),
        "{text}"
    );
    // With the rights that `fairway migration rbac` prints, nothing is needed at all.
    let account = format!("{}/fairway", world.name);
    let folder = world.repository.path().to_str().unwrap().to_owned();
    let arguments = [
        "migration",
        "rbac",
        &folder,
        "--account",
        &account,
        "--output",
        "json",
    ];
    let (code, out, err) = world.fairway(&arguments);
    assert_eq!(code, 0, "{err}");
    let list: Value = serde_json::from_str(&out).unwrap();
    for item in list["items"].as_array().unwrap() {
        let text = item.to_string();
        // Roles of a whole cluster are shared with other tests.
        world.plane.apply_yaml(&text).await;
    }
    world.reconcile().await;
    world.until_value("settings", Some("one")).await;
    world.until_reason("Synced").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_kubernetes_has_dropped_is_found_with_what_took_its_place() {
    let world = World::new().await;
    let more = json!({"steps": [{"id": "budget", "apply": {"manifest": {
        "apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": world.apps}, "spec": {"maxUnavailable": 1},
    }}}]});
    commit(&world, "post", more);
    let _agent = world.agent();
    world.declare(json!({})).await;
    let run = stage::until_run(&world, "careful", RunPhase::Blocked).await;
    world.until_value("limits", Some("one")).await;
    assert_eq!(world.value("settings").await, None);
    assert_eq!(reason(&run), "KindNotServed");
    let text = message(&run);
    assert!(
        text.starts_with("step budget needs a cluster that serves policy/v1beta1 PodDisruptionBudget; it serves policy/v1 PodDisruptionBudget, which is what components/web/migrations/careful.yaml:"),
        "{text}"
    );
    // Mended in git, the Run of before is superseded.
    let path = "components/web/migrations/careful.yaml";
    let text = std::fs::read_to_string(world.repository.path().join(path)).unwrap();
    world
        .repository
        .write(path, text.replace("policy/v1beta1", "policy/v1"));
    // The budget is there afterwards and the mark is not, so that the proof has to be another one.
    let text = std::fs::read_to_string(world.repository.path().join(path)).unwrap();
    let text = text.replace("objects.mark == null", "objects.budget == null").replace(
        "lookups:\n",
        &format!("lookups:\n    budget:\n      apiVersion: policy/v1\n      kind: PodDisruptionBudget\n      namespace: {}\n      name: web\n", world.apps),
    );
    world.repository.write(path, text);
    world.publish("A budget of today").await;
    stage::until_committed(&world, WEB, None).await;
    let mut outcomes = stage::outcomes(&world).await;
    outcomes.sort();
    assert_eq!(outcomes, ["careful Succeeded", "careful Superseded"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_killed_between_preflight_and_the_first_write_starts_over() {
    let world = World::new().await;
    commit(&world, "pre", json!({}));
    world
        .proxy
        .inject(Rule::always("POST", "/runs", Fault::Hang));
    let mut agent = world.agent();
    world.declare(json!({})).await;
    // Judged, and its record is on a way on which it never arrives.
    world.until_value("limits", Some("one")).await;
    let looked = |world: &World| world.proxy.count("GET", "/configmaps/careful");
    while world.proxy.count("POST", "/runs") == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(looked(&world), 1);
    agent.kill();
    assert_eq!(stage::outcomes(&world).await, [""; 0]);
    world.proxy.heal();
    world.proxy.forget();
    let _agent = world.agent();
    stage::until_committed(&world, WEB, None).await;
    world.until_reason("Synced").await;
    assert_eq!(stage::outcomes(&world).await, ["careful Succeeded"]);
    // It was judged anew, and done once.
    assert!(looked(&world) > 1);
    assert_eq!(world.proxy.count("PATCH", "/configmaps/careful"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_in_a_namespace_that_an_expression_names_is_missed_before_the_first_change() {
    let world = World::new().await;
    let more = json!({
        "params": {"where": world.apps},
        "steps": [{"id": "claim", "apply": {"manifest": {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "${params.where}"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }}}],
    });
    commit(&world, "post", more);
    let _agent = world.agent();
    world.declare(json!({})).await;
    let run = stage::until_run(&world, "careful", RunPhase::Blocked).await;
    world.until_value("limits", Some("one")).await;
    assert_eq!(world.value("settings").await, None);
    assert_eq!(reason(&run), "RightMissing");
    let needs = format!("create persistentvolumeclaims in {}", world.apps);
    assert!(message(&run).contains(&needs), "{}", message(&run));
}
