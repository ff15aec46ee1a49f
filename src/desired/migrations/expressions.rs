//! Expressions of a definition: that they can be read, and that all they name is declared.
//!
//! CEL has no types here, so that a member which nobody declares would be found only on a cluster, as an unknown guard. What
//! can be known from the definition is therefore checked by name: everything but the fields of Kubernetes objects.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::desired::finding::{Finding, Pointer, nearest};
use crate::desired::yaml::PointerPart;
use crate::expression::{Expression, ExpressionError, Template};
use crate::model::Code;
use crate::model::migration::{Lookup, MigrationSpec, Step};

/// What every expression may name.
const ROOTS: &[&str] = &["objects", "desired", "params", "deploy", "hop", "run"];
/// Namespaces of functions, and types, which a parser takes for names.
const FUNCTIONS: &[&str] = &[
    "base64",
    "bool",
    "bytes",
    "cidr",
    "double",
    "duration",
    "dyn",
    "format",
    "int",
    "ip",
    "list",
    "lists",
    "map",
    "math",
    "null_type",
    "optional",
    "quantity",
    "regex",
    "semver",
    "sets",
    "string",
    "strings",
    "timestamp",
    "type",
    "uint",
    "url",
];
const DEPLOY: &[&str] = &["components"];
const HOP: &[&str] = &["from", "to"];
const RUN: &[&str] = &["id", "migration", "component", "phase", "action"];

/// What expressions at one place of a definition may name.
#[derive(Debug, Clone)]
pub(super) struct Names<'a> {
    objects: Vec<&'a str>,
    desired: Vec<&'a str>,
    params: Vec<&'a str>,
    /// The outputs of each step that is over by then; none where no step can be.
    steps: Option<BTreeMap<&'a str, Vec<&'a str>>>,
    /// Names of this place alone.
    own: Vec<&'a str>,
    /// One of the lookups with its name, for an example.
    sample: Option<(&'a str, &'a Lookup)>,
}

impl<'a> Names<'a> {
    /// Returns what a guard may name.
    pub(super) fn of_guard(spec: &'a MigrationSpec) -> Self {
        let lookups: Vec<&str> = spec.lookups.keys().map(String::as_str).collect();
        Self {
            objects: lookups.clone(),
            desired: lookups,
            params: spec.params.keys().map(String::as_str).collect(),
            steps: None,
            own: Vec::new(),
            sample: spec
                .lookups
                .iter()
                .min_by_key(|(_, lookup)| lookup.list)
                .map(|(name, lookup)| (name.as_str(), lookup)),
        }
    }

    /// Adds the outputs of steps that are over.
    #[must_use]
    pub(super) fn after_steps(mut self, steps: impl Iterator<Item = &'a Step>) -> Self {
        let known = self.steps.get_or_insert_default();
        known.extend(steps.map(|step| {
            let outputs = step.outputs.keys().map(String::as_str).collect();
            (step.id.as_str(), outputs)
        }));
        self
    }

    /// Adds a name of this place alone.
    #[must_use]
    pub(super) fn with(mut self, name: &'a str) -> Self {
        self.own.push(name);
        self
    }

    /// Adds objects that only this place can look at.
    #[must_use]
    pub(super) fn with_objects(mut self, names: impl Iterator<Item = &'a String>) -> Self {
        self.objects.extend(names.map(String::as_str));
        self
    }

    /// Checks one expression.
    pub(super) fn check(&self, text: &str, pointer: &Pointer) -> Vec<Finding> {
        match Expression::compile(text) {
            Ok(expression) => self.check_names(&expression, pointer),
            Err(error) => vec![self.unreadable(&error, text, pointer)],
        }
    }

    /// Checks one expression that has to come to true or false.
    pub(super) fn check_condition(&self, text: &str, pointer: &Pointer) -> Vec<Finding> {
        let mut found = self.check(text, pointer);
        let what = Expression::compile(text)
            .ok()
            .and_then(|it| it.never_true_or_false());
        if let (Some(what), true) = (what, found.is_empty()) {
            let message = format!("this comes to {what}, and has to come to true or false");
            let finding = Finding::error(Code::MigrationExpression, pointer.clone(), message);
            found.push(finding.help(comparison(text, what)));
        }
        found
    }

