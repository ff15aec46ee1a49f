//! What the lookups of a migration find, in two forms: whole for steps, and without secrets for expressions.
//!
//! One [`LookupCache`] lives as long as the judgements of one hook: a lookup that several migrations share is one request, and who
//! comes while it is under way waits for its answer. A lookup that fails is a value here; what is asked of it is unknown, never
//! false.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;

use super::effects::{EffectError, Effects};
use crate::expression::{Bindings, Expression};
use crate::model::api::{RunSpec, StepRecord};
use crate::model::limits;
use crate::model::migration::{DeployAction, DeployComponent, Lookup, MissingKind};

type Answer = Arc<OnceCell<Result<Arc<Value>, EffectError>>>;

/// Answers to lookups, each asked for once.
#[derive(Debug, Default)]
pub struct LookupCache(Mutex<HashMap<String, Answer>>);

/// What expressions and steps of one run see at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scene {
    /// What each lookup found, whole, with what Secrets hold. Never for expressions.
    pub objects: BTreeMap<String, Value>,
    /// What expressions may look at.
    pub bindings: Bindings,
    /// The lookups that failed, and why.
    pub failures: BTreeMap<String, EffectError>,
}

/// What is known of a run beside its definition.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings<'a> {
    /// The name of the Run; empty while there is none.
    pub run: &'a str,
    /// What the steps so far have left.
    pub steps: &'a [StepRecord],
}

// === impl LookupCache ===

impl LookupCache {
    /// Makes one that knows nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns how many distinct lookups were asked for: as many requests were sent, pages of lists not counted.
    pub fn requests(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns what a lookup finds: an object or null, or a list.
    ///
    /// # Errors
    ///
    /// What the request failed with, also when it was another caller's; when a list has more objects than it may have; and
    /// when the kind is not served and the lookup says that this is unknown.
    pub async fn look<E: Effects>(
        &self,
        effects: &E,
        lookup: &Lookup,
    ) -> Result<Arc<Value>, EffectError> {
        let key = serde_json::to_string(lookup).map_err(|error| {
            EffectError::Refused(format!("the lookup cannot be written as JSON: {error}"))
        })?;
        let answer = {
            let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(answers.entry(key).or_default())
        };
        answer
            .get_or_init(|| async { look(effects, lookup).await.map(Arc::new) })
            .await
            .clone()
    }
}

async fn look<E: Effects>(effects: &E, lookup: &Lookup) -> Result<Value, EffectError> {
    let found = match effects.look(lookup).await {
        Err(EffectError::KindUnknown(_)) if lookup.missing_kind == MissingKind::Null => {
            return Ok(nothing(lookup));
        }
        found => found?,
    };
    let limit = lookup.limit.unwrap_or(limits::LOOKUP_OBJECTS_DEFAULT) as usize;
    match &found {
        Value::Array(objects) if objects.len() > limit => Err(EffectError::Refused(format!(
            "there are more than {limit} objects of kind {}; narrow the lookup by `namespace` or `selector`, or raise its `limit` (at most {})",
            lookup.kind,
            limits::LOOKUP_OBJECTS_MAX
        ))),
        _ => Ok(found),
    }
}

/// Returns what a lookup finds where there is nothing.
fn nothing(lookup: &Lookup) -> Value {
    if lookup.list {
        Value::Array(Vec::new())
    } else {
        Value::Null
    }
}

// === impl Scene ===

impl Scene {
    /// Looks up what `wanted` names (everything, where it is none) and binds it. Lookups of one run are asked one after another;
    /// runs of one hook ask side by side.
    pub async fn look<E: Effects>(
        effects: &E,
        cache: &LookupCache,
        spec: &RunSpec,
        wanted: Option<&BTreeSet<String>>,
        surroundings: Surroundings<'_>,
    ) -> Self {
        let mut scene = Self::default();
        let lookups = &spec.definition.lookups;
        for (name, lookup) in lookups {
            if wanted.is_none_or(|wanted| wanted.contains(name)) {
                scene.add(effects, cache, name, lookup).await;
            }
        }
        scene.bind(spec, surroundings);
        scene
    }

