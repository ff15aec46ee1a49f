use crate::desired::{Desired, OnRemove, Removal};
use crate::model::HoldReason;
use crate::plan::hooks::testing::stand;
use crate::plan::hooks::{HookStates, MigrationInput, Stand, UndoState};
use crate::plan::testing::*;
use crate::plan::{Plan, PlanInput, TemplateUse, plan};

const NAME: &str = "components/b";

/// Git with a component that asks for an undo when it is removed, and without it.
fn with_and_without() -> (Desired, Desired) {
    let mut base = and(staying(), [config_map(NAME, "gone")]);
    base.components.get_mut(&component(NAME)).unwrap().on_remove = OnRemove::Undo;
    (base, staying())
}

fn announce(wanted: &mut Desired) {
    let removals = &mut wanted.settings.removals;
    removals.push(Removal::Component(component(NAME)));
}

/// A cluster on which the component was deployed, and so many runs of it could be taken back.
fn deployed(base: &Desired, open: usize) -> Cluster {
    let mut cluster = Cluster::with(base, base);
    let plan = cluster.plan(base);
    cluster.carry_out(&plan);
    assert!(cluster.committed.undo_on_remove.contains(&component(NAME)));
    open_runs(
        &mut cluster,
        UndoState {
            open,
            ..UndoState::default()
        },
    );
    cluster
}

fn open_runs(cluster: &mut Cluster, state: UndoState) {
    cluster.states.undo = Some([(component(NAME), state)].into());
}

fn under_way(stands: Stand) -> UndoState {
    UndoState {
        open: 1,
        undoing: Some(stand("grow", stands)),
        running: None,
    }
}

fn undone(plan: &Plan) -> Vec<String> {
    plan.undo.iter().map(ToString::to_string).collect()
}

#[test]
fn what_a_component_says_about_its_removal_is_remembered_until_it_says_something_else() {
    let (mut base, _) = with_and_without();
    let mut cluster = deployed(&base, 0);
    let mut says = |on_remove| {
        let name = component(NAME);
        base.components.get_mut(&name).unwrap().on_remove = on_remove;
        let plan = cluster.plan(&base);
        cluster.carry_out(&plan);
        cluster.committed.undo_on_remove.contains(&name)
    };
    // One that cannot be read says nothing.
    assert!(says(OnRemove::Unread));
    assert!(!says(OnRemove::Keep));
    assert!(!says(OnRemove::Unread));
    assert!(says(OnRemove::Undo));
}

#[test]
fn an_announced_removal_is_taken_back_before_anything_is_deleted() {
    let (base, mut wanted) = with_and_without();
    let mut cluster = deployed(&base, 2);
    announce(&mut wanted);
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), NOTHING);
    assert_eq!(undone(&plan), [NAME]);
    assert_eq!(holds(&plan), ["MigrationPending deletion of components/b"]);
    insta::assert_snapshot!(plan.holds[0].message, @"it said `onRemove: Undo`, so that what its migrations have changed is taken back first: 2 runs; what is left of components/b is deleted after that");
    cluster.carry_out(&plan);
    open_runs(&mut cluster, under_way(Stand::Running));
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), NOTHING);
    assert_eq!(holds(&plan), ["MigrationPending deletion of components/b"]);
    cluster.carry_out(&plan);
    open_runs(&mut cluster, UndoState::default());
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), DELETED);
    assert_eq!((undone(&plan), holds(&plan)), (Vec::new(), Vec::new()));
    assert!(plan.committed.undo_on_remove.is_empty());
}

#[test]
fn an_unannounced_removal_is_taken_back_only_with_an_approval() {
    let (base, wanted) = with_and_without();
    let mut cluster = deployed(&base, 1);
    let plan = cluster.plan(&wanted);
    assert_eq!((changes(&plan), undone(&plan)), (Vec::new(), Vec::new()));
    assert_eq!(holds(&plan), ["ApprovalNeeded deletion of 1 object"]);
    cluster.approval = Some(approve(&plan));
    let plan = cluster.plan(&wanted);
    assert_eq!(
        (changes(&plan), undone(&plan)),
        (Vec::new(), vec![NAME.to_owned()])
    );
    open_runs(&mut cluster, UndoState::default());
    assert_eq!(changes(&cluster.plan(&wanted)), DELETED);
}

#[test]
fn nothing_is_deleted_while_it_is_not_known_which_runs_there_are() {
    let (base, mut wanted) = with_and_without();
    let mut cluster = deployed(&base, 0);
    announce(&mut wanted);
    cluster.states = HookStates::default();
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), NOTHING);
    assert_eq!(holds(&plan), ["MigrationPending deletion of components/b"]);
    assert!(plan.committed.undo_on_remove.contains(&component(NAME)));
}

#[test]
fn an_undo_that_has_failed_keeps_what_is_left_and_names_the_ways_out() {
    let (base, mut wanted) = with_and_without();
    let mut cluster = deployed(&base, 1);
    announce(&mut wanted);
    let reasons = [
        (Stand::Failed, HoldReason::MigrationFailed),
        (Stand::Cancelled, HoldReason::MigrationManual),
        (Stand::Manual, HoldReason::MigrationManual),
        (Stand::Paused, HoldReason::MigrationManual),
    ];
    for (stands, reason) in reasons {
        open_runs(&mut cluster, under_way(stands));
        let plan = cluster.plan(&wanted);
        assert_eq!(changes(&plan), NOTHING);
        assert_eq!(plan.holds[0].reason, reason);
        assert!(plan.holds[0].message.contains("run-grow"));
    }
    open_runs(&mut cluster, under_way(Stand::Failed));
    insta::assert_snapshot!(cluster.plan(&wanted).holds[0].message, @"taking back run run-grow of migration grow has failed: it was not possible. What is left of components/b is deleted only after that has ended well, or was given up; fairway run retry run-grow --reason '…' tries again, and fairway run resolve run-grow keep --reason '…' leaves what is not taken back as it is");
    // Another way: git has it again, and it says something else.
    let mut back = base.clone();
    back.components.get_mut(&component(NAME)).unwrap().on_remove = OnRemove::Keep;
    let plan = cluster.plan(&back);
    assert_eq!(holds(&plan), Vec::<String>::new());
    cluster.carry_out(&plan);
    assert_eq!(changes(&cluster.plan(&wanted)), DELETED);
}

