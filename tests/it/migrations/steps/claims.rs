//! Without its claim a process has no effect.

use fairway::cluster::{Claim, Cluster, Guard, Held};
use fairway::runs::ClusterEffects;
use fairway::runs::steps::StepResult;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Duration, Instant};

use super::{Trial, done};

#[tokio::test]
async fn f12_no_effect_is_sent_once_the_claim_has_ended() {
    let mut trial = Trial::new(json!({"apply": {"manifest": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "NAMESPACE"},
    }}}))
    .await;
    let claim = Claim {
        lease_uid: "l".to_owned(),
        transitions: 1,
    };
    let held = Held {
        claim: claim.clone(),
        effects_end: Instant::now() + Duration::from_secs(600),
    };
    let (holds, current) = watch::channel(Some(held));
    let cluster = Cluster::connect(trial.proxy.config(), None).await.unwrap();
    trial.effects = ClusterEffects::new(
        &cluster.under(Guard::new(claim, current)).acting_as_itself(),
        &trial.namespace,
    );
    done(trial.attempt().await);
    holds.send_replace(None);
    trial.proxy.forget();
    let result = trial.attempt().await;
    assert!(
        matches!(result, StepResult::Retry { counts: false, .. }),
        "{result:?}"
    );
    assert_eq!(trial.proxy.count("PATCH", ""), 0);

    let server = super::http::Server::start().await;
    trial.hosts = vec![server.host()];
    trial.set(json!({"http": {"method": "POST", "url": server.url("/ok")}}));
    let result = trial.attempt().await;
    assert!(
        matches!(result, StepResult::Retry { counts: false, .. }),
        "{result:?}"
    );
    assert!(server.seen().is_empty());
}
