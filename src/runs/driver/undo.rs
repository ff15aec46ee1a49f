//! Whether what a run has changed may be taken back, and is still as the run left it: an undo takes back nothing that somebody has changed since, and
//! nothing that the run has not changed.

use serde_json::{Value, json};

use super::session::{Leave, Session};
use crate::expression::Template;
use crate::model::api::{Run, RunStatus};
use crate::model::migration::{Decision, ObjectReference, Step, StepAction};
use crate::runs::clock::Clock;
use crate::runs::effects::{EffectError, Effects, ResourceKind};
use crate::runs::guard::Verdict;
use crate::runs::lookups::{Scene, Surroundings};
use crate::runs::machine::{changed_objects, is_same_object};
use crate::runs::obstacle::undo_obstacle;
use crate::runs::steps::changed_since;
use crate::runs::store::RunStore;

/// An object that a step is about: kind and name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct About {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    /// None for all of the kind.
    name: Option<String>,
}

// === impl Session ===

impl<E: Effects, S: RunStore, C: Clock, F: Fn(&Run) + Send + Sync> Session<'_, E, S, C, F> {
    /// Asks before the first step whether the account has the rights to take back what the run has done: an undo that stops half way is
    /// worse than one that has not begun. What cannot be asked is left to the steps: the server has the last word.
    pub(super) async fn review_undo(&mut self) -> Result<(), Leave> {
        let (before, spec) = (self.status(), self.spec.clone());
        let name = self.name().to_owned();
        let surroundings = Surroundings {
            run: &name,
            steps: &before.steps,
        };
        let found = undo_obstacle(self.driver.effects(), &spec, surroundings).await;
        let mut machine = self.machine();
        match found {
            Ok(Some(obstacle)) => {
                let evidence = before.evidence.clone();
                let mut verdict = Verdict::new(Decision::Block, evidence, obstacle.message);
                verdict.reason = obstacle.reason;
                machine.judged(verdict);
            }
            Ok(None) => machine.may_begin(),
            Err(error) => {
                tracing::debug!(run.name = name, %error, "failed to review rights");
                machine.may_begin();
            }
        }
        let status = machine.into_status();
        if status == before {
            return Ok(());
        }
        self.save(status).await
    }

    /// Returns why an undo step is left out: somebody has changed what the run had left.
    pub(super) async fn touched(
        &self,
        step: &Step,
        item: Option<&Value>,
        scene: &Scene,
    ) -> Result<Option<String>, EffectError> {
        if !matches!(
            step.action,
            StepAction::Patch(_) | StepAction::Apply(_) | StepAction::Delete(_)
        ) {
            return Ok(None);
        }
        let status = self.status();
        let left = left_by(&status);
        let about = self.about(step, item, scene);
        let foreign = about
            .iter()
            .find(|about| !left.iter().any(|object| about.names(object)));
        if let Some(foreign) = foreign.filter(|_| !self.may_have_changed_more(&status)) {
            return Ok(Some(format!(
                "{foreign} is left as it is: no change of the run to it is recorded"
            )));
        }
        for object in left {
            if !about.iter().any(|about| about.names(&object)) {
                continue;
            }
            let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
            let kind = ResourceKind {
                api_version: text("apiVersion"),
                kind: text("kind"),
            };
            let namespace = object["namespace"].as_str();
            let name = text("name");
            let live = self.driver.effects().get(&kind, namespace, &name).await?;
            let changed = changed_since(&object, live.as_ref());
            if !changed.is_empty() {
                let place = namespace.map_or_else(|| name.clone(), |it| format!("{it}/{name}"));
                return Ok(Some(format!(
                    "{} {place} is left as it is: {}",
                    kind.kind,
                    changed.join(", ")
                )));
            }
        }
        Ok(None)
    }

    /// Returns whether the run had steps that may have changed objects without a record of which: programs and requests.
    fn may_have_changed_more(&self, status: &RunStatus) -> bool {
        let has_begun = |step: &Step| {
            let mut records = status.steps.iter();
            records.any(|record| record.id == step.id && record.attempts > 0)
        };
        let blind = |step: &&Step| {
            matches!(
                step.action,
                StepAction::Job(_) | StepAction::Http(_) | StepAction::Compiled(_)
            )
        };
        let mut steps = self.spec.definition.steps.iter().filter(blind);
        steps.any(has_begun)
    }

    /// Returns what a step is about, as far as that can be said before it. What `ref` names may be gone: then its lookup tells.
    fn about(&self, step: &Step, item: Option<&Value>, scene: &Scene) -> Vec<About> {
        let mut about = about(step, item, scene);
        let reference = match &step.action {
            StepAction::Patch(patch) => patch.reference.as_ref(),
            StepAction::Delete(delete) => delete.reference.as_ref(),
            _ => None,
        };
        if about.is_empty()
            && let Some(lookup) = reference.and_then(|name| self.spec.definition.lookups.get(name))
        {
            about.push(About {
                api_version: lookup.api_version.clone(),
                kind: lookup.kind.clone(),
                namespace: lookup.namespace.clone(),
                name: lookup.name.clone(),
            });
        }
        about
    }
}

