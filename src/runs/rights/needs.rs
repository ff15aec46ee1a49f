//! What each lookup and step of a migration asks a cluster for.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::expression::Expression;
use crate::model::migration::{
    DeleteStep, Lookup, MigrationSpec, ObjectReference, Step, StepAction,
};
use crate::runs::compiled;

/// One verb on one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// `v1`, `apps/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// `status` or another subresource.
    pub subresource: Option<String>,
    /// Where.
    pub namespace: Within,
    /// The only object that is meant; none where it may be any.
    pub name: Option<String>,
    /// The verb.
    pub verb: &'static str,
    /// What for.
    pub used: Use,
    /// The step that asks; none for lookups.
    pub step: Option<String>,
}

/// Where objects are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Within {
    /// In this namespace.
    Named(String),
    /// In all of them, or in none where the kind has none.
    All,
    /// In one that this text with expressions names when the step runs.
    Computed(String),
}

/// What something is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// A lookup: of a kind that is not served it finds nothing.
    Lookup,
    /// A step on what a lookup or a selection has found: where the kind is not served there is nothing to do.
    Found,
    /// A step that fails where the kind is not served.
    Write,
}

impl Need {
    /// Returns the API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.rsplit_once('/').map_or("", |it| it.0)
    }
}

/// Returns what a migration asks for, sorted, each once, and what cannot be read from its definition, in words.
pub fn needs(migration: &str, spec: &MigrationSpec) -> (Vec<Need>, Vec<String>) {
    let mut needs = Needs {
        migration,
        spec,
        step: None,
        found: Vec::new(),
        notes: BTreeSet::new(),
    };
    needs.all();
    let mut found = needs.found;
    found.sort();
    found.dedup();
    (found, needs.notes.into_iter().collect())
}

struct Needs<'a> {
    migration: &'a str,
    spec: &'a MigrationSpec,
    /// The step that is looked at.
    step: Option<&'a Step>,
    found: Vec<Need>,
    notes: BTreeSet<String>,
}

/// A text that is known before a run: one without expressions.
fn constant(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.contains("${")).cloned()
}

