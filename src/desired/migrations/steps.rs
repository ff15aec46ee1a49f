//! Rules for steps, each judged in the light of the steps before it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::expressions::Names;
use super::lookups::check_lookup;
use crate::desired::finding::{Finding, Pointer, pointer};
use crate::desired::settings::list;
use crate::expression::{Bindings, Expression, Template};
use crate::model::limits;
use crate::model::migration::{
    CompiledStep, MigrationSpec, Span, Step, StepAction, check_compiled,
};
use crate::model::{Code, GroupKind};

/// Checks the raw steps: that each has exactly one kind. Without that, nothing more can be said about them.
pub(super) fn check_kinds(spec: &Value) -> Vec<Finding> {
    let mut found = Vec::new();
    for field in ["steps", "undo"] {
        for (index, step) in list(spec, field).iter().enumerate() {
            let kinds: Vec<&str> = StepAction::KINDS
                .iter()
                .copied()
                .filter(|kind| step.get(kind).is_some_and(|value| !value.is_null()))
                .collect();
            let message = match kinds.as_slice() {
                [_] => continue,
                [] => "this step does nothing".to_owned(),
                several => format!("this step does several things: {}", several.join(", ")),
            };
            found.push(
                Finding::error(Code::MigrationStep, pointer!["spec", field, index], message).help(
                    format!("a step has one of {}", StepAction::KINDS.join(", ")),
                ),
            );
        }
    }
    found
}

/// Checks the steps and what undoes them. `raw` is `spec` as it stands.
pub(super) fn check_steps(spec: &MigrationSpec, raw: &Value) -> Vec<Finding> {
    let mut found = Vec::new();
    if spec.steps.len() + spec.undo.len() > limits::STEPS_MAX {
        let message = format!(
            "{} steps, more than {}",
            spec.steps.len() + spec.undo.len(),
            limits::STEPS_MAX
        );
        found.push(
            Finding::error(Code::MigrationStep, pointer!["spec", "steps"], message)
                .at_key()
                .help("split the migration, and order the parts with `after`"),
        );
    }
    let mut ids = BTreeSet::new();
    for (field, steps) in [("steps", &spec.steps), ("undo", &spec.undo)] {
        for (index, step) in steps.iter().enumerate() {
            let base = pointer!["spec", field, index];
            if !ids.insert(step.id.as_str()) {
                let mut at = base.clone();
                at.push("id".into());
                let message = format!("two steps have the id `{}`", step.id);
                found.push(
                    Finding::error(Code::MigrationStep, at, message)
                        .help("rename one: outputs, records and Jobs go by the id"),
                );
            }
            let earlier = match field {
                "undo" => spec.steps.iter().chain(&spec.undo[..index]),
                _ => spec.steps[..index].iter().chain(&spec.undo[..0]),
            };
            let mut names = Names::of_guard(spec).after_steps(earlier);
            if let Some(each) = &step.for_each {
                names = names.with(&each.name);
            }
            let context = StepRules {
                spec,
                step,
                names,
                base,
            };
            found.extend(context.check(&list(raw, field)[index]));
        }
    }
    found
}

/// One step with what surrounds it.
pub(super) struct StepRules<'a> {
    pub(super) spec: &'a MigrationSpec,
    pub(super) step: &'a Step,
    /// What its expressions may name.
    names: Names<'a>,
    /// The way to it.
    base: Pointer,
}

