use rstest::rstest;
use serde_json::json;

use super::testing::*;
use super::tests::{nowhere, wanted};
use super::*;
use crate::desired::Desired;
use crate::model::HoldReason;
use crate::model::migration::Lookup;
use crate::plan::testing::*;

const JUDGING: &str = "MigrationPending every change of the deploy";

/// Says of every hook that comes later that it was judged, and of one migration that it must not begin.
fn judge(cluster: &mut Cluster, plan: &crate::plan::Plan, blocked: &str, is_clear: bool) {
    for ahead in &plan.ahead {
        let has = |name: &str| {
            ahead
                .due
                .migrations
                .iter()
                .any(|it| it.migration.name == name)
        };
        let findings = has(blocked).then(|| stand(blocked, Stand::Blocked));
        let judged = Preflight::Judged {
            findings: findings.into_iter().collect(),
            is_clear,
        };
        let hook = ahead.due.hook.clone();
        cluster.states.preflight.insert(hook, judged);
    }
}

fn of_hooks(plan: &crate::plan::Plan) -> Vec<String> {
    plan.ahead
        .iter()
        .map(|it| it.due.hook.to_string())
        .collect()
}

fn lookup(cluster_kind: &str, name: &str) -> Lookup {
    let (api_version, kind) = cluster_kind.split_once(' ').unwrap();
    let namespace = (kind == "ConfigMap").then_some("default");
    serde_json::from_value(json!({
        "apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name,
    }))
    .unwrap()
}

#[test]
fn nothing_at_all_is_changed_before_every_migration_was_judged() {
    let wanted = wanted(vec![
        migration("first", "", HookPhase::Pre),
        migration("last", "", HookPhase::Post),
        migration("grow", "components/a", HookPhase::Pre),
        migration("tell", "components/a", HookPhase::Post),
    ]);
    let mut cluster = nowhere(&wanted);
    let plan = cluster.plan_unjudged(&wanted);
    assert!(plan.is_empty() && plan.hooks.is_empty());
    assert_eq!(plan.committed, Committed::default());
    assert_eq!(
        of_hooks(&plan),
        [
            "global pre",
            "global post",
            "pre of components/a",
            "post of components/a"
        ]
    );
    assert_eq!(holds(&plan), [JUDGING]);
    assert_eq!(
        plan.holds[0].message,
        "migrations first, last, grow, tell are judged before anything is changed; it goes on by itself"
    );
    // One that is still judged keeps everything back, and says what for.
    judge(&mut cluster, &plan, "", false);
    let hook = plan.ahead[3].due.hook.clone();
    let waits = Preflight::Judging("the server is busy".to_owned());
    cluster.states.preflight.insert(hook, waits);
    let plan = cluster.plan_unjudged(&wanted);
    assert_eq!(holds(&plan), [JUDGING]);
    assert!(
        plan.holds[0].message.starts_with(
            "migration tell is judged before anything is changed (the server is busy)"
        ),
        "{}",
        plan.holds[0].message
    );
}

#[test]
fn a_deploy_of_post_migrations_alone_waits_as_well_and_nothing_is_committed_early() {
    let wanted = wanted(vec![migration("last", "", HookPhase::Post)]);
    let cluster = nowhere(&wanted);
    let plan = cluster.plan_unjudged(&wanted);
    assert!(plan.is_empty());
    assert_eq!(plan.committed.global.pre, None);
    let plan = cluster.plan(&wanted);
    assert_eq!(plan.actions().count(), 2);
    assert!(plan.committed.global.pre.is_some());
}

#[test]
fn a_deploy_that_has_begun_is_not_looked_at_again() {
    let wanted = wanted(vec![
        migration("last", "", HookPhase::Post),
        migration("tell", "components/a", HookPhase::Post),
    ]);
    let mut cluster = nowhere(&wanted);
    let plan = cluster.plan(&wanted);
    cluster.carry_out(&plan);
    // A restart, which has forgotten what was judged.
    cluster.states = HookStates::default();
    let plan = cluster.plan_unjudged(&wanted);
    assert!(plan.ahead.iter().all(|it| it.is_under_way));
    assert_eq!(of_hooks(&plan), ["global post", "post of components/a"]);
    assert_eq!(hooks(&plan), ["post of components/a"]);
}

#[test]
fn drift_has_nothing_judged() {
    let wanted = wanted(vec![migration("grow", "components/a", HookPhase::Pre)]);
    let mut cluster = nowhere(&wanted);
    converge(&mut cluster, &wanted);
    cluster.states = HookStates::default();
    cluster.change("ConfigMap default/one", no_fields_of_ours);
    let plan = cluster.plan_unjudged(&wanted);
    assert!(plan.ahead.is_empty() && !plan.is_empty());
}

