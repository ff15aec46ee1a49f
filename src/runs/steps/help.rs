//! What all kinds of steps share: texts with expressions, objects by their names, and what an error means.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::{StepContext, StepOutcome, StepResult};
use crate::expression::{Expression, Template, evidence};
use crate::model::api::Evidence;
use crate::model::limits;
use crate::model::migration::Step;
use crate::runs::effects::{EffectError, Effects, ResourceKind};

/// How a step ends. Both sides are results: the second is one that ends the work early.
pub(super) type Ended = Result<StepResult, StepResult>;

/// One object, as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) kind: ResourceKind,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) resource_version: Option<String>,
}

// === impl Seen ===

impl Seen {
    /// Reads the identity of an object; none where it is no object that was read from a cluster.
    pub(super) fn of(object: &Value) -> Option<Self> {
        let text = |pointer: &str| Some(object.pointer(pointer)?.as_str()?.to_owned());
        Some(Self {
            uid: text("/metadata/uid")?,
            resource_version: text("/metadata/resourceVersion"),
            ..Self::wanted(object)?
        })
    }

    /// Reads the identity of an object that is only wanted yet: it has no uid.
    pub(super) fn wanted(manifest: &Value) -> Option<Self> {
        let text = |pointer: &str| Some(manifest.pointer(pointer)?.as_str()?.to_owned());
        Some(Self {
            kind: ResourceKind {
                api_version: text("/apiVersion")?,
                kind: text("/kind")?,
            },
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name")?,
            uid: String::new(),
            resource_version: None,
        })
    }

    /// Returns whether its values must be told nowhere.
    pub(super) fn is_secret(&self) -> bool {
        self.kind.api_version == "v1" && self.kind.kind == "Secret"
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&named(&self.kind, self.namespace.as_deref(), &self.name))
    }
}

/// Writes an object for a message: `Deployment default/web`.
pub(super) fn named(kind: &ResourceKind, namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{} {namespace}/{name}", kind.kind),
        None => format!("{} {name}", kind.kind),
    }
}

/// Returns whether what a step writes depends on the state of the cluster, so that it may be something else the next time.
pub(super) fn is_computed(step: &Step, written: &Value) -> bool {
    let Ok(template) = Template::compile(written) else {
        return true;
    };
    let element = step.for_each.as_ref().map(|each| each.name.as_str());
    template.expressions().iter().any(|expression| {
        let roots = expression
            .paths()
            .into_iter()
            .filter_map(|path| path.into_iter().next());
        let mut roots = roots.map(|root| root == "objects" || Some(root.as_str()) == element);
        roots.any(std::convert::identity)
    })
}

// === impl StepContext ===

