use rstest::rstest;
use serde_json::json;

use crate::desired::Removal;
use crate::model::{SourceName, names};
use crate::observe::Ownership;
use crate::plan::PastFailure;
use crate::plan::testing::*;

#[test]
fn an_object_of_ours_that_git_dropped_is_deleted_with_preconditions() {
    let (mut cluster, wanted) = one_gone();
    cluster.change(GONE, |live| {
        "the-uid".clone_into(&mut live.uid);
        "42".clone_into(&mut live.resource_version);
    });
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), DELETED);
    let crate::plan::ActionKind::Delete(deletion) = &plan.phases[0][0].kind else {
        panic!("it is a deletion");
    };
    assert_eq!(
        (deletion.uid.as_str(), deletion.resource_version.as_str()),
        ("the-uid", "42")
    );
    assert_eq!(holds(&plan), NOTHING);
}

// === not ours, or not to be touched ===

#[rstest]
#[case::never_applied_by_us(no_fields_of_ours)]
#[case::no_managed_fields(|live: &mut crate::observe::ObservedObject| live.ownership = Ownership::Unsupported)]
#[case::prune_disabled_on_the_cluster(|live: &mut crate::observe::ObservedObject| live.prune_disabled = true)]
fn an_object_stays_for_good_without_holding_anything_up(
    #[case] change: fn(&mut crate::observe::ObservedObject),
) {
    let (mut cluster, wanted) = one_gone();
    cluster.change(GONE, change);
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), NOTHING);
    assert_eq!(holds(&plan), NOTHING);
    assert_eq!(plan.kept[0].key, key(GONE));
}

#[test]
fn an_object_that_git_marked_as_never_to_be_deleted_stays_when_git_drops_it() {
    let annotations = json!({"metadata": {"annotations": {names::ANNOTATION_PRUNE: "disabled"}}});
    let wanted = staying();
    let base = and(staying(), [object("components/a", GONE, annotations)]);
    let plan = Cluster::with(&base, &wanted).plan(&wanted);
    assert_eq!(changes(&plan), NOTHING);
    assert_eq!(plan.kept.len(), 1);
}

#[rstest]
#[case::another_source(Some("other"))]
#[case::no_source(None)]
fn an_object_without_our_label_is_not_even_mentioned(#[case] owner: Option<&str>) {
    let (mut cluster, wanted) = one_gone();
    cluster.change(GONE, |live| {
        live.source = owner.map(|name| SourceName::new(name).unwrap());
    });
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), NOTHING);
    assert!(plan.kept.is_empty());
}

#[test]
fn an_object_that_is_being_deleted_is_not_deleted_again() {
    let (mut cluster, wanted) = one_gone();
    cluster.change(GONE, |live| live.deleting = true);
    let plan = cluster.plan(&wanted);
    assert!(plan.is_empty() && plan.holds.is_empty() && plan.kept.is_empty());
}

#[test]
fn an_object_that_moves_between_components_is_configured_and_not_deleted() {
    let base = and(staying(), [config_map("components/b", "gone")]);
    let wanted = and(staying(), [config_map("components/a", "gone")]);
    let plan = Cluster::with(&base, &wanted).plan(&wanted);
    assert_eq!(changes(&plan), ["configured ConfigMap default/gone"]);
    assert_eq!(holds(&plan), NOTHING);
}

#[test]
fn an_object_that_validation_holds_is_not_deleted() {
    let (cluster, mut wanted) = one_gone();
    let (held_key, hold) = held(GONE, "components/a/gone.yaml");
    wanted.held.insert(held_key, hold);
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), NOTHING);
    assert_eq!(holds(&plan), ["Invalid ConfigMap default/gone"]);
}

#[test]
fn a_disabled_object_is_not_deleted() {
    let (mut cluster, wanted) = one_gone();
    cluster.change(GONE, |live| live.reconcile_disabled = true);
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), NOTHING);
    assert_eq!(holds(&plan), ["Disabled ConfigMap default/gone"]);
}

#[rstest]
#[case::missing(None)]
#[case::damaged(Some("../a"))]
fn an_object_of_an_unknown_component_is_not_deleted(#[case] annotation: Option<&str>) {
    let (mut cluster, wanted) = one_gone();
    cluster.change(GONE, |live| live.component = annotation.map(str::to_owned));
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), NOTHING);
    assert_eq!(holds(&plan), ["PruneUnsafe ConfigMap default/gone"]);
}

// === what is not wholly known ===

