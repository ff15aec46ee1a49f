//! `apply`: applies one object on the server's side, as a manager of its own and without force.

use serde_json::Value;

use super::change::{Changes, Fields, difference};
use super::help::{Ended, Seen, done, failed, named};
use super::intent::{fields_of, merged};
use super::{StepContext, StepOutcome, StepResult};
use crate::model::migration::ApplyStep;
use crate::runs::effects::{EffectError, Effects, ResourceKind};

pub(super) async fn attempt<E: Effects>(context: &StepContext<'_, E>, step: &ApplyStep) -> Ended {
    let manifest = context.render(&step.manifest)?;
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
    let (Some(api_version), Some(kind), Some(name)) =
        (text("/apiVersion"), text("/kind"), text("/metadata/name"))
    else {
        return Ok(StepResult::fail(
            "the manifest lacks apiVersion, kind or metadata.name",
        ));
    };
    let kind = ResourceKind {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    };
    let namespace = text("/metadata/namespace");
    let before = context
        .effects
        .get(&kind, namespace, name)
        .await
        .map_err(failed)?;
    let subject = named(&kind, namespace, name);
    match context.effects.apply(&manifest).await {
        Ok(after) => Ok(outcome(&subject, before.as_ref(), &after, "applied")),
        Err(EffectError::Lost(message)) => {
            let live = context.effects.get(&kind, namespace, name).await;
            match live {
                Ok(Some(live)) if contains(&live, &manifest) => Ok(outcome(
                    &subject,
                    before.as_ref(),
                    &live,
                    "applied; its answer was lost, and the object was read",
                )),
                _ => Err(StepResult::retry(message)),
            }
        }
        // That goes on until a person decides whose the field is; the message names the manager.
        Err(EffectError::Conflict(message)) => Err(StepResult::retry(message)),
        Err(error) => Err(failed(error)),
    }
}

/// Returns what an attempt is about to change.
pub(super) async fn intended<E: Effects>(
    context: &StepContext<'_, E>,
    step: &ApplyStep,
) -> Result<Changes, StepResult> {
    let mut changes = Changes::default();
    let manifest = context.render(&step.manifest)?;
    let Some(wanted) = Seen::wanted(&manifest) else {
        return Ok(changes);
    };
    let before = context
        .effects
        .get(&wanted.kind, wanted.namespace.as_deref(), &wanted.name);
    match before.await.map_err(failed)? {
        None => changes.add("created", &wanted, &fields_of(&manifest)),
        Some(before) => {
            let fields = merged(&before, &manifest);
            if let Some(seen) = Seen::of(&before).filter(|_| !fields.is_empty()) {
                changes.add("applied", &seen, &fields);
            }
        }
    }
    Ok(changes)
}

fn outcome(subject: &str, before: Option<&Value>, after: &Value, found: &str) -> StepResult {
    let seen = Seen::of(after);
    let version = |object: &Value| Seen::of(object).and_then(|seen| seen.resource_version);
    let changed = before.is_none_or(|before| version(before) != version(after));
    let mut changes = Changes::default();
    if let Some(seen) = seen.filter(|_| changed) {
        match before {
            Some(before) => changes.add("applied", &seen, &difference(before, after, false)),
            None => changes.add("created", &seen, &Fields::new()),
        }
    }
    let outcome = StepOutcome {
        effect: changes.record(),
        changed,
        ..StepOutcome::default()
    };
    let found = if changed { found } else { "it was so already" };
    done("apply", subject, found, outcome)
}

/// Returns whether everything that is wanted is there. Lists must be equal, or longer with what is wanted among them.
fn contains(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| live.get(name).is_some_and(|live| contains(live, wanted))),
        (Value::Array(live), Value::Array(wanted)) => wanted
            .iter()
            .all(|wanted| live.iter().any(|live| contains(live, wanted))),
        (live, wanted) => live == wanted,
    }
}
