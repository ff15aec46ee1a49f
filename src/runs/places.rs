//! In which namespaces a migration works that names them by an expression: as far as lookups and parameters say it now.

use std::collections::BTreeSet;

use serde_json::Value;

use super::effects::Effects;
use super::lookups::{LookupCache, Scene, Surroundings};
use super::rights::{Need, Within};
use super::sight::Sight;
use crate::expression::{Bindings, Expression, Template};
use crate::model::api::RunSpec;
use crate::model::limits;

/// Returns what is asked for, with the namespaces that are known by now. One that is not known yet, since an earlier step or a lookup
/// that is not final says it, stays as it is.
pub(super) async fn placed<E: Effects>(
    effects: &E,
    spec: &RunSpec,
    needs: Vec<Need>,
    (sight, lookups, surroundings): (&Sight, &LookupCache, Surroundings<'_>),
) -> Vec<Need> {
    let is_computed = |need: &Need| matches!(need.namespace, Within::Computed(_));
    if !needs.iter().any(is_computed) {
        return needs;
    }
    let scene = Scene::look(effects, lookups, spec, None, surroundings).await;
    let mut placed = BTreeSet::new();
    for need in needs {
        let Within::Computed(text) = &need.namespace else {
            placed.insert(need);
            continue;
        };
        let found = namespaces(spec, (&need, text), &scene, sight);
        if found.is_empty() {
            placed.insert(need);
            continue;
        }
        placed.extend(found.into_iter().map(|namespace| Need {
            namespace: Within::Named(namespace),
            ..need.clone()
        }));
    }
    placed.into_iter().collect()
}

/// Returns the namespaces that a text names: one, or one for each element that its step is done for.
fn namespaces(
    spec: &RunSpec,
    (need, text): (&Need, &str),
    scene: &Scene,
    sight: &Sight,
) -> BTreeSet<String> {
    let Ok(template) = Template::compile(&Value::from(text)) else {
        return BTreeSet::new();
    };
    if sight.open.concerns_any(template.expressions()) {
        return BTreeSet::new();
    }
    let mut found = BTreeSet::new();
    let mut note = |bindings: &Bindings| {
        if let Ok(Value::String(namespace)) = template.render(bindings)
            && !namespace.is_empty()
        {
            found.insert(namespace);
        }
    };
    let mut steps = spec.definition.steps.iter();
    let step = steps.find(|step| need.step.as_ref() == Some(&step.id));
    let Some(each) = step.and_then(|step| step.for_each.as_ref()) else {
        note(&scene.bindings);
        return found;
    };
    let list = Expression::compile(&each.list)
        .ok()
        .filter(|list| !sight.open.concerns_any([list]))
        .and_then(|list| list.evaluate(&scene.bindings).ok());
    let Some(Value::Array(elements)) = list else {
        return found;
    };
    let mut bindings = scene.bindings.clone();
    for element in elements.into_iter().take(limits::RIGHTS_ELEMENTS_MAX) {
        bindings.set(&each.name, element);
        note(&bindings);
    }
    found
}
