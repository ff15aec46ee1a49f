//! A small language for schemas: one table describes a kind, checks its documents and is published as JSON Schema.

use serde_json::{Value, json};

use super::custom::what;
use super::finding::{Finding, Pointer, nearest};
use crate::model::Code;

/// What a value must look like.
#[derive(Debug, Clone, Copy)]
pub(super) enum Schema {
    /// A mapping with these fields and no others.
    Record(&'static [Field]),
    /// A mapping from names to values of one schema.
    Map(&'static TextRule, &'static Schema),
    /// A mapping of any content, for instance an embedded object.
    Mapping,
    /// A list.
    List(&'static Schema),
    /// A text by a rule.
    Text(&'static TextRule),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// True or false.
    Boolean,
    /// A whole number, not below zero.
    Count,
    /// A number.
    Number,
    /// Anything.
    Any,
}

/// One field of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    /// Its name.
    pub(super) name: &'static str,
    /// What its value must look like.
    pub(super) schema: Schema,
    /// Whether it must be there.
    pub(super) required: bool,
    /// What it is for; an editor shows this.
    pub(super) description: &'static str,
}

/// A rule for texts.
#[derive(Debug)]
pub(super) struct TextRule {
    /// What the text is, with an article: `a channel name`.
    pub(super) what: &'static str,
    /// The rule as a regular expression, for the published schema; empty where any text will do.
    pub(super) pattern: &'static str,
    /// The same rule as a function.
    pub(super) accepts: fn(&str) -> bool,
    /// The least and the largest number of characters.
    pub(super) length: (usize, usize),
    /// The rule in words, with an example.
    pub(super) help: &'static str,
}

/// Describes a field that must be there: its name, what it looks like, what it is for.
///
/// A macro, since a function's result could not be borrowed for a static.
macro_rules! required {
    ($name:expr, $schema:expr, $description:expr $(,)?) => {
        $crate::desired::schema::Field {
            name: $name,
            schema: $schema,
            required: true,
            description: $description,
        }
    };
}
pub(super) use required;

/// Describes a field that may be missing.
macro_rules! optional {
    ($name:expr, $schema:expr, $description:expr $(,)?) => {
        $crate::desired::schema::Field {
            name: $name,
            schema: $schema,
            required: false,
            description: $description,
        }
    };
}
pub(super) use optional;

/// Any text.
pub(super) static ANY_TEXT: TextRule = TextRule {
    what: "a text",
    pattern: "",
    accepts: |_| true,
    length: (0, usize::MAX),
    help: "",
};

/// A text that is not empty.
pub(super) static SOME_TEXT: TextRule = TextRule {
    what: "a text that is not empty",
    pattern: "",
    accepts: |_| true,
    length: (1, usize::MAX),
    help: "",
};

impl Schema {
    /// Checks a value and everything in it.
    pub(super) fn check(&self, value: &Value) -> Vec<Finding> {
        let mut check = Check {
            pointer: Vec::new(),
            findings: Vec::new(),
        };
        check.value(self, value);
        check.findings
    }

    /// Takes out the nulls of fields that may be missing, which mean the same.
    pub(super) fn drop_nulls(&self, value: &mut Value) {
        match (self, value) {
            (Self::Record(fields), Value::Object(entries)) => {
                for field in *fields {
                    if entries.get(field.name).is_some_and(Value::is_null) && !field.required {
                        entries.remove(field.name);
                    }
                    if let Some(value) = entries.get_mut(field.name) {
                        field.schema.drop_nulls(value);
                    }
                }
            }
            (Self::Map(_, values), Value::Object(entries)) => {
                for value in entries.values_mut() {
                    values.drop_nulls(value);
                }
            }
            (Self::List(items), Value::Array(values)) => {
                for value in values {
                    items.drop_nulls(value);
                }
            }
            _ => {}
        }
    }

    /// Returns the JSON Schema (draft 2020-12) that says the same.
    pub(super) fn to_json_schema(self) -> Value {
        match self {
            Self::Record(fields) => {
                let properties: serde_json::Map<_, _> = fields
                    .iter()
                    .map(|field| {
                        let mut schema = field.schema.to_json_schema();
                        schema["description"] = json!(field.description);
                        (field.name.to_owned(), schema)
                    })
                    .collect();
                let required: Vec<_> = fields
                    .iter()
                    .filter(|field| field.required)
                    .map(|field| field.name)
                    .collect();
                json!({
                    "type": "object",
                    "properties": properties,
                    "required": required,
                    "additionalProperties": false,
                })
            }
            Self::Map(keys, values) => json!({
                "type": "object",
                "propertyNames": Self::Text(keys).to_json_schema(),
                "additionalProperties": values.to_json_schema(),
            }),
            Self::Mapping => json!({"type": "object"}),
            Self::List(items) => json!({"type": "array", "items": items.to_json_schema()}),
            Self::Text(rule) => {
                let mut schema = json!({"type": "string"});
                if !rule.pattern.is_empty() {
                    schema["pattern"] = json!(rule.pattern);
                }
                if rule.length.0 > 0 {
                    schema["minLength"] = json!(rule.length.0);
                }
                if rule.length.1 < usize::MAX {
                    schema["maxLength"] = json!(rule.length.1);
                }
                schema
            }
            Self::OneOf(texts) => json!({"enum": texts}),
            Self::Boolean => json!({"type": "boolean"}),
            Self::Count => json!({"type": "integer", "minimum": 0}),
            Self::Number => json!({"type": "number"}),
            Self::Any => json!({}),
        }
    }

    /// Returns what a value of this schema is, with an article.
    fn what(&self) -> &'static str {
        match self {
            Self::Record(_) | Self::Map(..) | Self::Mapping => "a mapping",
            Self::List(_) => "a list",
            Self::Text(rule) => rule.what,
            Self::OneOf(_) => "a text",
            Self::Boolean => "true or false",
            Self::Count => "a whole number, not below zero",
            Self::Number => "a number",
            Self::Any => "anything",
        }
    }
}

/// A check under way.
struct Check {
    pointer: Pointer,
    findings: Vec<Finding>,
}

impl Check {
    fn value(&mut self, schema: &Schema, value: &Value) {
        match (schema, value) {
            (Schema::Record(fields), Value::Object(entries)) => self.record(fields, entries),
            (Schema::Map(keys, values), Value::Object(entries)) => {
                for (key, value) in entries {
                    self.pointer.push(key.as_str().into());
                    self.key(keys, key);
                    self.value(values, value);
                    self.pointer.pop();
                }
            }
            (Schema::List(items), Value::Array(values)) => {
                for (index, value) in values.iter().enumerate() {
                    self.pointer.push(index.into());
                    self.value(items, value);
                    self.pointer.pop();
                }
            }
            (Schema::Text(rule), Value::String(text)) => self.text(rule, text),
            (Schema::OneOf(texts), Value::String(text)) => self.one_of(texts, text),
            (Schema::Mapping, Value::Object(_))
            | (Schema::Boolean, Value::Bool(_))
            | (Schema::Number, Value::Number(_))
            | (Schema::Any, _) => {}
            (Schema::Count, Value::Number(number)) if number.is_u64() => {}
            _ => self.wrong_type(schema, value),
        }
    }

