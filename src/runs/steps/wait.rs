//! `wait`: looks until the cluster is as it should be. It changes nothing.

use std::collections::BTreeMap;

use serde_json::Value;

use super::help::{Ended, failed};
use super::{StepContext, StepOutcome, StepResult};
use crate::expression::{Bindings, Expression, evidence};
use crate::model::migration::{Lookup, WaitStep};
use crate::runs::effects::Effects;

pub(super) async fn attempt<E: Effects>(context: &StepContext<'_, E>, step: &WaitStep) -> Ended {
    let bindings = look(context, step).await?;
    if let Some(fail_when) = &step.fail_when {
        let fail_when = compile("failWhen", fail_when)?;
        if fail_when.holds(&bindings) == Ok(true) {
            return Ok(StepResult::fail(format!(
                "waiting is in vain: `{}` is true",
                fail_when.text()
            )));
        }
    }
    let until = compile("until", &step.until)?;
    let result = until.evaluate(&bindings);
    let wait = |message| StepResult::Wait {
        message,
        after: context.interval(),
        progress: BTreeMap::new(),
    };
    match &result {
        Ok(Value::Bool(true)) => Ok(StepResult::Done(StepOutcome {
            evidence: vec![evidence("until", &until, &bindings, &result)],
            ..StepOutcome::default()
        })),
        Ok(Value::Bool(false)) => Ok(wait(format!("`{}` is not true yet", until.text()))),
        Ok(_) => Ok(StepResult::fail(format!(
            "`{}` comes to neither true nor false",
            until.text()
        ))),
        // What it names may not be there yet: a status that nobody has written.
        Err(error) => Ok(wait(format!("`{}` is unknown: {error}", until.text()))),
    }
}

fn compile(about: &str, text: &str) -> Result<Expression, StepResult> {
    Expression::compile(text)
        .map_err(|error| StepResult::fail(format!("`{about}` is no CEL: {error}")))
}

/// Adds what the step's own lookups find.
async fn look<E: Effects>(
    context: &StepContext<'_, E>,
    step: &WaitStep,
) -> Result<Bindings, StepResult> {
    let mut bindings = context.bindings.clone();
    if step.lookups.is_empty() {
        return Ok(bindings);
    }
    let mut objects = match bindings.get("objects") {
        Some(Value::Object(objects)) => objects.clone(),
        _ => serde_json::Map::new(),
    };
    for (name, lookup) in &step.lookups {
        let lookup = Lookup {
            namespace: context.optional(lookup.namespace.as_ref())?,
            name: context.optional(lookup.name.as_ref())?,
            selector: context.optional(lookup.selector.as_ref())?,
            ..lookup.clone()
        };
        let mut found = context.effects.look(&lookup).await.map_err(failed)?;
        match &mut found {
            Value::Array(list) => list.iter_mut().for_each(Bindings::redact),
            object => Bindings::redact(object),
        }
        objects.insert(name.clone(), found);
    }
    bindings.set("objects", Value::Object(objects));
    Ok(bindings)
}
