//! Custom kinds that the repository itself makes known, and the check of their objects against the schema.
//!
//! Checked are types, required and unknown fields, enums and simple bounds, as the API server would. Patterns, combinations
//! (`oneOf`, `not`) and CEL rules are left to the API server.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::finding::{Finding, Pointer, nearest};
use super::kinds::Scope;
use crate::model::{Code, DesiredObject, GroupKind};

/// A kind that a CustomResourceDefinition of the repository makes known.
#[derive(Debug, Clone)]
pub(super) struct CustomKind {
    /// Whether its objects live in namespaces.
    pub(super) scope: Scope,
    /// The CustomResourceDefinition.
    pub(super) definition: Arc<DesiredObject>,
}

impl CustomKind {
    /// Reads a CustomResourceDefinition; none when the object is something else, or says too little.
    pub(super) fn of(definition: &Arc<DesiredObject>) -> Option<(GroupKind, Self)> {
        let kind = &definition.key.kind;
        if kind.kind != "CustomResourceDefinition" || kind.group != "apiextensions.k8s.io" {
            return None;
        }
        let text = |pointer| definition.body.pointer(pointer).and_then(Value::as_str);
        let scope = match text("/spec/scope")? {
            "Namespaced" => Scope::Namespaced,
            "Cluster" => Scope::Cluster,
            _ => return None,
        };
        let kind = GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?);
        let definition = Arc::clone(definition);
        Some((kind, Self { scope, definition }))
    }

    /// Checks an object against the schema of its version.
    pub(super) fn check(&self, object: &DesiredObject) -> Vec<Finding> {
        let versions = self.definition.body.pointer("/spec/versions");
        let versions = versions
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        if versions.is_empty() {
            return Vec::new();
        }
        let name_of = |version: &Value| {
            version
                .get("name")
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let is_served = |version: &&Value| version.get("served") == Some(&Value::Bool(true));
        let served = versions
            .iter()
            .filter(is_served)
            .find(|version| name_of(version).as_deref() == Some(&object.version));
        let Some(version) = served else {
            let names: Vec<_> = versions
                .iter()
                .filter(is_served)
                .filter_map(name_of)
                .collect();
            let message = format!(
                "`{}` is no version that {} serves",
                object.version, self.definition.key
            );
            let finding = Finding::error(Code::SchemaViolation, vec!["apiVersion".into()], message);
            return vec![finding.help(format!("served are {}", names.join(", ")))];
        };
        let mut check = Check {
            pointer: Vec::new(),
            findings: Vec::new(),
        };
        if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
            check.value(schema, &object.body, true);
        }
        check.findings
    }
}

/// A check under way.
struct Check {
    pointer: Pointer,
    findings: Vec<Finding>,
}

impl Check {
    /// Checks a value. `is_object` is set where apiVersion, kind and metadata are the API server's business.
    fn value(&mut self, schema: &Value, value: &Value, is_object: bool) {
        let flag = |name: &str| schema.get(name) == Some(&Value::Bool(true));
        // A null is dropped, or replaced by a default, before the schema is checked.
        if value.is_null() {
            return;
        }
        if flag("x-kubernetes-int-or-string") {
            if !value.is_i64() && !value.is_string() {
                self.violation(format!(
                    "this is {}, and should be an integer or a text",
                    what(value)
                ));
            }
            return;
        }
        let expected = schema
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !has_type(value, expected) {
            let message = format!(
                "this is {}, and should be {}",
                what(value),
                expected_as(expected)
            );
            self.violation(message);
            return;
        }
        if let Some(Value::Array(texts)) = schema.get("enum")
            && !texts.contains(value)
        {
            let texts: Vec<_> = texts.iter().map(ToString::to_string).collect();
            self.violation(format!("{value} is none of {}", texts.join(", ")));
        }
        self.bounds(schema, value);
        match value {
            Value::Object(fields) => {
                let is_object = is_object || flag("x-kubernetes-embedded-resource");
                self.fields(schema, fields, is_object);
            }
            Value::Array(items) => {
                let Some(schema) = schema.get("items") else {
                    return;
                };
                for (index, item) in items.iter().enumerate() {
                    self.pointer.push(index.into());
                    self.value(schema, item, false);
                    self.pointer.pop();
                }
            }
            _ => {}
        }
    }

    fn fields(&mut self, schema: &Value, fields: &Map<String, Value>, is_object: bool) {
        let empty = Map::new();
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&empty);
        let additional = schema.get("additionalProperties");
        let keeps_unknown = schema.get("x-kubernetes-preserve-unknown-fields")
            == Some(&Value::Bool(true))
            || additional == Some(&Value::Bool(true));
        for (name, value) in fields {
            if is_object && matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
                continue;
            }
            self.pointer.push(name.as_str().into());
            match (properties.get(name), additional) {
                (Some(schema), _) | (None, Some(schema @ Value::Object(_))) => {
                    self.value(schema, value, false);
                }
                (None, _) if keeps_unknown => {}
                (None, _) => self.unknown_field(properties, name),
            }
            self.pointer.pop();
        }
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let has_default = properties
                .get(name)
                .is_some_and(|it| it.get("default").is_some());
            let is_servers =
                is_object && matches!(name, "apiVersion" | "kind" | "metadata" | "status");
            if !fields.contains_key(name) && !has_default && !is_servers {
                let message = format!("`{name}` is missing");
                let finding = Finding::error(Code::SchemaViolation, self.pointer.clone(), message);
                self.findings.push(finding.at_key());
            }
        }
    }

    fn bounds(&mut self, schema: &Value, value: &Value) {
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        #[expect(clippy::cast_precision_loss, reason = "lengths stay far below 2^52")]
        let (size, least, most) = match value {
            Value::Number(number) => (number.as_f64(), "minimum", "maximum"),
            Value::String(text) => (Some(text.chars().count() as f64), "minLength", "maxLength"),
            Value::Array(items) => (Some(items.len() as f64), "minItems", "maxItems"),
            Value::Object(fields) => (Some(fields.len() as f64), "minProperties", "maxProperties"),
            _ => return,
        };
        let Some(size) = size else { return };
        if let Some(bound) = bound(least).filter(|bound| size < *bound) {
            self.violation(format!("{size} is below `{least}` {bound}"));
        }
        if let Some(bound) = bound(most).filter(|bound| size > *bound) {
            self.violation(format!("{size} is above `{most}` {bound}"));
        }
    }

    fn unknown_field(&mut self, properties: &Map<String, Value>, name: &str) {
        let message = format!("the CustomResourceDefinition has no field `{name}` here");
        let finding = Finding::error(Code::UnknownField, self.pointer.clone(), message).at_key();
        let names = properties.keys().map(String::as_str);
        self.findings.push(match nearest(name, names) {
            Some(meant) => finding.help(format!("did you mean `{meant}`?")),
            None => finding,
        });
    }

    fn violation(&mut self, message: String) {
        let finding = Finding::error(Code::SchemaViolation, self.pointer.clone(), message);
        self.findings.push(finding);
    }
}

fn has_type(value: &Value, expected: &str) -> bool {
    match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => true,
    }
}

fn expected_as(expected: &str) -> &str {
    match expected {
        "object" => "a mapping",
        "array" => "a list",
        "string" => "a text",
        "boolean" => "true or false",
        "integer" => "an integer",
        _ => "a number",
    }
}

/// Returns what a value is, with an article.
pub(super) fn what(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}