    fn record(&mut self, fields: &'static [Field], entries: &serde_json::Map<String, Value>) {
        for (name, value) in entries {
            self.pointer.push(name.as_str().into());
            match fields.iter().find(|field| field.name == name) {
                // The API server drops a null before it checks the schema; so does kubectl.
                Some(field) if value.is_null() && !field.required => {}
                Some(field) => self.value(&field.schema, value),
                None => self.unknown_field(fields, name),
            }
            self.pointer.pop();
        }
        for field in fields.iter().filter(|field| field.required) {
            if !entries.contains_key(field.name) {
                let message = format!("`{}` is missing", field.name);
                let finding = self
                    .finding(Code::SchemaViolation, message)
                    .help(format!("{}: {}", field.name, field.description));
                // The entry in the list, or the key of the mapping, that lacks the field.
                self.findings.push(finding.at_key());
            }
        }
    }

    fn unknown_field(&mut self, fields: &'static [Field], name: &str) {
        let names = fields.iter().map(|field| field.name);
        let finding = self
            .finding(
                Code::UnknownField,
                format!("there is no field `{name}` here"),
            )
            .at_key();
        let help = match nearest(name, names.clone()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("known fields are {}", names.collect::<Vec<_>>().join(", ")),
        };
        self.findings.push(finding.help(help));
    }

