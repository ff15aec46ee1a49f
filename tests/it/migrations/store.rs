//! The records of runs on the real server: created once, written over what was seen, and under the claim.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fairway::cluster::{Claim, Cluster, Guard, Held};
use fairway::model::api::{Run, RunPhase, RunStatus};
use fairway::runs::{ClusterEffects, ClusterRuns, Driver, ProcessClock, RunStore as _, StoreError};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt as _};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::control_plane::ControlPlane;
use crate::support::proxy::{Fault, Proxy, Rule, Seen};
use crate::support::world::define;

const NAME: &str = "modules.home.make-0011223344";

/// Records of one namespace, written by an agent that holds a claim.
struct Records {
    plane: &'static ControlPlane,
    proxy: Proxy,
    cluster: Cluster,
    namespace: String,
    store: ClusterRuns,
    held: watch::Sender<Option<Held>>,
}

impl Records {
    async fn new() -> Self {
        let plane = ControlPlane::minimal();
        let client = plane.client().await;
        define(plane, &client).await;
        let namespace = plane.namespace_by(&client).await;
        let proxy = Proxy::start(plane).await;
        let claim = Claim {
            lease_uid: "ours".to_owned(),
            transitions: 1,
        };
        let (held, current) = watch::channel(Some(Held {
            claim: claim.clone(),
            effects_end: Instant::now() + Duration::from_secs(3600),
        }));
        let cluster = Cluster::connect(proxy.config(), None).await.unwrap();
        let cluster = cluster.under(Guard::new(claim, current));
        cluster.served().await.unwrap();
        proxy.forget();
        Self {
            plane,
            store: ClusterRuns::new(cluster.clone(), namespace.as_str()),
            proxy,
            cluster,
            namespace,
            held,
        }
    }

    /// Returns the record of a run that makes a ConfigMap.
    fn run(&self) -> Run {
        let made = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": self.namespace, "name": "made"});
        let manifest = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made", "namespace": self.namespace},
        });
        let spec = json!({
            "source": "modules", "cluster": "home", "clusterUid": "u", "migration": "make", "phase": "pre",
            "revision": "main@sha1:1", "place": "migrations/make.yaml:1:1", "deploy": "v1:1", "definitionDigest": "v1:2",
            "definition": {
                "owner": "web", "bind": {"phase": "pre"}, "lifecycle": {"never": "a test"},
                "lookups": {"made": made},
                "guard": {"needed": "objects.made == null"},
                "steps": [{"id": "make", "apply": {"manifest": manifest}}],
            },
        });
        let mut run = Run::new(NAME, serde_json::from_value(spec).unwrap());
        run.metadata.namespace = Some(self.namespace.clone());
        run
    }

    async fn stored(&self) -> Run {
        self.store.read(NAME).await.unwrap().unwrap()
    }

    /// Drives the run under our claim until it is over or let go of.
    async fn drive(&self, run: Run) -> Run {
        let effects =
            ClusterEffects::new(&self.cluster.acting_as_itself(), self.namespace.as_str());
        let clock = ProcessClock::new(fairway::agent::clock::now);
        let driver = Driver::new(effects, self.store.clone(), clock, self.cluster.claim());
        let (_, commands) = watch::channel(None);
        let stop = CancellationToken::new();
        driver.drive(run, commands, &stop, |_| {}).await
    }

    /// Has somebody write the run as soon as the effect was answered, and before its result is written down.
    fn meddle<const COUNT: usize>(&self, arguments: [&'static str; COUNT]) {
        let (plane, namespace) = (self.plane, self.namespace.clone());
        let effects = Arc::new(AtomicUsize::new(0));
        self.proxy.before(Arc::new(move |_, seen: &Seen| {
            if seen.verb == "PATCH" && seen.path.ends_with("/configmaps/made") {
                effects.fetch_add(1, Ordering::SeqCst);
            }
            // Once: what is written again is left alone.
            let result = seen.verb == "PUT" && seen.path.ends_with("/status");
            if result
                && effects
                    .compare_exchange(1, 2, Ordering::SeqCst, Ordering::SeqCst)
                    .is_ok()
            {
                plane.kubectl(&namespace, &arguments);
            }
            true
        }));
    }
}

