//! patch, apply, delete and wait.

use std::time::Duration;

use fairway::cluster::Cluster;
use fairway::runs::ClusterEffects;
use fairway::runs::steps::StepResult;
use rstest::rstest;
use serde_json::{Value, json};

use super::{Trial, done, message};
use crate::support::proxy::{Fault, Proxy, Rule};

const CONFIG_MAP: (&str, &str) = ("v1", "ConfigMap");
const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");

fn config_map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

fn deployment() -> Value {
    let volume = |name: &str| json!({"name": name, "emptyDir": {}});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {
                "metadata": {"labels": {"app": "a"}},
                "spec": {
                    "containers": [{"name": "main", "image": "one"}],
                    "volumes": [volume("keep"), volume("old")],
                },
            },
        },
    })
}

/// A patch of each form, all with the same meaning: the volume `old` goes.
fn without_volume(form: &str) -> Value {
    let body = match form {
        "merge" => {
            json!({"spec": {"template": {"spec": {"volumes": [{"name": "keep", "emptyDir": {}}]}}}})
        }
        "json" => json!([
            {"op": "test", "path": "/spec/template/spec/volumes/1/name", "value": "old"},
            {"op": "remove", "path": "/spec/template/spec/volumes/1"},
        ]),
        _ => {
            json!({"spec": {"template": {"spec": {"volumes": [{"$patch": "delete", "name": "old"}]}}}})
        }
    };
    json!({"patch": {"ref": "it", "type": form, "body": body}})
}

#[rstest]
#[case("merge")]
#[case("json")]
#[case("strategic")]
#[tokio::test]
async fn a_patch_of_each_form_changes_the_object_once(#[case] form: &str) {
    let mut trial = Trial::new(without_volume(form)).await;
    trial.put("test", deployment()).await;
    trial.look(DEPLOYMENT, "a").await;
    let outcome = done(trial.attempt().await);
    assert!(outcome.changed);
    assert_eq!(
        trial.proxy.count("", "deployments/a"),
        1,
        "no look before the change"
    );
    let live = trial.live(DEPLOYMENT, "a").await.unwrap();
    assert_eq!(
        live["spec"]["template"]["spec"]["volumes"],
        json!([{"name": "keep", "emptyDir": {}}])
    );
    let fields = outcome.effect["objects"][0]["fields"].as_object().unwrap();
    assert_eq!(
        fields.keys().collect::<Vec<_>>(),
        ["/spec/template/spec/volumes"]
    );
}

#[rstest]
#[case("merge", 0)]
#[case("strategic", 1)]
#[tokio::test]
async fn a_patch_that_finds_its_work_done_changes_nothing(
    #[case] form: &str,
    #[case] requests: usize,
) {
    let mut trial = Trial::new(without_volume(form)).await;
    trial.put("test", deployment()).await;
    trial.look(DEPLOYMENT, "a").await;
    done(trial.attempt().await);
    trial.look(DEPLOYMENT, "a").await;
    let outcome = done(trial.recover().await);
    assert!(!outcome.changed && outcome.effect.is_null(), "{outcome:?}");
    assert_eq!(trial.proxy.count("PATCH", "deployments/a"), requests);
}

#[tokio::test]
async fn f10_the_lost_answer_of_a_patch_is_found_out() {
    let mut trial = Trial::new(without_volume("json")).await;
    trial.put("test", deployment()).await;
    trial.look(DEPLOYMENT, "a").await;
    trial
        .proxy
        .inject(Rule::first(1, "PATCH", "deployments/a", Fault::ResetAfter));
    let outcome = done(trial.attempt().await);
    assert!(outcome.changed);
    assert_eq!(
        trial.proxy.count("PATCH", "deployments/a"),
        1,
        "it is sent once"
    );
    let before = &outcome.effect["objects"][0]["fields"]["/spec/template/spec/volumes"]["before"];
    assert_eq!(
        before.as_array().unwrap().len(),
        2,
        "what an undo needs is not lost"
    );
}

#[tokio::test]
async fn a_patch_that_was_lost_on_its_way_is_made_again() {
    let mut trial = Trial::new(without_volume("strategic")).await;
    trial.put("test", deployment()).await;
    trial.look(DEPLOYMENT, "a").await;
    trial
        .proxy
        .inject(Rule::first(1, "PATCH", "deployments/a", Fault::ResetBefore));
    let lost = trial.attempt().await;
    assert!(
        matches!(lost, StepResult::Retry { counts: true, .. }),
        "{lost:?}"
    );
    assert!(done(trial.attempt().await).changed);
}