    fn key(&mut self, rule: &TextRule, key: &str) {
        if !rule.holds(key) {
            let finding = self.violation(rule, key).at_key();
            self.findings.push(finding);
        }
    }

    fn text(&mut self, rule: &TextRule, text: &str) {
        if !rule.holds(text) {
            let finding = self.violation(rule, text);
            self.findings.push(finding);
        }
    }

    fn violation(&self, rule: &TextRule, text: &str) -> Finding {
        let length = text.chars().count();
        let message = if text.is_empty() {
            format!("an empty text is not {}", rule.what)
        } else if length > rule.length.1 {
            format!(
                "{length} characters, more than the {} that {} may have",
                rule.length.1, rule.what
            )
        } else {
            format!("`{text}` is not {}", rule.what)
        };
        let finding = self.finding(Code::SchemaViolation, message);
        let meant = rule.meant_by_number(text);
        if let Some(meant) = meant {
            finding.help(format!("did you mean `{meant}`? {}", rule.help))
        } else if rule.help.is_empty() {
            finding
        } else {
            finding.help(rule.help)
        }
    }

    fn one_of(&mut self, texts: &'static [&'static str], text: &str) {
        if texts.contains(&text) {
            return;
        }
        let finding = self.finding(
            Code::SchemaViolation,
            format!("`{text}` is none of {}", texts.join(", ")),
        );
        let finding = match nearest(text, texts.iter().copied()) {
            Some(meant) => finding.help(format!("did you mean `{meant}`?")),
            None => finding,
        };
        self.findings.push(finding);
    }

    fn wrong_type(&mut self, schema: &Schema, value: &Value) {
        let found = what(value);
        let message = format!("this is {found}, and should be {}", schema.what());
        let finding = self.finding(Code::SchemaViolation, message);
        self.findings.push(match (schema, value) {
            (Schema::Text(rule), Value::Number(_) | Value::Bool(_)) if rule.help.is_empty() => {
                finding.help(format!("write it in quotes: \"{value}\""))
            }
            (Schema::Text(rule), Value::Number(_) | Value::Bool(_)) => {
                let text = value.to_string();
                finding.help(match rule.meant_by_number(&text) {
                    Some(meant) => format!("did you mean `{meant}`? {}", rule.help),
                    None if rule.holds(&text) => format!("write it in quotes: \"{text}\""),
                    None => format!("write it in quotes; {}", rule.help),
                })
            }
            (Schema::Text(rule), Value::Object(_)) => match rule.meant_by_labels(value) {
                Some(meant) => finding.help(format!("did you mean `{meant}`?")),
                None if rule.help.is_empty() => finding,
                None => finding.help(rule.help),
            },
            _ => finding,
        });
    }

    fn finding(&self, code: Code, message: String) -> Finding {
        Finding::error(code, self.pointer.clone(), message)
    }
}

impl TextRule {
    /// Returns whether a text keeps the rule.
    pub(super) fn holds(&self, text: &str) -> bool {
        let (least, most) = self.length;
        (least..=most).contains(&text.chars().count()) && (self.accepts)(text)
    }

    /// Returns what was meant by a number that lacks its unit, or a version that lacks a part, where that keeps the rule.
    fn meant_by_number(&self, text: &str) -> Option<String> {
        let number = text.strip_prefix('v').unwrap_or(text);
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
        if self.holds(text) || !number.split('.').all(is_number) {
            return None;
        }
        ["", "s", ".0", ".0.0"]
            .iter()
            .map(|end| format!("{number}{end}"))
            .find(|meant| self.holds(meant))
    }

    /// Returns the text that a selector written as a mapping comes to, where that keeps the rule.
    fn meant_by_labels(&self, value: &Value) -> Option<String> {
        let labels = value.get("matchLabels")?.as_object()?;
        let pairs: Option<Vec<String>> = labels
            .iter()
            .map(|(name, value)| Some(format!("{name}={}", value.as_str()?)))
            .collect();
        let meant = pairs?.join(",");
        (!meant.is_empty() && self.holds(&meant)).then_some(meant)
    }
}