#[rstest]
#[case::pre(HookPhase::Pre, "components/a", None, &["created ConfigMap default/two"], true)]
#[case::post(HookPhase::Post, "components/a", None, &["created ConfigMap default/two"], true)]
#[case::whole(HookPhase::Post, "components/a", Some(FailurePolicy::BlockDeploy), &[], true)]
#[case::warns(HookPhase::Post, "components/a", Some(FailurePolicy::Warn), &["created ConfigMap default/one", "created ConfigMap default/two"], false)]
#[case::global_pre(HookPhase::Pre, "", None, &[], true)]
#[case::global_post(HookPhase::Post, "", None, &["created ConfigMap default/one", "created ConfigMap default/two"], true)]
#[case::global_post_whole(HookPhase::Post, "", Some(FailurePolicy::BlockDeploy), &[], true)]
fn what_must_not_begin_holds_what_its_policy_says(
    #[case] phase: HookPhase,
    #[case] of: &str,
    #[case] policy: Option<FailurePolicy>,
    #[case] expected: &[&str],
    #[case] is_held: bool,
) {
    let mut grow = migration("grow", of, phase);
    grow.spec.policy.on_failure = policy;
    let wanted = wanted(vec![grow]);
    let mut cluster = nowhere(&wanted);
    let plan = cluster.plan_unjudged(&wanted);
    judge(&mut cluster, &plan, "grow", false);
    let plan = cluster.plan_unjudged(&wanted);
    assert_eq!(changes(&plan), expected, "{}", plan.explain());
    assert!(plan.hooks.is_empty());
    let mut held = plan.holds.iter();
    let hold = held.find(|hold| hold.reason == HoldReason::MigrationBlocked);
    assert_eq!(hold.is_some(), is_held);
    if let Some(hold) = hold {
        names_the_way_out(hold, "fairway run override run-grow");
    }
}

#[test]
fn a_hook_that_comes_now_and_has_nothing_to_do_is_done() {
    let wanted = wanted(vec![
        migration("first", "", HookPhase::Pre),
        migration("grow", "components/a", HookPhase::Pre),
    ]);
    let mut cluster = nowhere(&wanted);
    let plan = cluster.plan_unjudged(&wanted);
    judge(&mut cluster, &plan, "", true);
    let plan = cluster.plan_unjudged(&wanted);
    assert_eq!(plan.actions().count(), 2, "{}", plan.explain());
    assert!(plan.holds.is_empty());
    assert!(plan.committed.global.pre.is_some());
    // The conductor is told, so that it can say how long it took.
    assert_eq!(hooks(&plan), ["pre of components/a"]);
}

#[test]
fn what_the_deploy_itself_changes_first_is_open_where_a_failure_would_hold_it() {
    let mut tell = migration("tell", "components/a", HookPhase::Post);
    let mut grow = migration("grow", "components/a", HookPhase::Pre);
    let mut strict = migration("strict", "components/a", HookPhase::Pre);
    strict.spec.policy.on_failure = Some(FailurePolicy::BlockDeploy);
    for it in [&mut tell, &mut grow, &mut strict] {
        it.spec.lookups = [
            ("own".to_owned(), lookup("v1 ConfigMap", "one")),
            ("pods".to_owned(), lookup("v1 Pod", "web-0")),
            (
                "class".to_owned(),
                lookup("storage.k8s.io/v1 StorageClass", "fast"),
            ),
        ]
        .into();
    }
    let mut wanted = wanted(vec![tell, grow, strict]);
    let late = |wanted: &Desired, name: &str| {
        let plan = nowhere(wanted).plan_unjudged(wanted);
        let mut found = plan.ahead.iter().filter_map(|it| it.late.get(name));
        let open = found.next();
        open.map(|open| open.iter().cloned().collect::<Vec<_>>())
    };
    assert_eq!(late(&wanted, "tell").unwrap(), ["own", "pods"]);
    assert_eq!(late(&wanted, "grow"), None);
    assert_eq!(late(&wanted, "strict").unwrap(), [""; 0]);
    let web = wanted.components.get_mut(&component("components/a"));
    web.unwrap().depends_on = vec![component("components/b")];
    assert_eq!(late(&wanted, "strict").unwrap(), ["own", "pods"]);
}

#[test]
fn kinds_that_the_deploy_installs_are_known_to_what_comes_after_them() {
    let definition = object(
        "components/b",
        "CustomResourceDefinition.apiextensions.k8s.io carts.example.com",
        json!({"spec": {
            "group": "example.com", "names": {"kind": "Cart"},
            "versions": [{"name": "v1", "served": true}, {"name": "v1beta1", "served": false}],
        }}),
    );
    let wanted = and(
        wanted(vec![
            migration("first", "", HookPhase::Pre),
            migration("of-a", "components/a", HookPhase::Pre),
            migration("of-b", "components/b", HookPhase::Pre),
            migration("behind-b", "components/b", HookPhase::Post),
        ]),
        [definition],
    );
    let plan = nowhere(&wanted).plan_unjudged(&wanted);
    let installs: Vec<(String, usize)> = plan
        .ahead
        .iter()
        .map(|it| (it.due.hook.to_string(), it.installs.len()))
        .collect();
    let expected = [
        ("global pre", 0),
        ("pre of components/a", 1),
        ("pre of components/b", 0),
        ("post of components/b", 1),
    ];
    assert_eq!(
        installs,
        expected.map(|(hook, count)| (hook.to_owned(), count))
    );
    let cart = ("example.com/v1".to_owned(), "Cart".to_owned());
    assert!(plan.ahead[3].installs.contains(&cart));
}
