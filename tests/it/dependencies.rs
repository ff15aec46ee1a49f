//! What the project depends on is what `deny.toml` allows: a licence that is not in its list is found here, without further tools.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::support::agent::command;

#[test]
fn every_licence_is_allowed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rules = std::fs::read_to_string(root.join("deny.toml")).unwrap();
    let (_, rest) = rules.split_once("\nallow = [").unwrap();
    let (list, _) = rest.split_once(']').unwrap();
    let allowed: BTreeSet<&str> = list.split('"').skip(1).step_by(2).collect();
    let refused: Vec<String> = packages(root)
        .iter()
        .filter(|package| !is_allowed(text(&package["license"]), &allowed))
        .map(|package| format!("{}: {}", text(&package["name"]), text(&package["license"])))
        .collect();
    assert!(
        refused.is_empty(),
        "look at the licence, and add it to deny.toml: {refused:#?}"
    );
}

#[test]
fn one_licence_of_a_choice_is_enough_and_all_of_a_sum_are_needed() {
    let allowed = BTreeSet::from(["MIT", "ISC"]);
    for (licence, expected) in [
        ("MIT", true),
        ("Apache-2.0/MIT", true),
        ("(Apache-2.0 OR MIT) AND ISC", true),
        ("(Apache-2.0 OR MIT) AND BSD-3-Clause", false),
        ("ISC AND Apache-2.0 AND MIT", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(licence, &allowed), expected, "{licence}");
    }
}

/// Returns what is built anywhere. Crates that only other systems need are downloaded for this, where nobody has needed them yet.
fn packages(root: &Path) -> Vec<Value> {
    let output = command(&[env!("CARGO")])
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().clone();
    assert!(packages.len() > 100);
    packages
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Evaluates an expression of SPDX: every part of a sum has to have one choice that is allowed.
fn is_allowed(licence: &str, allowed: &BTreeSet<&str>) -> bool {
    licence.split(" AND ").all(|part| {
        let part = part.trim_matches(['(', ')']).replace('/', " OR ");
        part.split(" OR ").any(|one| allowed.contains(one.trim()))
    })
}
