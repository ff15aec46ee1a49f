use rstest::rstest;
use serde_json::json;

use super::testing::*;
use super::*;
use crate::desired::{Desired, HeldMigration};
use crate::model::migration::{DeployAction, FailurePolicy};
use crate::model::{HoldReason, Place};
use crate::observe::Health;
use crate::plan::testing::*;

pub(super) fn wanted(migrations: Vec<Migration>) -> Desired {
    let mut wanted = desired([
        config_map("components/a", "one"),
        config_map("components/b", "two"),
    ]);
    wanted.migrations = migrations.into_iter().map(Arc::new).collect();
    wanted
}

pub(super) fn nowhere(wanted: &Desired) -> Cluster {
    Cluster::with(&desired([]), wanted)
}

#[test]
fn a_pre_migration_holds_its_component_and_nothing_else() {
    let wanted = wanted(vec![migration("grow", "components/a", HookPhase::Pre)]);
    let mut cluster = nowhere(&wanted);
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), ["created ConfigMap default/two"]);
    assert_eq!(holds(&plan), ["MigrationPending pre of components/a"]);
    assert_eq!(hooks(&plan), ["pre of components/a"]);
    assert_eq!(
        plan.hooks[0].component.as_ref().unwrap().action,
        DeployAction::Install
    );
    cluster.carry_out(&plan);

    end_well(&mut cluster, &plan);
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), ["created ConfigMap default/one"]);
    assert!(plan.committed.components.is_empty());
    cluster.carry_out(&plan);

    let plan = cluster.plan(&wanted);
    let committed = &plan.committed.components[&component("components/a")];
    assert!(plan.is_empty() && committed.digest.is_some());
    cluster.carry_out(&plan);
    let last = cluster.plan(&wanted);
    assert!(last.hooks.is_empty() && last.holds.is_empty() && last.committed == plan.committed);
}

#[test]
fn a_post_migration_runs_once_all_is_healthy_and_before_the_commit() {
    let wanted = wanted(vec![migration("tell", "components/a", HookPhase::Post)]);
    let mut cluster = nowhere(&wanted);
    let plan = cluster.plan(&wanted);
    assert_eq!(plan.actions().count(), 2);
    assert!(plan.hooks.is_empty());
    let begun = plan.committed.components[&component("components/a")]
        .begun
        .clone();
    assert_eq!(begun.unwrap().action, DeployAction::Install);
    cluster.carry_out(&plan);
    cluster.change("ConfigMap default/one", |live| {
        live.health = Health::InProgress("it starts".to_owned());
    });
    assert!(cluster.plan(&wanted).hooks.is_empty());

    cluster.change("ConfigMap default/one", |live| {
        live.health = Health::Current;
    });
    let plan = cluster.plan(&wanted);
    assert_eq!(hooks(&plan), ["post of components/a"]);
    // The first object is there now, and it is an installation all the same.
    assert_eq!(
        plan.hooks[0].component.as_ref().unwrap().action,
        DeployAction::Install
    );
    assert_eq!(holds(&plan), ["MigrationPending post of components/a"]);
    assert_eq!(
        plan.committed.components[&component("components/a")].digest,
        None
    );

    end_well(&mut cluster, &plan);
    let plan = cluster.plan(&wanted);
    assert!(
        plan.committed.components[&component("components/a")]
            .digest
            .is_some()
    );
    assert!(plan.holds.is_empty());
}

#[test]
fn drift_makes_no_hook_due() {
    let wanted = wanted(vec![
        migration("grow", "components/a", HookPhase::Pre),
        migration("all", "", HookPhase::Pre),
    ]);
    let mut cluster = nowhere(&wanted);
    converge(&mut cluster, &wanted);
    cluster.change("ConfigMap default/one", no_fields_of_ours);
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), ["configured ConfigMap default/one"]);
    assert!(plan.hooks.is_empty() && plan.holds.is_empty());
}

