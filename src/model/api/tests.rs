use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use kube::CustomResourceExt;
use rstest::rstest;
use serde_json::{Value, json};

use super::ConditionStatus::{False, True};
use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[rstest]
#[case(include_str!("../../../deploy/crds/fairway.dev_releasesources.yaml"), 0)]
#[case(include_str!("../../../deploy/crds/fairway.dev_runs.yaml"), 1)]
#[case(include_str!("../../../deploy/crds/fairway.dev_targets.yaml"), 2)]
fn checked_in_definitions_are_current(#[case] text: &str, #[case] index: usize) {
    let checked_in: Value = serde_yaml::from_str(text).unwrap();
    assert_eq!(
        checked_in,
        serde_json::to_value(&crds()[index]).unwrap(),
        "run `fairway generate crds deploy/crds`"
    );
}

/// The rules for structural schemas: each node has a type or may be anything, and nothing below `properties` depends on values.
fn assert_structural(path: &str, schema: &Value) {
    // The one other form that Kubernetes takes: anything at all.
    let is_anything = schema["x-kubernetes-preserve-unknown-fields"] == true;
    assert!(
        schema["type"].is_string() || is_anything,
        "{path} has no type"
    );
    assert!(
        schema["description"]
            .as_str()
            .is_some_and(|text| text.len() < 1024)
            || path.ends_with("[]"),
        "{path} has no description"
    );
    for keyword in [
        "oneOf",
        "anyOf",
        "allOf",
        "not",
        "$ref",
        "nullable",
        "additionalProperties",
    ] {
        assert!(schema.get(keyword).is_none(), "{path} uses {keyword}");
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        assert_structural(&format!("{path}.{name}"), property);
    }
    if schema["type"] == "array" {
        assert_structural(&format!("{path}[]"), &schema["items"]);
        assert!(schema["maxItems"].is_u64(), "{path} has no bound");
    }
}

#[test]
fn definitions_are_structural_described_and_bounded() {
    for crd in crds() {
        let crd = serde_json::to_value(crd).unwrap();
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap();
        assert_structural(
            kind,
            &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
        );
    }
}

#[test]
fn a_minimal_source_gets_the_documented_defaults() {
    let spec: ReleaseSourceSpec = serde_json::from_value(
        json!({"url": "https://git.example.com/m.git", "ref": {"branch": "main"}}),
    )
    .unwrap();
    assert_eq!(spec.path, ".");
    assert_eq!(spec.interval(), Duration::from_secs(300));
    assert_eq!((spec.prune.max_objects, spec.prune.max_percent), (10, 20));
    assert_eq!(spec.catalog.namespace, "kcp-system");
    assert!(!spec.suspend && spec.prune.enabled && spec.takeover.len() == 3);
}

#[rstest]
#[case("10s", 10)]
#[case("90s", 90)]
#[case("1h30m", 5_400)]
#[case("24h", 86_400)]
fn intervals_are_read(#[case] text: &str, #[case] seconds: u64) {
    let spec: ReleaseSourceSpec =
        serde_json::from_value(json!({"url": "/r", "ref": {"tag": "v1"}, "interval": text}))
            .unwrap();
    assert_eq!(spec.interval(), Duration::from_secs(seconds));
}

#[test]
fn a_target_has_nothing_but_its_status() {
    let name = target_name(&"modules".parse().unwrap(), HOME);
    let stored = serde_json::to_value(Target::new(&name, TargetFields {})).unwrap();
    assert_eq!(
        stored,
        json!({"apiVersion": "fairway.dev/v1alpha1", "kind": "Target", "metadata": {"name": "modules.home"}})
    );
    assert!(
        serde_json::from_value::<Target>(stored)
            .unwrap()
            .status
            .is_none()
    );
    assert_eq!(Target::crd_name(), "targets.fairway.dev");
}

#[test]
fn approvals_keep_their_fingerprints() {
    let hashes = BTreeSet::from([0, 1, u64::MAX]);
    let record = ApprovalRecord {
        digest: "v1:0".into(),
        objects: ApprovalRecord::stored(&hashes),
        by: "jane".into(),
        reason: "retired".into(),
        at: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(0)),
    };
    assert!(record.objects.iter().all(|text| text.len() == 16));
    assert_eq!(record.fingerprints(), hashes);
}

#[test]
fn a_transition_time_moves_only_with_the_status() {
    let mut conditions = Vec::new();
    let (ready, synced) = (ConditionType::Ready, ConditionReason::Synced);
    let partly = ConditionReason::PartiallyApplied;
    set(
        &mut conditions,
        ready,
        (True, synced, "a".into()),
        Some(1),
        at(10),
    );
    set(
        &mut conditions,
        ready,
        (True, synced, "b".into()),
        Some(2),
        at(20),
    );
    assert_eq!(
        find(&conditions, ready).unwrap().last_transition_time.0,
        at(10)
    );
    assert_eq!(
        find(&conditions, ready).unwrap().observed_generation,
        Some(2)
    );
    set(
        &mut conditions,
        ready,
        (False, partly, "c".into()),
        Some(2),
        at(30),
    );
    assert_eq!(
        find(&conditions, ready).unwrap().last_transition_time.0,
        at(30)
    );
    unset(&mut conditions, ready);
    assert!(conditions.is_empty());
}

#[test]
fn conditions_keep_one_order_however_they_are_set() {
    let mut conditions = Vec::new();
    for type_ in ConditionType::ALL.iter().rev() {
        set(
            &mut conditions,
            *type_,
            (True, ConditionReason::Synced, String::new()),
            Some(1),
            at(0),
        );
    }
    let order: Vec<&str> = conditions
        .iter()
        .map(|found| found.type_.as_str())
        .collect();
    let wanted: Vec<&str> = ConditionType::ALL
        .iter()
        .map(|type_| type_.as_str())
        .collect();
    assert_eq!(order, wanted);
}

#[test]
fn what_was_read_back_does_not_differ_from_what_was_written() {
    let mut status = ReleaseSourceStatus::default();
    let now = Timestamp::from_nanosecond(1_700_000_000_123_456_789).unwrap();
    let synced = (True, ConditionReason::Synced, "applied".to_owned());
    set(
        &mut status.conditions,
        ConditionType::Ready,
        synced,
        Some(1),
        now,
    );
    let read_back = serde_json::from_value(serde_json::to_value(&status).unwrap()).unwrap();
    assert!(!status_differs(&status, &read_back));
    status.hold_count = Some(1);
    assert!(status_differs(&status, &read_back));
}

#[test]
fn the_reference_page_is_current() {
    assert_eq!(
        include_str!("../../../docs/reference/conditions.md"),
        conditions::reference_page(),
        "write the left from the right: `fairway generate conditions`"
    );
}