    /// Checks every expression in the texts of a value.
    pub(super) fn check_template(&self, value: &Value, base: &Pointer) -> Vec<Finding> {
        let mut found = Vec::new();
        for (pointer, text) in texts_with_expressions(value, base) {
            match Template::compile(&Value::from(text)) {
                Ok(template) => {
                    for expression in template.expressions() {
                        found.extend(self.check_names(expression, &pointer));
                    }
                }
                Err(error) => found.push(self.unreadable(&error.error, text, &pointer)),
            }
        }
        found
    }

    fn check_names(&self, expression: &Expression, pointer: &Pointer) -> Vec<Finding> {
        let mut found = Vec::new();
        for (path, at) in expression.places() {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            if let Err((message, help)) = self.judge(&path) {
                let finding = Finding::error(Code::MigrationExpression, pointer.clone(), message);
                found.push(finding.inside(Some(at)).help(help));
            }
        }
        found
    }

    fn unreadable(&self, error: &ExpressionError, text: &str, pointer: &Pointer) -> Finding {
        let message = error.message.lines().next().unwrap_or(&error.message);
        let finding = Finding::error(
            Code::MigrationExpression,
            pointer.clone(),
            format!("this is no expression that can be used: {message}"),
        )
        .inside(error.offset);
        if let Some(meant) = error.meant {
            finding.help(format!("did you mean `{meant}`?"))
        } else if text.contains("&&&") || text.contains("===") || text.contains(" and ") {
            finding.help("CEL writes `&&`, `||`, `!` and `==`")
        } else if message.contains("loops") {
            finding.help("take one loop out: a lookup with a selector, or a step with forEach")
        } else if message.starts_with("there is no") {
            finding.help("docs/reference/expressions.md has every function")
        } else {
            finding.help(format!("for instance: {}", self.example()))
        }
    }

    /// Returns an expression that can be used at this place.
    fn example(&self) -> String {
        match self.sample {
            Some((name, lookup)) if lookup.list => format!("size(objects.{name}) > 0"),
            Some((name, _)) => {
                format!("objects.{name} != null && objects.{name}.metadata.name != \"\"")
            }
            None => "size(deploy.components) > 0".to_owned(),
        }
    }

    /// Judges one path that an expression names; an error is a message and the way out.
    fn judge(&self, path: &[&str]) -> Result<(), (String, String)> {
        let (root, rest) = path.split_first().expect("a path has a name");
        if self.own.contains(root) {
            return Ok(());
        }
        let member = rest.first().copied();
        match (*root, member) {
            ("objects", Some(name)) => declared(name, "objects", "lookup", &self.objects),
            ("desired", Some(name)) => declared(name, "desired", "lookup", &self.desired),
            ("params", Some(name)) => declared(name, "params", "param", &self.params),
            ("deploy", Some(name)) => one_of(name, "deploy", DEPLOY),
            ("hop", Some(name)) => one_of(name, "hop", HOP),
            ("run", Some(name)) => one_of(name, "run", RUN),
            ("steps", _) => self.judge_step(rest),
            (root, _) if ROOTS.contains(&root) || FUNCTIONS.contains(&root) => Ok(()),
            (root, _) => Err(self.unknown_root(root)),
        }
    }

    fn judge_step(&self, rest: &[&str]) -> Result<(), (String, String)> {
        let Some(steps) = &self.steps else {
            return Err((
                "a guard is asked before the first step, so that it cannot look at `steps`".to_owned(),
                "ask for what the steps change in the cluster: declare a lookup, and use objects.NAME".to_owned(),
            ));
        };
        let Some(id) = rest.first() else {
            return Ok(());
        };
        let Some(outputs) = steps.get(id) else {
            let message = format!("`steps[\"{id}\"]` is no step that is over by then");
            let help = match nearest(id, steps.keys().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "only steps that stand before this one can be named".to_owned(),
            };
            return Err((message, help));
        };
        match rest[1..] {
            [] | ["outputs"] => Ok(()),
            ["outputs", name, ..] => {
                declared(name, &format!("steps[\"{id}\"].outputs"), "output", outputs)
            }
            [other, ..] => Err((
                format!("a step has no `{other}`"),
                format!("write steps[\"{id}\"].outputs.NAME"),
            )),
        }
    }