#[test]
fn a_global_pre_migration_comes_before_everything_and_its_post_after() {
    let wanted = wanted(vec![
        migration("first", "", HookPhase::Pre),
        migration("last", "", HookPhase::Post),
        migration("grow", "components/a", HookPhase::Pre),
    ]);
    let mut cluster = nowhere(&wanted);
    let plan = cluster.plan(&wanted);
    assert!(plan.is_empty());
    assert_eq!(hooks(&plan), ["global pre"]);
    let names: Vec<_> = plan.hooks[0]
        .components
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["components/a", "components/b"]);
    end_well(&mut cluster, &plan);

    let plan = cluster.plan(&wanted);
    assert_eq!(hooks(&plan), ["pre of components/a"]);
    assert_eq!(changes(&plan), ["created ConfigMap default/two"]);
    cluster.carry_out(&plan);
    end_well(&mut cluster, &plan);
    let plan = cluster.plan(&wanted);
    cluster.carry_out(&plan);

    let plan = cluster.plan(&wanted);
    assert_eq!(hooks(&plan), ["global post"]);
    assert_eq!(plan.hooks[0].components.len(), 2);
    assert_eq!(plan.committed.global.post, None);
    end_well(&mut cluster, &plan);
    cluster.carry_out(&plan);
    let plan = cluster.plan(&wanted);
    assert_eq!(plan.committed.global.post, plan.committed.global.pre);
    assert!(plan.committed.global.components.is_empty() && plan.holds.is_empty());
}

#[rstest]
#[case(None, &["created ConfigMap default/two"])]
#[case(Some(FailurePolicy::BlockDeploy), &[])]
#[case(Some(FailurePolicy::Warn), &["created ConfigMap default/one", "created ConfigMap default/two"])]
fn what_a_failure_means_is_the_migrations_own_word(
    #[case] policy: Option<FailurePolicy>,
    #[case] expected: &[&str],
) {
    let mut grow = migration("grow", "components/a", HookPhase::Pre);
    grow.spec.policy.on_failure = policy;
    let wanted = wanted(vec![grow]);
    let mut cluster = nowhere(&wanted);
    let plan = cluster.plan(&wanted);
    fail(&mut cluster, &plan, "grow");
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), expected);
    if policy != Some(FailurePolicy::Warn) {
        assert_eq!(
            holds(&plan),
            ["MigrationFailed migration grow of pre of components/a"]
        );
        names_the_way_out(&plan.holds[0], "fairway run retry run-grow");
    }
}

#[test]
fn a_component_that_failed_suppresses_its_post_and_the_global_post() {
    let wanted = wanted(vec![
        migration("tell", "components/a", HookPhase::Post),
        migration("other", "components/b", HookPhase::Post),
        migration("last", "", HookPhase::Post),
    ]);
    let mut cluster = nowhere(&wanted);
    cluster.failures.insert(
        key("ConfigMap default/one"),
        crate::plan::PastFailure {
            digest: Some(
                wanted.components[&component("components/a")].objects[0]
                    .digest
                    .to_string(),
            ),
            immutable: false,
            message: "the server said no".to_owned(),
            due: false,
        },
    );
    let plan = cluster.plan(&wanted);
    cluster.carry_out(&plan);
    let plan = cluster.plan(&wanted);
    assert_eq!(hooks(&plan), ["post of components/b"]);
    assert_eq!(
        holds(&plan),
        [
            "BackOff ConfigMap default/one",
            "MigrationSuppressed post of components/a",
            "MigrationPending post of components/b",
            "MigrationSuppressed post of the whole deploy",
        ]
    );
}

