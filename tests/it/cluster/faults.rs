//! What happens when the server, or the way to it, fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fairway::cluster::{Cluster, ClusterError, Deleted};
use fairway::model::limits;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::control_plane::{ControlPlane, config_of};
use crate::support::desired::config_map;
use crate::support::proxy::{Fault, Proxy, Rule};

struct Setting {
    proxy: Proxy,
    cluster: Cluster,
    namespace: String,
}

async fn setting() -> Setting {
    let plane = ControlPlane::minimal();
    let proxy = Proxy::start(plane).await;
    let cluster = Cluster::connect(proxy.config(), None).await.unwrap();
    cluster.served().await.unwrap();
    let namespace = plane.namespace().await;
    proxy.forget();
    Setting {
        proxy,
        cluster,
        namespace,
    }
}

#[rstest]
#[case::busy(Fault::Status(429))]
#[case::broken(Fault::Status(500))]
#[case::unavailable(Fault::Status(503))]
#[case::timed_out(Fault::Status(504))]
#[case::told_to_wait(Fault::RetryAfter(1))]
#[case::reset(Fault::ResetBefore)]
#[case::answer_lost(Fault::ResetAfter)]
#[case::answer_cut(Fault::Truncated)]
#[tokio::test]
async fn a_fault_that_passes_is_not_noticed(#[case] fault: Fault) {
    let Setting {
        proxy,
        cluster,
        namespace,
    } = setting().await;
    let object = config_map(&namespace, "a", &json!({"key": "value"}));
    proxy.inject(Rule::first(2, "PATCH", "configmaps/a", fault));
    let answer = cluster.apply(&object, &[]).await.unwrap();
    assert_eq!(proxy.count("PATCH", "configmaps/a"), 3);
    assert_eq!(answer.read::<Value>().unwrap()["data"]["key"], "value");
}

#[rstest]
#[case(Fault::Status(400), "refused: injected 400", false, 1)]
#[case(Fault::Status(401), "the credentials are not accepted", false, 1)]
#[case(Fault::Status(403), "forbidden: injected 403", false, 1)]
#[case(Fault::Status(404), "not found: injected 404", false, 1)]
#[case(Fault::Status(409), "conflict: injected 409", true, 1)]
#[case(Fault::Status(422), "refused: injected 422", false, 1)]
#[case(Fault::Status(500), "answer 500: injected 500", true, 1 + limits::RETRIES_AFTER_500)]
#[case(Fault::Status(503), "the server is unavailable: injected 503", true, 1 + limits::RETRIES_MAX)]
#[case(Fault::RetryAfter(3600), "too many requests", true, 1)]
#[case(
    Fault::Answer("<html>not you</html>"),
    "the answer cannot be read: Syntax error at byte 1",
    true,
    1
)]
#[case(
    Fault::Answer(""),
    "the answer cannot be read: Eof error at byte 0",
    true,
    1
)]
#[case(
    Fault::Answer("[1]"),
    "the answer cannot be read: Data error at byte 2",
    true,
    1
)]
#[case(Fault::Endless, "the answer is larger than 16777216 bytes", false, 1)]
#[tokio::test]
async fn a_fault_that_stays_has_its_kind(
    #[case] fault: Fault,
    #[case] words: &str,
    #[case] retryable: bool,
    #[case] requests: usize,
) {
    let Setting {
        proxy,
        cluster,
        namespace,
    } = setting().await;
    proxy.inject(Rule::always("PATCH", "configmaps/a", fault));
    let object = config_map(&namespace, "a", &json!({"key": "value"}));
    let error = cluster.apply(&object, &[]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("failed to apply ConfigMap {namespace}/a: {words}")
    );
    assert_eq!(error.is_retryable(), retryable);
    assert_eq!(proxy.count("PATCH", ""), requests);
}

#[tokio::test]
async fn a_server_that_never_answers_costs_the_deadline_and_no_more() {
    let Setting {
        proxy,
        cluster,
        namespace,
    } = setting().await;
    proxy.inject(Rule::always("PATCH", "configmaps/a", Fault::Hang));
    let object = config_map(&namespace, "a", &json!({}));
    let begun = tokio::time::Instant::now();
    let error = cluster.apply(&object, &[]).await.unwrap_err();
    assert!(matches!(error, ClusterError::Timeout { .. }), "{error}");
    assert!(begun.elapsed() < limits::REQUEST_DEADLINE + Duration::from_secs(2));
    // The next request is not harmed.
    let other = config_map(&namespace, "b", &json!({}));
    cluster.apply(&other, &[]).await.unwrap();
}

#[tokio::test]
async fn a_deletion_whose_answer_is_lost_has_happened_once() {
    let Setting {
        proxy,
        cluster,
        namespace,
    } = setting().await;
    let object = config_map(&namespace, "a", &json!({}));
    let metadata = cluster.apply(&object, &[]).await.unwrap().metadata;
    proxy.inject(Rule::first(1, "DELETE", "configmaps/a", Fault::ResetAfter));
    let (uid, version) = (metadata.uid.unwrap(), metadata.resource_version.unwrap());
    let deleted = cluster.delete(&object.key, &uid, &version).await.unwrap();
    assert_eq!(deleted, Deleted::AlreadyGone);
}

