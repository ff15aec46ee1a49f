//! The claim is asked at each attempt of each write, whatever kind of write it is, and never by a read.

use std::sync::Arc;
use std::time::Duration;

use fairway::cluster::{Claim, Cluster, ClusterError, Guard, Held, Patch};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::support::control_plane::ControlPlane;
use crate::support::desired::config_map;
use crate::support::proxy::{Fault, Proxy, Rule};

struct Setting {
    proxy: Proxy,
    /// The connection under a claim.
    cluster: Cluster,
    namespace: String,
    /// What is published; none ends the claim.
    held: watch::Sender<Option<Held>>,
}

async fn setting() -> Setting {
    let plane = ControlPlane::minimal();
    let proxy = Proxy::start(plane).await;
    let cluster = Cluster::connect(proxy.config(), None).await.unwrap();
    cluster.served().await.unwrap();
    let namespace = plane.namespace().await;
    let claim = Claim {
        lease_uid: "a".to_owned(),
        transitions: 0,
    };
    let effects_end = Instant::now() + Duration::from_secs(3600);
    let (held, current) = watch::channel(Some(Held {
        claim: claim.clone(),
        effects_end,
    }));
    let cluster = cluster.under(Guard::new(claim, current));
    proxy.forget();
    Setting {
        proxy,
        cluster,
        namespace,
        held,
    }
}

fn is_refused<T: std::fmt::Debug>(result: Result<T, ClusterError>) {
    match result {
        Err(ClusterError::ClaimLost { .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn without_a_claim_every_write_is_refused_and_reads_go_on() {
    let Setting {
        proxy,
        cluster,
        namespace,
        held,
    } = setting().await;
    let object = config_map(&namespace, "a", &json!({"key": "value"}));
    let answer = cluster.apply(&object, &[]).await.unwrap();
    let found = cluster.get::<ConfigMap>(&namespace, "a").await.unwrap();
    let found = found.unwrap();
    held.send_replace(None);
    proxy.forget();

    is_refused(cluster.apply(&object, &[]).await);
    let other = Cluster::connect(proxy.config(), None).await.unwrap();
    let other = cluster.share_claim(&other);
    is_refused(other.create(&namespace, &found).await);
    proxy.forget();
    let (uid, version) = (answer.metadata.uid.unwrap(), "1");
    is_refused(cluster.delete(&object.key, &uid, version).await);
    is_refused(cluster.create(&namespace, &found).await);
    is_refused(cluster.replace(&namespace, &found, None).await);
    let body = json!({"data": {"key": "other"}});
    for patch in [Patch::Merge, Patch::Apply] {
        let patched = cluster.patch::<ConfigMap>(&namespace, "a", None, "test", (patch, &body));
        is_refused(patched.await);
    }
    assert_eq!(proxy.seen(), [], "nothing was sent");
    assert!(cluster.get_metadata(&object.key).await.unwrap().is_some());
    assert_eq!(proxy.count("GET", "configmaps/a"), 1);
}

#[tokio::test]
async fn a_claim_that_ends_between_two_attempts_ends_the_trying() {
    let Setting {
        proxy,
        cluster,
        namespace,
        held,
    } = setting().await;
    let object = config_map(&namespace, "a", &json!({"key": "value"}));
    proxy.inject(Rule::always("PATCH", "configmaps/a", Fault::Status(503)));
    let held = Arc::new(held);
    proxy.after(Arc::new(|_, _| true));
    proxy.before({
        let held = Arc::clone(&held);
        Arc::new(move |number, _| {
            if number == 2 {
                held.send_replace(None);
            }
            true
        })
    });
    is_refused(cluster.apply(&object, &[]).await);
    assert_eq!(proxy.count("PATCH", "configmaps/a"), 2);
}

#[tokio::test]
async fn an_attempt_that_hangs_is_given_up_with_its_claim() {
    let Setting {
        proxy,
        cluster,
        namespace,
        held,
    } = setting().await;
    let object = config_map(&namespace, "a", &json!({"key": "value"}));
    proxy.inject(Rule::always("PATCH", "configmaps/a", Fault::Hang));
    let apply = cluster.apply(&object, &[]);
    let end = async {
        while proxy.count("PATCH", "configmaps/a") == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        held.send_replace(None);
    };
    let (applied, ()) = tokio::join!(apply, end);
    is_refused(applied);
    assert_eq!(proxy.count("PATCH", "configmaps/a"), 1);
}

#[tokio::test]
async fn kubes_client_reads_under_a_claim_and_does_not_write() {
    let Setting {
        proxy,
        cluster,
        namespace,
        held: _held,
    } = setting().await;
    let object = config_map(&namespace, "a", &json!({"key": "value"}));
    cluster.apply(&object, &[]).await.unwrap();
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), &namespace);
    let found = api.get("a").await.unwrap();
    proxy.forget();
    let error = api.replace("a", &PostParams::default(), &found).await;
    assert!(error.is_err());
    assert_eq!(proxy.seen(), []);
}