#[test]
fn an_invalid_migration_holds_what_it_belongs_to() {
    let mut wanted = wanted(Vec::new());
    wanted.held_migrations = vec![HeldMigration {
        name: "grow".to_owned(),
        components: vec![component("components/a")],
        is_global: false,
        place: Place::new("components/a/migrations/grow.yaml", 7, 3),
        message: "`needed` is no expression".to_owned(),
    }];
    let plan = nowhere(&wanted).plan(&wanted);
    assert_eq!(changes(&plan), ["created ConfigMap default/two"]);
    assert_eq!(holds(&plan), ["MigrationHeld components/a"]);
    wanted.held_migrations[0].is_global = true;
    let plan = nowhere(&wanted).plan(&wanted);
    assert!(plan.is_empty() && plan.hooks.is_empty());
    assert_eq!(holds(&plan), ["MigrationHeld the whole deploy"]);
}

#[test]
fn one_component_alone_has_no_global_hooks() {
    let wanted = wanted(vec![
        migration("first", "", HookPhase::Pre),
        migration("grow", "components/a", HookPhase::Pre),
        migration("other", "components/b", HookPhase::Pre),
    ]);
    let mut cluster = nowhere(&wanted);
    cluster.only = Some(component("components/a"));
    let plan = cluster.plan(&wanted);
    assert_eq!(hooks(&plan), ["pre of components/a"]);
    converge(&mut cluster, &wanted);
    let names: Vec<_> = cluster
        .committed
        .components
        .keys()
        .map(ToString::to_string)
        .collect();
    assert_eq!(names, ["components/a"]);
}

#[test]
fn deletions_wait_for_migrations_as_well() {
    let wanted = wanted(vec![migration("first", "", HookPhase::Pre)]);
    let base = and(wanted.clone(), [config_map("components/a", "gone")]);
    let mut cluster = Cluster::with(&base, &wanted);
    let plan = cluster.plan(&wanted);
    assert!(plan.is_empty(), "{}", plan.explain());
    end_well(&mut cluster, &plan);
    assert_eq!(changes(&cluster.plan(&wanted)), DELETED);
}

#[test]
fn what_depends_on_a_component_waits_until_it_is_committed() {
    let mut wanted = wanted(vec![migration("tell", "components/a", HookPhase::Post)]);
    wanted
        .components
        .get_mut(&component("components/b"))
        .unwrap()
        .depends_on = vec![component("components/a")];
    let mut cluster = nowhere(&wanted);
    let plan = cluster.plan(&wanted);
    cluster.carry_out(&plan);
    let plan = cluster.plan(&wanted);
    assert!(plan.is_empty());
    assert_eq!(
        holds(&plan),
        [
            "DependencyNotReady components/b",
            "MigrationPending post of components/a"
        ]
    );
    end_well(&mut cluster, &plan);
    let plan = cluster.plan(&wanted);
    cluster.carry_out(&plan);
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), ["created ConfigMap default/two"]);
}

#[test]
fn a_migration_takes_part_from_its_first_release_and_is_judged_after_its_last() {
    let mut grow = migration("grow", "components/a", HookPhase::Pre);
    grow.spec.lifecycle.never = None;
    grow.spec.lifecycle.introduced_in = Some("1.23.0".to_owned());
    grow.spec.lifecycle.remove_in = Some("1.26.0".to_owned());
    let mut wanted = wanted(vec![grow]);
    let hook_at = |wanted: &mut Desired, release: &str| {
        wanted.settings.release = Some(release.to_owned());
        let plan = nowhere(wanted).plan(wanted);
        plan.hooks.first().map(|due| due.hook.clone())
    };
    assert_eq!(hook_at(&mut wanted, "1.22.9"), None);
    let first = hook_at(&mut wanted, "1.23.0").unwrap();
    assert_eq!(hook_at(&mut wanted, "1.25.9").unwrap(), first);
    // Past its end it is a deploy of its own: who still needs it has skipped a release, and finds out.
    assert_ne!(hook_at(&mut wanted, "1.26.0").unwrap(), first);
}

