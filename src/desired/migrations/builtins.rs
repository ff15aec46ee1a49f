//! Rules for what Fairway's own helpers are given. A value that is an expression is known only when the step runs.

use serde_json::Value;

use super::steps::StepRules;
use crate::desired::custom::what;
use crate::desired::finding::{Finding, nearest};
use crate::model::Code;
use crate::model::migration::{BuiltinField, BuiltinForm, BuiltinStep, builtin_fields};

impl StepRules<'_> {
    pub(super) fn check_builtin(&self, builtin: &BuiltinStep) -> Vec<Finding> {
        let fields = builtin_fields(&builtin.name);
        let mut found = Vec::new();
        for (name, value) in &builtin.with {
            match fields.iter().find(|field| field.name == name) {
                Some(field) => found.extend(self.check_given(field, value)),
                None => found.push(self.unknown_given(builtin, fields, name)),
            }
        }
        // A name that was mistyped is told of once.
        let meant: Vec<&str> = builtin
            .with
            .keys()
            .filter_map(|name| nearest(name, fields.iter().map(|field| field.name)))
            .collect();
        let is_missing = |field: &&BuiltinField| field.required && !meant.contains(&field.name);
        let missing: Vec<&BuiltinField> = fields.iter().filter(is_missing).collect();
        if let [first, rest @ ..] = missing.as_slice() {
            let names = rest
                .iter()
                .fold(format!("`{}`", first.name), |names, field| {
                    format!("{names}, `{}`", field.name)
                });
            let message = format!("{} is not given {names}", builtin.name);
            let lines: Vec<String> = missing
                .iter()
                .map(|field| format!("{}: {}", field.name, field.example))
                .collect();
            let (at, help) = if builtin.with.is_empty() {
                (&["builtin"][..], format!("with:\n  {}", lines.join("\n  ")))
            } else {
                (&["builtin", "with"][..], lines.join("\n"))
            };
            found.push(self.wrong(at, &message).at_key().help(help));
        }
        found
    }

    fn unknown_given(&self, builtin: &BuiltinStep, fields: &[BuiltinField], name: &str) -> Finding {
        let names = fields.iter().map(|field| field.name);
        let help = match nearest(name, names.clone()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("it takes {}", names.collect::<Vec<_>>().join(", ")),
        };
        let message = format!("{} takes no `{name}`", builtin.name);
        Finding::error(
            Code::UnknownField,
            self.at(&["builtin", "with", name]),
            message,
        )
        .at_key()
        .help(help)
    }

    fn check_given(&self, field: &BuiltinField, value: &Value) -> Option<Finding> {
        let text = value.as_str();
        if text.is_some_and(|text| text.contains("${")) {
            return None;
        }
        let (holds, wanted) = match field.form {
            BuiltinForm::Text => (
                text.is_some_and(|text| !text.is_empty()),
                "a text that is not empty".to_owned(),
            ),
            BuiltinForm::NamespacedName => {
                let parts = text.and_then(|text| text.split_once('/'));
                let holds = parts.is_some_and(|(namespace, name)| {
                    !namespace.is_empty() && !name.is_empty() && !name.contains('/')
                });
                (holds, "NAMESPACE/NAME".to_owned())
            }
            BuiltinForm::Number(least, most) => {
                let number = value.as_u64().and_then(|it| usize::try_from(it).ok());
                let holds = number.is_some_and(|it| (least..=most).contains(&it));
                (holds, format!("a whole number from {least} to {most}"))
            }
        };
        let shown = match value {
            Value::Number(_) | Value::String(_) => format!("`{}`", text_of(value)),
            other => what(other).to_owned(),
        };
        (!holds).then(|| {
            let message = format!("`{}` is {shown}, and should be {wanted}", field.name);
            self.wrong(&["builtin", "with", field.name], &message)
                .help(format!("{}: {}", field.name, field.example))
        })
    }
}

fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
