use serde_json::json;

use crate::desired::{Desired, Removal};
use crate::observe::Health;
use crate::plan::Plan;
use crate::plan::testing::*;

/// A plan that says one of everything.
fn rich() -> Plan {
    let mut base = staying();
    base = and(
        base,
        [
            config_map("components/a", "gone"),
            config_map("components/a", "marked"),
            config_map("components/old", "whole"),
            object(
                "components/a",
                "Deployment.apps shop/api",
                json!({"spec": {"replicas": 1}}),
            ),
        ],
    );
    let mut wanted = and(
        staying(),
        [
            object("components/a", "Namespace shop", json!({})),
            object(
                "components/a",
                "Deployment.apps shop/api",
                json!({"spec": {"replicas": 2}}),
            ),
            object(
                "components/b",
                "Secret shop/token",
                json!({"data": {"token": "c2VjcmV0"}}),
            ),
        ],
    );
    let (held_key, hold) = held("ConfigMap default/bad", "components/b/bad.yaml");
    wanted.held.insert(held_key, hold);
    let mut cluster = Cluster::with(&base, &wanted);
    cluster.change("ConfigMap default/marked", |live| {
        live.prune_disabled = true;
    });
    cluster.change("ConfigMap default/c3", |live| {
        let crate::observe::Ownership::Ours { fields, .. } = &mut live.ownership else {
            unreachable!("it was applied")
        };
        std::sync::Arc::make_mut(fields).children.remove("f:data");
    });
    cluster.change("Deployment.apps shop/api", |live| {
        live.health = Health::InProgress("1 of 2 replicas are available".to_owned());
    });
    cluster.plan(&wanted)
}

#[test]
fn a_plan_reads_well() {
    insta::assert_snapshot!(rich().explain());
}

#[test]
fn a_plan_is_stable_json_without_bodies() {
    let explanation = rich().explain();
    let text = serde_json::to_string(&explanation).unwrap();
    assert!(
        !text.contains("c2VjcmV0"),
        "a Secret's value must not be in a plan"
    );
    insta::assert_json_snapshot!(explanation);
}

#[test]
fn a_plan_that_does_nothing_says_so() {
    let nothing: Desired = desired([]);
    let plan = Cluster::with(&nothing, &nothing).plan(&nothing);
    assert_eq!(plan.explain().to_string(), "nothing to do\n");
}

#[test]
fn an_announced_removal_reads_like_any_deletion() {
    let mut wanted = staying();
    let base = and(staying(), [config_map("components/old", "whole")]);
    wanted
        .settings
        .removals
        .push(Removal::Component(component("components/old")));
    let plan = Cluster::with(&base, &wanted).plan(&wanted);
    insta::assert_snapshot!(plan.explain());
}
