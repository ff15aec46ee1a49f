//! Jobs of a component run once for each content, whatever becomes of them afterwards.

use k8s_openapi::api::batch::v1::Job;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::support::world::{World, ready};

fn publish_job(world: &World, image: &str) {
    let text = format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: migrate, namespace: {}}}\nspec:\n  template:\n    spec:\n      \
         restartPolicy: Never\n      containers: [{{name: main, image: {image}}}]\n",
        world.apps
    );
    world.repository.write("components/web/migrate.yaml", text);
}

fn jobs(world: &World) -> Api<Job> {
    Api::namespaced(world.client.clone(), &world.apps)
}

async fn uid(world: &World) -> Option<String> {
    let found = jobs(world).get_opt("migrate").await.unwrap();
    found.and_then(|job| job.uid())
}

/// Removes the Job as Kubernetes does when its time has come.
async fn remove(world: &World) {
    let parameters = DeleteParams::background();
    jobs(world).delete("migrate", &parameters).await.unwrap();
}

/// Writes the status of a Job that has ended; on this cluster nobody else does.
async fn complete(world: &World) {
    let condition = |kind| {
        json!({
            "type": kind, "status": "True", "reason": "CompletionsReached",
            "lastTransitionTime": "2026-01-01T00:00:09Z", "lastProbeTime": "2026-01-01T00:00:09Z",
        })
    };
    let status = json!({"status": {
        "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:09Z", "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    }});
    let parameters = PatchParams::default();
    jobs(world)
        .patch_status("migrate", &parameters, &Patch::Merge(&status))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_job_runs_once_for_each_content_and_is_replaced_when_it_has_ended() {
    let world = World::new().await;
    world.config_map("web", "settings", "x");
    publish_job(&world, "one");
    world.repository.publish("Migrate");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Progressing").await;
    complete(&world).await;
    world.until_reason("Synced").await;
    let first = uid(&world).await.unwrap();
    assert_eq!(world.target().await.status.unwrap().jobs.len(), 1);

    remove(&world).await;
    let source = world.reconcile().await;
    assert_eq!(ready(&source).1, "Synced", "that it is gone is no drift");
    assert_eq!(uid(&world).await, None);
    agent.kill();
    let _agent = world.agent();
    world.reconcile().await;
    assert_eq!(uid(&world).await, None, "nor is it after a restart");

    publish_job(&world, "two");
    world.publish("Migrate once more").await;
    let second = uid(&world).await.unwrap();
    assert_ne!(first, second);

    publish_job(&world, "three");
    let source = world.publish("Change it while it runs").await;
    assert_eq!(source.status.unwrap().holds[0].reason, "Immutable");
    assert_eq!(
        uid(&world).await.as_ref(),
        Some(&second),
        "it is left to end"
    );
    complete(&world).await;
    world.until_reason("Progressing").await;
    assert_ne!(uid(&world).await.unwrap(), second);
}
