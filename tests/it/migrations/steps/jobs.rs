//! job: on the full control plane, with its Job controller and a simulated kubelet.

use fairway::runs::steps::StepResult;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use rstest::rstest;
use serde_json::{Value, json};

use super::{Trial, done, message};
use crate::support::control_plane::ControlPlane;
use crate::support::proxy::{Fault, Rule};

async fn trial(arguments: &[&str]) -> Trial {
    Trial::on(ControlPlane::full(), job(arguments)).await
}

fn job(arguments: &[&str]) -> Value {
    json!({"job": {
        "namespace": "NAMESPACE", "args": arguments,
        "image": "example.com/migrate@sha256:0000000000000000000000000000000000000000000000000000000000000000",
    }})
}

async fn jobs(trial: &Trial) -> Vec<Job> {
    let api: Api<Job> = Api::namespaced(trial.plane.client().await, &trial.namespace);
    api.list(&ListParams::default()).await.unwrap().items
}

async fn pods(trial: &Trial) -> Vec<Pod> {
    let api: Api<Pod> = Api::namespaced(trial.plane.client().await, &trial.namespace);
    api.list(&ListParams::default()).await.unwrap().items
}

/// Looks until something is there.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begin = std::time::Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(
            begin.elapsed().as_secs() < 60,
            "not so after a minute: {what}"
        );
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_job_runs_to_its_end_and_goes_once_its_result_is_recorded() {
    let mut trial = trial(&["test:message={\"moved\": 3}"]).await;
    // Its creation is answered by nobody.
    trial
        .proxy
        .inject(Rule::first(1, "POST", "/jobs", Fault::ResetAfter));
    assert!(matches!(trial.attempt().await, StepResult::Wait { .. }));
    // Nor could the agent write down which Job it is.
    trial.record.progress.clear();
    assert!(matches!(trial.recover().await, StepResult::Wait { .. }));
    assert_eq!(jobs(&trial).await.len(), 1, "adopted, not duplicated");
    let outcome = done(trial.until_over().await);
    assert_eq!(outcome.result, json!({"moved": 3}));
    until("the Job is gone", async || {
        jobs(&trial).await.is_empty().then_some(())
    })
    .await;
}

#[rstest]
#[case(75, "later")]
#[case(78, "never")]
#[case(3, "counts")]
#[tokio::test]
async fn an_exit_code_says_what_is_next(#[case] code: u8, #[case] expected: &str) {
    let exit = format!("test:exit={code}");
    let mut trial = trial(&[&exit, "test:message=the disk is full"]).await;
    let result = trial.until_over().await;
    let found = match &result {
        StepResult::Retry { counts: false, .. } => "later",
        StepResult::Retry { counts: true, .. } => "counts",
        StepResult::Fail { .. } => "never",
        other => panic!("{other:?}"),
    };
    assert_eq!(found, expected, "{result:?}");
    assert!(
        message(&result).contains(&format!("exit {code}")),
        "{result:?}"
    );
    assert!(message(&result).contains("the disk is full"), "{result:?}");
    let spec = jobs(&trial).await.remove(0).spec.unwrap();
    assert_eq!(
        spec.ttl_seconds_after_finished,
        Some(3600),
        "its logs are kept for a while"
    );
    if expected != "never" {
        let progress = trial.record.progress.clone();
        trial.set(job(&[]));
        trial.record.progress = progress;
        done(trial.until_over().await);
    }
}

