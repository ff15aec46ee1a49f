//! `patch`: changes one object that was looked at, if it is still the one.

use serde_json::Value;

use super::change::{Changes, Fields, difference, holds};
use super::help::{Ended, Seen, done, failed, named};
use super::{StepContext, StepOutcome, StepResult};
use crate::model::migration::{PatchStep, PatchType};
use crate::runs::effects::{EffectError, Effects, ObjectPatch, ResourceKind};

pub(super) async fn attempt<E: Effects>(context: &StepContext<'_, E>, step: &PatchStep) -> Ended {
    let before = target(context, step).await?;
    let Some(seen) = Seen::of(&before) else {
        return Ok(StepResult::fail(
            "what `ref` names is not one object of the cluster",
        ));
    };
    let body = context.render(&step.body)?;
    let with_status = step.subresource.as_deref() == Some("status");
    let expected = preview(step, &before, &body)?;
    if expected.as_ref() == Some(&before) {
        return Ok(done(
            "patch",
            &seen.to_string(),
            "it was so already",
            StepOutcome::default(),
        ));
    }
    let patch = ObjectPatch {
        kind: seen.kind.clone(),
        namespace: seen.namespace.clone(),
        name: seen.name.clone(),
        subresource: step.subresource.clone(),
        form: step.form,
        body,
        uid: seen.uid.clone(),
        resource_version: seen.resource_version.clone(),
    };
    match context.effects.patch(&patch).await {
        Ok(after) => {
            let changed = Seen::of(&after)
                .is_none_or(|after| after.resource_version != seen.resource_version);
            // Another subresource than the status answers with another kind of object.
            let comparable = step.subresource.is_none() || with_status;
            let fields = if comparable {
                difference(&before, &after, with_status)
            } else {
                Fields::new()
            };
            Ok(outcome(
                &seen,
                &fields,
                changed,
                if changed {
                    "changed"
                } else {
                    "it was so already"
                },
            ))
        }
        Err(EffectError::Lost(message)) => {
            let fields = expected.map(|expected| difference(&before, &expected, with_status));
            verify(context, &seen, fields, message).await
        }
        Err(EffectError::Conflict(_)) => Err(StepResult::judged_anew(format!(
            "{seen} has changed since it was looked at"
        ))),
        Err(error) => Err(failed(error)),
    }
}

/// Returns what an attempt is about to change.
pub(super) async fn intended<E: Effects>(
    context: &StepContext<'_, E>,
    step: &PatchStep,
) -> Result<Changes, StepResult> {
    let mut changes = Changes::default();
    let before = target(context, step).await?;
    let Some(seen) = Seen::of(&before) else {
        return Ok(changes);
    };
    let body = context.render(&step.body)?;
    match preview(step, &before, &body)? {
        Some(expected) if expected == before => {}
        Some(expected) => {
            let with_status = step.subresource.as_deref() == Some("status");
            changes.add(
                "patched",
                &seen,
                &difference(&before, &expected, with_status),
            );
        }
        None => changes.add_unknown("patched", &seen),
    }
    Ok(changes)
}

async fn target<E: Effects>(
    context: &StepContext<'_, E>,
    step: &PatchStep,
) -> Result<Value, StepResult> {
    if let Some(name) = &step.reference {
        let found = context.referenced(name)?;
        if found.is_null() {
            return Err(StepResult::retry(format!("`{name}` is not there")));
        }
        return Ok(found);
    }
    let Some(object) = &step.object else {
        return Err(StepResult::fail(
            "the patch names no object: give `ref` or `object`",
        ));
    };
    let kind = ResourceKind {
        api_version: object.api_version.clone(),
        kind: object.kind.clone(),
    };
    let (namespace, name) = (
        context.optional(object.namespace.as_ref())?,
        context.text(&object.name)?,
    );
    let found = context.effects.get(&kind, namespace.as_deref(), &name);
    found.await.map_err(failed)?.ok_or_else(|| {
        let object = named(&kind, namespace.as_deref(), &name);
        StepResult::retry(format!("{object} is not there"))
    })
}

/// Returns what the object would be; none where only the server can say.
fn preview(step: &PatchStep, before: &Value, body: &Value) -> Result<Option<Value>, StepResult> {
    if step
        .subresource
        .as_deref()
        .is_some_and(|name| name != "status")
    {
        return Ok(None);
    }
    let mut expected = before.clone();
    match step.form {
        PatchType::Merge => json_patch::merge(&mut expected, body),
        PatchType::Json => {
            let patch: json_patch::Patch = serde_json::from_value(body.clone()).map_err(|_| {
                StepResult::fail("the body is no list of operations as RFC 6902 has them")
            })?;
            // Where an operation does not fit the object, it may fit a later one.
            json_patch::patch(&mut expected, &patch).map_err(|error| {
                StepResult::retry(format!(
                    "the patch does not fit: operation {}",
                    error.operation
                ))
            })?;
        }
        PatchType::Strategic => return Ok(None),
    }
    Ok(Some(expected))
}

/// Reads what became of a patch whose answer was lost.
async fn verify<E: Effects>(
    context: &StepContext<'_, E>,
    seen: &Seen,
    fields: Option<Fields>,
    message: String,
) -> Ended {
    let live = context
        .effects
        .get(&seen.kind, seen.namespace.as_deref(), &seen.name);
    let Ok(Some(live)) = live.await else {
        return Err(StepResult::retry(message));
    };
    let same = Seen::of(&live)
        .is_some_and(|live| live.uid == seen.uid && live.resource_version != seen.resource_version);
    match fields {
        Some(fields) if same && holds(&fields, &live) => Ok(outcome(
            seen,
            &fields,
            true,
            "changed; its answer was lost, and the object was read",
        )),
        _ => Err(StepResult::retry(message)),
    }
}

fn outcome(seen: &Seen, fields: &Fields, changed: bool, found: &str) -> StepResult {
    let mut changes = Changes::default();
    if changed {
        changes.add("patched", seen, fields);
    }
    let outcome = StepOutcome {
        effect: changes.record(),
        changed,
        ..StepOutcome::default()
    };
    done("patch", &seen.to_string(), found, outcome)
}
