use std::time::Duration;

use rstest::rstest;

use super::*;
use crate::model::limits;
use crate::model::{Digest, GroupKind};
use crate::observe::{Health, Ownership};

fn object(name: &str, uid: &str, version: &str) -> ObservedObject {
    ObservedObject {
        answered: None,
        key: key(name),
        uid: uid.into(),
        resource_version: version.into(),
        source: None,
        component: None,
        digest: None,
        version_digest: None,
        deleting: false,
        reconcile_disabled: false,
        prune_disabled: false,
        ownership: Ownership::None,
        writers: Vec::new(),
        rivals: Vec::new(),
        health: Health::Current,
        channels: None,
        recent_applies: 0,
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(GroupKind::new("", "ConfigMap"), Some("default"), name)
}

fn store(list: Vec<ObservedObject>, version: &str) -> KindStore {
    let mut store = KindStore::new(limits::WATCH_BROKEN_MAX);
    store.listed(list, version);
    store
}

fn with_component(mut object: ObservedObject, component: &str) -> ObservedObject {
    object.component = Some(component.into());
    object
}

fn terminating(mut object: ObservedObject) -> ObservedObject {
    object.deleting = true;
    object.health = Health::Terminating;
    object
}

/// Names and versions, or why they are not known.
fn seen(store: &KindStore) -> Result<Vec<String>, String> {
    match store.view(Instant::now()) {
        KindObservation::Unlisted(reason) => Err(reason),
        KindObservation::Listed(objects) => {
            let describe = |object: &Arc<ObservedObject>| {
                format!("{}@{}", object.key.name, object.resource_version)
            };
            let mut seen: Vec<String> = objects.values().map(describe).collect();
            seen.sort();
            Ok(seen)
        }
    }
}

fn sees(store: &KindStore, expected: &[&str]) {
    assert_eq!(seen(store).unwrap(), expected);
}

#[test]
fn nothing_is_known_before_the_first_list_and_a_failure_says_why() {
    let mut store = KindStore::new(limits::WATCH_BROKEN_MAX);
    assert!(!store.attempted());
    assert_eq!(seen(&store).unwrap_err(), "it has not been listed yet");
    assert!(!store.failed("forbidden", Instant::now()));
    assert!(store.attempted());
    assert_eq!(seen(&store).unwrap_err(), "forbidden");
    assert!(store.listed(Vec::new(), "1"));
    sees(&store, &[]);
}

#[test]
fn a_list_replaces_what_was_there_and_rings_only_for_a_difference() {
    let mut store = store(vec![object("a", "1", "1"), object("b", "2", "2")], "2");
    assert!(!store.listed(vec![object("b", "2", "5"), object("a", "1", "1")], "5"));
    sees(&store, &["a@1", "b@5"]);
    assert!(store.listed(vec![object("b", "2", "5")], "6"));
    assert!(store.listed(vec![object("b", "3", "7")], "7"));
    sees(&store, &["b@7"]);
}

#[test]
fn a_broken_watch_is_believed_for_a_while_and_no_longer() {
    let mut store = store(vec![object("a", "1", "1")], "1");
    let begun = Instant::now();
    assert!(!store.failed("reset", begun));
    assert!(!store.failed(
        "reset",
        begun + limits::WATCH_BROKEN_MAX - Duration::from_millis(1)
    ));
    sees(&store, &["a@1"]);
    // The next attempt may hang: what is known must not wait for its end.
    let later = store.view(begun + limits::WATCH_BROKEN_MAX);
    assert!(matches!(later, KindObservation::Unlisted(_)));
    assert!(store.failed("reset", begun + limits::WATCH_BROKEN_MAX));
    assert_eq!(seen(&store).unwrap_err(), "reset");
    assert!(!store.failed("refused", begun + 2 * limits::WATCH_BROKEN_MAX));
    assert!(store.running());
    sees(&store, &["a@1"]);
    assert!(!store.failed("reset", begun + 3 * limits::WATCH_BROKEN_MAX));
    sees(&store, &["a@1"]);
}

#[test]
fn events_change_what_is_seen_and_ring_only_where_planning_looks() {
    let mut store = store(Vec::new(), "1");
    assert!(store.set(object("a", "1", "2")));
    assert!(!store.set(object("a", "1", "3")));
    sees(&store, &["a@3"]);
    assert!(store.set(with_component(object("a", "1", "4"), "modules/telemetry")));
    assert!(store.removed(&key("a"), "5"));
    assert!(!store.removed(&key("a"), "6"));
    sees(&store, &[]);
}

#[test]
fn what_is_older_than_our_answer_is_not_judged() {
    let mut store = store(vec![object("a", "1", "5")], "5");
    let ours = with_component(object("a", "1", "9"), "new");
    store.applied(ours.clone());
    assert!(!store.set(with_component(object("a", "1", "7"), "old")));
    assert!(!store.removed(&key("a"), "8"));
    sees(&store, &["a@9"]);
    assert!(!store.set(ours));
    assert!(store.set(with_component(object("a", "1", "10"), "drift")));
    sees(&store, &["a@10"]);
}

#[test]
fn an_answer_that_the_watch_has_overtaken_is_not_judged_either() {
    let mut store = store(vec![object("a", "1", "5")], "5");
    store.set(with_component(object("a", "1", "9"), "drift"));
    store.applied(with_component(object("a", "1", "7"), "ours"));
    sees(&store, &["a@9"]);
    assert!(store.set(object("a", "1", "10")));
}

#[test]
fn an_apply_that_changed_nothing_waits_for_no_event() {
    let mut store = store(vec![object("a", "1", "5")], "5");
    store.applied(object("a", "1", "5"));
    assert!(store.removed(&key("a"), "6"));
}

#[test]
fn versions_that_are_no_numbers_are_waited_for() {
    let mut store = store(Vec::new(), "x");
    store.applied(object("a", "1", "mine"));
    assert!(!store.set(with_component(object("a", "1", "before"), "old")));
    assert!(!store.set(object("a", "1", "mine")));
    assert!(store.set(with_component(object("a", "1", "after"), "drift")));
}

#[rstest]
#[case::older("6", &["a@9"])]
#[case::as_new("9", &[])]
fn a_list_judges_our_answer_only_if_it_is_not_older(
    #[case] version: &str,
    #[case] expected: &[&str],
) {
    let mut store = store(Vec::new(), "5");
    store.applied(object("a", "1", "9"));
    store.listed(Vec::new(), version);
    sees(&store, expected);
}

#[test]
fn what_we_deleted_does_not_come_back_by_an_old_event() {
    let mut store = store(vec![object("a", "1", "5")], "5");
    store.deleted(&key("a"), "1");
    sees(&store, &[]);
    assert!(!store.set(object("a", "1", "6")));
    store.listed(vec![object("a", "1", "6")], "6");
    sees(&store, &[]);
    assert!(!store.removed(&key("a"), "7"));
    assert!(store.set(object("a", "2", "8")));
    sees(&store, &["a@8"]);
}

#[test]
fn what_a_finalizer_holds_after_our_deletion_is_seen_terminating() {
    let mut store = store(vec![object("a", "1", "5")], "5");
    store.deleted(&key("a"), "1");
    assert!(store.set(terminating(object("a", "1", "6"))));
    sees(&store, &["a@6"]);
    // Deleting it again changes nothing: it is not gone.
    store.deleted(&key("a"), "1");
    sees(&store, &["a@6"]);
}

#[test]
fn a_deletion_of_another_object_of_that_name_is_not_ours() {
    let mut store = store(vec![object("a", "2", "5")], "5");
    store.deleted(&key("a"), "1");
    sees(&store, &["a@5"]);
}

#[test]
fn a_view_that_was_handed_out_does_not_change() {
    let mut store = store(vec![object("a", "1", "5")], "5");
    let KindObservation::Listed(before) = store.view(Instant::now()) else {
        panic!()
    };
    store.set(object("b", "2", "6"));
    store.set_recent_applies(&key("a"), 2);
    assert_eq!(before.len(), 1);
    assert_eq!(before[&key("a")].recent_applies, 0);
    let KindObservation::Listed(after) = store.view(Instant::now()) else {
        panic!()
    };
    assert_eq!(after[&key("a")].recent_applies, 2);
}

#[test]
fn a_kind_that_is_not_served_has_nothing() {
    let mut store = store(vec![object("a", "1", "5")], "5");
    assert!(store.unserved());
    assert!(!store.unserved());
    sees(&store, &[]);
}

#[test]
fn what_an_answer_told_holds_until_somebody_takes_something_from_us() {
    let digest = Some(Digest::from_text("v1:0"));
    let plain = |version: &str| {
        let mut object = object("a", "1", version);
        object.digest.clone_from(&digest);
        object
    };
    let answer = |version: &str| {
        let mut object = plain(version);
        object.answered.clone_from(&digest);
        object
    };
    let answered = |store: &KindStore| store.get(&key("a")).unwrap().answered.clone();
    let mut store = store(vec![plain("5")], "5");
    assert_eq!(answered(&store), None);
    store.applied(answer("5"));
    assert_eq!(answered(&store), digest);
    assert!(!store.set(plain("6")));
    store.listed(vec![plain("7")], "7");
    assert_eq!(answered(&store), digest);
    let mut taken = plain("8");
    taken.ownership = Ownership::Unsupported;
    assert!(store.set(taken));
    assert_eq!(answered(&store), None);
}
