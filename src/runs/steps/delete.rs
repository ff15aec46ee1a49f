//! `delete`: deletes objects, each by the uid that was seen, and waits until they are gone where that is wanted.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::change::{Changes, Fields};
use super::help::{Ended, Seen, done, failed, named};
use super::{StepContext, StepOutcome, StepResult};
use crate::model::limits;
use crate::model::migration::{DeleteStep, Selection};
use crate::runs::effects::{Deletion, EffectError, Effects, ResourceKind};

/// In a step's progress: the objects whose end is waited for.
const PENDING: &str = "pending";
/// In a step's progress: what was deleted, for its record.
const EFFECT: &str = "effect";

pub(super) async fn attempt<E: Effects>(context: &StepContext<'_, E>, step: &DeleteStep) -> Ended {
    let progress = &context.record.progress;
    if let Some(pending) = progress.get(PENDING).and_then(Value::as_array)
        && !pending.is_empty()
    {
        let effect = progress.get(EFFECT).cloned().unwrap_or_default();
        let seen: Vec<Seen> = pending.iter().filter_map(Seen::of).collect();
        if let Some(wait) = until_gone(context, &seen, &effect).await? {
            return Ok(wait);
        }
        if progress.get("more").is_none() {
            return Ok(finished(effect));
        }
    }
    delete(context, step).await
}

/// Returns what an attempt is about to delete.
pub(super) async fn intended<E: Effects>(
    context: &StepContext<'_, E>,
    step: &DeleteStep,
) -> Result<Changes, StepResult> {
    let mut changes = Changes::default();
    let objects = targets(context, step).await?;
    let staying = objects
        .iter()
        .filter(|object| object.pointer("/metadata/deletionTimestamp").is_none());
    for seen in staying.filter_map(Seen::of) {
        changes.add("deleted", &seen, &Fields::new());
    }
    Ok(changes)
}

/// Returns the objects that a step is about.
async fn targets<E: Effects>(
    context: &StepContext<'_, E>,
    step: &DeleteStep,
) -> Result<Vec<Value>, StepResult> {
    match (&step.reference, &step.select) {
        (Some(name), _) => Ok(match context.referenced(name)? {
            Value::Null => Vec::new(),
            Value::Array(objects) => objects,
            object => vec![object],
        }),
        (None, Some(selection)) => select(context, selection).await,
        (None, None) => Err(StepResult::fail(
            "the step names no objects: give `ref` or `select`",
        )),
    }
}

async fn delete<E: Effects>(context: &StepContext<'_, E>, step: &DeleteStep) -> Ended {
    let objects = targets(context, step).await?;
    let before = context.record.progress.get(EFFECT);
    let mut changes = before.map(Changes::resumed).unwrap_or_default();
    let mut seen = Vec::with_capacity(objects.len());
    for object in &objects {
        let Some(one) = Seen::of(object) else {
            return Ok(StepResult::fail(
                "what `ref` names holds something that is no object of the cluster",
            ));
        };
        // What is going already is only waited for.
        if object.pointer("/metadata/deletionTimestamp").is_none() {
            match delete_one(context, step, &one).await {
                Ok(true) => changes.add("deleted", &one, &Fields::new()),
                Ok(false) => {}
                // Those before it are deleted; the next attempt does not find them.
                Err(result) => {
                    let effect = (EFFECT.to_owned(), changes.record());
                    return Err(result.with_progress(BTreeMap::from([effect])));
                }
            }
        }
        seen.push(one);
    }
    let effect = changes.record();
    if step.wait_gone
        && let Some(wait) = until_gone(context, &seen, &effect).await?
    {
        return Ok(wait);
    }
    Ok(finished(effect))
}

async fn delete_one<E: Effects>(
    context: &StepContext<'_, E>,
    step: &DeleteStep,
    seen: &Seen,
) -> Result<bool, StepResult> {
    let deletion = Deletion {
        kind: seen.kind.clone(),
        namespace: seen.namespace.clone(),
        name: seen.name.clone(),
        uid: seen.uid.clone(),
        resource_version: seen.resource_version.clone(),
        propagation: step.propagation,
    };
    match context.effects.delete(&deletion).await {
        Ok(_) => Ok(true),
        // With its kind every object of the kind has gone.
        Err(EffectError::NotFound(_) | EffectError::KindUnknown(_)) => Ok(false),
        Err(EffectError::Conflict(_)) => changed_or_going(context, seen).await,
        Err(error) => Err(failed(error)),
    }
}

/// Tells an object that somebody has changed from one that our own deletion, whose answer was lost, has changed.
async fn changed_or_going<E: Effects>(
    context: &StepContext<'_, E>,
    seen: &Seen,
) -> Result<bool, StepResult> {
    let live = context
        .effects
        .get(&seen.kind, seen.namespace.as_deref(), &seen.name)
        .await
        .map_err(failed)?;
    let is_going = live.is_none_or(|live| {
        live["metadata"]["uid"] == seen.uid.as_str()
            && live.pointer("/metadata/deletionTimestamp").is_some()
    });
    if is_going {
        return Ok(true);
    }
    Err(StepResult::judged_anew(format!(
        "{seen} has changed since it was looked at"
    )))
}

