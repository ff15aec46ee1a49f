//! What an attempt is about to change, told before it: a process that is killed between an effect and its record leaves that much.

use serde_json::Value;

use super::change::{Changes, Fields, difference};
use super::{StepContext, apply, delete, patch};
use crate::model::migration::StepAction;
use crate::runs::effects::Effects;

/// Returns the objects that an attempt is about to change, in the form of its effect; null where it changes none, where that cannot be
/// told before it, or where nobody could take it back.
pub async fn intend<E: Effects>(context: &StepContext<'_, E>) -> Value {
    if context.spec.definition.undo.is_empty() {
        return Value::Null;
    }
    let changes = match &context.step.action {
        StepAction::Patch(step) => patch::intended(context, step).await,
        StepAction::Apply(step) => apply::intended(context, step).await,
        StepAction::Delete(step) => delete::intended(context, step).await,
        _ => Ok(Changes::default()),
    };
    // What goes wrong here goes wrong in the attempt, which says so.
    changes.map_or(Value::Null, Changes::record)
}

/// Returns the fields of an object that is about to be created; one by one, since the server adds others beside them.
pub(super) fn fields_of(manifest: &Value) -> Fields {
    let mut fields = Fields::new();
    leaves(manifest, &mut String::new(), &mut fields);
    fields.retain(|pointer, _| {
        ![
            "/apiVersion",
            "/kind",
            "/metadata/name",
            "/metadata/namespace",
        ]
        .contains(&pointer.as_str())
    });
    fields
}

fn leaves(value: &Value, pointer: &mut String, fields: &mut Fields) {
    let length = pointer.len();
    match value {
        Value::Object(parts) if !parts.is_empty() => {
            for (name, value) in parts {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                leaves(value, pointer, fields);
                pointer.truncate(length);
            }
        }
        Value::Null => {}
        leaf => {
            fields.insert(pointer.clone(), (None, Some(leaf.clone())));
        }
    }
}

/// Returns what an apply is about to change of an object, as far as that can be told without the server.
pub(super) fn merged(before: &Value, manifest: &Value) -> Fields {
    let mut after = before.clone();
    json_patch::merge(&mut after, manifest);
    difference(before, &after, false)
}