#[test]
fn what_git_would_apply_is_told_without_the_values_of_secrets() {
    let mut grow = migration("grow", "components/a", HookPhase::Pre);
    let lookup = |kind: &str, name: &str| crate::model::migration::Lookup {
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        namespace: Some("default".to_owned()),
        name: Some(name.to_owned()),
        list: false,
        selector: None,
        limit: None,
        missing_kind: crate::model::migration::MissingKind::Null,
    };
    grow.spec.lookups = [
        ("settings".to_owned(), lookup("ConfigMap", "one")),
        ("token".to_owned(), lookup("Secret", "token")),
        ("absent".to_owned(), lookup("ConfigMap", "absent")),
        ("unnamed".to_owned(), lookup("ConfigMap", "two")),
    ]
    .into();
    grow.spec.guard.needed =
        "desired.settings.data.key == 'x' && desired.token == null && desired['absent'] == null"
            .to_owned();
    let mut wanted = wanted(vec![grow]);
    let secret = object(
        "components/a",
        "Secret default/token",
        json!({"data": {"token": "aGVsbG8="}}),
    );
    wanted = and(wanted, [secret]);
    let plan = nowhere(&wanted).plan(&wanted);
    let values = &plan.hooks[0].migrations[0].desired;
    assert_eq!(values["settings"]["data"]["key"], "value");
    assert_eq!(values["token"]["data"]["token"], true);
    assert_eq!(values["absent"], serde_json::Value::Null);
    assert!(!values.contains_key("unnamed"));
}

#[test]
fn a_list_of_what_is_wanted_is_selected_as_the_cluster_selects() {
    let labelled = |name: &str, tier: &str| {
        let key = format!("ConfigMap default/{name}");
        let labels = json!({"metadata": {"labels": {"tier": tier}}});
        object("components/a", &key, labels)
    };
    let mut every = migration("every", "components/a", HookPhase::Pre);
    every.spec.lookups = serde_json::from_value(json!({
        "tiers": {"apiVersion": "v1", "kind": "ConfigMap", "list": true, "selector": "tier in (front, back)"},
    }))
    .unwrap();
    every.spec.guard.needed = "desired.tiers.size() == 2".to_owned();
    let objects = [
        labelled("one", "front"),
        labelled("two", "back"),
        labelled("three", "db"),
    ];
    let mut wanted = desired(objects);
    wanted.migrations = vec![Arc::new(every)];
    let plan = nowhere(&wanted).plan(&wanted);
    let tiers = plan.hooks[0].migrations[0].desired["tiers"]
        .as_array()
        .unwrap();
    let names: Vec<_> = tiers
        .iter()
        .map(|it| it["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["one", "two"]);
}

#[test]
fn more_components_with_migrations_than_the_record_can_hold_are_held_by_name() {
    let names: Vec<String> = (0..=crate::model::limits::COMMITTED_MAX)
        .map(|number| format!("components/c{number:04}"))
        .collect();
    let mut wanted = desired(
        names
            .iter()
            .enumerate()
            .map(|(number, name)| config_map(name, &format!("m{number}"))),
    );
    let mut every = migration("every", "components/a", HookPhase::Pre);
    every.components = names.iter().map(|name| component(name)).collect();
    wanted.migrations = vec![Arc::new(every)];
    let plan = nowhere(&wanted).plan(&wanted);
    let held: Vec<_> = plan
        .holds
        .iter()
        .filter(|it| it.reason == HoldReason::MigrationHeld)
        .collect();
    assert_eq!(held.len(), 1);
    assert_eq!(held[0].what, "components/c1024");
}

#[test]
fn a_plan_lists_the_migrations_that_would_be_judged() {
    let wanted = wanted(vec![
        migration("last", "", HookPhase::Post),
        migration("grow", "components/a", HookPhase::Pre),
    ]);
    let text = nowhere(&wanted).plan(&wanted).explain().to_string();
    assert!(
        text.contains("migration grow would be judged before components/a, owner team-a, migrations/grow.yaml:3:1"),
        "{text}"
    );
    assert!(
        text.contains("migration last would be judged after the whole deploy"),
        "{text}"
    );
}