impl StepRules<'_> {
    fn check(&self, raw: &Value) -> Vec<Finding> {
        let mut found = self.check_expressions();
        let kind = self.step.action.kind();
        match &self.step.action {
            StepAction::Patch(patch) => found.extend(self.check_patch(patch)),
            StepAction::Apply(apply) => found.extend(self.check_manifest(&apply.manifest)),
            StepAction::Delete(delete) => found.extend(self.check_delete(delete)),
            StepAction::Job(job) => found.extend(self.check_job(job)),
            StepAction::Http(http) => found.extend(self.check_http(http)),
            StepAction::Rewrite(rewrite) => {
                if rewrite
                    .page_size
                    .is_some_and(|size| !(1..=500).contains(&size))
                {
                    found.push(self.wrong(&["rewrite", "pageSize"], "a page has 1 to 500 objects"));
                }
            }
            StepAction::Compiled(compiled) => found.extend(self.check_compiled(compiled)),
            StepAction::Builtin(builtin) => found.extend(self.check_builtin(builtin)),
            StepAction::Wait(_) => {}
        }
        if kind != "wait"
            && let Some(action) = raw.get(kind)
        {
            let at = self.at(&[kind]);
            found.extend(self.names.check_template(action, &at));
        }
        if let Some(retry) = &self.step.retry {
            found.extend(super::rules::check_retry(retry, &self.at(&["retry"])));
        }
        if self.step.attempt_timeout.is_some_and(is_zero) {
            found.push(self.wrong(&["attemptTimeout"], "no time at all is too little"));
        }
        found
    }

    fn check_compiled(&self, compiled: &CompiledStep) -> Option<Finding> {
        let with = serde_json::json!(compiled.with);
        let message = check_compiled(&compiled.name, &with).err()?;
        Some(self.wrong(&["compiled", "with"], &message))
    }

    fn check_expressions(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        if let Some(each) = &self.step.for_each {
            let outside = Names::of_guard(self.spec).after_steps(self.spec.steps.iter());
            found.extend(outside.check(&each.list, &self.at(&["forEach", "in"])));
            let taken = [
                "objects", "desired", "params", "deploy", "hop", "run", "steps", "result",
            ];
            if taken.contains(&each.name.as_str()) {
                let finding = self.wrong(
                    &["forEach", "as"],
                    &format!("`{}` has a meaning of its own", each.name),
                );
                found.push(finding.help("name it after what the list holds: claim"));
            } else if self.spec.lookups.contains_key(&each.name) {
                let message = format!("`{}` is a lookup already", each.name);
                let finding = self.wrong(&["forEach", "as"], &message);
                found.push(
                    finding.help("give the element another name, so that `ref` means one thing"),
                );
            }
        }
        if let Some(when) = &self.step.when {
            found.extend(self.names.check_condition(when, &self.at(&["when"])));
        }
        if let StepAction::Wait(wait) = &self.step.action {
            for (name, lookup) in &wait.lookups {
                let mut at = self.at(&["wait", "lookups"]);
                at.push(name.as_str().into());
                found.extend(check_lookup(lookup, &at));
            }
            let names = self.names.clone().with_objects(wait.lookups.keys());
            found.extend(names.check_condition(&wait.until, &self.at(&["wait", "until"])));
            if let Some(text) = &wait.fail_when {
                found.extend(names.check_condition(text, &self.at(&["wait", "failWhen"])));
            }
        }
        for (name, text) in &self.step.outputs {
            let at = self.at(&["outputs", name]);
            let mut wrong = self.names.clone().with("result").check(text, &at);
            if wrong.is_empty() {
                wrong.extend(self.check_result(text, at));
            }
            found.append(&mut wrong);
        }
        found
    }

    /// Refuses `result` in the outputs of a step that comes to nothing but its effect.
    fn check_result(&self, text: &str, at: Pointer) -> Option<Finding> {
        let kind = self.step.action.kind();
        if !matches!(kind, "patch" | "apply" | "delete" | "wait") {
            return None;
        }
        let places = Expression::compile(text).ok()?.places();
        let (_, offset) = places
            .into_iter()
            .find(|(path, _)| path.first().is_some_and(|root| root == "result"))?;
        let message = format!("`result` is null: {kind} comes to nothing but its effect");
        let help = match self.spec.lookups.keys().next() {
            Some(name) => {
                format!("`objects` are as they were before the step; for instance: objects.{name}")
            }
            None => {
                "remove it; job, http, builtin, compiled and rewrite have a `result`".to_owned()
            }
        };
        let finding = Finding::error(Code::MigrationExpression, at, message);
        Some(finding.inside(Some(offset)).help(help))
    }

    /// Returns what a text comes to where only params are needed for it.
    pub(super) fn constant(&self, text: &str) -> Option<String> {
        constant(text, self.spec)
    }

    pub(super) fn at(&self, below: &[&str]) -> Pointer {
        let mut at = self.base.clone();
        at.extend(below.iter().map(|part| (*part).into()));
        at
    }

    pub(super) fn wrong(&self, below: &[&str], message: &str) -> Finding {
        Finding::error(Code::MigrationStep, self.at(below), message)
    }
}

/// Returns what a text comes to where only params are needed for it.
pub(super) fn constant(text: &str, spec: &MigrationSpec) -> Option<String> {
    let template = Template::compile(&Value::from(text)).ok()?;
    let only_params = |path: Vec<String>| path.first().is_some_and(|root| root == "params");
    let mut expressions = template.expressions().into_iter();
    if !expressions.all(|it| it.paths().into_iter().all(only_params)) {
        return None;
    }
    let mut bindings = Bindings::default();
    let params = spec.params.clone().into_iter().collect();
    bindings.set("params", Value::Object(params));
    template.render(&bindings).ok()?.as_str().map(str::to_owned)
}

pub(super) fn is_zero(span: Span) -> bool {
    span.0.is_zero()
}

/// Returns the group of an `apiVersion`.
pub(super) fn group_of(api_version: &str) -> &str {
    crate::desired::object::group_and_version(api_version).0
}

/// Returns the kind of something that a definition names.
pub(super) fn kind_of(api_version: &str, kind: &str) -> GroupKind {
    GroupKind::new(group_of(api_version), kind)
}
