//! The order of migrations of one hook: `after` names what is there, and leads round in no circle.

use std::collections::{BTreeMap, BTreeSet};

use crate::desired::finding::{Finding, nearest, pointer};
use crate::model::Code;
use crate::model::migration::Migration;

/// Returns whether two migrations can stand in the same hook.
fn share_a_hook(one: &Migration, two: &Migration) -> bool {
    let shares = match (one.is_global(), two.is_global()) {
        (true, true) => true,
        (false, false) => one
            .components
            .iter()
            .any(|name| two.components.contains(name)),
        _ => false,
    };
    shares && one.spec.bind.phase == two.spec.bind.phase
}

/// Checks what a migration must come after. `known` are names of migrations that are there but held.
pub(super) fn check_after(
    migration: &Migration,
    all: &BTreeMap<&str, &Migration>,
    known: &BTreeSet<&str>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, name) in migration.spec.after.iter().enumerate() {
        let other = all.get(name.as_str());
        let fits = match other {
            Some(other) => share_a_hook(migration, other) && other.name != migration.name,
            None => known.contains(name.as_str()),
        };
        if fits {
            continue;
        }
        let message = match other {
            Some(other) if other.name == migration.name => "it cannot come after itself".to_owned(),
            Some(other) => format!(
                "{name} runs elsewhere: it is {} {}",
                other.spec.bind.phase.as_str(),
                belongs_to(other)
            ),
            None => format!("there is no migration `{name}`"),
        };
        let siblings = all
            .values()
            .filter(|other| share_a_hook(migration, other) && other.name != migration.name)
            .map(|other| other.name.as_str());
        let names: Vec<&str> = siblings.collect();
        let help = match nearest(name, names.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if names.is_empty() => {
                "remove it: no other migration stands in the same hook".to_owned()
            }
            None => format!("in the same hook are {}", names.join(", ")),
        };
        found.push(
            Finding::error(
                Code::MigrationBinding,
                pointer!["spec", "after", index],
                message,
            )
            .help(help),
        );
    }
    found
}

fn belongs_to(migration: &Migration) -> String {
    if migration.is_global() {
        return "of the whole deploy".to_owned();
    }
    let names: Vec<String> = migration
        .components
        .iter()
        .map(ToString::to_string)
        .collect();
    format!("of {}", names.join(", "))
}

/// Returns the migrations that must come after themselves, each with the one that leads round.
///
/// As with components: what comes after nothing open, or before nothing open, is taken away until nothing more is.
pub(super) fn find_cycles(all: &BTreeMap<&str, &Migration>) -> Vec<(String, String)> {
    let mut open: BTreeSet<&str> = all.keys().copied().collect();
    loop {
        let wanted: BTreeSet<&str> = open
            .iter()
            .flat_map(|name| all[name].spec.after.iter().map(String::as_str))
            .collect();
        let before = open.len();
        open = open
            .iter()
            .copied()
            .filter(|name| {
                let after = &all[name].spec.after;
                wanted.contains(name) && after.iter().any(|other| open.contains(other.as_str()))
            })
            .collect();
        if open.len() == before {
            break;
        }
    }
    open.iter()
        .filter_map(|name| {
            let after = &all[name].spec.after;
            let other = after.iter().find(|other| open.contains(other.as_str()))?;
            Some(((*name).to_owned(), other.clone()))
        })
        .collect()
}