    fn unknown_root(&self, root: &str) -> (String, String) {
        let message = format!("`{root}` is not known here");
        let names = ROOTS.iter().copied().chain(self.own.iter().copied());
        if self.objects.contains(&root) {
            return (message, format!("did you mean `objects.{root}`?"));
        }
        if self.params.contains(&root) {
            return (message, format!("did you mean `params.{root}`?"));
        }
        let help = match nearest(root, names.clone()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("known are {}", names.collect::<Vec<_>>().join(", ")),
        };
        (message, help)
    }
}

fn declared(name: &str, of: &str, what: &str, names: &[&str]) -> Result<(), (String, String)> {
    if names.contains(&name) {
        return Ok(());
    }
    let message = format!("`{of}.{name}`: no {what} has the name `{name}`");
    let help = match nearest(name, names.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => match what {
            "lookup" => declaration(name, names.is_empty()),
            "param" if names.is_empty() => format!("declare it:\nparams:\n  {name}: VALUE"),
            "param" => format!("declare it below `params`:\n{name}: VALUE"),
            _ if names.is_empty() => {
                format!("declare it at the step:\noutputs:\n  {name}: result.FIELD")
            }
            _ => format!("declare it below `outputs` of the step:\n{name}: result.FIELD"),
        },
    };
    Err((message, help))
}

/// Returns the lines that declare a lookup; `is_first` says that there is none yet.
pub(super) fn declaration(name: &str, is_first: bool) -> String {
    let lookup =
        format!("{name}: {{apiVersion: v1, kind: ConfigMap, namespace: NAMESPACE, name: NAME}}");
    if is_first {
        format!("declare it:\nlookups:\n  {lookup}")
    } else {
        format!("declare it below `lookups`:\n{lookup}")
    }
}

fn one_of(name: &str, of: &str, names: &[&str]) -> Result<(), (String, String)> {
    if names.contains(&name) {
        return Ok(());
    }
    let message = format!("`{of}` has no `{name}`");
    Err((message, format!("it has {}", names.join(", "))))
}

/// Returns a comparison of an expression that comes to no truth value.
fn comparison(text: &str, what: &str) -> String {
    /// What is longer is not repeated.
    const SHOWN_MAX: usize = 60;
    let text = text.trim();
    let part = match text {
        _ if text.contains('\n') || text.len() > SHOWN_MAX => "(…)".to_owned(),
        _ if text.contains(['?', ':']) => format!("({text})"),
        _ => text.to_owned(),
    };
    match what {
        "a number" => format!("compare it: {part} > 0"),
        "a text" => format!("compare it: {part} != \"\""),
        "a list" => format!("ask for what is in it: size({part}) > 0"),
        "an optional value" => format!("ask for it: {part}.hasValue()"),
        "a quantity" => format!("compare it: {part} < quantity(\"1Gi\")"),
        "a version" => format!("compare it: {part} < semver(\"1.0.0\")"),
        _ => "compare it with `==`, `!=`, `<` or `>`".to_owned(),
    }
}

/// Returns the texts of a value that hold expressions, each with the way to it.
pub(super) fn texts_with_expressions<'v>(
    value: &'v Value,
    base: &Pointer,
) -> Vec<(Pointer, &'v str)> {
    let mut found = Vec::new();
    collect(value, &mut base.clone(), &mut found);
    found
}

fn collect<'v>(value: &'v Value, at: &mut Pointer, found: &mut Vec<(Pointer, &'v str)>) {
    let mut below = |part: PointerPart, value: &'v Value| {
        at.push(part);
        collect(value, at, found);
        at.pop();
    };
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                below(name.as_str().into(), field);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                below(index.into(), item);
            }
        }
        Value::String(text) if text.contains("${") => found.push((at.clone(), text)),
        _ => {}
    }
}