fn pending(message: &str) -> RunStatus {
    RunStatus {
        message: message.to_owned(),
        ..RunStatus::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_is_created_once_and_written_over_what_was_seen() {
    let records = Records::new().await;
    let (store, run) = (&records.store, records.run());
    assert_eq!(store.read(NAME).await, Ok(None));
    // Nobody hears that it was made.
    let lost = Rule::first(1, "POST", "/runs", Fault::ResetAfter);
    records.proxy.inject(lost);
    let created = store.create(&run).await;
    let created = match created {
        Ok(created) => created,
        Err(StoreError::Unavailable(_)) => records.stored().await,
        Err(other) => panic!("{other:?}"),
    };
    let again = store.create(&run).await.unwrap();
    assert_eq!(again.uid(), created.uid(), "the one that is there");

    let first = store.write(&again, pending("first")).await.unwrap();
    assert_ne!(first.resource_version(), again.resource_version());
    let late = store.write(&again, pending("late")).await;
    assert_eq!(late, Err(StoreError::Conflict(NAME.to_owned())));
    assert_eq!(records.stored().await.status.unwrap().message, "first");
    let second = store.write(&first, pending("second")).await.unwrap();
    assert_eq!(second.status.as_ref().unwrap().message, "second");

    let client = records.plane.client().await;
    let api: Api<Run> = Api::namespaced(client, &records.namespace);
    api.delete(NAME, &DeleteParams::default()).await.unwrap();
    let gone = store.write(&second, pending("gone")).await;
    assert_eq!(gone, Err(StoreError::Gone(NAME.to_owned())));
    assert_eq!(store.read(NAME).await, Ok(None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_claim_nothing_is_written() {
    let records = Records::new().await;
    let run = records.store.create(&records.run()).await.unwrap();
    records.held.send_replace(None);
    records.proxy.forget();
    let written = records.store.write(&run, pending("late")).await;
    assert!(
        matches!(written, Err(StoreError::ClaimLost(_))),
        "{written:?}"
    );
    let mut other = records.run();
    other.metadata.name = Some("modules.home.other-0011223344".to_owned());
    let created = records.store.create(&other).await;
    assert!(
        matches!(created, Err(StoreError::ClaimLost(_))),
        "{created:?}"
    );
    assert_eq!(records.proxy.seen(), []);
    assert_eq!(records.stored().await, run, "reading goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f04_a_result_that_conflicts_with_a_person_is_written_again_without_the_effect() {
    let records = Records::new().await;
    let run = records.store.create(&records.run()).await.unwrap();
    records.proxy.forget();
    records.meddle(["annotate", "runs.fairway.dev", NAME, "note=seen"]);
    let run = records.drive(run).await;
    let status = run.status.clone().unwrap();
    assert_eq!(status.phase, RunPhase::Succeeded, "{status:#?}");
    assert_eq!(status.steps[0].attempts, 1);
    assert_eq!(records.proxy.count("PATCH", "/configmaps/made"), 1);
    let stored = records.stored().await;
    assert_eq!(stored.annotations()["note"], "seen");
    assert_eq!(stored.resource_version(), run.resource_version());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f04_a_result_that_conflicts_with_another_claim_is_not_written() {
    let records = Records::new().await;
    let run = records.store.create(&records.run()).await.unwrap();
    records.proxy.forget();
    let other = r#"{"status": {"claim": "theirs/2"}}"#;
    records.meddle([
        "patch",
        "runs.fairway.dev",
        NAME,
        "--subresource=status",
        "--type=merge",
        "--patch",
        other,
    ]);
    let run = records.drive(run).await;
    let status = run.status.unwrap();
    assert!(!status.phase.is_over(), "{status:#?}");
    assert_eq!(status.claim.as_deref(), Some("theirs/2"));
    let stored = records.stored().await;
    assert_eq!(stored.resource_version(), run.metadata.resource_version);
    // The write that conflicted was the last one.
    let seen = records.proxy.seen();
    let writes: Vec<&str> = seen
        .iter()
        .map(|it| it.verb.as_str())
        .filter(|verb| *verb != "GET")
        .collect();
    assert_eq!(
        writes.iter().filter(|verb| **verb == "PATCH").count(),
        1,
        "{writes:?}"
    );
    assert_eq!(writes.last(), Some(&"PUT"), "{writes:?}");
}
