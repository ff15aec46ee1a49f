//! `hand-over`: objects of one kind are taken over by objects of another, pair by pair, and the old ones go.
//!
//! This is the shape of a move from one operator to another: what the new one has created carries the same external id as what
//! the old one had. An old object goes only once its new one is there and ready, without taking along what it stands for
//! (its finalizers are the old operator's, which is gone). The safety check is over all of them and comes first: one old
//! object without a counterpart stops the whole, since nobody else knows what it stands for.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{CompiledMigration, NeededRight};
use crate::model::api::Evidence;
use crate::model::limits;
use crate::model::migration::{HandOverSide as Side, HandOverWith as With, PatchType, Propagation};
use crate::runs::effects::{Deletion, EffectError, Effects, ObjectPatch, ResourceKind};
use crate::runs::steps::{StepContext, StepOutcome, StepResult};

/// See the module.
pub(super) struct HandOver;

/// One object with what it is known by.
struct Known {
    id: String,
    name: String,
    object: Value,
}

impl CompiledMigration for HandOver {
    const NAME: &'static str = "hand-over";

    fn access(with: &Value) -> Result<Vec<NeededRight>, String> {
        let with = With::read(with)?;
        let right = |side: &Side, verbs: &[&'static str]| NeededRight {
            api_version: side.api_version.clone(),
            kind: side.kind.clone(),
            namespace: side.namespace.clone(),
            verbs: verbs.to_vec(),
        };
        Ok(vec![
            right(&with.from, &["list", "patch", "delete"]),
            right(&with.to, &["list"]),
        ])
    }

    async fn attempt<E: Effects>(context: &StepContext<'_, E>, with: &Value) -> StepResult {
        match hand_over(context, with).await {
            Ok(result) | Err(result) => result,
        }
    }
}

async fn hand_over<E: Effects>(
    context: &StepContext<'_, E>,
    with: &Value,
) -> Result<StepResult, StepResult> {
    let with = With::read(with).map_err(|message| StepResult::Fail { message })?;
    let old = list(context, &with.from).await?;
    let new = list(context, &with.to).await?;
    let by_id: BTreeMap<&str, &Known> = new.iter().map(|one| (one.id.as_str(), one)).collect();
    let alone: Vec<&str> = old
        .iter()
        .filter(|one| !by_id.contains_key(one.id.as_str()))
        .map(|one| one.name.as_str())
        .collect();
    if let Some(first) = alone.first() {
        return Err(StepResult::Fail {
            message: format!(
                "{first} and {} more have no {} with the same id: hand them over by hand, or remove them",
                alone.len() - 1,
                with.to.kind
            ),
        });
    }
    let mut handed = Vec::new();
    let mut waits = None;
    for one in &old {
        let counterpart = by_id[one.id.as_str()];
        if with.to.is_ready(&counterpart.object) {
            remove(context, one).await?;
            handed.push(one.name.clone());
        } else {
            waits = Some(&counterpart.name);
        }
    }
    if let Some(name) = waits {
        return Ok(StepResult::Wait {
            message: format!("{name} must be ready first"),
            after: limits::STEP_LOOK_INTERVAL,
            progress: BTreeMap::new(),
        });
    }
    let versions = context.spec.components.iter().map(|component| {
        let from = component.from.as_deref().unwrap_or("none");
        let to = component.to.as_deref().unwrap_or("none");
        (component.name.clone(), json!({"from": from, "to": to}))
    });
    Ok(StepResult::Done(StepOutcome {
        result: json!({"handedOver": handed.len()}),
        changed: !handed.is_empty(),
        evidence: vec![Evidence {
            about: "hand-over".to_owned(),
            expression: format!("{} to {}", with.from.kind, with.to.kind),
            result: format!("{} handed over", handed.len()),
            values: versions.collect(),
            at: None,
        }],
        ..StepOutcome::default()
    }))
}

async fn list<E: Effects>(
    context: &StepContext<'_, E>,
    side: &Side,
) -> Result<Vec<Known>, StepResult> {
    let kind = ResourceKind {
        api_version: side.api_version.clone(),
        kind: side.kind.clone(),
    };
    let mut known = Vec::new();
    let mut next: Option<String> = None;
    loop {
        let page = (limits::PAGE_SIZE_WHOLE, next.as_deref());
        let listing = context
            .effects
            .list(&kind, side.namespace.as_deref(), None, page);
        let listing = listing.await.map_err(StepResult::from)?;
        for object in listing.objects {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
            let name = text("/metadata/name").unwrap_or_default();
            let name = match text("/metadata/namespace") {
                Some(namespace) => format!("{} {namespace}/{name}", side.kind),
                None => format!("{} {name}", side.kind),
            };
            let Some(id) = text(&side.id).filter(|id| !id.is_empty()) else {
                return Err(StepResult::Fail {
                    message: format!("{name} has no id at {}", side.id),
                });
            };
            known.push(Known {
                id: id.to_owned(),
                name,
                object,
            });
        }
        match listing.next {
            Some(token) => next = Some(token),
            None => return Ok(known),
        }
    }
}

/// Takes the finalizers off and deletes it, if it is still the one that was seen.
async fn remove<E: Effects>(context: &StepContext<'_, E>, one: &Known) -> Result<(), StepResult> {
    let text = |pointer: &str| {
        one.object
            .pointer(pointer)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let kind = ResourceKind {
        api_version: text("/apiVersion").unwrap_or_default(),
        kind: text("/kind").unwrap_or_default(),
    };
    let (namespace, name) = (
        text("/metadata/namespace"),
        text("/metadata/name").unwrap_or_default(),
    );
    let uid = text("/metadata/uid").unwrap_or_default();
    let mut resource_version = text("/metadata/resourceVersion");
    if one.object.pointer("/metadata/finalizers").is_some() {
        let patch = ObjectPatch {
            kind: kind.clone(),
            namespace: namespace.clone(),
            name: name.clone(),
            subresource: None,
            form: PatchType::Merge,
            body: json!({"metadata": {"finalizers": null}}),
            uid: uid.clone(),
            resource_version,
        };
        let after = match context.effects.patch(&patch).await {
            Err(EffectError::NotFound(_)) => return Ok(()),
            after => after.map_err(StepResult::from)?,
        };
        let version = after
            .pointer("/metadata/resourceVersion")
            .and_then(Value::as_str);
        resource_version = version.map(str::to_owned);
        // What was only held by its finalizers is gone with them.
        if one.object.pointer("/metadata/deletionTimestamp").is_some() {
            return Ok(());
        }
    }
    let deletion = Deletion {
        kind,
        namespace,
        name,
        uid,
        resource_version,
        propagation: Propagation::Orphan,
    };
    match context.effects.delete(&deletion).await {
        Ok(_) | Err(EffectError::NotFound(_)) => Ok(()),
        Err(error) => Err(StepResult::from(error)),
    }
}

// === impl Side ===

impl Side {
    fn is_ready(&self, object: &Value) -> bool {
        let ready = self.ready.as_ref().map(|pointer| object.pointer(pointer));
        ready.is_none_or(|ready| ready == Some(&Value::Bool(true)))
    }
}
