//! patch, apply, delete and wait.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Trial, done, kind_of, message, object};
use crate::runs::memory::Fault;
use crate::runs::steps::{StepResult, changed_since};
use crate::runs::{EffectError, Effects as _};

const CLAIM: (&str, &str) = ("v1", "PersistentVolumeClaim");

fn claim(size: &str) -> Value {
    object(
        CLAIM,
        "data",
        &json!({"spec": {"resources": {"requests": {"storage": size}}}}),
    )
}

fn grow(form: &str, body: &Value) -> Trial {
    let trial = Trial::of(json!({"patch": {"ref": "claim", "type": form, "body": body}}));
    trial.world.put(claim("10Gi"));
    trial
}

fn merge() -> Value {
    json!({"spec": {"resources": {"requests": {"storage": "${params.size}"}}}})
}

fn operations() -> Value {
    json!([{"op": "replace", "path": "/spec/resources/requests/storage", "value": "${params.size}"}])
}

async fn size(trial: &Trial) -> Value {
    let live = trial
        .world
        .get(&kind_of(&claim("")), Some("web"), "data")
        .await;
    live.unwrap().unwrap()["spec"]["resources"]["requests"]["storage"].clone()
}

#[rstest]
#[case("merge", merge())]
#[case("json", operations())]
#[case("strategic", merge())]
#[tokio::test]
async fn a_patch_changes_once_and_records_before_and_after(
    #[case] form: &str,
    #[case] body: Value,
) {
    let mut trial = grow(form, &body);
    trial.look("claim", &claim("")).await;
    let outcome = done(trial.attempt().await);
    assert!(outcome.changed);
    assert_eq!(size(&trial).await, "30Gi");
    let record = &outcome.effect["objects"][0];
    assert_eq!(
        record["fields"],
        json!({"/spec/resources/requests/storage": {"before": "10Gi", "after": "30Gi"}})
    );
    let live = trial
        .world
        .get(&kind_of(&claim("")), Some("web"), "data")
        .await
        .unwrap();
    assert!(changed_since(record, live.as_ref()).is_empty());

    trial.look("claim", &claim("")).await;
    let again = done(trial.attempt().await);
    assert!(!again.changed && again.effect.is_null(), "{again:?}");
    assert_eq!(trial.effects().len(), 1);
}

#[tokio::test]
async fn an_object_that_changed_since_it_was_judged_is_not_patched() {
    let mut trial = grow("merge", &merge());
    trial.look("claim", &claim("")).await;
    let mut touched = claim("20Gi");
    touched["metadata"]["labels"] = json!({"somebody": "else"});
    trial.world.put(touched);
    let result = trial.attempt().await;
    assert!(
        matches!(&result, StepResult::Retry { counts: false, .. }),
        "{result:?}"
    );
    assert_eq!(
        message(&result),
        "PersistentVolumeClaim web/data has changed since it was looked at"
    );
    assert_eq!(size(&trial).await, "20Gi");
    trial.look("claim", &claim("")).await;
    assert!(done(trial.attempt().await).changed);
}

#[rstest]
#[case("merge", merge(), true)]
#[case("json", operations(), true)]
#[case("strategic", merge(), false)]
#[tokio::test]
async fn a_lost_answer_is_found_out_by_reading(
    #[case] form: &str,
    #[case] body: Value,
    #[case] at_once: bool,
) {
    let mut trial = grow(form, &body);
    trial.look("claim", &claim("")).await;
    trial.world.fault(0, Fault::Lose);
    let first = trial.attempt().await;
    if at_once {
        let outcome = done(first);
        assert!(outcome.changed);
        let fields = &outcome.effect["objects"][0]["fields"];
        assert_eq!(fields["/spec/resources/requests/storage"]["before"], "10Gi");
        return;
    }
    // What a strategic patch makes of an object only the server knows; sending it again changes nothing.
    assert!(
        matches!(first, StepResult::Retry { counts: true, .. }),
        "{first:?}"
    );
    trial.look("claim", &claim("")).await;
    assert!(!done(trial.recover().await).changed);
    assert_eq!(trial.effects().len(), 1);
}

