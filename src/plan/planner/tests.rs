use serde_json::json;

use crate::model::HoldReason;
use crate::model::{Scope, ServedKind};
use crate::observe::{Health, Ownership};
use crate::plan::Why;
use crate::plan::testing::*;

#[test]
fn what_is_missing_is_created_and_what_is_there_is_left_alone() {
    let base = desired([config_map("components/a", "one")]);
    let wanted = desired([
        config_map("components/a", "one"),
        config_map("components/a", "two"),
    ]);
    let plan = Cluster::with(&base, &wanted).plan(&wanted);
    assert_eq!(changes(&plan), ["created ConfigMap default/two"]);
    assert_eq!(plan.unchanged, 1);
}

#[test]
fn what_git_changed_is_configured() {
    let base = desired([config_map("components/a", "one")]);
    let body = json!({"data": {"key": "another value"}});
    let wanted = desired([object("components/a", "ConfigMap default/one", body)]);
    let plan = Cluster::with(&base, &wanted).plan(&wanted);
    assert_eq!(changes(&plan), ["configured ConfigMap default/one"]);
    assert_eq!(plan.phases[0][0].why, Why::Changed);
}

#[test]
fn what_somebody_changed_is_configured_with_the_fields_named() {
    let wanted = desired([config_map("components/a", "one")]);
    let mut cluster = Cluster::with(&wanted, &wanted);
    cluster.change("ConfigMap default/one", |live| {
        let Ownership::Ours { fields, .. } = &mut live.ownership else {
            unreachable!("it was applied")
        };
        std::sync::Arc::make_mut(fields).children.remove("f:data");
    });
    let plan = cluster.plan(&wanted);
    assert_eq!(
        plan.phases[0][0].why,
        Why::Drifted(vec!["data.key".to_owned()])
    );
}

#[test]
fn a_converged_cluster_needs_nothing() {
    let wanted = desired([
        template("1.0.0"),
        release(&[("regular", "1.0.0")]),
        config_map("components/a", "one"),
    ]);
    let plan = Cluster::with(&wanted, &wanted).plan(&wanted);
    assert!(plan.is_empty());
    assert_eq!(holds(&plan), [""; 0]);
    assert_eq!(plan.unchanged, 3);
}

#[test]
fn phases_order_kinds_and_stay_few() {
    let wanted = desired([
        object("components/a", "Deployment.apps shop/api", json!({})),
        object("components/a", "Namespace shop", json!({})),
        object("components/a", "ConfigMap shop/settings", json!({})),
        object("components/a", "ServiceAccount shop/api", json!({})),
        object(
            "components/a",
            "RoleBinding.rbac.authorization.k8s.io shop/api",
            json!({}),
        ),
        object(
            "components/b",
            "Role.rbac.authorization.k8s.io shop/api",
            json!({}),
        ),
        object(
            "components/b",
            "ValidatingWebhookConfiguration.admissionregistration.k8s.io w",
            json!({}),
        ),
        template("1.0.0"),
        release(&[("regular", "1.0.0")]),
    ]);
    let empty = desired([]);
    let plan = Cluster::with(&empty, &wanted).plan(&wanted);
    let phases: Vec<Vec<String>> = plan
        .phases
        .iter()
        .map(|phase| phase.iter().map(|action| action.key.to_string()).collect())
        .collect();
    insta::assert_yaml_snapshot!(phases);
}

#[test]
fn a_thousand_config_maps_share_one_phase() {
    let wanted = desired((0..1000).map(|n| config_map("components/a", &format!("c{n}"))));
    let empty = desired([]);
    let plan = Cluster::with(&empty, &wanted).plan(&wanted);
    assert_eq!(plan.phases.len(), 1);
    assert_eq!(plan.phases[0].len(), 1000);
}

#[test]
fn a_new_namespace_is_required_by_what_lives_in_it() {
    let wanted = desired([
        object("components/a", "Namespace shop", json!({})),
        object("components/a", "ConfigMap shop/settings", json!({})),
    ]);
    let empty = desired([]);
    let plan = Cluster::with(&empty, &wanted).plan(&wanted);
    assert_eq!(plan.phases[1][0].requires, [key("Namespace shop")]);
}

#[test]
fn a_release_requires_the_templates_that_are_applied_with_it() {
    let base = desired([template("1.0.0"), release(&[("regular", "1.0.0")])]);
    let wanted = desired([
        template("1.0.0"),
        template("1.0.1"),
        release(&[("fast", "1.0.1"), ("regular", "1.0.0")]),
    ]);
    let plan = Cluster::with(&base, &wanted).plan(&wanted);
    assert_eq!(
        changes(&plan),
        [
            "created ModuleTemplate.operator.kyma-project.io kcp-system/telemetry-1.0.1",
            "configured ModuleReleaseMeta.operator.kyma-project.io kcp-system/telemetry",
        ]
    );
    assert_eq!(plan.phases[1][0].requires, [plan.phases[0][0].key.clone()]);
}

