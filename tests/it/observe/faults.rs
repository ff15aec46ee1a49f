//! Lists and watches that fail.

use fairway::cluster::Cluster;
use fairway::observe::KindObservation;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use rstest::rstest;
use serde_json::json;

use crate::support::control_plane::ControlPlane;
use crate::support::desired::config_map;
use crate::support::proxy::{Fault, Proxy, Rule};
use crate::support::watch::Watched;

#[rstest]
#[case(
    Fault::Status(403),
    "failed to list ConfigMap: forbidden: injected 403; the account needs a rule with the verbs list and watch on configmaps in the API group ``"
)]
#[case(
    Fault::Status(401),
    "failed to list ConfigMap: the credentials are not accepted"
)]
#[case(
    Fault::Answer("<html>"),
    "failed to list ConfigMap: the answer cannot be read: Syntax error at byte 1"
)]
#[case(
    Fault::Answer(r#"{"metadata": {}, "items": []}"#),
    "failed to list ConfigMap: the answer cannot be read: a list without a resourceVersion"
)]
#[case(
    Fault::Answer(r#"{"metadata": {"resourceVersion": "1"}}"#),
    "failed to list ConfigMap: the answer cannot be read: Data error at byte 38"
)]
#[case(
    Fault::Endless,
    "failed to list ConfigMap: the answer is larger than 16777216 bytes"
)]
#[tokio::test]
async fn a_list_that_fails_leaves_the_kind_unknown_until_it_succeeds(
    #[case] fault: Fault,
    #[case] words: &str,
) {
    let proxy = Proxy::start(ControlPlane::minimal()).await;
    let cluster = Cluster::connect(proxy.config(), None).await.unwrap();
    proxy.inject(Rule::always("GET", "configmaps", fault));
    let watched = Watched::start(&cluster, &["ConfigMap", "Namespace"]).await;
    match watched.kind("ConfigMap") {
        KindObservation::Unlisted(reason) => assert_eq!(reason, words),
        KindObservation::Listed(_) => panic!("a failed list is no empty list"),
    }
    let namespaces = watched.kind("Namespace");
    assert!(
        matches!(namespaces, KindObservation::Listed(_)),
        "{namespaces:?}"
    );
    proxy.heal();
    watched
        .until(|view| {
            matches!(
                view.kinds[&"ConfigMap".parse().unwrap()],
                KindObservation::Listed(_)
            )
        })
        .await;
}

#[tokio::test]
async fn what_happens_while_the_watch_is_cut_is_seen_when_it_runs_again() {
    let plane = ControlPlane::minimal();
    let proxy = Proxy::start(plane).await;
    let cluster = Cluster::connect(proxy.config(), None).await.unwrap();
    let namespace = plane.namespace().await;
    let maps = Api::<ConfigMap>::namespaced(plane.client().await, &namespace);
    let (kept, gone) = (
        config_map(&namespace, "kept", &json!({})),
        config_map(&namespace, "gone", &json!({})),
    );
    cluster.apply(&gone, &[]).await.unwrap();
    let watched = Watched::start(&cluster, &["ConfigMap"]).await;
    assert!(watched.object(&gone.key).is_some());
    let lists = proxy.count("GET", "/api/v1/configmaps");

    proxy.inject(Rule::first(1, "WATCH", "configmaps", Fault::ResetBefore));
    proxy.disconnect();
    maps.delete("gone", &DeleteParams::default()).await.unwrap();
    maps.create(
        &PostParams::default(),
        &serde_json::from_value((*kept.body).clone()).unwrap(),
    )
    .await
    .unwrap();
    watched.until_object(&kept.key, |seen| seen.is_some()).await;
    watched.until_object(&gone.key, |seen| seen.is_none()).await;
    assert_eq!(
        proxy.count("GET", "/api/v1/configmaps"),
        lists,
        "the watch goes on without a list"
    );
}

#[tokio::test]
async fn a_watch_that_cannot_go_on_lists_anew_and_finds_what_has_gone() {
    let plane = ControlPlane::minimal();
    let proxy = Proxy::start(plane).await;
    let cluster = Cluster::connect(proxy.config(), None).await.unwrap();
    let namespace = plane.namespace().await;
    let maps = Api::<ConfigMap>::namespaced(plane.client().await, &namespace);
    let object = config_map(&namespace, "a", &json!({}));
    cluster.apply(&object, &[]).await.unwrap();
    let watched = Watched::start(&cluster, &["ConfigMap"]).await;

    let expired = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
    proxy.inject(Rule::first(
        1,
        "WATCH",
        "configmaps",
        Fault::Answer(expired),
    ));
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    proxy.disconnect();
    watched
        .until_object(&object.key, |seen| seen.is_none())
        .await;
}

#[tokio::test]
async fn in_steady_state_nothing_is_asked() {
    let plane = ControlPlane::minimal();
    let proxy = Proxy::start(plane).await;
    let cluster = Cluster::connect(proxy.config(), None).await.unwrap();
    let watched = Watched::start(&cluster, &["ConfigMap", "Secret"]).await;
    let namespace = plane.namespace().await;
    let object = config_map(&namespace, "a", &json!({}));
    cluster.apply(&object, &[]).await.unwrap();
    watched
        .until_object(&object.key, |seen| seen.is_some())
        .await;
    proxy.forget();
    for _ in 0..100 {
        watched.ensure(&["ConfigMap", "Secret"]);
        watched.observer.view();
        assert!(
            watched
                .observer
                .synced(std::time::Duration::from_secs(1))
                .await
        );
    }
    assert_eq!(proxy.seen(), []);
}

#[tokio::test]
async fn a_watch_that_stays_broken_is_not_believed_even_while_its_next_attempt_hangs() {
    let plane = ControlPlane::minimal();
    let proxy = Proxy::start(plane).await;
    let cluster = Cluster::connect(proxy.config(), None).await.unwrap();
    let believed = std::time::Duration::from_millis(300);
    let watched = Watched::start_with(&cluster, believed, &["ConfigMap"]).await;
    let is_listed = || matches!(watched.kind("ConfigMap"), KindObservation::Listed(_));
    assert!(is_listed());
    proxy.inject(Rule::always("WATCH", "/configmaps", Fault::Hang));
    proxy.inject(Rule::always("GET", "/configmaps", Fault::Hang));
    proxy.disconnect();
    while is_listed() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    proxy.heal();
    proxy.disconnect();
    while !is_listed() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
