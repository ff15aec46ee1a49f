//! From a case of a definition to a world in memory, and to what the run is of.

use serde_json::{Map, Value, json};

use crate::model::Selector;
use crate::model::api::RunSpec;
use crate::model::migration::{Fixture, FixtureOutcome, Lookup, Migration, StepAction};
use crate::runs::ResourceKind;
use crate::runs::memory::{Leaves, Memory, Script};

/// Returns what a case is of.
pub(super) fn spec(migration: &Migration, fixture: &Fixture, http_hosts: &[String]) -> RunSpec {
    let component = migration.components.first().map(ToString::to_string);
    let processed = fixture
        .components
        .iter()
        .find(|it| Some(&it.name) == component.as_ref());
    let mut definition = migration.spec.clone();
    definition.params.extend(fixture.params.clone());
    RunSpec {
        source: "test".to_owned(),
        cluster: "home".to_owned(),
        cluster_uid: "00000000-0000-4000-8000-000000000000".to_owned(),
        migration: migration.name.clone(),
        component: component.clone(),
        phase: definition.bind.phase,
        action: processed.map(|it| it.action),
        from: processed.and_then(|it| it.from.clone()),
        to: processed.and_then(|it| it.to.clone()),
        release: None,
        revision: "test".to_owned(),
        author: String::new(),
        place: migration.place.to_string(),
        deploy: "test".to_owned(),
        definition_digest: migration.digest.to_string(),
        definition,
        desired: fixture.desired.clone(),
        components: fixture.components.clone(),
        http_hosts: http_hosts.to_vec(),
    }
}

/// Makes the world that a case gives.
///
/// # Errors
///
/// What it gives that no lookup could find.
pub(super) fn world(spec: &RunSpec, fixture: &Fixture) -> Result<Memory, String> {
    let world = Memory::default();
    for (name, given) in &fixture.given {
        let lookup = lookup_of(spec, name)?;
        for object in objects(name, &lookup, given)? {
            world.put(object);
        }
    }
    for (step, outcome) in &fixture.outcomes {
        world.script(step, script(spec, fixture, step, outcome)?);
    }
    Ok(world)
}

/// Returns the lookup of a name: the migration's, or one of a step that waits.
pub(super) fn lookup_of(spec: &RunSpec, name: &str) -> Result<Lookup, String> {
    let definition = &spec.definition;
    let of_step = definition.steps.iter().find_map(|step| match &step.action {
        StepAction::Wait(wait) => wait.lookups.get(name),
        _ => None,
    });
    definition
        .lookups
        .get(name)
        .or(of_step)
        .cloned()
        .ok_or_else(|| format!("there is no lookup `{name}`"))
}

/// Completes what a case gives by what the lookup asks for: kind, namespace, name and labels.
fn objects(name: &str, lookup: &Lookup, given: &Value) -> Result<Vec<Value>, String> {
    let selector = selector_of(lookup)?;
    let given = match given {
        Value::Null => Vec::new(),
        Value::Array(objects) => objects.iter().collect(),
        object => vec![object],
    };
    let mut objects = Vec::new();
    for (index, given) in given.into_iter().enumerate() {
        let mut object = json!({
            "apiVersion": lookup.api_version,
            "kind": lookup.kind,
            "metadata": {"name": lookup.name.clone().unwrap_or_else(|| format!("{name}-{index}").to_lowercase())},
        });
        if let Some(namespace) = &lookup.namespace {
            object["metadata"]["namespace"] = Value::from(namespace.as_str());
        }
        let labels = selector.labels();
        if !labels.is_empty() {
            object["metadata"]["labels"] = Value::Object(labels);
        }
        overlay(&mut object, given);
        let at = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
        if lookup.name.is_some() && at("name") != lookup.name
            || lookup.namespace.is_some() && at("namespace") != lookup.namespace
            || !selector.matches(&object)
        {
            return Err(format!(
                "`given.{name}` has an object that lookup `{name}` does not find: its name, namespace or labels differ"
            ));
        }
        objects.push(object);
    }
    Ok(objects)
}

fn selector_of(lookup: &Lookup) -> Result<Selector, String> {
    Selector::parse(lookup.selector.as_deref().unwrap_or_default())
}

/// Says that an object is no more.
fn gone(object: &Value) -> Leaves {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    Leaves {
        kind: ResourceKind {
            api_version: text("/apiVersion").unwrap_or_default().to_owned(),
            kind: text("/kind").unwrap_or_default().to_owned(),
        },
        namespace: text("/metadata/namespace").map(str::to_owned),
        name: text("/metadata/name").unwrap_or_default().to_owned(),
        object: Value::Null,
    }
}

/// Puts the fields of one object over those of another. Unlike a merge patch, null is a value.
fn overlay(object: &mut Value, over: &Value) {
    match (object, over) {
        (Value::Object(fields), Value::Object(over)) => {
            for (name, value) in over {
                overlay(fields.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (object, over) => *object = over.clone(),
    }
}

fn script(
    spec: &RunSpec,
    fixture: &Fixture,
    step: &str,
    outcome: &FixtureOutcome,
) -> Result<Script, String> {
    let mut leaves = Vec::new();
    for (name, left) in &outcome.leaves {
        let lookup = lookup_of(spec, name)?;
        if lookup.list && left.is_null() {
            // Everything that the case gives is gone.
            let given = fixture.given.get(name).unwrap_or(&Value::Null);
            leaves.extend(objects(name, &lookup, given)?.iter().map(gone));
            continue;
        }
        let each: Vec<(String, &Value)> = match left {
            Value::Array(objects) => objects
                .iter()
                .map(|object| {
                    let name = object.pointer("/metadata/name").and_then(Value::as_str);
                    Some((name?.to_owned(), object))
                })
                .collect::<Option<_>>()
                .ok_or_else(|| {
                    format!("`outcomes.{step}.leaves.{name}` has an object without metadata.name")
                })?,
            object => vec![(lookup.name.clone().unwrap_or_default(), object)],
        };
        for (object_name, object) in each {
            let mut object = object.clone();
            if let (Value::Object(_), labels) = (&object, selector_of(&lookup)?.labels())
                && !labels.is_empty()
            {
                let mut whole = json!({"metadata": {"labels": Map::from_iter(labels)}});
                overlay(&mut whole, &object);
                object = whole;
            }
            let namespace = object
                .pointer("/metadata/namespace")
                .and_then(Value::as_str)
                .map(str::to_owned);
            leaves.push(Leaves {
                kind: ResourceKind {
                    api_version: lookup.api_version.clone(),
                    kind: lookup.kind.clone(),
                },
                namespace: lookup.namespace.clone().or(namespace),
                name: object_name,
                object,
            });
        }
    }
    let by_waiting = spec
        .definition
        .steps
        .iter()
        .any(|it| it.id == step && matches!(it.action, StepAction::Wait(_)));
    Ok(Script {
        exit_code: outcome.exit_code,
        status: outcome.status,
        result: outcome.result.clone(),
        leaves,
        by_waiting,
    })
}
