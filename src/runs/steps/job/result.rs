//! How a Job has ended: its condition, and what its container has left.

use serde_json::{Value, json};

use super::manifest::CONTAINER;
use crate::model::limits;
use crate::runs::effects::{EffectError, Effects, ResourceKind};
use crate::runs::steps::help::{Seen, failed};
use crate::runs::steps::{StepContext, StepResult};

/// The exit code that asks for another attempt later: `EX_TEMPFAIL`.
pub(super) const TRY_LATER: i64 = 75;
/// The exit code that says that no attempt will ever succeed: `EX_CONFIG`.
pub(super) const NEVER: i64 = 78;

/// The condition that ended a Job.
pub(super) struct Condition {
    succeeded: bool,
    reason: String,
}

/// How a Job has ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ending {
    pub(super) succeeded: bool,
    /// The container's exit code, where a pod is left that tells it.
    pub(super) exit: Option<i64>,
    /// The Job's own reason.
    reason: String,
    /// What the container has left: JSON, else a text, else null.
    pub(super) result: Value,
}

// === impl Ending ===

impl Ending {
    pub(super) fn read(kept: &Value) -> Self {
        Self {
            succeeded: kept["succeeded"] == true,
            exit: kept["exit"].as_i64(),
            reason: kept["reason"].as_str().unwrap_or_default().to_owned(),
            result: kept["result"].clone(),
        }
    }

    pub(super) fn keep(&self) -> Value {
        json!({
            "succeeded": self.succeeded, "exit": self.exit, "reason": self.reason, "result": self.result,
        })
    }

    /// Completes a sentence that begins with the Job.
    pub(super) fn words(&self) -> String {
        let said = match &self.result {
            Value::Null => String::new(),
            Value::String(text) => format!(": {}", text.trim()),
            value => format!(": {value}"),
        };
        match self.exit {
            _ if self.reason == "DeadlineExceeded" => {
                format!("took longer than its attempt may take{said}")
            }
            Some(TRY_LATER) => format!("asks to be tried later (exit {TRY_LATER}){said}"),
            Some(NEVER) => format!("can never succeed (exit {NEVER}){said}"),
            Some(code) => format!("failed (exit {code}){said}"),
            None => format!("failed ({}){said}", self.reason),
        }
    }
}

/// Returns the condition that ended a Job; none while it runs.
pub(super) fn condition(job: &Value) -> Option<Condition> {
    let conditions = job.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find_map(|condition| {
        let succeeded = match condition["type"].as_str()? {
            "Complete" => true,
            "Failed" => false,
            _ => return None,
        };
        let reason = condition["reason"].as_str().unwrap_or_default().to_owned();
        (condition["status"] == "True").then_some(Condition { succeeded, reason })
    })
}

/// Reads what the container of a Job that has ended has left.
pub(super) async fn ending<E: Effects>(
    context: &StepContext<'_, E>,
    job: &Seen,
    condition: &Condition,
) -> Result<Ending, StepResult> {
    let pods = match pods(context, job).await {
        Ok(pods) => pods,
        // Without the right to look at pods there is no result; that matters only to who wants one.
        Err(EffectError::Forbidden(_))
            if condition.succeeded && context.step.outputs.is_empty() =>
        {
            Vec::new()
        }
        Err(error) => return Err(failed(error)),
    };
    let terminated = pods.iter().rev().find_map(terminated);
    let exit = terminated.and_then(|state| state["exitCode"].as_i64());
    // The server has seen this one code; the pod may be gone by now.
    let never = (condition.reason == "PodFailurePolicy").then_some(NEVER);
    let text = terminated.and_then(|state| state["message"].as_str());
    let result = text.map_or(Value::Null, |text| {
        let text = bounded(text);
        serde_json::from_str(text).unwrap_or_else(|_| text.into())
    });
    Ok(Ending {
        succeeded: condition.succeeded,
        exit: exit.or(never),
        reason: condition.reason.clone(),
        result,
    })
}

/// Says why the container of a Job does not run, where something stands in its way.
pub(super) async fn waiting_reason<E: Effects>(
    context: &StepContext<'_, E>,
    job: &Seen,
) -> Option<String> {
    let pods = pods(context, job).await.ok()?;
    let pod = pods.last()?;
    let waiting = status(pod).and_then(|status| status["state"]["waiting"]["reason"].as_str());
    if let Some(reason) = waiting.filter(|reason| *reason != "ContainerCreating") {
        return Some(format!("its container does not start: {reason}"));
    }
    let conditions = pod.pointer("/status/conditions")?.as_array()?;
    let unscheduled = conditions
        .iter()
        .any(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False");
    unscheduled.then(|| "no node takes its pod".to_owned())
}

/// Returns the pods of a Job, the newest last.
async fn pods<E: Effects>(
    context: &StepContext<'_, E>,
    job: &Seen,
) -> Result<Vec<Value>, EffectError> {
    let kind = ResourceKind {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
    };
    let selector = format!("batch.kubernetes.io/controller-uid={}", job.uid);
    let page = (limits::PAGE_SIZE_WHOLE, None);
    let namespace = job.namespace.as_deref();
    let mut pods = context
        .effects
        .list(&kind, namespace, Some(&selector), page)
        .await?
        .objects;
    let created = |pod: &Value| {
        pod["metadata"]["creationTimestamp"]
            .as_str()
            .map(str::to_owned)
    };
    pods.sort_by_key(created);
    Ok(pods)
}

fn status(pod: &Value) -> Option<&Value> {
    let containers = pod.pointer("/status/containerStatuses")?.as_array()?;
    containers
        .iter()
        .find(|container| container["name"] == CONTAINER)
}

fn terminated(pod: &Value) -> Option<&Value> {
    status(pod)?.pointer("/state/terminated")
}

fn bounded(text: &str) -> &str {
    let mut end = text.len().min(limits::TERMINATION_MESSAGE_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_true_condition_ends_a_job() {
        let job = |conditions: Value| json!({"status": {"conditions": conditions}});
        assert!(condition(&json!({})).is_none());
        assert!(condition(&job(json!([{"type": "FailureTarget", "status": "True"}]))).is_none());
        assert!(condition(&job(json!([{"type": "Failed", "status": "False"}]))).is_none());
        let failed = condition(&job(
            json!([{"type": "Failed", "status": "True", "reason": "X"}]),
        ));
        assert!(failed.is_some_and(|failed| !failed.succeeded && failed.reason == "X"));
        assert!(
            condition(&job(json!([{"type": "Complete", "status": "True"}])))
                .is_some_and(|it| it.succeeded)
        );
    }

    #[test]
    fn an_ending_reads_back_as_it_was_kept() {
        let ending = Ending {
            succeeded: false,
            exit: Some(TRY_LATER),
            reason: "BackoffLimitExceeded".to_owned(),
            result: json!({"left": 3}),
        };
        assert_eq!(Ending::read(&ending.keep()), ending);
        assert_eq!(
            ending.words(),
            "asks to be tried later (exit 75): {\"left\":3}"
        );
    }
}