#[test]
fn a_run_that_is_not_over_ends_before_anything_is_taken_back() {
    let (base, mut wanted) = with_and_without();
    let mut cluster = deployed(&base, 0);
    announce(&mut wanted);
    open_runs(
        &mut cluster,
        UndoState {
            running: Some(stand("grow", Stand::Running)),
            ..UndoState::default()
        },
    );
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), NOTHING);
    assert_eq!(holds(&plan), ["MigrationPending deletion of components/b"]);
}

#[test]
fn a_component_that_is_back_is_not_touched_while_a_run_of_it_is_taken_back() {
    let (base, mut wanted) = with_and_without();
    let mut cluster = deployed(&base, 1);
    announce(&mut wanted);
    cluster.plan(&wanted);
    open_runs(&mut cluster, under_way(Stand::Running));
    cluster.forget(&key(GONE));
    let plan = cluster.plan(&base);
    assert_eq!((changes(&plan), undone(&plan)), (Vec::new(), Vec::new()));
    assert_eq!(holds(&plan), ["MigrationPending components/b"]);
    // Nothing else is taken back of it, and what one run has left is for its migrations to say.
    for state in [UndoState::default(), under_way(Stand::Failed)] {
        open_runs(&mut cluster, state);
        let plan = cluster.plan(&base);
        assert_eq!(changes(&plan), ["created ConfigMap default/gone"]);
        assert_eq!(undone(&plan), Vec::<String>::new());
    }
}

#[test]
fn of_a_component_of_which_nothing_is_left_only_an_announced_removal_is_taken_back() {
    let (base, mut wanted) = with_and_without();
    let mut cluster = deployed(&base, 1);
    cluster.forget(&key(GONE));
    let plan = cluster.plan(&wanted);
    assert_eq!(undone(&plan), Vec::<String>::new());
    assert_eq!(holds(&plan), ["ApprovalNeeded undo of components/b"]);
    announce(&mut wanted);
    let plan = cluster.plan(&wanted);
    assert_eq!(undone(&plan), [NAME]);
    assert_eq!(holds(&plan), ["MigrationPending deletion of components/b"]);
    open_runs(&mut cluster, UndoState::default());
    let plan = cluster.plan(&wanted);
    assert_eq!((undone(&plan), holds(&plan)), (Vec::new(), Vec::new()));
}

#[test]
fn nothing_is_taken_back_while_nothing_may_be_deleted() {
    let (base, mut wanted) = with_and_without();
    announce(&mut wanted);
    let cases: [fn(&mut Cluster, &mut Desired); 5] = [
        |_, wanted| wanted.unread.push(unread("components/c/bad.yaml")),
        |cluster, _| cluster.record = Err("its Target is not there"),
        |cluster, _| cluster.prune.enabled = false,
        |_, wanted| wanted.components.clear(),
        |_, wanted| {
            let (key, hold) = held("ConfigMap default/bad", "components/b/bad.yaml");
            wanted.held.insert(key, hold);
        },
    ];
    for change in cases {
        let mut cluster = deployed(&base, 1);
        let mut wanted = wanted.clone();
        change(&mut cluster, &mut wanted);
        let plan = cluster.plan(&wanted);
        assert_eq!(undone(&plan), Vec::<String>::new());
        assert!(plan.committed.undo_on_remove.contains(&component(NAME)));
    }
    // The end of the source is not a removal: what is deleted then is for its own policy to say.
    let cluster = deployed(&base, 1);
    let plan = cluster.plan(&Desired::withdrawn(base.revision.clone()));
    assert_eq!(undone(&plan), Vec::<String>::new());
}

#[test]
fn what_takes_its_objects_along_waits_with_them() {
    let (mut base, mut wanted) = with_and_without();
    let namespace = object("components/c", "Namespace default", serde_json::json!({}));
    base = and(base, [namespace]);
    let mut cluster = deployed(&base, 1);
    announce(&mut wanted);
    wanted
        .settings
        .removals
        .push(Removal::Component(component("components/c")));
    assert_eq!(changes(&cluster.plan(&wanted)), NOTHING);
    open_runs(&mut cluster, UndoState::default());
    assert!(!changes(&cluster.plan(&wanted)).is_empty());
}

#[test]
fn a_plan_of_a_removal_says_what_would_be_taken_back() {
    let (base, wanted) = with_and_without();
    let cluster = deployed(&base, 1);
    let source = source();
    let input = PlanInput {
        source: &source,
        desired: &wanted,
        observed: &cluster.observed,
        prune: &cluster.prune,
        approval: None,
        record: Ok(()),
        failures: &cluster.failures,
        jobs: &cluster.jobs,
        templates: TemplateUse::NotAsked,
        only: None,
        takeover: &[],
        migrations: MigrationInput {
            committed: &cluster.committed,
            states: None,
        },
    };
    let text = plan(input).explain().to_string();
    let line =
        "undo        components/b: what its migrations have changed would be taken back first";
    assert!(text.contains(line), "{text}");
}
