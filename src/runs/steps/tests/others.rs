//! http, rewrite, builtin and compiled.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Trial, done, kind_of, message, object};
use crate::runs::memory::Fault;
use crate::runs::steps::StepResult;
use crate::runs::{EffectError, Effects as _, HttpAnswer};

fn answer(status: u16) -> HttpAnswer {
    HttpAnswer {
        status,
        retry_after: None,
        body: json!({"id": 7}),
    }
}

fn post(more: &Value) -> Trial {
    let mut step = json!({"http": {
        "method": "POST", "url": "https://api.example.com/v1/moves", "body": {"size": "${params.size}"},
    }});
    json_patch::merge(&mut step, more);
    Trial::of(step)
}

fn keyed() -> Value {
    json!({"http": {"idempotencyKey": "${params.size}-key"}})
}

#[tokio::test]
async fn an_answer_is_the_result_and_its_body_is_no_evidence() {
    let mut trial = post(&json!({}));
    trial.world.answer(Ok(answer(201)));
    let outcome = done(trial.attempt().await);
    assert_eq!(outcome.result, json!({"status": 201, "body": {"id": 7}}));
    assert!(!format!("{:?}", outcome.evidence).contains('7'));
}

#[rstest]
#[case(200, json!({}), "done")]
#[case(409, json!({}), "fail")]
#[case(409, json!({"http": {"expect": [200, 409]}}), "done")]
#[case(201, json!({"http": {"expect": [200]}}), "fail")]
#[case(302, json!({}), "fail")]
#[case(404, json!({"http": {"retryOn": [404]}}), "retry")]
#[case(429, json!({}), "retry")]
#[case(500, json!({}), "retry")]
#[case(503, json!({}), "retry")]
#[case(504, json!({}), "unknown")]
#[case(504, keyed(), "retry")]
#[tokio::test]
async fn statuses(#[case] status: u16, #[case] more: Value, #[case] expected: &str) {
    let mut trial = post(&more);
    trial.world.answer(Ok(answer(status)));
    let result = trial.attempt().await;
    let found = match result {
        StepResult::Done(_) => "done",
        StepResult::Fail { .. } => "fail",
        StepResult::Retry { counts: true, .. } => "retry",
        StepResult::Unknown { .. } => "unknown",
        other => panic!("{other:?}"),
    };
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_lost_answer_is_unknown_without_a_key_and_sent_again_with_the_same_one_else() {
    let mut trial = post(&json!({}));
    trial.world.fault(0, Fault::Lose);
    assert!(matches!(trial.attempt().await, StepResult::Unknown { .. }));
    assert!(matches!(trial.recover().await, StepResult::Unknown { .. }));

    let mut trial = post(&keyed());
    trial.world.fault(0, Fault::Lose);
    assert!(matches!(
        trial.attempt().await,
        StepResult::Retry { counts: true, .. }
    ));
    // What the key is made of looks different by now.
    trial
        .spec
        .definition
        .params
        .insert("size".to_owned(), "40Gi".into());
    done(trial.attempt().await);
    done(trial.recover().await);
    let keys: Vec<_> = trial
        .world
        .log()
        .into_iter()
        .map(|entry| entry.key.unwrap())
        .collect();
    assert_eq!(keys, ["30Gi-key"; 3]);

    let mut get = Trial::of(json!({"http": {"method": "GET", "url": "https://api.example.com/"}}));
    get.world.fault(0, Fault::Lose);
    assert!(matches!(get.attempt().await, StepResult::Retry { .. }));
    assert!(matches!(get.recover().await, StepResult::Done(_)));
}

#[rstest]
#[case(json!({"http": {"url": "https://evil.example.org/"}}), "is not allowed")]
#[case(json!({"http": {"headers": {"Authorization": "Bearer x"}}}), "bearerToken")]
#[case(json!({"http": {"headers": {"host": "evil.example.org"}}}), "cannot be set")]
#[tokio::test]
async fn what_must_not_be_sent_is_not_sent(#[case] more: Value, #[case] words: &str) {
    let mut trial = post(&more);
    let result = trial.attempt().await;
    assert!(
        matches!(&result, StepResult::Fail { .. }) && message(&result).contains(words),
        "{result:?}"
    );
    assert_eq!(trial.world.writes(), 0);
}

fn rewrite(objects: usize) -> Trial {
    let step = json!({"rewrite": {"apiVersion": "v1", "kind": "ConfigMap", "pageSize": 3}});
    let trial = Trial::of(step);
    for number in 0..objects {
        trial.world.put(object(
            ("v1", "ConfigMap"),
            &format!("c{number}"),
            &json!({}),
        ));
    }
    trial
}

#[tokio::test]
async fn every_object_is_written_back_once_whatever_page_a_restart_comes_in() {
    let mut trial = rewrite(7);
    assert!(matches!(trial.attempt().await, StepResult::Wait { .. }));
    let kept = trial.record.progress.clone();
    trial.attempt().await;
    // The agent dies before the second page is in the record.
    trial.record.progress = kept;
    trial.recover().await;
    let outcome = done(trial.until_over().await);
    assert_eq!(outcome.result["objects"], 7);
    assert_eq!(trial.effects().len(), 7 + 3, "one page twice");
}

#[tokio::test]
async fn a_list_that_has_expired_begins_anew_behind_what_is_written() {
    let mut trial = rewrite(7);
    trial.attempt().await;
    let kind = kind_of(&object(("v1", "ConfigMap"), "a", &json!({})));
    trial
        .world
        .refuse_reads(&kind, Some(EffectError::Conflict("too old".to_owned())));
    assert!(matches!(trial.attempt().await, StepResult::Wait { .. }));
    assert!(!trial.record.progress.contains_key("continue"));
    trial.world.refuse_reads(&kind, None);
    let outcome = done(trial.until_over().await);
    assert_eq!(outcome.result["objects"], 7);
    assert_eq!(trial.effects().len(), 7);
}

#[tokio::test]
async fn an_object_that_cannot_be_stored_any_more_is_named() {
    let mut trial = rewrite(2);
    trial.world.fault(
        1,
        Fault::Fail(EffectError::Refused("spec.size: Required value".to_owned())),
    );
    let result = trial.attempt().await;
    assert_eq!(
        message(&result),
        "ConfigMap web/c1 is not valid any more, so it cannot be stored as it is: spec.size: Required value"
    );
}

#[tokio::test]
async fn a_secret_is_generated_once_and_told_nowhere() {
    let with = json!({"namespace": "web", "name": "key", "key": "signing", "length": 40});
    let mut trial = Trial::of(json!({"builtin": {"name": "generate-secret", "with": with}}));
    let outcome = done(trial.attempt().await);
    let secret = object(("v1", "Secret"), "key", &json!({}));
    let read = async |trial: &Trial| {
        let live = trial.world.get(&kind_of(&secret), Some("web"), "key").await;
        live.unwrap().unwrap()["data"]["signing"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let value = read(&trial).await;
    assert!(outcome.changed && !format!("{outcome:?}").contains(&value));
    let again = done(trial.attempt().await);
    assert!(!again.changed);
    assert_eq!(read(&trial).await, value);
}

#[tokio::test]
async fn credentials_that_are_there_stay_and_what_is_missing_is_made() {
    let with = json!({"namespace": "web", "name": "registry", "username": "admin"});
    let mut trial = Trial::of(json!({"builtin": {"name": "ensure-credentials", "with": with}}));
    let secret = object(
        ("v1", "Secret"),
        "registry",
        &json!({"data": {"password": "a2VwdA=="}}),
    );
    trial.world.put(secret.clone());
    trial.world.fault(0, Fault::Lose);
    assert!(matches!(trial.attempt().await, StepResult::Retry { .. }));
    assert!(!done(trial.attempt().await).changed);
    let live = trial
        .world
        .get(&kind_of(&secret), Some("web"), "registry")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        live["data"],
        json!({"password": "a2VwdA==", "username": "YWRtaW4="})
    );
}

#[tokio::test]
async fn a_node_port_is_free_for_who_asks() {
    let with = json!({"preferred": 32137, "service": "web/registry"});
    let mut trial = Trial::of(json!({"builtin": {"name": "find-node-port", "with": with}}));
    let service = |name: &str, port: u16| {
        object(
            ("v1", "Service"),
            name,
            &json!({"spec": {"ports": [{"port": 80, "nodePort": port}]}}),
        )
    };
    trial.world.put(service("registry", 32137));
    assert_eq!(
        done(trial.attempt().await).result,
        json!({"port": 32137, "preferred": true})
    );
    trial.world.put(service("other", 32137));
    trial.world.put(service("next", 32138));
    assert_eq!(
        done(trial.attempt().await).result,
        json!({"port": 32139, "preferred": false})
    );
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_told_with_those_that_there_are() {
    let mut trial = Trial::of(json!({"builtin": {"name": "guess"}}));
    assert!(message(&trial.attempt().await).contains("generate-secret"));
    let mut trial = Trial::of(json!({"compiled": {"name": "guess"}}));
    assert!(message(&trial.attempt().await).contains("hand-over"));
}

fn hand_over() -> Trial {
    let trial = Trial::of(json!({"compiled": {"name": "hand-over", "with": {
        "from": {"apiVersion": "old.example.com/v1", "kind": "Binding", "namespace": "web", "id": "/spec/id"},
        "to": {"apiVersion": "new.example.com/v1", "kind": "Binding", "id": "/spec/external", "ready": "/status/ready"},
    }}}));
    for id in ["1", "2"] {
        let more =
            json!({"spec": {"id": id}, "metadata": {"finalizers": ["old.example.com/operator"]}});
        trial.world.put(object(
            ("old.example.com/v1", "Binding"),
            &format!("b{id}"),
            &more,
        ));
    }
    trial
}

fn successor(id: &str, ready: bool) -> Value {
    let more = json!({"spec": {"external": id}, "status": {"ready": ready}});
    object(("new.example.com/v1", "Binding"), &format!("n{id}"), &more)
}

#[tokio::test]
async fn nothing_is_handed_over_while_one_has_no_counterpart() {
    let mut trial = hand_over();
    trial.world.put(successor("1", true));
    let result = trial.attempt().await;
    assert!(
        matches!(&result, StepResult::Fail { .. }) && message(&result).contains("Binding web/b2")
    );
    assert_eq!(trial.world.writes(), 0);
}

#[tokio::test]
async fn pairs_are_handed_over_as_they_get_ready_and_again_after_a_fault() {
    let mut trial = hand_over();
    trial.world.put(successor("1", true));
    trial.world.put(successor("2", false));
    trial.world.fault(0, Fault::Lose);
    assert!(matches!(trial.attempt().await, StepResult::Retry { .. }));
    let result = trial.attempt().await;
    assert_eq!(message(&result), "Binding web/n2 must be ready first");
    trial.world.put(successor("2", true));
    let outcome = done(trial.until_over().await);
    assert_eq!(
        outcome.evidence[0].values["components/web"],
        json!({"from": "1.0.0", "to": "1.1.0"})
    );
    let kind = kind_of(&object(("old.example.com/v1", "Binding"), "b1", &json!({})));
    let left = trial
        .world
        .list(&kind, None, None, (10, None))
        .await
        .unwrap();
    assert!(left.objects.is_empty());
}