/// Returns the objects as the run left them: of several changes of one object the last value of each field counts.
fn left_by(status: &RunStatus) -> Vec<Value> {
    let mut objects: Vec<Value> = Vec::new();
    let records = status.steps.iter().chain(&status.undone);
    for change in &records.flat_map(changed_objects).collect::<Vec<Value>>() {
        let known = objects.iter_mut();
        let Some(known) = known.into_iter().find(|one| is_same_object(one, change)) else {
            objects.push(change.clone());
            continue;
        };
        let mut fields = known["fields"].clone();
        if known["uid"] == change["uid"]
            && let (Some(fields), Some(later)) =
                (fields.as_object_mut(), change["fields"].as_object())
        {
            // A field above or below one that was written later is not as it was recorded any more.
            fields.retain(|pointer, _| {
                !later
                    .keys()
                    .any(|other| within(pointer, other) || within(other, pointer))
            });
            fields.extend(later.clone());
        } else {
            fields = change.get("fields").cloned().unwrap_or_else(|| json!({}));
        }
        *known = change.clone();
        known["fields"] = fields;
    }
    objects
}

/// Returns whether a pointer is another one or leads below it.
fn within(pointer: &str, root: &str) -> bool {
    pointer
        .strip_prefix(root)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns what a step is about, as far as that can be said before it.
fn about(step: &Step, item: Option<&Value>, scene: &Scene) -> Vec<About> {
    let referenced = |name: &Option<String>| -> Vec<About> {
        let Some(name) = name else { return Vec::new() };
        let element = step.for_each.as_ref().filter(|each| each.name == *name);
        let found = match element {
            Some(_) => item,
            None => scene.objects.get(name),
        };
        match found {
            Some(Value::Array(objects)) => objects.iter().filter_map(About::of).collect(),
            Some(object) => About::of(object).into_iter().collect(),
            None => Vec::new(),
        }
    };
    match &step.action {
        StepAction::Patch(patch) => {
            let mut about = referenced(&patch.reference);
            about.extend(
                patch
                    .object
                    .as_ref()
                    .and_then(|it| About::written(it, scene)),
            );
            about
        }
        StepAction::Apply(apply) => rendered(&apply.manifest, scene)
            .and_then(|manifest| About::of(&manifest))
            .into_iter()
            .collect(),
        StepAction::Delete(delete) => {
            let mut about = referenced(&delete.reference);
            if let Some(select) = &delete.select {
                let names = if select.names.is_empty() {
                    vec![None]
                } else {
                    select.names.iter().cloned().map(Some).collect()
                };
                about.extend(names.into_iter().map(|name| About {
                    api_version: select.api_version.clone(),
                    kind: select.kind.clone(),
                    namespace: select.namespace.clone(),
                    name,
                }));
            }
            about
        }
        _ => Vec::new(),
    }
}

fn rendered(value: &Value, scene: &Scene) -> Option<Value> {
    Template::compile(value).ok()?.render(&scene.bindings).ok()
}

// === impl About ===

impl std::fmt::Display for About {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.kind)?;
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
            (None, Some(name)) => write!(f, " {name}"),
            _ => Ok(()),
        }
    }
}

impl About {
    fn of(object: &Value) -> Option<Self> {
        let text = |pointer: &str| Some(object.pointer(pointer)?.as_str()?.to_owned());
        Some(Self {
            api_version: text("/apiVersion")?,
            kind: text("/kind")?,
            namespace: text("/metadata/namespace"),
            name: Some(text("/metadata/name")?),
        })
    }

    fn written(object: &ObjectReference, scene: &Scene) -> Option<Self> {
        let text = |text: &str| {
            let value = rendered(&Value::from(text), scene)?;
            value.as_str().map(str::to_owned)
        };
        Some(Self {
            api_version: object.api_version.clone(),
            kind: object.kind.clone(),
            namespace: match &object.namespace {
                Some(namespace) => Some(text(namespace)?),
                None => None,
            },
            name: Some(text(&object.name)?),
        })
    }

    /// Returns whether a recorded object is one of these. The version of the API does not count: the object is the same.
    fn names(&self, object: &Value) -> bool {
        let group = |version: &str| version.split_once('/').map(|(group, _)| group.to_owned());
        let recorded = object["apiVersion"].as_str().unwrap_or_default();
        group(recorded) == group(&self.api_version)
            && object["kind"] == *self.kind
            && (self.namespace.is_none()
                || object["namespace"].as_str() == self.namespace.as_deref())
            && self
                .name
                .as_ref()
                .is_none_or(|name| object["name"] == **name)
    }
}
