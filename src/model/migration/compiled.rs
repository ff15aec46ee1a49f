//! What the migrations that are compiled into Fairway are given, so that `fairway validate` can tell what is wrong with it. What they do
//! stands in `src/runs/compiled/`.

use serde::Deserialize;
use serde_json::Value;

/// What a `compiled` step may name: the registry of `src/runs/compiled/` has a type for each.
pub const COMPILED: &[&str] = &["hand-over"];

/// What `hand-over` is given.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HandOverWith {
    /// The objects that go.
    pub from: HandOverSide,
    /// The objects that take their place.
    pub to: HandOverSide,
}

/// One kind of objects.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HandOverSide {
    /// `v1`, `example.com/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; all of them where it is missing.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Where the id is, as a JSON pointer: `/spec/externalID`.
    pub id: String,
    /// Where it says that it is ready, as a JSON pointer to a truth value; every object is where it is missing.
    #[serde(default)]
    pub ready: Option<String>,
}

/// Checks what a compiled migration is given.
///
/// # Errors
///
/// What is wrong with it, as a lowercase fragment. Of a name that is none nothing is said.
pub fn check_compiled(name: &str, with: &Value) -> Result<(), String> {
    match name {
        "hand-over" => HandOverWith::read(with).map(|_| ()),
        _ => Ok(()),
    }
}

impl HandOverWith {
    /// Reads what a step gives.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn read(with: &Value) -> Result<Self, String> {
        let read: Self = serde_json::from_value(with.clone())
            .map_err(|error| format!("`with` is wrong: {error}"))?;
        let sides = [("from", &read.from), ("to", &read.to)];
        for (field, side) in sides {
            let pointers = [Some(&side.id), side.ready.as_ref()];
            for pointer in pointers.into_iter().flatten() {
                // What an expression comes to is known later.
                if !pointer.starts_with('/') && !pointer.contains("${") {
                    return Err(format!(
                        "`with` is wrong: `{pointer}` in `{field}` is no JSON pointer; it begins with a slash"
                    ));
                }
            }
        }
        Ok(read)
    }
}