#[rstest]
#[case::garbage("{\"kind\": 7")]
#[case::nothing("{}")]
#[case::a_page("<html>Sign in</html>")]
#[case::a_failure(r#"{"kind": "Status", "status": "Failure"}"#)]
#[case::another_object(r#"{"kind": "ConfigMap", "metadata": {"uid": "another"}}"#)]
#[tokio::test]
async fn an_answer_that_is_not_the_servers_confirms_nothing(#[case] answer: &'static str) {
    let Setting {
        proxy,
        cluster,
        namespace,
    } = setting().await;
    let object = config_map(&namespace, "a", &json!({}));
    let metadata = cluster.apply(&object, &[]).await.unwrap().metadata;
    let (uid, version) = (metadata.uid.unwrap(), metadata.resource_version.unwrap());
    proxy.inject(Rule::always("", "configmaps/a", Fault::Answer(answer)));
    let deleted = cluster.delete(&object.key, &uid, &version).await;
    let error = deleted.unwrap_err();
    assert!(
        matches!(error, ClusterError::AnswerInvalid { .. }),
        "{error}"
    );
    assert!(error.is_retryable());
    let applied = cluster.apply(&object, &[]).await;
    let error = applied.unwrap_err();
    assert!(
        matches!(error, ClusterError::AnswerInvalid { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn an_apply_that_changes_nothing_is_one_request() {
    let Setting {
        proxy,
        cluster,
        namespace,
    } = setting().await;
    let object = config_map(&namespace, "a", &json!({}));
    cluster
        .apply(&object, &["kubectl-client-side-apply".to_owned()])
        .await
        .unwrap();
    assert_eq!(proxy.seen().len(), 1);
}

#[tokio::test]
async fn no_more_than_the_limit_is_in_flight() {
    let Setting {
        proxy,
        cluster,
        namespace,
    } = setting().await;
    proxy.inject(Rule::always(
        "PATCH",
        "configmaps",
        Fault::Delay(Duration::from_secs(3600)),
    ));
    let mut applies = tokio::task::JoinSet::new();
    for number in 0..3 * limits::CLUSTER_CONCURRENCY {
        let object = config_map(&namespace, &format!("map-{number}"), &json!({}));
        let cluster = cluster.clone();
        applies.spawn(async move { cluster.apply(&object, &[]).await });
    }
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while proxy.count("PATCH", "") < limits::CLUSTER_CONCURRENCY {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(proxy.count("PATCH", ""), limits::CLUSTER_CONCURRENCY);
}

#[tokio::test]
async fn an_answer_without_an_identity_is_no_cluster() {
    let plane = ControlPlane::minimal();
    let proxy = Proxy::start(plane).await;
    for body in ["{}", r#"{"metadata":{"uid":""}}"#, "<html>"] {
        proxy.inject(Rule::first(1, "GET", "kube-system", Fault::Answer(body)));
        let error = Cluster::connect(proxy.config(), None).await.err().unwrap();
        assert!(
            matches!(error, ClusterError::AnswerInvalid { .. }),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_server_without_aggregated_discovery_does_not_serve_nothing() {
    let plane = ControlPlane::minimal();
    let proxy = Proxy::start(plane).await;
    let cluster = Cluster::connect(proxy.config(), None).await.unwrap();
    let old = r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[]}"#;
    proxy.inject(Rule::always("GET", "/apis", Fault::Answer(old)));
    assert!(cluster.served().await.is_err());
    proxy.heal();
    assert!(!cluster.served().await.unwrap().kinds.is_empty());
}

#[tokio::test]
async fn hooks_stand_around_the_request_that_a_kubeconfig_leads_through_the_proxy() {
    let plane = ControlPlane::minimal();
    let proxy = Proxy::start(plane).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), proxy.kubeconfig()).unwrap();
    let cluster = Cluster::connect(config_of(file.path()).await, None)
        .await
        .unwrap();
    cluster.served().await.unwrap();
    let namespace = plane.namespace().await;
    let maps = Api::<ConfigMap>::namespaced(plane.client().await, &namespace);

    // An agent that is killed between a request and its answer is one whose answer never comes.
    let (before, after) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted_before, counted_after) = (before.clone(), after.clone());
    proxy.forget();
    proxy.before(Arc::new(move |number, _| {
        counted_before.store(number, Ordering::SeqCst);
        true
    }));
    proxy.after(Arc::new(move |number, _| {
        counted_after.store(number, Ordering::SeqCst);
        true
    }));
    cluster
        .apply(&config_map(&namespace, "a", &json!({})), &[])
        .await
        .unwrap();
    assert_eq!(
        (before.load(Ordering::SeqCst), after.load(Ordering::SeqCst)),
        (1, 1)
    );
    assert!(maps.get_opt("a").await.unwrap().is_some());
    proxy.inject(Rule::first(1, "PATCH", "configmaps/b", Fault::Status(403)));
    let refused = cluster
        .apply(&config_map(&namespace, "b", &json!({})), &[])
        .await;
    assert!(refused.is_err());
    assert_eq!(
        (before.load(Ordering::SeqCst), after.load(Ordering::SeqCst)),
        (2, 1)
    );
}