#[tokio::test]
async fn f17_an_object_that_was_changed_since_it_was_judged_is_judged_anew() {
    let step = json!({"patch": {"ref": "it", "body": {"data": {"size": "${params.size}"}}}});
    let mut trial = Trial::new(step).await;
    trial
        .put("test", config_map(&json!({"size": "10Gi"})))
        .await;
    trial.look(CONFIG_MAP, "a").await;
    trial
        .put("somebody", config_map(&json!({"size": "50Gi"})))
        .await;
    let result = trial.attempt().await;
    assert!(
        matches!(result, StepResult::Retry { counts: false, .. }),
        "{result:?}"
    );
    assert_eq!(
        trial.live(CONFIG_MAP, "a").await.unwrap()["data"]["size"],
        "50Gi"
    );
}

#[tokio::test]
async fn f11_a_server_that_asks_for_time_gets_it_and_nothing_counts() {
    let step = json!({"patch": {"ref": "it", "body": {"data": {"size": "2"}}}});
    let mut trial = Trial::new(step).await;
    trial.put("test", config_map(&json!({"size": "1"}))).await;
    trial.look(CONFIG_MAP, "a").await;
    trial.proxy.inject(Rule::first(
        1,
        "PATCH",
        "configmaps/a",
        Fault::RetryAfter(30),
    ));
    let result = trial.attempt().await;
    let StepResult::Retry { after, counts, .. } = result else {
        panic!("{result:?}");
    };
    assert_eq!((after, counts), (Some(Duration::from_secs(30)), false));
    done(trial.attempt().await);
    let live = trial.live(CONFIG_MAP, "a").await.unwrap();
    let managers = live["metadata"]["managedFields"].as_array().unwrap();
    assert!(
        managers
            .iter()
            .any(|entry| entry["manager"] == "fairway-migration")
    );
}

#[tokio::test]
async fn f09_a_server_that_is_away_burns_no_attempt() {
    let step = json!({"apply": {"manifest": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "NAMESPACE"},
    }}});
    let mut trial = Trial::new(step).await;
    let namespace = trial.namespace.clone();
    let gone = Proxy::start(trial.plane).await;
    let cluster = Cluster::connect(gone.config(), None).await.unwrap();
    cluster.served().await.unwrap();
    gone.disconnect();
    drop(gone);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let direct = std::mem::replace(
        &mut trial.effects,
        ClusterEffects::new(&cluster.acting_as_itself(), &namespace),
    );
    let result = trial.attempt().await;
    assert!(
        matches!(result, StepResult::Retry { counts: false, .. }),
        "{result:?}"
    );
    trial.effects = direct;
    assert!(done(trial.attempt().await).changed);
}

#[tokio::test]
async fn a_missing_right_is_named_with_the_way_to_get_it() {
    let step = json!({"patch": {"ref": "it", "body": {"data": {"size": "2"}}}});
    let mut trial = Trial::new(step).await;
    trial.put("test", config_map(&json!({"size": "1"}))).await;
    trial.look(CONFIG_MAP, "a").await;
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "weak"}});
    trial.put("test", account).await;
    let reader = format!(
        "{{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {{name: {0}-weak}},\n\
         \x20 roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}},\n\
         \x20 subjects: [{{kind: ServiceAccount, name: weak, namespace: {0}}}]}}\n---\n\
         {{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {{name: {0}-uid}},\n\
         \x20 rules: [{{apiGroups: [''], resources: [namespaces], verbs: [get]}}]}}\n---\n\
         {{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {{name: {0}-uid}},\n\
         \x20 roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {0}-uid}},\n\
         \x20 subjects: [{{kind: ServiceAccount, name: weak, namespace: {0}}}]}}\n",
        trial.namespace
    );
    trial.plane.apply_yaml(&reader).await;
    let weak = Proxy::start_as(trial.plane, &trial.namespace, "weak").await;
    let cluster = Cluster::connect(weak.config(), None).await.unwrap();
    trial.effects = ClusterEffects::new(&cluster.acting_as_itself(), &trial.namespace);
    let result = trial.attempt().await;
    assert!(
        matches!(result, StepResult::Retry { counts: true, .. }),
        "{result:?}"
    );
    for words in [
        "cannot patch resource \"configmaps\"",
        &trial.namespace,
        "fairway migration rbac",
    ] {
        assert!(message(&result).contains(words), "{words}: {result:?}");
    }
}