async fn select<E: Effects>(
    context: &StepContext<'_, E>,
    selection: &Selection,
) -> Result<Vec<Value>, StepResult> {
    let kind = ResourceKind {
        api_version: selection.api_version.clone(),
        kind: selection.kind.clone(),
    };
    let namespace = context.optional(selection.namespace.as_ref())?;
    let selector = context.optional(selection.selector.as_ref())?;
    let names: Vec<String> = selection
        .names
        .iter()
        .map(|name| context.text(name))
        .collect::<Result<_, _>>()?;
    if names.is_empty() && selector.is_none() {
        return Err(StepResult::fail(format!(
            "`select` names neither names nor a selector: every {} would go",
            kind.kind
        )));
    }
    // A few names are read one by one: that needs no right to list.
    if !names.is_empty() && selector.is_none() && !selection.all_namespaces {
        let mut objects = Vec::new();
        for name in &names {
            let found = context.effects.get(&kind, namespace.as_deref(), name);
            objects.extend(found.await.map_err(failed)?);
        }
        return Ok(objects);
    }
    let mut objects = Vec::new();
    let mut next: Option<String> = None;
    loop {
        let page = (limits::PAGE_SIZE_WHOLE, next.as_deref());
        let listed = context
            .effects
            .list(&kind, namespace.as_deref(), selector.as_deref(), page);
        let listed = match listed.await {
            Err(EffectError::KindUnknown(_)) => return Ok(Vec::new()),
            listed => listed.map_err(failed)?,
        };
        objects.extend(listed.objects.into_iter().filter(|object| {
            let name = object.pointer("/metadata/name").and_then(Value::as_str);
            names.is_empty() || name.is_some_and(|name| names.iter().any(|one| one == name))
        }));
        if objects.len() > limits::DELETE_OBJECTS_MAX {
            return Err(StepResult::fail(format!(
                "it selects more than {} objects of kind {}; select fewer with a namespace, names or a selector",
                limits::DELETE_OBJECTS_MAX,
                kind.kind
            )));
        }
        match listed.next {
            Some(token) => next = Some(token),
            None => return Ok(objects),
        }
    }
}

/// Looks which objects are still there; none when all are gone.
async fn until_gone<E: Effects>(
    context: &StepContext<'_, E>,
    seen: &[Seen],
    effect: &Value,
) -> Result<Option<StepResult>, StepResult> {
    let mut left = Vec::new();
    let mut held = None;
    for one in seen {
        let live = context
            .effects
            .get(&one.kind, one.namespace.as_deref(), &one.name);
        let Some(live) = live.await.map_err(failed)? else {
            continue;
        };
        if live["metadata"]["uid"] != one.uid.as_str() {
            continue;
        }
        held = held.or_else(|| finalizers(&live).map(|names| (one, names)));
        left.push(one);
    }
    let Some(first) = left.first() else {
        return Ok(None);
    };
    let others = match left.len() - 1 {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let message = match held {
        None => format!("{first}{others} must be gone first"),
        Some((object, names)) => format!(
            "{first}{others} must be gone first; {object} is held by the finalizers {names}: whoever set them must act"
        ),
    };
    let pending: Vec<Value> = left
        .iter()
        .take(limits::DELETE_PENDING_MAX)
        .map(|one| kept(one))
        .collect();
    let mut progress = BTreeMap::from([
        (PENDING.to_owned(), Value::Array(pending)),
        (EFFECT.to_owned(), effect.clone()),
    ]);
    if left.len() > limits::DELETE_PENDING_MAX {
        progress.insert("more".to_owned(), true.into());
    }
    Ok(Some(StepResult::Wait {
        message,
        after: limits::STEP_LOOK_INTERVAL,
        progress,
    }))
}

fn finalizers(object: &Value) -> Option<String> {
    let names: Vec<&str> = object
        .pointer("/metadata/finalizers")?
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        // The garbage collector's own: it removes them as soon as what the object owns is gone.
        .filter(|name| !matches!(*name, "foregroundDeletion" | "orphan"))
        .collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn kept(seen: &Seen) -> Value {
    json!({
        "apiVersion": seen.kind.api_version, "kind": seen.kind.kind,
        "metadata": {"namespace": seen.namespace, "name": seen.name, "uid": seen.uid},
    })
}

fn finished(effect: Value) -> StepResult {
    let count = effect["objects"].as_array().map_or(0, Vec::len) as u64
        + effect["omitted"].as_u64().unwrap_or_default();
    let subject = match effect.pointer("/objects/0").and_then(|one| {
        let kind = ResourceKind {
            api_version: String::new(),
            kind: one["kind"].as_str()?.to_owned(),
        };
        Some(named(
            &kind,
            one["namespace"].as_str(),
            one["name"].as_str()?,
        ))
    }) {
        Some(first) if count > 1 => format!("{first} and {} more", count - 1),
        Some(first) => first,
        None => String::new(),
    };
    let changed = !effect.is_null();
    let outcome = StepOutcome {
        effect,
        changed,
        ..StepOutcome::default()
    };
    done(
        "delete",
        &subject,
        if changed {
            "deleted"
        } else {
            "nothing was there"
        },
        outcome,
    )
}