#[test]
fn nothing_is_deleted_while_a_file_could_not_be_read() {
    let (cluster, mut wanted) = one_gone();
    wanted.unread.push(unread("components/b/bad.yaml"));
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), NOTHING);
    assert_eq!(holds(&plan), ["PruneUnsafe deletion of 1 object"]);
    assert_eq!(
        plan.holds[0].place.as_ref().unwrap().file,
        "components/b/bad.yaml"
    );
}

#[test]
fn an_empty_revision_deletes_nothing_even_if_announced() {
    let (cluster, _) = one_gone();
    let mut wanted = desired([]);
    wanted
        .settings
        .removals
        .push(Removal::Component(component("components/a")));
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), NOTHING);
    assert_eq!(holds(&plan), ["PruneUnsafe deletion of 21 objects"]);
}

#[test]
fn nothing_is_deleted_while_the_record_of_the_cluster_is_not_whole() {
    let (mut cluster, wanted) = one_gone();
    cluster.record = Err("its Target is not there");
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), NOTHING);
    insta::assert_snapshot!(plan.holds[0].message, @"the record of this cluster is not whole: its Target is not there. Confirm with `fairway adopt modules` that it is the right one");
}

#[test]
fn an_approval_does_not_make_up_for_what_is_not_known() {
    let (mut cluster, mut wanted) = one_gone();
    cluster.prune.max_objects = 0;
    cluster.approval = Some(approve(&cluster.plan(&wanted)));
    assert_eq!(changes(&cluster.plan(&wanted)), DELETED);
    wanted.unread.push(unread("components/b/bad.yaml"));
    assert_eq!(changes(&cluster.plan(&wanted)), NOTHING);
}

#[test]
fn nothing_is_deleted_where_the_source_says_so() {
    let (mut cluster, wanted) = one_gone();
    cluster.prune.enabled = false;
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), NOTHING);
    assert_eq!(
        plan.kept[0].reason,
        "the source has `spec.prune.enabled: false`"
    );
}

#[test]
fn a_kind_that_could_not_be_listed_is_skipped_and_others_are_not() {
    let (mut cluster, wanted) = one_gone();
    cluster.unlist("Secret");
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), DELETED);
    assert_eq!(holds(&plan), ["Unobserved Secret"]);
}

#[test]
fn a_deletion_that_failed_is_tried_again_later() {
    let (mut cluster, wanted) = one_gone();
    let mut failure = PastFailure {
        digest: None,
        immutable: false,
        message: "the webhook refused it".to_owned(),
        due: false,
    };
    cluster.failures.insert(key(GONE), failure.clone());
    let plan = cluster.plan(&wanted);
    assert_eq!(holds(&plan), ["BackOff deletion of ConfigMap default/gone"]);
    assert!(plan.is_empty());
    failure.due = true;
    cluster.failures.insert(key(GONE), failure);
    assert_eq!(changes(&cluster.plan(&wanted)), DELETED);
}

#[test]
fn a_plan_for_one_component_deletes_nothing_of_another() {
    let (mut cluster, wanted) = one_gone();
    cluster.only = Some(component("components/b"));
    assert!(cluster.plan(&wanted).is_empty());
    cluster.only = Some(component("components/a"));
    assert_eq!(changes(&cluster.plan(&wanted)), DELETED);
}

// === the end of a source ===

#[test]
fn a_source_that_a_person_deletes_gives_up_all_that_is_its_own_once_that_is_approved() {
    let base = and(staying(), [object("components/a", GONE, json!({}))]);
    let ended = crate::desired::Desired::withdrawn(base.revision.clone());
    let mut cluster = Cluster::with(&base, &base);
    let plan = cluster.plan(&ended);
    assert_eq!(changes(&plan), NOTHING);
    let count = base.objects().count();
    assert_eq!(pending(&plan).len(), count);
    let message = &plan.holds[0].message;
    assert!(message.contains("fairway approve prune"), "{message}");
    assert!(message.contains("deletionPolicy: Orphan"), "{message}");
    assert!(!message.contains("removals:"), "{message}");
    cluster.approval = Some(approve(&plan));
    let plan = cluster.plan(&ended);
    assert_eq!((changes(&plan).len(), holds(&plan).len()), (count, 0));
    cluster.carry_out(&plan);
    let plan = cluster.plan(&ended);
    assert!(plan.is_empty() && plan.holds.is_empty() && plan.pending.is_none());
}

#[test]
fn a_source_whose_record_is_lost_does_not_end_even_where_nothing_of_it_is_seen() {
    let ended = crate::desired::Desired::withdrawn(staying().revision);
    let mut cluster = Cluster::with(&ended, &ended);
    cluster.record = Err("it was lost");
    let plan = cluster.plan(&ended);
    assert_eq!(
        holds(&plan),
        ["PruneUnsafe deletion of all that the source has applied"]
    );
}
