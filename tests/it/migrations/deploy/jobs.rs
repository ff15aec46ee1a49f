//! A Job while its agent comes and goes, with the Job controller and a simulated kubelet.

use fairway::model::api::RunPhase;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::stage::{self, WEB, mark};
use crate::migrations::steps::jobs::until;
use crate::support::control_plane::ControlPlane;
use crate::support::world::World;

/// Lets the program of a pod that hangs come to its end.
async fn end(pods: &Api<Pod>, name: &str) {
    let status = json!({"status": {"phase": "Succeeded", "containerStatuses": [{
        "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 0, "message": "{\"moved\": 3}"}},
    }]}});
    pods.patch_status(name, &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f08_an_agent_that_restarts_while_a_job_runs_adopts_it() {
    let world = World::on(ControlPlane::full()).await;
    stage::allow(&world).await;
    world.config_map("web", "settings", "one");
    let image =
        "example.com/move@sha256:0000000000000000000000000000000000000000000000000000000000000000";
    let manifest = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "moved", "namespace": world.apps},
        "data": {"value": "${string(steps[\"move\"].outputs.moved)}"},
    });
    let more = json!({
        "lookups": {"mark": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": world.apps, "name": "moved"}},
        "steps": [
            {"id": "move", "job": {"namespace": world.apps, "image": image, "args": ["test:hang"]},
             "outputs": {"moved": "result.moved"}},
            {"id": "mark", "apply": {"manifest": manifest}},
        ],
    });
    stage::marks(&world, &mark("moved", WEB, "pre", more));
    world.repository.publish("A migration with a Job");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    stage::until_run(&world, "moved", RunPhase::Waiting).await;
    let jobs: Api<Job> = Api::namespaced(world.client.clone(), &world.apps);
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), &world.apps);
    let running = async || {
        let pods = pods.list(&ListParams::default()).await.unwrap().items;
        pods.into_iter().find(|pod| {
            let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
            phase == Some("Running")
        })
    };
    let pod = until("the pod runs", running).await;
    let job = jobs
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .remove(0);
    agent.kill();
    world.proxy.forget();
    let _agent = world.agent();
    until("it looks for the Job", async || {
        (world.proxy.count("GET", "/jobs") > 0).then_some(())
    })
    .await;
    let same = jobs.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(same.len(), 1, "not duplicated");
    assert_eq!(same[0].uid(), job.uid());

    end(&pods, &pod.name_any()).await;
    let run = stage::until_run(&world, "moved", RunPhase::Succeeded).await;
    stage::until_committed(&world, WEB, None).await;
    assert_eq!(
        world.value("moved").await.as_deref(),
        Some("3"),
        "its result"
    );
    assert_eq!(run.status.unwrap().steps[0].attempts, 1);
    assert_eq!(world.proxy.count("POST", "/jobs"), 0);
}