#[tokio::test]
async fn f05_a_pod_that_is_evicted_is_replaced_and_does_not_count() {
    let mut trial = trial(&["test:hang"]).await;
    trial.attempt().await;
    let first = until("the pod runs", async || {
        let pods = pods(&trial).await;
        let running = |pod: &Pod| {
            pod.status
                .as_ref()
                .is_some_and(|it| it.phase.as_deref() == Some("Running"))
        };
        pods.into_iter().find(running)
    })
    .await;
    let api: Api<Pod> = Api::namespaced(trial.plane.client().await, &trial.namespace);
    let evicted = json!({"status": {"phase": "Failed", "reason": "Evicted", "conditions": [{
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    api.patch_status(
        &first.name_any(),
        &PatchParams::default(),
        &Patch::Merge(&evicted),
    )
    .await
    .unwrap();
    until("another pod is there", async || {
        let pods = pods(&trial).await;
        pods.into_iter().find(|pod| pod.uid() != first.uid())
    })
    .await;
    let waits = trial.attempt().await;
    assert!(matches!(waits, StepResult::Wait { .. }), "{waits:?}");
    assert_eq!(jobs(&trial).await.len(), 1);
    trial.stop().await;
    until("no pod runs", async || {
        let pods = pods(&trial).await;
        let running = |pod: &Pod| {
            let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
            phase != Some("Failed") && pod.metadata.deletion_timestamp.is_none()
        };
        (!pods.iter().any(running)).then_some(())
    })
    .await;
    assert_eq!(jobs(&trial).await.len(), 1, "it can go on");
    trial.attempt().await;
    let job = jobs(&trial).await.remove(0);
    assert_eq!(job.spec.unwrap().suspend, Some(false));
}

#[tokio::test]
async fn f06_a_pod_on_a_node_that_is_lost_is_replaced_only_once_it_is_gone() {
    let mut trial = trial(&["test:hang"]).await;
    trial.attempt().await;
    let first = until("the pod runs", async || {
        pods(&trial).await.into_iter().find(|pod| {
            let status = pod.status.as_ref();
            status.is_some_and(|it| it.phase.as_deref() == Some("Running"))
        })
    })
    .await;
    let api: Api<Pod> = Api::namespaced(trial.plane.client().await, &trial.namespace);
    // As on a lost node: it is to go, and no kubelet says that it has. Whether it runs is not known.
    let held = json!({"metadata": {"finalizers": ["test.fairway.dev/node-lost"]}});
    let name = first.name_any();
    api.patch(&name, &PatchParams::default(), &Patch::Merge(&held))
        .await
        .unwrap();
    api.delete(&name, &DeleteParams::default()).await.unwrap();
    until("the Job knows that its pod is to go", async || {
        let job = jobs(&trial).await.remove(0);
        job.status
            .and_then(|status| status.terminating)
            .filter(|count| *count == 1)
    })
    .await;
    let waits = trial.attempt().await;
    assert!(matches!(waits, StepResult::Wait { .. }), "{waits:?}");
    let now: Vec<_> = pods(&trial).await.iter().map(Pod::uid).collect();
    assert_eq!(now, [first.uid()], "no second pod beside one that may run");

    // The node is taken away, and its pods with it.
    let gone = json!({"metadata": {"finalizers": null}});
    api.patch(&name, &PatchParams::default(), &Patch::Merge(&gone))
        .await
        .unwrap();
    let second = until("another pod is there", async || {
        let pods = pods(&trial).await;
        pods.into_iter().find(|pod| pod.uid() != first.uid())
    })
    .await;
    let now: Vec<_> = pods(&trial).await.iter().map(Pod::uid).collect();
    assert_eq!(now, [second.uid()]);
    let waits = trial.attempt().await;
    assert!(
        matches!(waits, StepResult::Wait { .. }),
        "it does not count: {waits:?}"
    );
    assert_eq!(jobs(&trial).await.len(), 1);
}

#[tokio::test]
async fn f07_a_job_that_somebody_has_deleted_is_unknown() {
    let mut trial = trial(&["test:hang"]).await;
    trial.attempt().await;
    let name = jobs(&trial).await.remove(0).name_any();
    let api: Api<Job> = Api::namespaced(trial.plane.client().await, &trial.namespace);
    api.delete(&name, &DeleteParams::background())
        .await
        .unwrap();
    let result = until("the Job is gone", async || match trial.attempt().await {
        StepResult::Wait { .. } => None,
        ended => Some(ended),
    })
    .await;
    assert!(matches!(result, StepResult::Unknown { .. }), "{result:?}");
}

#[tokio::test]
async fn f08_a_job_that_ended_while_nobody_looked_is_adopted_with_its_result() {
    let mut trial = trial(&["test:message=\"seen\""]).await;
    trial.attempt().await;
    trial.record.progress.clear();
    until("the Job has ended", async || {
        let job = jobs(&trial).await.remove(0);
        job.status.and_then(|status| status.completion_time)
    })
    .await;
    assert!(matches!(trial.recover().await, StepResult::Wait { .. }));
    assert_eq!(done(trial.until_over().await).result, "seen");
}

#[tokio::test]
async fn a_job_that_takes_longer_than_its_attempt_is_ended() {
    let mut trial = trial(&["test:hang"]).await;
    trial.deadline = std::time::Duration::from_secs(1);
    let result = trial.until_over().await;
    assert!(
        matches!(result, StepResult::Retry { counts: true, .. }),
        "{result:?}"
    );
    assert!(
        message(&result).contains("longer than its attempt may take"),
        "{result:?}"
    );
}

#[tokio::test]
async fn an_orphaned_set_leaves_its_pods_and_the_step_waits_until_it_is_gone() {
    let delete = json!({"delete": {"ref": "it", "propagation": "Orphan", "waitGone": true}});
    let mut trial = Trial::on(ControlPlane::full(), delete).await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}});
    trial.put("test", owner).await;
    trial.look(("v1", "ConfigMap"), "owner").await;
    let owned = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned", "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": trial.objects["it"]["metadata"]["uid"],
        }]},
    });
    trial.put("test", owned).await;
    assert!(done(trial.until_over().await).changed);
    assert!(trial.live(("v1", "ConfigMap"), "owner").await.is_none());
    let owned = trial.live(("v1", "ConfigMap"), "owned").await.unwrap();
    assert!(
        owned["metadata"].get("ownerReferences").is_none(),
        "{owned}"
    );
}