impl<'a> Needs<'a> {
    fn add(
        &mut self,
        (api_version, kind): (&str, &str),
        subresource: Option<&String>,
        (namespace, name): (Option<&String>, Option<&String>),
        (verbs, used): (&[&'static str], Use),
    ) {
        for verb in verbs {
            // A name cannot limit what makes an object, or finds it by something else.
            let named = !matches!(*verb, "create" | "list");
            self.found.push(Need {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                subresource: subresource.cloned(),
                namespace: match (namespace, constant(namespace)) {
                    (None, _) => Within::All,
                    (Some(text), None) => Within::Computed(text.clone()),
                    (Some(_), Some(namespace)) => Within::Named(namespace),
                },
                name: constant(name).filter(|_| named),
                verb,
                used,
                step: self.step.map(|step| step.id.clone()),
            });
        }
    }

    fn lookup(&mut self, lookup: &Lookup) {
        let place = (lookup.namespace.as_ref(), lookup.name.as_ref());
        let verb = if lookup.list { "list" } else { "get" };
        let kind = (lookup.api_version.as_str(), lookup.kind.as_str());
        self.add(kind, None, place, (&[verb], Use::Lookup));
    }

    fn all(&mut self) {
        for lookup in self.spec.lookups.values() {
            self.lookup(lookup);
        }
        for step in self.spec.steps.iter().chain(&self.spec.undo) {
            self.step = Some(step);
            self.step(step);
        }
    }

    fn step(&mut self, step: &'a Step) {
        let spec = self.spec;
        match &step.action {
            StepAction::Patch(patch) => {
                let place = target(spec, step, patch.reference.as_ref(), patch.object.as_ref());
                let Some(ObjectPlace {
                    api_version,
                    kind,
                    namespace,
                    name,
                }) = place
                else {
                    return self.unclear(step);
                };
                let at = (namespace.as_ref(), name.as_ref());
                let kind = (api_version.as_str(), kind.as_str());
                // What a lookup has found is of a kind that is served.
                let used = if patch.object.is_some() {
                    Use::Write
                } else {
                    Use::Found
                };
                self.add(kind, None, at, (&["get"], used));
                self.add(kind, patch.subresource.as_ref(), at, (&["patch"], used));
            }
            StepAction::Apply(apply) => {
                let text = |pointer: &str| {
                    let text = apply.manifest.pointer(pointer).and_then(Value::as_str);
                    text.map(str::to_owned)
                };
                let (Some(api_version), Some(kind)) = (text("/apiVersion"), text("/kind")) else {
                    return self.unclear(step);
                };
                let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
                let at = (namespace.as_ref(), name.as_ref());
                let verbs = (&["create", "get", "patch"][..], Use::Write);
                self.add((&api_version, &kind), None, at, verbs);
            }
            StepAction::Delete(delete) => self.delete(step, delete),
            StepAction::Wait(wait) => wait.lookups.values().for_each(|it| self.lookup(it)),
            StepAction::Rewrite(rewrite) => {
                let at = (rewrite.namespace.as_ref(), None);
                let kind = (rewrite.api_version.as_str(), rewrite.kind.as_str());
                self.add(kind, None, at, (&["list", "update"], Use::Write));
            }
            _ => self.program(step),
        }
    }

    /// Steps that call something which does the work.
    fn program(&mut self, step: &Step) {
        match &step.action {
            StepAction::Job(job) => {
                let at = (Some(&job.namespace), None);
                let verbs = (&["create", "delete", "get", "patch"][..], Use::Write);
                self.add(("batch/v1", "Job"), None, at, verbs);
                self.add(("v1", "Pod"), None, at, (&["list"], Use::Write));
            }
            StepAction::Http(http) => {
                if let Some(token) = &http.bearer_token {
                    if token.namespace.is_none() {
                        self.notes.insert(format!(
                            "migration {}, step {}: the Secret {} is read in the agent's own namespace",
                            self.migration, step.id, token.name
                        ));
                        return;
                    }
                    let at = (token.namespace.as_ref(), Some(&token.name));
                    self.add(("v1", "Secret"), None, at, (&["get"], Use::Write));
                }
            }
            StepAction::Builtin(builtin) => {
                let text = |name: &str| {
                    let text = builtin.with.get(name).and_then(Value::as_str);
                    text.map(str::to_owned)
                };
                if builtin.name == "find-node-port" {
                    let verbs = (&["list"][..], Use::Write);
                    return self.add(("v1", "Service"), None, (None, None), verbs);
                }
                let (namespace, name) = (text("namespace"), text("name"));
                let at = (namespace.as_ref(), name.as_ref());
                let verbs = (&["create", "get", "patch"][..], Use::Write);
                self.add(("v1", "Secret"), None, at, verbs);
            }
            StepAction::Compiled(compiled) => {
                match compiled::access(&compiled.name, &json!(compiled.with)) {
                    Ok(rights) => {
                        for right in rights {
                            let at = (right.namespace.as_ref(), None);
                            let kind = (right.api_version.as_str(), right.kind.as_str());
                            self.add(kind, None, at, (&right.verbs, Use::Found));
                        }
                    }
                    Err(_) => self.unclear(step),
                }
            }
            _ => {}
        }
    }

    fn delete(&mut self, step: &Step, delete: &DeleteStep) {
        let Some(select) = &delete.select else {
            let Some(place) = target(self.spec, step, delete.reference.as_ref(), None) else {
                return self.unclear(step);
            };
            let at = (place.namespace.as_ref(), place.name.as_ref());
            let kind = (place.api_version.as_str(), place.kind.as_str());
            return self.add(kind, None, at, (&["delete", "get"], Use::Found));
        };
        let namespace = select.namespace.as_ref().filter(|_| !select.all_namespaces);
        // One that is not served selects nothing.
        let kind = (select.api_version.as_str(), select.kind.as_str());
        if select.names.is_empty() || select.selector.is_some() || select.all_namespaces {
            let verbs = (&["delete", "get", "list"][..], Use::Found);
            return self.add(kind, None, (namespace, None), verbs);
        }
        for name in &select.names {
            let at = (namespace, Some(name));
            self.add(kind, None, at, (&["delete", "get"], Use::Found));
        }
    }

    fn unclear(&mut self, step: &Step) {
        self.notes.insert(format!(
            "migration {}, step {}: which kind it is about is known only when it runs",
            self.migration, step.id
        ));
    }
}

/// The object that a step is about, as far as the definition says.
struct ObjectPlace {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    name: Option<String>,
}

fn target(
    spec: &MigrationSpec,
    step: &Step,
    reference: Option<&String>,
    object: Option<&ObjectReference>,
) -> Option<ObjectPlace> {
    if let Some(object) = object {
        return Some(ObjectPlace {
            api_version: object.api_version.clone(),
            kind: object.kind.clone(),
            namespace: object.namespace.clone(),
            name: Some(object.name.clone()),
        });
    }
    let reference = reference?;
    // The elements of a loop are of the lookup that the list is made of.
    let of_loop = step
        .for_each
        .as_ref()
        .filter(|each| each.name == *reference)
        .and_then(|each| {
            let paths = Expression::compile(&each.list).ok()?.paths();
            let mut lookups = paths
                .iter()
                .filter(|path| path.first().is_some_and(|root| root == "objects"))
                .filter_map(|path| spec.lookups.get(path.get(1)?));
            lookups.find(|lookup| lookup.list)
        });
    let lookup = of_loop.or_else(|| spec.lookups.get(reference))?;
    Some(ObjectPlace {
        api_version: lookup.api_version.clone(),
        kind: lookup.kind.clone(),
        namespace: lookup.namespace.clone(),
        name: lookup.name.clone(),
    })
}
