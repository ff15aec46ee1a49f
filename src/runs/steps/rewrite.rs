//! `rewrite`: writes every object of a kind back unchanged, so that the server stores it in its present version.
//!
//! One attempt is one page, and the record keeps what asks for the next. That token is good for about five minutes; where it
//! has expired, the list begins anew, and what comes before the last object that was written is passed over: lists are in
//! the order of namespaces and names, and what is new since was stored in the present version anyway.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::help::{Ended, Seen, done, failed};
use super::{StepContext, StepOutcome, StepResult};
use crate::model::limits;
use crate::model::migration::RewriteStep;
use crate::runs::effects::{EffectError, Effects, ResourceKind};

/// What the record keeps between two pages.
#[derive(Debug, Clone, Default)]
struct Progress {
    next: Option<String>,
    last: Option<(String, String)>,
    objects: u64,
    written: u64,
}

/// What became of one object.
enum Written {
    Stored,
    Unchanged,
    Gone,
}

pub(super) async fn attempt<E: Effects>(context: &StepContext<'_, E>, step: &RewriteStep) -> Ended {
    let mut progress = Progress::read(&context.record.progress);
    let kind = ResourceKind {
        api_version: step.api_version.clone(),
        kind: step.kind.clone(),
    };
    let namespace = context.optional(step.namespace.as_ref())?;
    let size = step.page_size.unwrap_or(limits::REWRITE_PAGE);
    let page = (size, progress.next.as_deref());
    let listing = context
        .effects
        .list(&kind, namespace.as_deref(), None, page);
    let listing = match listing.await {
        Err(EffectError::Conflict(_)) if progress.next.is_some() => {
            progress.next = None;
            return Ok(progress.wait());
        }
        // Nothing is stored of a kind that is not served.
        Err(EffectError::KindUnknown(_)) => return Ok(progress.end(&kind)),
        listing => listing.map_err(|error| failed(error).with_progress(progress.keep()))?,
    };
    for object in listing.objects {
        let key = key_of(&object);
        if progress.last.as_ref().is_some_and(|last| key <= *last) {
            continue;
        }
        match write(context, &kind, object).await {
            Ok(Written::Stored) => progress.count(true),
            Ok(Written::Unchanged) => progress.count(false),
            Ok(Written::Gone) => {}
            Err(result) => return Err(result.with_progress(progress.keep())),
        }
        progress.last = Some(key);
    }
    progress.next = listing.next;
    if progress.next.is_some() {
        return Ok(progress.wait());
    }
    Ok(progress.end(&kind))
}

/// Writes one object back; one that was changed in between is read again.
async fn write<E: Effects>(
    context: &StepContext<'_, E>,
    kind: &ResourceKind,
    mut object: Value,
) -> Result<Written, StepResult> {
    let mut why = String::new();
    for _ in 0..limits::REWRITE_TRIES {
        let Some(seen) = Seen::of(&object) else {
            return Err(StepResult::fail(format!(
                "a {} in the list has no identity",
                kind.kind
            )));
        };
        why = match context.effects.replace(&object).await {
            Ok(after) => {
                let stored = Seen::of(&after)
                    .is_none_or(|after| after.resource_version != seen.resource_version);
                return Ok(if stored {
                    Written::Stored
                } else {
                    Written::Unchanged
                });
            }
            Err(EffectError::NotFound(_)) => return Ok(Written::Gone),
            Err(EffectError::Conflict(message) | EffectError::Lost(message)) => message,
            Err(EffectError::Refused(message)) => {
                return Err(StepResult::fail(format!(
                    "{seen} is not valid any more, so it cannot be stored as it is: {message}"
                )));
            }
            Err(error) => return Err(failed(error)),
        };
        let live = context
            .effects
            .get(kind, seen.namespace.as_deref(), &seen.name);
        match live.await.map_err(failed)? {
            Some(live) => object = live,
            None => return Ok(Written::Gone),
        }
    }
    Err(StepResult::retry(why))
}

/// The order of lists: by namespace, then by name.
fn key_of(object: &Value) -> (String, String) {
    let text = |pointer: &str| {
        let text = object.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    (text("/metadata/namespace"), text("/metadata/name"))
}

// === impl Progress ===

impl Progress {
    fn read(kept: &BTreeMap<String, Value>) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let count = |name: &str| kept.get(name).and_then(Value::as_u64).unwrap_or_default();
        let last = kept.get("last").and_then(Value::as_array);
        Self {
            next: kept.get("continue").and_then(text),
            last: last.and_then(|last| Some((text(last.first()?)?, text(last.get(1)?)?))),
            objects: count("objects"),
            written: count("written"),
        }
    }

    fn keep(&self) -> BTreeMap<String, Value> {
        let mut kept = BTreeMap::from([
            ("objects".to_owned(), self.objects.into()),
            ("written".to_owned(), self.written.into()),
        ]);
        if let Some(next) = &self.next {
            kept.insert("continue".to_owned(), next.as_str().into());
        }
        if let Some((namespace, name)) = &self.last {
            kept.insert("last".to_owned(), json!([namespace, name]));
        }
        kept
    }

    fn count(&mut self, stored: bool) {
        self.objects += 1;
        self.written += u64::from(stored);
    }

    fn wait(&self) -> StepResult {
        StepResult::Wait {
            message: "objects are being written back, page by page".to_owned(),
            after: Duration::ZERO,
            progress: self.keep(),
        }
    }

    fn end(&self, kind: &ResourceKind) -> StepResult {
        let outcome = StepOutcome {
            result: json!({"objects": self.objects, "written": self.written}),
            changed: self.written > 0,
            ..StepOutcome::default()
        };
        let found = format!(
            "{} of {} were stored in another version",
            self.written, self.objects
        );
        done(
            "rewrite",
            &format!("{} {}", kind.api_version, kind.kind),
            &found,
            outcome,
        )
    }
}