#[tokio::test]
async fn a_write_that_was_not_sent_does_not_count_and_a_refused_one_is_final() {
    let mut trial = grow("merge", &merge());
    trial.look("claim", &claim("")).await;
    let transient = EffectError::Transient {
        message: "connection refused".to_owned(),
        retry_after: Some(std::time::Duration::from_secs(7)),
    };
    trial.world.fault(0, Fault::Fail(transient));
    let result = trial.attempt().await;
    assert!(
        matches!(&result, StepResult::Retry { counts: false, after: Some(after), .. } if after.as_secs() == 7),
        "{result:?}"
    );
    trial
        .world
        .fault(1, Fault::Fail(EffectError::Forbidden("may not".to_owned())));
    assert!(matches!(
        trial.attempt().await,
        StepResult::Retry { counts: true, .. }
    ));
    trial
        .world
        .fault(2, Fault::Fail(EffectError::Refused("shrinks".to_owned())));
    assert!(matches!(trial.attempt().await, StepResult::Fail { .. }));
}

#[tokio::test]
async fn a_secret_is_patched_whole_and_recorded_without_values() {
    let mut trial = Trial::of(json!({"patch": {"ref": "key", "body": {"data": {"b": "bmV3"}}}}));
    let secret = object(("v1", "Secret"), "key", &json!({"data": {"a": "c2VjcmV0"}}));
    trial.world.put(secret.clone());
    trial.look("key", &secret).await;
    let outcome = done(trial.attempt().await);
    let live = trial
        .world
        .get(&kind_of(&secret), Some("web"), "key")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(live["data"], json!({"a": "c2VjcmV0", "b": "bmV3"}));
    let record = outcome.effect.to_string();
    assert!(
        record.contains("/data/b") && !record.contains("bmV3"),
        "{record}"
    );
}

#[tokio::test]
async fn each_element_of_a_list_is_patched_by_its_own_identity() {
    let mut trial = Trial::of(json!({
        "forEach": {"as": "one", "in": "objects.claims"},
        "patch": {"ref": "one", "body": {"metadata": {"labels": {"of": "${one.metadata.name}"}}}},
    }));
    trial.world.put(claim("1Gi"));
    trial.look("data", &claim("")).await;
    let live = trial.objects.remove("data").unwrap();
    trial.objects.insert("claims".to_owned(), json!([live]));
    trial.item = Some(live);
    assert!(done(trial.attempt().await).changed);
    let live = trial
        .world
        .get(&kind_of(&claim("")), Some("web"), "data")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(live["metadata"]["labels"]["of"], "data");
}

#[tokio::test]
async fn an_object_by_its_name_is_read_first_and_must_be_there() {
    let reference = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "web", "name": "data"});
    let mut trial = Trial::of(json!({"patch": {"object": reference, "body": merge()}}));
    let missing = trial.attempt().await;
    assert_eq!(
        message(&missing),
        "PersistentVolumeClaim web/data is not there"
    );
    assert!(matches!(missing, StepResult::Retry { counts: true, .. }));
    trial.world.put(claim("10Gi"));
    assert!(done(trial.attempt().await).changed);
}

#[tokio::test]
async fn an_apply_creates_changes_and_then_changes_nothing() {
    let manifest = object(
        ("v1", "ConfigMap"),
        "settings",
        &json!({"data": {"size": "${params.size}"}}),
    );
    let mut trial = Trial::of(json!({"apply": {"manifest": manifest}}));
    let created = done(trial.attempt().await);
    assert_eq!(created.effect["objects"][0]["action"], "created");
    assert!(!done(trial.attempt().await).changed);
    trial.world.put(object(
        ("v1", "ConfigMap"),
        "settings",
        &json!({"data": {"size": "1Gi"}}),
    ));
    let applied = done(trial.attempt().await);
    assert_eq!(
        applied.effect["objects"][0]["fields"],
        json!({"/data/size": {"before": "1Gi", "after": "30Gi"}})
    );
}

