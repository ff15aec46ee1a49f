use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::model::{Digest, SourceName};
use crate::plan::testing::*;

const ONE: &str = "ConfigMap default/one";

/// Plans for one object that was applied, then changed in git, then on the cluster by the case.
fn planned(change: impl FnOnce(&mut ObservedObject)) -> (Vec<String>, Vec<Why>, Vec<String>) {
    let base = desired([object("components/a", ONE, json!({"data": {"old": "x"}}))]);
    let wanted = desired([config_map("components/a", "one")]);
    let mut cluster = Cluster::with(&base, &wanted);
    cluster.change(ONE, change);
    let plan = cluster.plan(&wanted);
    let whys = plan.actions().map(|action| action.why.clone()).collect();
    (changes(&plan), whys, holds(&plan))
}

fn other_source(live: &mut ObservedObject) {
    live.source = Some(SourceName::new("other").unwrap());
}

#[rstest]
#[case::terminating(|live: &mut ObservedObject| live.deleting = true, "Terminating")]
#[case::disabled(|live: &mut ObservedObject| live.reconcile_disabled = true, "Disabled")]
#[case::contested(|live: &mut ObservedObject| live.recent_applies = limits::CONTESTED_APPLIES, "Contested")]
#[case::owned_by_another_source(other_source, "Conflict")]
fn an_object_that_must_be_left_alone_is_held(
    #[case] change: fn(&mut ObservedObject),
    #[case] reason: &str,
) {
    let (changes, _, holds) = planned(change);
    assert_eq!(changes, [""; 0]);
    assert_eq!(holds, [format!("{reason} {ONE}")]);
}

#[rstest]
#[case::no_entry_of_ours(no_fields_of_ours)]
#[case::label_of_another_source_without_an_entry(|live: &mut ObservedObject| {
    other_source(live);
    live.ownership = Ownership::None;
})]
#[case::damaged_label(|live: &mut ObservedObject| live.source = None)]
fn an_object_that_was_never_ours_is_adopted(#[case] change: fn(&mut ObservedObject)) {
    let (_, whys, holds) = planned(change);
    assert_eq!(whys, [Why::Adopted]);
    assert_eq!(holds, [""; 0]);
}

#[test]
fn who_writes_a_contested_object_is_named() {
    let base = desired([object("components/a", ONE, json!({"data": {"old": "x"}}))]);
    let wanted = desired([config_map("components/a", "one")]);
    let mut cluster = Cluster::with(&base, &wanted);
    cluster.change(ONE, |live| {
        live.recent_applies = limits::CONTESTED_APPLIES;
        live.writers = vec!["kubectl-edit".into()];
        live.rivals = vec!["argocd-controller".into()];
    });
    let message = cluster.plan(&wanted).holds.remove(0).message;
    assert!(
        message.starts_with("one of `kubectl-edit`, `argocd-controller` keeps changing"),
        "{message}"
    );
}

#[test]
fn two_applies_within_the_window_are_not_contested_yet() {
    let (_, whys, _) = planned(|live| live.recent_applies = limits::CONTESTED_APPLIES - 1);
    assert_eq!(whys, [Why::Changed]);
}

/// Plans for one object that is as git wants it but for what the case does to it.
fn in_step_but(change: impl FnOnce(&mut ObservedObject, &Digest)) -> Option<Why> {
    let wanted = desired([config_map("components/a", "one")]);
    let mut cluster = Cluster::with(&wanted, &wanted);
    let digest = wanted.objects().next().unwrap().digest.clone();
    cluster.change(ONE, |live| change(live, &digest));
    let plan = cluster.plan(&wanted);
    assert_eq!(holds(&plan), [""; 0]);
    plan.actions().next().map(|action| action.why.clone())
}

