//! Rules for the tests of a definition: they may name only what the definition has.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::lookups::has_form_of;
use crate::desired::finding::{Finding, Pointer, nearest, pointer};
use crate::model::Code;
use crate::model::migration::{Fixture, Lookup, MigrationSpec, StepAction};

/// Checks the tests of a definition.
pub(super) fn check_fixtures(spec: &MigrationSpec) -> Vec<Finding> {
    let mut lookups: BTreeMap<&str, &Lookup> = named(&spec.lookups).collect();
    for step in spec.steps.iter().chain(&spec.undo) {
        if let StepAction::Wait(wait) = &step.action {
            lookups.extend(named(&wait.lookups));
        }
    }
    let mut found = Vec::new();
    let mut names = BTreeSet::new();
    for (index, fixture) in spec.tests.iter().enumerate() {
        let base = pointer!["spec", "tests", index];
        if !names.insert(fixture.name.as_str()) {
            let message = format!("two tests have the name `{}`", fixture.name);
            found.push(error(&base, &["name"], message).help("say what makes them different"));
        }
        for (field, values) in [
            (&["given"][..], &fixture.given),
            (&["desired"][..], &fixture.desired),
            (&["expect", "then"][..], &fixture.expect.then),
        ] {
            found.extend(check_values(&lookups, values, field, &base));
        }
        found.extend(check_rest(spec, &lookups, fixture, &base));
    }
    found
}

fn named(lookups: &BTreeMap<String, Lookup>) -> impl Iterator<Item = (&str, &Lookup)> {
    lookups.iter().map(|(name, lookup)| (name.as_str(), lookup))
}

fn check_values(
    lookups: &BTreeMap<&str, &Lookup>,
    values: &BTreeMap<String, Value>,
    field: &[&str],
    base: &Pointer,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, value) in values {
        let mut path = field.to_vec();
        path.push(name);
        match lookups.get(name.as_str()) {
            None => found.push(
                error(base, &path, format!("there is no lookup `{name}`"))
                    .at_key()
                    .help(meant(name, lookups.keys().copied(), "lookups are")),
            ),
            Some(lookup) if !has_form_of(lookup, value) => {
                let (message, help) = if lookup.list {
                    (
                        format!("lookup `{name}` finds a list of objects"),
                        format!("{name}: []"),
                    )
                } else {
                    (
                        format!("lookup `{name}` finds one object, or null"),
                        format!("{name}: null"),
                    )
                };
                found.push(error(base, &path, message).help(help));
            }
            Some(_) => {}
        }
    }
    found
}

fn check_rest(
    spec: &MigrationSpec,
    lookups: &BTreeMap<&str, &Lookup>,
    fixture: &Fixture,
    base: &Pointer,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for name in fixture.params.keys() {
        if !spec.params.contains_key(name) {
            let names = spec.params.keys().map(String::as_str);
            found.push(
                error(
                    base,
                    &["params", name],
                    format!("there is no param `{name}`"),
                )
                .at_key()
                .help(meant(name, names, "params are")),
            );
        }
    }
    let ids: Vec<&str> = spec.steps.iter().map(|step| step.id.as_str()).collect();
    for (id, outcome) in &fixture.outcomes {
        if ids.contains(&id.as_str()) {
            let path = ["outcomes", id, "leaves"];
            // Null means that all of it is gone, for a list as well.
            let leaves = outcome.leaves.iter().filter(|(_, value)| !value.is_null());
            let leaves = leaves.map(|(name, value)| (name.clone(), value.clone()));
            found.extend(check_values(lookups, &leaves.collect(), &path, base));
        } else {
            let message = format!("there is no step `{id}`");
            let help = meant(id, ids.iter().copied(), "steps are");
            found.push(error(base, &["outcomes", id], message).at_key().help(help));
        }
    }
    for (index, id) in fixture.expect.steps.iter().flatten().enumerate() {
        if !ids.contains(&id.as_str()) {
            let mut at = base.clone();
            at.extend(pointer!["expect", "steps", index]);
            let message = format!("there is no step `{id}`");
            found.push(
                Finding::error(Code::MigrationFixture, at, message).help(meant(
                    id,
                    ids.iter().copied(),
                    "steps are",
                )),
            );
        }
    }
    found
}

fn meant<'a>(name: &str, names: impl Iterator<Item = &'a str> + Clone, known: &str) -> String {
    match nearest(name, names.clone()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("{known} {}", names.collect::<Vec<_>>().join(", ")),
    }
}

fn error(base: &Pointer, below: &[&str], message: String) -> Finding {
    let mut at = base.clone();
    at.extend(below.iter().map(|part| (*part).into()));
    Finding::error(Code::MigrationFixture, at, message)
}
