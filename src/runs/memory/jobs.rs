//! Jobs that end at once, with the Pod that tells the result, as the Job controller and a kubelet would leave them.

use serde_json::{Value, json};

use super::objects::{Key, Objects};
use super::script::Script;
use crate::runs::ResourceKind;

/// The exit code after which a Job of ours is never tried again.
const NEVER: i32 = 78;

/// Returns whether this is a Job.
pub(super) fn is_job(object: &Value) -> bool {
    object["kind"] == "Job"
        && object["apiVersion"]
            .as_str()
            .is_some_and(|it| it.starts_with("batch/"))
}

/// Ends a Job that was just created.
pub(super) fn finish(objects: &mut Objects, job: &Value, script: &Script) {
    let name = job["metadata"]["name"].as_str().unwrap_or_default();
    let namespace = job["metadata"]["namespace"].as_str();
    let uid = &job["metadata"]["uid"];
    let message = match &script.result {
        Value::Null => String::new(),
        result => result.to_string(),
    };
    let succeeded = script.exit_code == 0;
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("{name}-0"),
            "namespace": namespace,
            "labels": {
                "batch.kubernetes.io/controller-uid": uid,
                "batch.kubernetes.io/job-name": name,
                "controller-uid": uid,
                "job-name": name,
            },
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": true,
            }],
        },
        "spec": job["spec"]["template"]["spec"],
        "status": {
            "phase": if succeeded { "Succeeded" } else { "Failed" },
            "containerStatuses": [{
                "name": job.pointer("/spec/template/spec/containers/0/name").cloned().unwrap_or_default(),
                "state": {"terminated": {
                    "exitCode": script.exit_code,
                    "reason": if succeeded { "Completed" } else { "Error" },
                    "message": message,
                }},
            }],
        },
    });
    // The name derives from the Job's, which is new, and so is the Pod.
    let _ = objects.create(&pod, true);
    let mut finished = job.clone();
    finished["status"] = if succeeded {
        json!({
            "succeeded": 1,
            "conditions": [
                {"type": "SuccessCriteriaMet", "status": "True", "reason": "CompletionsReached"},
                {"type": "Complete", "status": "True", "reason": "CompletionsReached"},
            ],
        })
    } else {
        let reason = if script.exit_code == NEVER {
            "PodFailurePolicy"
        } else {
            "BackoffLimitExceeded"
        };
        json!({
            "failed": 1,
            "conditions": [
                {"type": "FailureTarget", "status": "True", "reason": reason},
                {"type": "Failed", "status": "True", "reason": reason},
            ],
        })
    };
    let kind = ResourceKind {
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
    };
    objects.change(&Key::new(&kind, namespace, name), finished);
}