#[test]
fn an_entry_of_another_version_is_unclear_until_an_apply_has_answered() {
    let older = |live: &mut ObservedObject| {
        if let Ownership::Ours { api_version, .. } = &mut live.ownership {
            "v1beta1".clone_into(api_version);
        }
    };
    let why = in_step_but(|live, _| older(live));
    assert_eq!(
        why,
        Some(Why::Unclear(
            "our fields are recorded for v1beta1".to_owned()
        ))
    );
    let settled = in_step_but(|live, digest| {
        older(live);
        live.answered = Some(digest.clone());
    });
    assert_eq!(settled, None);
}

#[test]
fn a_disabled_object_that_is_in_step_holds_nothing() {
    assert_eq!(in_step_but(|live, _| live.reconcile_disabled = true), None);
}

#[test]
fn an_api_without_managed_fields_is_judged_by_the_digest_alone() {
    assert_eq!(
        in_step_but(|live, _| live.ownership = Ownership::Unsupported),
        None
    );
    let (_, whys, _) = planned(|live| live.ownership = Ownership::Unsupported);
    assert_eq!(whys, [Why::Changed]);
}

#[test]
fn what_is_missing_in_a_namespace_that_goes_is_held() {
    let namespace = object("components/a", "Namespace default", json!({}));
    let wanted = desired([namespace.clone(), config_map("components/a", "one")]);
    let mut cluster = Cluster::with(&desired([namespace]), &wanted);
    cluster.change("Namespace default", |live| live.deleting = true);
    let plan = cluster.plan(&wanted);
    assert!(plan.is_empty());
    assert_eq!(
        holds(&plan),
        [
            "Terminating ConfigMap default/one",
            "Terminating Namespace default"
        ]
    );
}

// === what failed before ===

fn failed(digest: Option<&str>, is_immutable: bool, is_due: bool) -> PastFailure {
    PastFailure {
        digest: digest.map(str::to_owned),
        immutable: is_immutable,
        message: "field is immutable".to_owned(),
        due: is_due,
    }
}

/// Plans for one object that git changed, after an attempt at it has failed.
fn after_a_failure(annotations: &Value, failure: PastFailure) -> (Vec<String>, Vec<String>) {
    let body =
        |value: &str| json!({"data": {"key": value}, "metadata": {"annotations": annotations}});
    let base = desired([object("components/a", ONE, body("old"))]);
    let wanted = desired([object("components/a", ONE, body("new"))]);
    let digest = wanted.objects().next().unwrap().digest.to_string();
    let mut cluster = Cluster::with(&base, &wanted);
    let failure = PastFailure {
        digest: failure
            .digest
            .map(|text| if text == "same" { digest } else { text }),
        ..failure
    };
    cluster.failures.insert(key(ONE), failure);
    let plan = cluster.plan(&wanted);
    (changes(&plan), holds(&plan))
}

#[rstest]
#[case::not_due(failed(Some("same"), false, false), json!({}), &[], &["BackOff"])]
#[case::due(failed(Some("same"), false, true), json!({}), &["configured"], &[])]
#[case::git_has_changed_since(failed(Some("v1:other"), false, false), json!({}), &["configured"], &[])]
#[case::immutable(failed(Some("same"), true, false), json!({}), &[], &["Immutable"])]
#[case::immutable_and_due(failed(Some("same"), true, true), json!({}), &["configured"], &[])]
#[case::immutable_and_forced(
    failed(Some("same"), true, false), json!({names::ANNOTATION_FORCE: "enabled"}), &["replaced"], &[]
)]
#[case::immutable_and_forced_but_never_to_be_deleted(
    failed(Some("same"), true, false),
    json!({names::ANNOTATION_FORCE: "enabled", names::ANNOTATION_PRUNE: "disabled"}),
    &[], &["Immutable"]
)]
fn a_failure_is_remembered(
    #[case] failure: PastFailure,
    #[case] annotations: Value,
    #[case] changes: &[&str],
    #[case] holds: &[&str],
) {
    let all = |words: &[&str]| words.iter().map(|word| format!("{word} {ONE}")).collect();
    let expected: (Vec<String>, Vec<String>) = (all(changes), all(holds));
    assert_eq!(after_a_failure(&annotations, failure), expected);
}