impl<E: Effects> StepContext<'_, E> {
    /// Puts values in the place of the expressions of a value.
    pub(super) fn render(&self, value: &Value) -> Result<Value, StepResult> {
        let template = Template::compile(value)
            .map_err(|error| StepResult::fail(format!("a text of the step is no CEL: {error}")))?;
        // What an expression looks at can come to be there.
        template
            .render(self.bindings)
            .map_err(|error| StepResult::retry(format!("a text of the step is unknown: {error}")))
    }

    /// Does so for a text, which must stay one.
    pub(super) fn text(&self, text: &str) -> Result<String, StepResult> {
        match self.render(&Value::from(text))? {
            Value::String(text) => Ok(text),
            value @ (Value::Number(_) | Value::Bool(_)) => Ok(value.to_string()),
            _ => Err(StepResult::fail(format!("`{text}` comes to no text"))),
        }
    }

    /// Does so for a text that may be missing.
    pub(super) fn optional(&self, text: Option<&String>) -> Result<Option<String>, StepResult> {
        text.map(|text| self.text(text)).transpose()
    }

    /// Returns what a `ref` names, whole: a lookup, or the element of `forEach`. Null where it is not there.
    pub(super) fn referenced(&self, name: &str) -> Result<Value, StepResult> {
        let element = self.step.for_each.as_ref().filter(|each| each.name == name);
        let Some(item) = element.and(self.item) else {
            return self.objects.get(name).cloned().ok_or_else(|| {
                StepResult::fail(format!(
                    "`{name}` names neither a lookup nor the element of forEach"
                ))
            });
        };
        if item.is_null() {
            return Ok(Value::Null);
        }
        let uid = item.pointer("/metadata/uid").and_then(Value::as_str);
        let Some(uid) = uid else {
            return Err(StepResult::fail(format!(
                "`{name}` is no object of the cluster"
            )));
        };
        // Expressions see a Secret without its values; the lookup that it came from has them.
        let whole = self.objects.values().find_map(|found| match found {
            Value::Array(objects) => objects
                .iter()
                .find(|object| object["metadata"]["uid"] == uid),
            object => Some(object).filter(|object| object["metadata"]["uid"] == uid),
        });
        Ok(whole.unwrap_or(item).clone())
    }

    /// Asks `when` by what is seen now; none where the step has none.
    pub(super) fn judge_when(&self) -> Result<Option<(bool, Evidence)>, StepResult> {
        let Some(when) = &self.step.when else {
            return Ok(None);
        };
        let when = Expression::compile(when)
            .map_err(|error| StepResult::fail(format!("`when` is no CEL: {error}")))?;
        let result = when.evaluate(self.bindings);
        let found = evidence("when", &when, self.bindings, &result);
        match result {
            Ok(Value::Bool(holds)) => Ok(Some((holds, found))),
            Ok(_) => Err(StepResult::fail("`when` comes to neither true nor false")),
            Err(error) => Err(StepResult::retry(format!("`when` is unknown: {error}"))),
        }
    }

    /// Returns the delay between two looks.
    pub(super) fn interval(&self) -> Duration {
        let retry = self.step.retry.as_ref();
        retry
            .unwrap_or(&self.spec.definition.policy.retry)
            .interval
            .0
    }
}

// === impl StepResult ===

impl StepResult {
    /// It failed and counts.
    pub(super) fn retry(message: impl Into<String>) -> Self {
        Self::Retry {
            message: message.into(),
            after: None,
            counts: true,
            progress: BTreeMap::new(),
        }
    }

    /// It did not begin to fail: looked at again soon, and not counted.
    pub(super) fn again(message: impl Into<String>, after: Option<Duration>) -> Self {
        Self::Retry {
            message: message.into(),
            after,
            counts: false,
            progress: BTreeMap::new(),
        }
    }

    /// What was looked at has changed since: nothing was done, nothing counts, and all of it is judged anew, `when` included.
    pub(super) fn judged_anew(message: impl Into<String>) -> Self {
        Self::again(message, Some(limits::STEP_CONFLICT_PAUSE))
    }

    pub(super) fn fail(message: impl Into<String>) -> Self {
        Self::Fail {
            message: message.into(),
        }
    }

    /// Says what is needed to go on after a restart.
    pub(super) fn with_progress(mut self, kept: BTreeMap<String, Value>) -> Self {
        if let Self::Wait { progress, .. } | Self::Retry { progress, .. } = &mut self {
            *progress = kept;
        }
        self
    }
}

/// Says what an error means for a step, where its kind has nothing better to say.
pub(super) fn failed(error: EffectError) -> StepResult {
    StepResult::from(error)
}

impl From<EffectError> for StepResult {
    fn from(error: EffectError) -> Self {
        meaning(error)
    }
}

fn meaning(error: EffectError) -> StepResult {
    match error {
        EffectError::Transient {
            message,
            retry_after,
        } => StepResult::again(message, retry_after),
        // Whoever acts now goes on; this result is never written.
        EffectError::ClaimLost(message) => StepResult::again(message, None),
        EffectError::Conflict(message) => StepResult::judged_anew(message),
        EffectError::Refused(message) => StepResult::fail(message),
        // A right, a kind or an object may come to be there.
        EffectError::NotFound(message)
        | EffectError::Exists(message)
        | EffectError::KindUnknown(message)
        | EffectError::Forbidden(message)
        | EffectError::Lost(message) => StepResult::retry(message),
    }
}

/// Ends a step with what was found and done.
pub(super) fn done(kind: &str, subject: &str, found: &str, mut outcome: StepOutcome) -> StepResult {
    outcome.evidence.push(Evidence {
        about: kind.to_owned(),
        expression: subject.to_owned(),
        result: found.to_owned(),
        values: BTreeMap::new(),
        at: None,
    });
    StepResult::Done(outcome)
}