    /// Looks up one thing more, and binds it beside the others.
    pub async fn add<E: Effects>(
        &mut self,
        effects: &E,
        cache: &LookupCache,
        name: &str,
        lookup: &Lookup,
    ) {
        match cache.look(effects, lookup).await {
            Ok(found) => {
                self.objects.insert(name.to_owned(), (*found).clone());
            }
            Err(error) => {
                self.failures.insert(name.to_owned(), error);
            }
        }
    }

    /// Binds what was found, and what the run knows, for expressions.
    pub fn bind(&mut self, spec: &RunSpec, surroundings: Surroundings<'_>) {
        let mut objects = Map::new();
        for (name, found) in &self.objects {
            objects.insert(name.clone(), redacted(found));
        }
        self.bindings = bindings(spec, surroundings);
        self.bindings.set("objects", Value::Object(objects));
    }

    /// Returns why expressions over this scene would be unknown: a lookup failed, or there is more than one may look at.
    pub fn unknown(&self) -> Option<String> {
        if let Some((name, error)) = self.failures.iter().next() {
            return Some(format!("lookup `{name}`: {error}"));
        }
        let size: usize = self
            .bindings
            .iter()
            .map(|(_, value)| serde_json::to_vec(value).map_or(0, |text| text.len()))
            .sum();
        (size > limits::BINDINGS_SIZE_MAX).then(|| {
            format!(
                "the lookups found more than {} MiB; narrow them by `namespace` or `selector`",
                limits::BINDINGS_SIZE_MAX >> 20
            )
        })
    }
}

/// Returns an object, or each object of a list, as expressions may see it.
fn redacted(found: &Value) -> Value {
    let mut found = found.clone();
    match &mut found {
        Value::Array(objects) => objects.iter_mut().for_each(Bindings::redact),
        object => Bindings::redact(object),
    }
    found
}

/// Binds everything but `objects`. What may be missing is null, so that an expression can ask for it.
fn bindings(spec: &RunSpec, surroundings: Surroundings<'_>) -> Bindings {
    let definition = &spec.definition;
    let mut bindings = Bindings::default();
    let desired = definition.lookups.keys().map(|name| {
        let mut value = spec.desired.get(name).cloned().unwrap_or(Value::Null);
        Bindings::redact(&mut value);
        (name.clone(), value)
    });
    bindings.set("desired", Value::Object(desired.collect()));
    let params = definition.params.clone().into_iter().collect();
    bindings.set("params", Value::Object(params));
    let components: Vec<Value> = spec.components.iter().map(component).collect();
    bindings.set("deploy", json!({ "components": components }));
    bindings.set("hop", json!({ "from": spec.from, "to": spec.to }));
    bindings.set(
        "run",
        json!({
            "id": surroundings.run,
            "migration": spec.migration,
            "component": spec.component,
            "phase": spec.phase.as_str(),
            "action": spec.action.map(action),
        }),
    );
    let mut steps = Map::new();
    for step in &definition.steps {
        steps.insert(step.id.clone(), json!({ "outputs": {} }));
    }
    for record in surroundings.steps.iter().filter(|one| one.item.is_none()) {
        steps.insert(record.id.clone(), json!({ "outputs": record.outputs }));
    }
    bindings.set("steps", Value::Object(steps));
    bindings
}

fn component(component: &DeployComponent) -> Value {
    json!({
        "name": component.name,
        "from": component.from,
        "to": component.to,
        "action": action(component.action),
    })
}

fn action(action: DeployAction) -> &'static str {
    match action {
        DeployAction::Install => "install",
        DeployAction::Upgrade => "upgrade",
    }
}

/// Returns the lookups that expressions name; none where one of them picks a lookup by a computed name, so that all count.
pub fn lookups_named<'a>(
    expressions: impl IntoIterator<Item = &'a Expression>,
) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for path in expressions.into_iter().flat_map(Expression::paths) {
        if path.first().is_some_and(|root| root == "objects") {
            names.insert(path.get(1)?.clone());
        }
    }
    Some(names)
}