#[tokio::test]
async fn an_apply_whose_answer_was_lost_is_found_and_a_field_of_another_manager_counts() {
    let manifest = object(
        ("v1", "ConfigMap"),
        "settings",
        &json!({"data": {"a": "b"}}),
    );
    let mut trial = Trial::of(json!({"apply": {"manifest": manifest}}));
    trial.world.fault(0, Fault::Lose);
    assert!(done(trial.attempt().await).changed);
    let conflict = "Apply failed with 1 conflict: conflict with \"kubectl\": .data.a";
    trial
        .world
        .fault(1, Fault::Fail(EffectError::Conflict(conflict.to_owned())));
    let result = trial.attempt().await;
    assert!(
        matches!(&result, StepResult::Retry { counts: true, .. }),
        "{result:?}"
    );
    assert!(message(&result).contains("kubectl"));
}

fn set(finalizers: &Value) -> Value {
    object(
        ("apps/v1", "StatefulSet"),
        "loki",
        &json!({"metadata": {"finalizers": finalizers}}),
    )
}

#[tokio::test]
async fn a_deletion_waits_until_it_is_gone_and_names_who_holds_it() {
    let step = json!({"delete": {"ref": "set", "propagation": "Orphan", "waitGone": true}});
    let mut trial = Trial::of(step);
    trial.world.put(set(&json!(["example.com/hold"])));
    trial.look("set", &set(&Value::Null)).await;
    let held = trial.attempt().await;
    assert_eq!(
        message(&held),
        "StatefulSet web/loki must be gone first; StatefulSet web/loki is held by the finalizers example.com/hold: \
         whoever set them must act"
    );
    // Somebody else makes one of the same name: it is another one.
    trial
        .world
        .take(&kind_of(&set(&Value::Null)), Some("web"), "loki");
    trial.world.put(set(&Value::Null));
    trial.look("set", &set(&Value::Null)).await;
    let outcome = done(trial.attempt().await);
    assert_eq!(outcome.effect["objects"][0]["action"], "deleted");
    assert_eq!(trial.effects().len(), 1, "the new one is left alone");
}

#[tokio::test]
async fn what_is_not_there_is_deleted_already() {
    let mut trial = Trial::of(json!({"delete": {"ref": "set"}}));
    trial.objects.insert("set".to_owned(), Value::Null);
    assert!(!done(trial.attempt().await).changed);
    let select = json!({"apiVersion": "old.example.com/v1", "kind": "Gone", "allNamespaces": true, "selector": "a=b"});
    let mut trial = Trial::of(json!({"delete": {"select": select}}));
    let kind = crate::runs::ResourceKind {
        api_version: "old.example.com/v1".to_owned(),
        kind: "Gone".to_owned(),
    };
    trial.world.withdraw_kind(&kind);
    assert!(!done(trial.attempt().await).changed);
}

#[rstest]
#[case(json!({"names": ["a", "c"], "namespace": "web"}), &["a", "c"])]
#[case(json!({"selector": "app=old", "namespace": "web"}), &["a", "b"])]
#[case(json!({"selector": "app=old", "names": ["b", "d"], "allNamespaces": true}), &["b"])]
#[tokio::test]
async fn a_selection_deletes_exactly_what_it_selects(#[case] which: Value, #[case] gone: &[&str]) {
    let mut select = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    json_patch::merge(&mut select, &which);
    let mut trial = Trial::of(json!({"delete": {"select": select, "waitGone": true}}));
    for (name, app) in [("a", "old"), ("b", "old"), ("c", "new"), ("d", "new")] {
        let labels = json!({"metadata": {"labels": {"app": app}}});
        trial.world.put(object(("v1", "ConfigMap"), name, &labels));
    }
    done(trial.until_over().await);
    let expected: Vec<_> = gone
        .iter()
        .map(|name| ("delete", format!("ConfigMap web/{name}")))
        .collect();
    assert_eq!(trial.effects(), expected);
}

#[tokio::test]
async fn a_selection_without_names_and_selector_is_refused() {
    let select = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "web"});
    let mut trial = Trial::of(json!({"delete": {"select": select}}));
    let refused = trial.attempt().await;
    assert!(matches!(refused, StepResult::Fail { .. }));
    assert!(message(&refused).contains("every ConfigMap would go"));
}

