//! What Fairway's helpers are given, so that `fairway validate` can tell what is wrong with it. What they do stands in
//! `src/runs/steps/builtin.rs`.

use serde::Deserialize;

use crate::model::limits;

/// What a `builtin` step may name.
pub const BUILTINS: &[&str] = &["generate-secret", "find-node-port", "ensure-credentials"];

/// What `generate-secret` is given: it makes one random entry of a Secret, once.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GenerateSecretWith {
    /// The namespace of the Secret.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The key of the entry.
    #[serde(default = "value_key")]
    pub key: String,
    /// How many letters and digits it has.
    #[serde(default = "length")]
    pub length: usize,
}

/// What `ensure-credentials` is given: it makes a Secret have a user name and a password.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnsureCredentialsWith {
    /// The namespace of the Secret.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The user name.
    pub username: String,
    /// The key of the user name.
    #[serde(default = "username_key")]
    pub username_key: String,
    /// The key of the password.
    #[serde(default = "password_key")]
    pub password_key: String,
    /// How many letters and digits the password has.
    #[serde(default = "length")]
    pub length: usize,
}

/// What `find-node-port` is given: it finds a node port that no Service has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FindNodePortWith {
    /// Taken if it is free.
    pub preferred: u16,
    /// `NAMESPACE/NAME` of the Service that it is for: what that has already counts as free.
    #[serde(default)]
    pub service: Option<String>,
    /// The first port of the cluster's range.
    #[serde(default = "first_port")]
    pub first: u16,
    /// The last one.
    #[serde(default = "last_port")]
    pub last: u16,
}

/// One field of what a helper is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltinField {
    /// Its name.
    pub name: &'static str,
    /// What it must be.
    pub form: BuiltinForm,
    /// Whether it must be there.
    pub required: bool,
    /// A value that will do.
    pub example: &'static str,
}

/// What a value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltinForm {
    /// A text that is not empty.
    Text,
    /// `NAMESPACE/NAME`.
    NamespacedName,
    /// A whole number within these bounds.
    Number(usize, usize),
}

/// Returns the fields of what a helper is given; none for a name that is none.
pub fn builtin_fields(name: &str) -> &'static [BuiltinField] {
    match name {
        "generate-secret" => GENERATE_SECRET,
        "ensure-credentials" => ENSURE_CREDENTIALS,
        "find-node-port" => FIND_NODE_PORT,
        _ => &[],
    }
}

const GENERATE_SECRET: &[BuiltinField] = &[
    needed("namespace", BuiltinForm::Text, "NAMESPACE"),
    needed("name", BuiltinForm::Text, "NAME"),
    optional("key", BuiltinForm::Text, "value"),
    optional("length", LENGTH, "32"),
];

const ENSURE_CREDENTIALS: &[BuiltinField] = &[
    needed("namespace", BuiltinForm::Text, "NAMESPACE"),
    needed("name", BuiltinForm::Text, "NAME"),
    needed("username", BuiltinForm::Text, "admin"),
    optional("usernameKey", BuiltinForm::Text, "username"),
    optional("passwordKey", BuiltinForm::Text, "password"),
    optional("length", LENGTH, "32"),
];

const FIND_NODE_PORT: &[BuiltinField] = &[
    needed("preferred", PORT, "30080"),
    optional("service", BuiltinForm::NamespacedName, "NAMESPACE/NAME"),
    optional("first", PORT, "30000"),
    optional("last", PORT, "32767"),
];

const PORT: BuiltinForm = BuiltinForm::Number(1, 65_535);
const LENGTH: BuiltinForm =
    BuiltinForm::Number(limits::GENERATED_SECRET_MIN, limits::GENERATED_SECRET_MAX);

const fn needed(name: &'static str, form: BuiltinForm, example: &'static str) -> BuiltinField {
    BuiltinField {
        name,
        form,
        required: true,
        example,
    }
}

const fn optional(name: &'static str, form: BuiltinForm, example: &'static str) -> BuiltinField {
    BuiltinField {
        required: false,
        ..needed(name, form, example)
    }
}

fn value_key() -> String {
    "value".to_owned()
}

fn username_key() -> String {
    "username".to_owned()
}

fn password_key() -> String {
    "password".to_owned()
}

fn length() -> usize {
    limits::GENERATED_SECRET_DEFAULT
}

/// The default range of an API server.
fn first_port() -> u16 {
    30_000
}

fn last_port() -> u16 {
    32_767
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;

    /// Returns whether the type of a helper can be read from these fields.
    fn is_read(name: &str, fields: &[&BuiltinField]) -> bool {
        let value = |field: &&BuiltinField| match field.form {
            BuiltinForm::Number(..) => Value::from(field.example.parse::<u64>().unwrap()),
            _ => Value::from(field.example),
        };
        let with: Map<String, Value> = fields
            .iter()
            .map(|field| (field.name.to_owned(), value(field)))
            .collect();
        let with = Value::Object(with);
        match name {
            "generate-secret" => serde_json::from_value::<GenerateSecretWith>(with).is_ok(),
            "ensure-credentials" => serde_json::from_value::<EnsureCredentialsWith>(with).is_ok(),
            _ => serde_json::from_value::<FindNodePortWith>(with).is_ok(),
        }
    }

    #[test]
    fn the_tables_say_what_the_types_say() {
        for name in BUILTINS {
            let all: Vec<_> = builtin_fields(name).iter().collect();
            assert!(!all.is_empty() && is_read(name, &all), "{name}");
            for left_out in &all {
                let rest: Vec<_> = all
                    .iter()
                    .copied()
                    .filter(|it| it.name != left_out.name)
                    .collect();
                let is_needed = !is_read(name, &rest);
                assert_eq!(is_needed, left_out.required, "{name}: {}", left_out.name);
            }
            let unknown = BuiltinField {
                name: "other",
                ..*all[0]
            };
            let more: Vec<_> = all.iter().copied().chain([&unknown]).collect();
            assert!(!is_read(name, &more), "{name}");
        }
    }
}