#[test]
fn a_release_that_names_a_template_nobody_has_is_held() {
    let wanted = desired([template("1.0.0"), release(&[("regular", "1.0.1")])]);
    let empty = desired([]);
    let plan = Cluster::with(&empty, &wanted).plan(&wanted);
    assert_eq!(plan.actions().count(), 1);
    assert_eq!(
        holds(&plan),
        ["Requires ModuleReleaseMeta.operator.kyma-project.io kcp-system/telemetry"]
    );
}

// === components that depend on others ===

fn two_components() -> crate::desired::Desired {
    let mut wanted = desired([
        config_map("components/base", "one"),
        config_map("components/top", "two"),
    ]);
    let top = wanted
        .components
        .get_mut(&component("components/top"))
        .unwrap();
    top.depends_on.push(component("components/base"));
    wanted
}

#[test]
fn a_component_waits_until_what_it_depends_on_is_there() {
    let wanted = two_components();
    let mut cluster = Cluster::with(&desired([]), &wanted);
    let first = cluster.plan(&wanted);
    assert_eq!(changes(&first), ["created ConfigMap default/one"]);
    assert_eq!(holds(&first), ["DependencyNotReady components/top"]);
    cluster.carry_out(&first);
    let second = cluster.plan(&wanted);
    assert_eq!(changes(&second), ["created ConfigMap default/two"]);
    assert_eq!(holds(&second), [""; 0]);
}

#[test]
fn a_component_waits_while_what_it_depends_on_is_not_healthy() {
    let wanted = two_components();
    let mut cluster = Cluster::with(&wanted, &wanted);
    cluster.change("ConfigMap default/one", |live| {
        live.health = Health::InProgress("1 of 2 replicas".to_owned());
    });
    // In step already: there is nothing to hold, whatever the other component does.
    assert_eq!(holds(&cluster.plan(&wanted)), [""; 0]);
    cluster.forget(&key("ConfigMap default/two"));
    let plan = cluster.plan(&wanted);
    assert!(plan.is_empty());
    insta::assert_snapshot!(plan.holds[0].message, @"it depends on components/base, which is not ready: ConfigMap default/one is not ready: 1 of 2 replicas. It goes on by itself as soon as that is mended");
    assert_eq!(plan.unhealthy[0].0, component("components/base"));
}

#[test]
fn a_component_that_waits_loses_nothing_either() {
    let mut base = two_components();
    base.components
        .get_mut(&component("components/top"))
        .unwrap()
        .objects
        .push(config_map("components/top", "three"));
    let wanted = two_components();
    let mut cluster = Cluster::with(&base, &wanted);
    assert_eq!(
        changes(&cluster.plan(&wanted)),
        ["deleted ConfigMap default/three"]
    );
    cluster.forget(&key("ConfigMap default/one"));
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), ["created ConfigMap default/one"]);
    assert_eq!(holds(&plan), ["DependencyNotReady components/top"]);
}

#[test]
fn a_disabled_object_does_not_stop_what_depends_on_its_component() {
    let base = desired([object(
        "components/base",
        "ConfigMap default/one",
        json!({"data": {"old": "x"}}),
    )]);
    let wanted = two_components();
    let mut cluster = Cluster::with(&base, &wanted);
    cluster.change("ConfigMap default/one", |live| {
        live.reconcile_disabled = true;
    });
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), ["created ConfigMap default/two"]);
    assert_eq!(holds(&plan), ["Disabled ConfigMap default/one"]);
}

#[test]
fn an_unread_file_or_an_invalid_new_object_of_a_component_stops_what_depends_on_it() {
    let mut wanted = two_components();
    let base = desired([config_map("components/base", "one")]);
    wanted.unread.push(unread("components/base/bad.yaml"));
    let plan = Cluster::with(&base, &wanted).plan(&wanted);
    assert_eq!(holds(&plan), ["DependencyNotReady components/top"]);

    let mut wanted = two_components();
    let (held_key, hold) = held("ConfigMap default/bad", "components/base/bad.yaml");
    wanted.held.insert(held_key, hold);
    let plan = Cluster::with(&base, &wanted).plan(&wanted);
    assert_eq!(
        holds(&plan),
        [
            "Invalid ConfigMap default/bad",
            "DependencyNotReady components/top"
        ]
    );
}

#[test]
fn a_dependency_that_does_not_exist_holds_the_component() {
    let mut wanted = two_components();
    wanted.components.remove(&component("components/base"));
    let plan = Cluster::with(&desired([]), &wanted).plan(&wanted);
    assert_eq!(holds(&plan), ["DependencyNotReady components/top"]);
}

// === kinds ===

fn serve(cluster: &mut Cluster, kinds: &[(&str, Scope, &str)]) {
    let served = kinds.iter().map(|(kind, scope, plural)| {
        let served = ServedKind {
            scope: *scope,
            plural: (*plural).to_owned(),
            versions: vec!["v1".to_owned()],
        };
        (kind.parse().unwrap(), served)
    });
    cluster.observed.served = Some(std::sync::Arc::new(served.collect()));
}

