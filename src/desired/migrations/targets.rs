//! Rules for steps that change objects: patch, apply and delete.

use serde_json::Value;

use super::expressions::declaration;
use super::lookups::{check_scope, check_selector, is_clear};
use super::steps::{StepRules, group_of};
use crate::desired::finding::{Finding, nearest};
use crate::model::Code;
use crate::model::migration::{DeleteStep, PatchStep, PatchType, Selection};

impl StepRules<'_> {
    pub(super) fn check_patch(&self, patch: &PatchStep) -> Vec<Finding> {
        let mut found = Vec::new();
        match (&patch.reference, &patch.object) {
            (Some(name), None) => found.extend(self.check_reference(name, "patch", false)),
            (None, Some(object)) => {
                let at = self.at(&["patch", "object"]);
                let namespace = object.namespace.as_deref();
                found.extend(check_scope(
                    Code::MigrationStep,
                    &object.api_version,
                    &object.kind,
                    namespace,
                    &at,
                ));
            }
            _ => found.push(
                self.wrong(&["patch"], "a patch has either `ref` or `object`")
                    .help("ref: LOOKUP"),
            ),
        }
        if (patch.form == PatchType::Json) != patch.body.is_array() {
            let message = if patch.body.is_array() {
                "a list of operations is a patch of type json"
            } else {
                "a patch of type json is a list of operations"
            };
            found.push(
                self.wrong(&["patch", "body"], message)
                    .help("type: json\nbody:\n  - {op: remove, path: /spec/field}"),
            );
        } else if patch.form != PatchType::Json && !patch.body.is_object() {
            found.push(self.wrong(&["patch", "body"], "a patch is a mapping"));
        }
        let kind = match (&patch.reference, &patch.object) {
            (Some(name), _) => self
                .spec
                .lookups
                .get(name)
                .map(|it| (it.api_version.as_str(), it.kind.as_str())),
            (_, Some(object)) => Some((object.api_version.as_str(), object.kind.as_str())),
            _ => None,
        };
        if kind == Some(("v1", "Secret")) {
            found.extend(self.check_secret(&patch.body, &["patch", "body"]));
        }
        if let (PatchType::Strategic, Some((api_version, kind))) = (patch.form, kind)
            && crate::desired::kinds::scope_of(group_of(api_version), kind).is_none()
        {
            let message =
                format!("a strategic patch is for Kubernetes' own kinds, and {kind} is none");
            found.push(self.wrong(&["patch", "type"], &message).help("type: merge"));
        }
        found
    }

    pub(super) fn check_manifest(&self, manifest: &Value) -> Vec<Finding> {
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
        let at = self.at(&["apply", "manifest"]);
        let (Some(api_version), Some(kind), Some(_)) =
            (text("/apiVersion"), text("/kind"), text("/metadata/name"))
        else {
            let finding = Finding::error(
                Code::MigrationStep,
                at,
                "the object has no `apiVersion`, `kind` or `metadata.name`",
            );
            return vec![finding.at_key()];
        };
        let namespace = text("/metadata/namespace");
        let scope = check_scope(Code::MigrationStep, api_version, kind, namespace, &at);
        let mut found: Vec<Finding> = scope.into_iter().collect();
        if (api_version, kind) == ("v1", "Secret") {
            found.extend(self.check_secret(manifest, &["apply", "manifest"]));
        }
        found
    }

    /// Refuses values of Secrets: the definition is copied into every Run.
    fn check_secret(&self, body: &Value, at: &[&str]) -> Vec<Finding> {
        ["data", "stringData"]
            .into_iter()
            .filter(|field| body.get(field).is_some_and(|value| !value.is_null()))
            .map(|field| {
                let mut at = self.at(at);
                at.push(field.into());
                let message = "values of a Secret would stand in git and in every Run";
                Finding::error(Code::MigrationStep, at, message)
                    .at_key()
                    .help("let the cluster make them: builtin: {name: generate-secret, with: {…}}")
            })
            .collect()
    }

    pub(super) fn check_delete(&self, delete: &DeleteStep) -> Vec<Finding> {
        match (&delete.reference, &delete.select) {
            (Some(name), None) => self.check_reference(name, "delete", true),
            (None, Some(selection)) => self.check_selection(selection),
            _ => vec![
                self.wrong(&["delete"], "a deletion has either `ref` or `select`")
                    .help("ref: LOOKUP"),
            ],
        }
    }

    fn check_selection(&self, selection: &Selection) -> Vec<Finding> {
        let at = self.at(&["delete", "select"]);
        let mut found = Vec::new();
        let selector = selection.selector.as_deref().unwrap_or_default();
        found.extend(check_selector(Code::MigrationStep, selector, &at));
        if selection.names.is_empty() && selector.trim().is_empty() {
            let message = "this would delete every object of the kind";
            found.push(
                Finding::error(Code::MigrationStep, at.clone(), message)
                    .at_key()
                    .help("names: [NAME]\nor\nselector: app=NAME"),
            );
        }
        if selection.all_namespaces && selection.namespace.is_some() {
            found.push(Finding::error(
                Code::MigrationStep,
                at,
                "one namespace is named, and all are meant as well",
            ));
        } else if !selection.all_namespaces {
            let namespace = selection.namespace.as_deref();
            let (api_version, kind) = (&selection.api_version, &selection.kind);
            found.extend(check_scope(
                Code::MigrationStep,
                api_version,
                kind,
                namespace,
                &at,
            ));
        }
        found
    }

    /// Checks that a step refers to a lookup, or to the element that it is done for.
    fn check_reference(&self, name: &str, kind: &str, takes_lists: bool) -> Vec<Finding> {
        let each = self.step.for_each.as_ref().map(|each| each.name.as_str());
        if each == Some(name) {
            return Vec::new();
        }
        let finding = |message: String| {
            Finding::error(Code::MigrationLookup, self.at(&[kind, "ref"]), message)
        };
        match self.spec.lookups.get(name) {
            Some(lookup) if lookup.list && is_clear(lookup) && !takes_lists => {
                let message = format!("`{name}` is a list, and a {kind} changes one object");
                let help = format!("forEach: {{as: one, in: objects.{name}}}\n{kind}:\n  ref: one");
                vec![finding(message).help(help)]
            }
            Some(_) => Vec::new(),
            None => {
                let names = self.spec.lookups.keys().map(String::as_str).chain(each);
                let help = match nearest(name, names) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => declaration(name, self.spec.lookups.is_empty()),
                };
                vec![finding(format!("there is no lookup `{name}`")).help(help)]
            }
        }
    }
}
