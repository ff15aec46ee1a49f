use rstest::rstest;
use serde_json::json;

use crate::desired::{Desired, Removal};
use crate::model::{Hold, SourceName};
use crate::plan::Plan;
use crate::plan::testing::*;

fn approval_hold(plan: &Plan) -> &Hold {
    plan.holds
        .iter()
        .find(|hold| hold.reason.as_str() == "ApprovalNeeded")
        .unwrap()
}

// === limits ===

fn many_gone(count: usize, stay: usize) -> (Cluster, Desired) {
    let name = |n: usize| config_map("components/a", &format!("c{n}"));
    let wanted = desired((0..stay).map(name));
    let base = desired((0..stay + count).map(name));
    (Cluster::with(&base, &wanted), wanted)
}

#[rstest]
#[case::at_max_objects(10, 90, true)]
#[case::beyond_max_objects(11, 89, false)]
#[case::at_max_percent(4, 16, true)]
#[case::beyond_max_percent(5, 15, false)]
#[case::two_of_three_are_no_percentage(2, 1, true)]
#[case::three_of_four(3, 1, false)]
fn limits_hold_the_whole_set(#[case] gone: usize, #[case] stay: usize, #[case] goes: bool) {
    let (cluster, wanted) = many_gone(gone, stay);
    let plan = cluster.plan(&wanted);
    assert_eq!(plan.actions().count(), if goes { gone } else { 0 });
    assert_eq!(pending(&plan).len(), if goes { 0 } else { gone });
}

#[test]
fn objects_of_other_sources_do_not_dilute_the_percentage() {
    let (mut cluster, wanted) = many_gone(5, 20);
    assert_eq!(cluster.plan(&wanted).actions().count(), 5);
    let other = SourceName::new("other").unwrap();
    let mut kept = Vec::new();
    for n in 0..10 {
        let name = format!("ConfigMap default/c{n}");
        cluster.change(&name, |live| live.source = Some(other.clone()));
        kept.push(name);
    }
    let plan = cluster.plan(&wanted);
    assert_eq!(pending(&plan).len(), 5);
}

#[test]
fn announced_objects_go_and_count_towards_no_limit() {
    let (cluster, mut wanted) = many_gone(11, 89);
    let announced = Removal::Object(key("ConfigMap default/c99"));
    wanted.settings.removals.push(announced);
    let plan = cluster.plan(&wanted);
    assert_eq!(plan.actions().count(), 11);
    assert!(plan.pending.is_none());
}

// === approvals ===

#[test]
fn an_approval_covers_the_set_and_what_is_left_of_it() {
    let (mut cluster, wanted) = many_gone(15, 85);
    let first = cluster.plan(&wanted);
    cluster.approval = Some(approve(&first));
    assert_eq!(cluster.plan(&wanted).actions().count(), 15);
    cluster.forget(&first.pending.unwrap().deletions[0].key);
    assert_eq!(cluster.plan(&wanted).actions().count(), 14);
}

#[test]
fn a_set_that_grows_waits_anew() {
    let (mut cluster, wanted) = many_gone(15, 85);
    cluster.approval = Some(approve(&cluster.plan(&wanted)));
    let wanted = desired((0..84).map(|n| config_map("components/a", &format!("c{n}"))));
    let plan = cluster.plan(&wanted);
    assert_eq!(pending(&plan).len(), 16);
    assert!(plan.is_empty());
}

#[test]
fn an_approval_does_not_cover_a_new_object_of_the_same_name() {
    let (mut cluster, wanted) = one_gone();
    cluster.prune.max_objects = 0;
    cluster.approval = Some(approve(&cluster.plan(&wanted)));
    cluster.change(GONE, |live| "another".clone_into(&mut live.uid));
    assert_eq!(pending(&cluster.plan(&wanted)), [GONE]);
}

// === what takes much with it ===

#[test]
fn a_component_that_disappears_waits_and_the_way_out_is_named() {
    let wanted = staying();
    let base = and(
        staying(),
        [
            config_map("components/b", "gone"),
            config_map("components/b", "too"),
        ],
    );
    let cluster = Cluster::with(&base, &wanted);
    let plan = cluster.plan(&wanted);
    assert_eq!(pending(&plan), [GONE, "ConfigMap default/too"]);
    insta::assert_snapshot!(approval_hold(&plan).message);
}

#[test]
fn small_safe_deletions_go_beside_a_component_that_waits() {
    let wanted = staying();
    let base = and(
        staying(),
        [
            config_map("components/b", "whole"),
            config_map("components/a", "gone"),
        ],
    );
    let plan = Cluster::with(&base, &wanted).plan(&wanted);
    assert_eq!(changes(&plan), DELETED);
    assert_eq!(pending(&plan), ["ConfigMap default/whole"]);
}

#[test]
fn a_component_whose_objects_are_all_held_has_not_disappeared() {
    let mut wanted = staying();
    let base = and(
        staying(),
        [
            config_map("components/b", "gone"),
            config_map("components/b", "bad"),
        ],
    );
    let (held_key, hold) = held("ConfigMap default/bad", "components/b/bad.yaml");
    wanted.held.insert(held_key, hold);
    let plan = Cluster::with(&base, &wanted).plan(&wanted);
    assert_eq!(changes(&plan), DELETED);
}

#[test]
fn an_announced_component_goes_at_once() {
    let mut wanted = staying();
    let base = and(staying(), [config_map("components/b", "gone")]);
    wanted
        .settings
        .removals
        .push(Removal::Component(component("components/b")));
    assert_eq!(
        changes(&Cluster::with(&base, &wanted).plan(&wanted)),
        DELETED
    );
}

#[rstest]
#[case::claim("PersistentVolumeClaim default/data")]
#[case::volume("PersistentVolume data")]
#[case::namespace("Namespace shop")]
#[case::definition("CustomResourceDefinition.apiextensions.k8s.io carts.shop.dev")]
fn what_takes_data_or_other_objects_along_always_waits(#[case] risky: &str) {
    let wanted = staying();
    let base = and(staying(), [object("components/a", risky, json!({}))]);
    let mut cluster = Cluster::with(&base, &wanted);
    cluster.observed.served = Some(std::sync::Arc::default());
    serve_all(&mut cluster);
    let mut wanted = wanted;
    let plan = cluster.plan(&wanted);
    assert_eq!(pending(&plan), [risky]);
    wanted.settings.removals.push(Removal::Object(key(risky)));
    assert_eq!(
        changes(&cluster.plan(&wanted)),
        [format!("deleted {risky}")]
    );
}

#[test]
fn an_approval_forgets_what_git_wants_again_and_what_is_gone_but_not_what_cannot_be_seen() {
    let (mut cluster, wanted) = one_gone();
    cluster.prune.max_objects = 0;
    let given = approve(&cluster.plan(&wanted));
    let narrowed = |cluster: &Cluster, wanted: &crate::desired::Desired| {
        let mut approval = given.clone();
        approval.narrow(&source(), wanted, &cluster.observed);
        approval.objects.len()
    };
    assert_eq!(narrowed(&cluster, &wanted), 1, "it still waits");
    let again = and(staying(), [config_map("components/a", "gone")]);
    assert_eq!(narrowed(&cluster, &again), 0, "git wants it again");
    let mut unseen = Cluster::with(&again, &wanted);
    unseen.unlist("ConfigMap");
    assert_eq!(narrowed(&unseen, &wanted), 1, "it cannot be seen");
    cluster.forget(&key(GONE));
    assert_eq!(narrowed(&cluster, &wanted), 0, "it is gone");
}