const CONFIG_MAPS: (&str, Scope, &str) = ("ConfigMap", Scope::Namespaced, "configmaps");
const DEFINITIONS: (&str, Scope, &str) = (
    "CustomResourceDefinition.apiextensions.k8s.io",
    Scope::Cluster,
    "customresourcedefinitions",
);

fn definition() -> std::sync::Arc<crate::model::DesiredObject> {
    let body = json!({"spec": {"group": "shop.dev", "names": {"kind": "Cart", "plural": "carts"}}});
    object(
        "components/a",
        "CustomResourceDefinition.apiextensions.k8s.io carts.shop.dev",
        body,
    )
}

#[test]
fn a_kind_that_the_cluster_does_not_serve_is_held_alone() {
    let wanted = desired([
        object("components/a", "Cart.shop.dev default/mine", json!({})),
        config_map("components/a", "one"),
    ]);
    let mut cluster = Cluster::with(&desired([]), &wanted);
    serve(&mut cluster, &[CONFIG_MAPS]);
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), ["created ConfigMap default/one"]);
    assert_eq!(holds(&plan), ["KindUnknown Cart.shop.dev default/mine"]);
}

#[test]
fn an_object_follows_the_definition_that_the_same_plan_applies() {
    let wanted = desired([
        object("components/a", "Cart.shop.dev default/mine", json!({})),
        definition(),
    ]);
    let mut cluster = Cluster::with(&desired([]), &wanted);
    serve(&mut cluster, &[DEFINITIONS]);
    cluster.unlist("Cart.shop.dev");
    let plan = cluster.plan(&wanted);
    assert_eq!(
        changes(&plan),
        [
            "created CustomResourceDefinition.apiextensions.k8s.io carts.shop.dev",
            "created Cart.shop.dev default/mine",
        ]
    );
    assert_eq!(plan.phases[1][0].requires, [plan.phases[0][0].key.clone()]);
}

#[test]
fn a_definition_that_is_there_but_not_served_yet_holds_its_objects() {
    let wanted = desired([
        object("components/a", "Cart.shop.dev default/mine", json!({})),
        definition(),
    ]);
    let mut cluster = Cluster::with(&desired([definition()]), &wanted);
    serve(&mut cluster, &[DEFINITIONS]);
    let plan = cluster.plan(&wanted);
    assert!(plan.is_empty());
    assert_eq!(holds(&plan), ["KindUnknown Cart.shop.dev default/mine"]);
}

#[test]
fn a_kind_that_could_not_be_listed_is_held_once_and_never_applied_blindly() {
    let wanted = desired([
        config_map("components/a", "one"),
        config_map("components/a", "two"),
    ]);
    let mut cluster = Cluster::with(&desired([]), &wanted);
    cluster.unlist("ConfigMap");
    let plan = cluster.plan(&wanted);
    assert!(plan.is_empty());
    insta::assert_snapshot!(plan.holds[0].message, @"its objects are neither changed nor pruned, 2 of them in git, since what is there is not known: the request was forbidden");
    assert_eq!(plan.holds.len(), 1);
}

#[test]
fn a_namespace_on_a_kind_that_has_none_is_held_instead_of_applied_for_ever() {
    let wanted = desired([object(
        "components/a",
        "ClusterRole.rbac.authorization.k8s.io shop/view",
        json!({}),
    )]);
    let mut cluster = Cluster::with(&desired([]), &wanted);
    let roles = (
        "ClusterRole.rbac.authorization.k8s.io",
        Scope::Cluster,
        "clusterroles",
    );
    serve(&mut cluster, &[roles]);
    let plan = cluster.plan(&wanted);
    assert_eq!(
        holds(&plan),
        ["Invalid ClusterRole.rbac.authorization.k8s.io shop/view"]
    );
}

// === holds of single objects ===

#[test]
fn a_held_object_is_frozen() {
    let base = desired([config_map("components/a", "one")]);
    let mut wanted = desired([object(
        "components/a",
        "ConfigMap default/one",
        json!({"data": {"new": "x"}}),
    )]);
    let (held_key, hold) = held("ConfigMap default/one", "components/a/one.yaml");
    wanted.held.insert(held_key, hold);
    let plan = Cluster::with(&base, &wanted).plan(&wanted);
    assert!(plan.is_empty());
    assert_eq!(plan.holds[0].reason, HoldReason::Invalid);
}

#[test]
fn identity_changes_with_what_a_plan_says() {
    let base = desired([config_map("components/a", "one")]);
    let body = |value: &str| json!({"data": {"key": value}});
    let wanted = |value| desired([object("components/a", "ConfigMap default/one", body(value))]);
    let plan = |value| {
        let wanted = wanted(value);
        Cluster::with(&base, &wanted).plan(&wanted)
    };
    assert_eq!(plan("x").identity, plan("x").identity);
    assert_ne!(plan("x").identity, plan("y").identity);
}
