//! The Job itself.

use serde_json::{Value, json};

use super::{labels, short_digest};
use crate::model::migration::JobStep;
use crate::model::names;
use crate::runs::effects::Effects;
use crate::runs::steps::{StepContext, StepResult};

/// Annotation: the Run. The label may be shortened.
pub(super) const RUN: &str = names::LABEL_RUN;
/// Annotation: the step and its element. The label may be shortened.
pub(super) const STEP: &str = names::LABEL_STEP;
/// Annotation: how many Jobs this step has had, this one counted.
pub(super) const LAUNCH: &str = names::ANNOTATION_LAUNCH;
/// Annotation: its result is in the record, so that nobody takes it up any more.
pub(super) const RECORDED: &str = names::ANNOTATION_RECORDED;
/// The one container.
pub(super) const CONTAINER: &str = "main";

/// Selects the Jobs of a step.
pub(super) fn selector<E>(context: &StepContext<'_, E>) -> String {
    let labels = labels(context);
    let pairs: Vec<String> = labels
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join(",")
}

/// Makes the Job of one launch.
pub(super) fn job<E: Effects>(
    context: &StepContext<'_, E>,
    step: &JobStep,
    namespace: &str,
    launch: u64,
) -> Result<Value, StepResult> {
    let digest = short_digest(context.idempotency_key);
    // Pods carry the Job's name as a label, which has 63 characters; `-DIGEST-LAUNCH` takes up to 22.
    let start: String = context.spec.migration.chars().take(40).collect();
    let start: String = start
        .chars()
        .map(|c| if c == '.' { '-' } else { c })
        .collect();
    let name = format!("{}-{digest}-{launch}", start.trim_end_matches('-'));
    let labels: serde_json::Map<String, Value> = labels(context)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .chain([("app.kubernetes.io/managed-by".to_owned(), "fairway".into())])
        .collect();
    let annotations = json!({
        RUN: context.run, STEP: context.idempotency_key, LAUNCH: launch.to_string(),
    });
    let mut pod = json!({
        "restartPolicy": "Never",
        "enableServiceLinks": false,
        "automountServiceAccountToken": step.service_account_name.is_some(),
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container(context, step, launch)?],
    });
    if let Some(account) = &step.service_account_name {
        pod["serviceAccountName"] = account.as_str().into();
    }
    Ok(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name, "namespace": namespace, "labels": labels, "annotations": annotations,
        },
        "spec": {
            "parallelism": 1,
            "completions": 1,
            // Attempts are counted by the run.
            "backoffLimit": 0,
            // No two pods at the same time, also where a node is lost.
            "podReplacementPolicy": "Failed",
            "activeDeadlineSeconds": context.deadline.as_secs().max(1),
            "podFailurePolicy": {"rules": [
                // What is evicted has not failed.
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": "FailJob", "onExitCodes": {
                    "containerName": CONTAINER, "operator": "In", "values": [super::result::NEVER],
                }},
            ]},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": pod,
            },
        },
    }))
}

fn container<E: Effects>(
    context: &StepContext<'_, E>,
    step: &JobStep,
    launch: u64,
) -> Result<Value, StepResult> {
    let texts = |texts: &[String]| -> Result<Vec<String>, StepResult> {
        texts.iter().map(|text| context.text(text)).collect()
    };
    let own = [
        ("FAIRWAY_RUN", context.run.to_owned()),
        ("FAIRWAY_STEP", context.step.id.clone()),
        ("FAIRWAY_ATTEMPT", launch.to_string()),
        (
            "FAIRWAY_IDEMPOTENCY_KEY",
            context.idempotency_key.to_owned(),
        ),
    ];
    let mut env: Vec<Value> = own
        .iter()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    let is_own = |name: &String| own.iter().any(|(taken, _)| taken == name);
    for (name, value) in step.env.iter().filter(|(name, _)| !is_own(name)) {
        env.push(json!({"name": name, "value": context.text(value)?}));
    }
    for (name, secret) in step
        .env_from_secrets
        .iter()
        .filter(|(name, _)| !is_own(name))
    {
        let reference = json!({"name": secret.name, "key": secret.key});
        env.push(json!({"name": name, "valueFrom": {"secretKeyRef": reference}}));
    }
    let mut container = json!({
        "name": CONTAINER,
        "image": context.text(&step.image)?,
        "env": env,
        "terminationMessagePolicy": "File",
        "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        },
    });
    let command = texts(&step.command)?;
    if !command.is_empty() {
        container["command"] = command.into();
    }
    let args = texts(&step.args)?;
    if !args.is_empty() {
        container["args"] = args.into();
    }
    if let Some(resources) = &step.resources {
        container["resources"] = context.render(resources)?;
    }
    Ok(container)
}