#[tokio::test]
async fn an_apply_names_the_manager_whose_field_it_is() {
    let manifest = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "NAMESPACE"},
        "data": {"size": "${params.size}"},
    });
    let mut trial = Trial::new(json!({"apply": {"manifest": manifest}})).await;
    trial
        .proxy
        .inject(Rule::first(1, "PATCH", "configmaps/a", Fault::ResetAfter));
    let outcome = done(trial.attempt().await);
    assert_eq!(
        outcome.effect["objects"][0]["action"], "created",
        "though its first answer was lost"
    );
    assert!(!done(trial.attempt().await).changed);
    trial
        .put("kubectl-edit", config_map(&json!({"size": "1Gi"})))
        .await;
    let result = trial.attempt().await;
    assert!(
        matches!(result, StepResult::Retry { counts: true, .. }),
        "{result:?}"
    );
    assert!(message(&result).contains("kubectl-edit"), "{result:?}");
    assert_eq!(
        trial.live(CONFIG_MAP, "a").await.unwrap()["data"]["size"],
        "1Gi",
        "without force"
    );
}

#[tokio::test]
async fn a_deletion_names_the_finalizer_that_holds_it_and_ends_when_that_goes() {
    let mut trial = Trial::new(json!({"delete": {"ref": "it", "waitGone": true}})).await;
    let mut held = config_map(&json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    trial.put("test", held).await;
    trial.look(CONFIG_MAP, "a").await;
    trial
        .proxy
        .inject(Rule::first(1, "DELETE", "configmaps/a", Fault::ResetAfter));
    let waits = trial.attempt().await;
    assert!(
        message(&waits).contains("held by the finalizers example.com/hold"),
        "{waits:?}"
    );
    trial.put("test", config_map(&json!({}))).await;
    trial.objects.insert("it".to_owned(), Value::Null);
    assert!(done(trial.until_over().await).changed);
    assert!(trial.live(CONFIG_MAP, "a").await.is_none());
}

#[tokio::test]
async fn only_the_object_that_was_seen_is_deleted() {
    let mut trial = Trial::new(json!({"delete": {"ref": "it"}})).await;
    trial.put("test", config_map(&json!({"x": "1"}))).await;
    trial.look(CONFIG_MAP, "a").await;
    let seen = trial.objects.clone();
    done(trial.attempt().await);
    trial.put("test", config_map(&json!({"x": "2"}))).await;
    trial.objects = seen;
    let result = trial.attempt().await;
    assert!(
        matches!(result, StepResult::Retry { counts: false, .. }),
        "{result:?}"
    );
    assert!(trial.live(CONFIG_MAP, "a").await.is_some());
}

#[tokio::test]
async fn a_selection_over_a_kind_that_is_not_served_selects_nothing() {
    let select = json!({"apiVersion": "old.example.com/v1", "kind": "Gone", "allNamespaces": true, "selector": "a=b"});
    let mut trial = Trial::new(json!({"delete": {"select": select}})).await;
    assert!(!done(trial.attempt().await).changed);
    let select = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "NAMESPACE", "selector": "app in (old)"});
    trial.set(json!({"delete": {"select": select, "waitGone": true}}));
    for (name, app) in [("a", "old"), ("b", "old"), ("c", "new")] {
        let metadata = json!({"name": name, "labels": {"app": app}});
        trial
            .put(
                "test",
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}),
            )
            .await;
    }
    assert!(done(trial.until_over().await).changed);
    for (name, there) in [("a", false), ("b", false), ("c", true)] {
        assert_eq!(
            trial.live(CONFIG_MAP, name).await.is_some(),
            there,
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_wait_ends_when_the_cluster_is_as_it_should_be() {
    let mut trial = Trial::new(json!({"wait": {
        "lookups": {"maps": {
            "apiVersion": "v1", "kind": "ConfigMap", "namespace": "NAMESPACE", "list": true, "selector": "app=a",
        }},
        "until": "objects.maps.size() == 1",
        "failWhen": "objects.maps.size() > 1",
    }}))
    .await;
    assert!(matches!(trial.attempt().await, StepResult::Wait { .. }));
    assert_eq!(trial.proxy.count("GET", ""), 1, "one look is one request");
    for name in ["a", "b"] {
        let metadata = json!({"name": name, "labels": {"app": "a"}});
        trial
            .put(
                "test",
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}),
            )
            .await;
        let result = trial.attempt().await;
        match name {
            "a" => assert_eq!(done(result).evidence[0].result, "true"),
            _ => assert!(matches!(result, StepResult::Fail { .. }), "{result:?}"),
        }
    }
}