#[tokio::test]
async fn a_deletion_that_is_stopped_halfway_keeps_in_its_record_what_it_has_deleted() {
    let select =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "web", "names": ["a", "b"]});
    let mut trial = Trial::of(json!({"delete": {"select": select}}));
    for name in ["a", "b"] {
        trial
            .world
            .put(object(("v1", "ConfigMap"), name, &json!({})));
    }
    trial
        .world
        .fault(1, Fault::Fail(EffectError::Forbidden("may not".to_owned())));
    assert!(matches!(
        trial.attempt().await,
        StepResult::Retry { counts: true, .. }
    ));
    let outcome = done(trial.attempt().await);
    let names: Vec<_> = outcome.effect["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, ["a", "b"]);
}

#[tokio::test]
async fn a_wait_looks_with_lookups_of_its_own_until_it_is_true_or_in_vain() {
    let mut trial = Trial::of(json!({"wait": {
        "lookups": {"set": {"apiVersion": "apps/v1", "kind": "StatefulSet", "namespace": "web", "name": "loki"}},
        "until": "objects.set.status.readyReplicas == 1",
        "failWhen": "has(objects.set.status.broken)",
    }}));
    trial
        .world
        .put(object(("apps/v1", "StatefulSet"), "loki", &json!({})));
    let unknown = trial.attempt().await;
    assert!(matches!(unknown, StepResult::Wait { .. }), "{unknown:?}");
    assert!(message(&unknown).contains("is unknown"), "{unknown:?}");
    let with = |status: Value| {
        object(
            ("apps/v1", "StatefulSet"),
            "loki",
            &json!({"status": status}),
        )
    };
    trial.world.put(with(json!({"readyReplicas": 0})));
    let waits = trial.attempt().await;
    assert_eq!(
        message(&waits),
        "`objects.set.status.readyReplicas == 1` is not true yet"
    );
    assert!(
        matches!(waits, StepResult::Wait { after, .. } if after.as_secs() == 10),
        "retry.interval"
    );
    trial.world.put(with(json!({"readyReplicas": 1})));
    let outcome = done(trial.attempt().await);
    assert_eq!(outcome.evidence[0].result, "true");
    assert!(!outcome.changed && trial.world.writes() == 0);
    trial
        .world
        .put(with(json!({"readyReplicas": 0, "broken": true})));
    assert!(matches!(trial.attempt().await, StepResult::Fail { .. }));
}

/// A patch that appends to what is there: made twice it is not the same as once.
fn append(form: &str, when: bool) -> Trial {
    let body = match form {
        "merge" => json!({"spec": {"host": "${objects.it.spec.host}-new"}}),
        _ => json!([{"op": "add", "path": "/spec/hosts/-", "value": "new"}]),
    };
    let mut step = json!({"patch": {"ref": "it", "type": form, "body": body}});
    if when {
        step["when"] = match form {
            "merge" => "!objects.it.spec.host.endsWith('-new')".into(),
            _ => "!('new' in objects.it.spec.hosts)".into(),
        };
    }
    let trial = Trial::of(step);
    let spec = json!({"spec": {"host": "a", "hosts": ["a"]}});
    trial
        .world
        .put(object(("example.com/v1", "Route"), "r", &spec));
    trial
}

#[rstest]
#[case("merge", true)]
#[case("json", true)]
#[case("merge", false)]
#[case("json", false)]
#[tokio::test]
async fn f02_a_computed_patch_is_not_made_twice_after_a_restart(
    #[case] form: &str,
    #[case] when: bool,
) {
    let mut trial = append(form, when);
    let route = object(("example.com/v1", "Route"), "r", &json!({}));
    trial.look("it", &route).await;
    done(trial.attempt().await);
    // The agent dies before the result is in the record, and the next one looks anew.
    trial.look("it", &route).await;
    let result = trial.recover().await;
    if when {
        assert!(!done(result).changed);
    } else {
        assert!(matches!(result, StepResult::Unknown { .. }), "{result:?}");
    }
    assert_eq!(trial.effects().len(), 1);
}
