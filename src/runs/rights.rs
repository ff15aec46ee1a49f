//! The rights that migrations need on a cluster, read from their definitions: what an operator grants, as a Role has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::compiled;
use crate::expression::Expression;
use crate::model::migration::{
    DeleteStep, Lookup, Migration, MigrationSpec, ObjectReference, Step, StepAction,
};

/// Some verbs on one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Right {
    /// The namespace; none for all of them, and for what has none.
    pub namespace: Option<String>,
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The plural name, with the subresource: `deployments/status`.
    pub resource: String,
    /// Where the plural name is from.
    pub plural: Plural,
    /// The only names that are meant; none for all.
    pub names: Vec<String>,
    /// The verbs, sorted.
    pub verbs: Vec<String>,
}

/// Where a plural name is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plural {
    /// A CustomResourceDefinition of the repository says so, or Kubernetes is known to.
    Known,
    /// It is how English would have it.
    Guessed,
}

/// Plural names by group and kind.
pub type Plurals = BTreeMap<(String, String), String>;

/// Returns the rights that migrations need, each once, and what cannot be read from their definitions, in words.
pub fn rights(migrations: &[Arc<Migration>], plurals: &Plurals) -> (Vec<Right>, Vec<String>) {
    let mut needs = Needs::default();
    for migration in migrations {
        needs.migration(migration);
    }
    let rights = needs
        .verbs
        .into_iter()
        .map(|(target, verbs)| {
            let (plural, origin) = plural(&target.group, &target.kind, plurals);
            let resource = match &target.subresource {
                Some(subresource) => format!("{plural}/{subresource}"),
                None => plural,
            };
            Right {
                namespace: target.namespace,
                group: target.group,
                kind: target.kind,
                resource,
                plural: origin,
                names: target.name.into_iter().collect(),
                verbs: verbs.into_iter().map(str::to_owned).collect(),
            }
        })
        .collect();
    (rights, needs.notes.into_iter().collect())
}

/// What verbs are for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    namespace: Option<String>,
    group: String,
    kind: String,
    subresource: Option<String>,
    name: Option<String>,
}

#[derive(Default)]
struct Needs {
    verbs: BTreeMap<Target, BTreeSet<&'static str>>,
    notes: BTreeSet<String>,
}

/// A text that is known before a run: one without expressions.
fn constant(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.contains("${")).cloned()
}

impl Needs {
    fn add(
        &mut self,
        api_version: &str,
        kind: &str,
        (namespace, name): (Option<&String>, Option<&String>),
        verbs: &[&'static str],
    ) {
        self.add_to(api_version, kind, None, (namespace, name), verbs);
    }

    fn add_to(
        &mut self,
        api_version: &str,
        kind: &str,
        subresource: Option<&String>,
        (namespace, name): (Option<&String>, Option<&String>),
        verbs: &[&'static str],
    ) {
        let group = api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
            .to_owned();
        for verb in verbs {
            // A name cannot limit what makes an object, or finds it by something else.
            let named = !matches!(*verb, "create" | "list");
            let target = Target {
                namespace: constant(namespace),
                group: group.clone(),
                kind: kind.to_owned(),
                subresource: subresource.cloned(),
                name: constant(name).filter(|_| named),
            };
            self.verbs.entry(target).or_default().insert(verb);
        }
    }

    fn lookup(&mut self, lookup: &Lookup) {
        let place = (lookup.namespace.as_ref(), lookup.name.as_ref());
        let verb = if lookup.list { "list" } else { "get" };
        self.add(&lookup.api_version, &lookup.kind, place, &[verb]);
    }

    fn migration(&mut self, migration: &Migration) {
        let spec = &migration.spec;
        for lookup in spec.lookups.values() {
            self.lookup(lookup);
        }
        for step in spec.steps.iter().chain(&spec.undo) {
            self.step(migration, step);
        }
    }

    fn step(&mut self, migration: &Migration, step: &Step) {
        let spec = &migration.spec;
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
                    return self.unclear(migration, step);
                };
                let at = (namespace.as_ref(), name.as_ref());
                self.add(&api_version, &kind, at, &["get"]);
                let subresource = patch.subresource.as_ref();
                self.add_to(&api_version, &kind, subresource, at, &["patch"]);
            }
            StepAction::Apply(apply) => {
                let text = |pointer: &str| {
                    let text = apply.manifest.pointer(pointer).and_then(Value::as_str);
                    text.map(str::to_owned)
                };
                let (Some(api_version), Some(kind)) = (text("/apiVersion"), text("/kind")) else {
                    return self.unclear(migration, step);
                };
                let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
                let at = (namespace.as_ref(), name.as_ref());
                self.add(&api_version, &kind, at, &["create", "get", "patch"]);
            }
            StepAction::Delete(delete) => self.delete(migration, step, delete),
            StepAction::Wait(wait) => wait.lookups.values().for_each(|it| self.lookup(it)),
            StepAction::Job(job) => {
                let at = (Some(&job.namespace), None);
                self.add("batch/v1", "Job", at, &["create", "delete", "get", "patch"]);
                self.add("v1", "Pod", at, &["list"]);
            }
            StepAction::Http(http) => {
                if let Some(token) = &http.bearer_token {
                    if token.namespace.is_none() {
                        self.notes.insert(format!(
                            "migration {}, step {}: the Secret {} is read in the agent's own namespace",
                            migration.name, step.id, token.name
                        ));
                        return;
                    }
                    let at = (token.namespace.as_ref(), Some(&token.name));
                    self.add("v1", "Secret", at, &["get"]);
                }
            }
            StepAction::Rewrite(rewrite) => {
                let at = (rewrite.namespace.as_ref(), None);
                self.add(&rewrite.api_version, &rewrite.kind, at, &["list", "update"]);
            }
            StepAction::Builtin(builtin) => {
                let text = |name: &str| {
                    let text = builtin.with.get(name).and_then(Value::as_str);
                    text.map(str::to_owned)
                };
                if builtin.name == "find-node-port" {
                    return self.add("v1", "Service", (None, None), &["list"]);
                }
                let (namespace, name) = (text("namespace"), text("name"));
                let at = (namespace.as_ref(), name.as_ref());
                self.add("v1", "Secret", at, &["create", "get", "patch"]);
            }
            StepAction::Compiled(compiled) => {
                match compiled::access(&compiled.name, &json!(compiled.with)) {
                    Ok(rights) => {
                        for right in rights {
                            let at = (right.namespace.as_ref(), None);
                            self.add(&right.api_version, &right.kind, at, &right.verbs);
                        }
                    }
                    Err(_) => self.unclear(migration, step),
                }
            }
        }
    }

    fn delete(&mut self, migration: &Migration, step: &Step, delete: &DeleteStep) {
        let Some(select) = &delete.select else {
            let Some(place) = target(
                migration_spec(migration),
                step,
                delete.reference.as_ref(),
                None,
            ) else {
                return self.unclear(migration, step);
            };
            let at = (place.namespace.as_ref(), place.name.as_ref());
            return self.add(&place.api_version, &place.kind, at, &["delete", "get"]);
        };
        let namespace = select.namespace.as_ref().filter(|_| !select.all_namespaces);
        let (api_version, kind) = (&select.api_version, &select.kind);
        if select.names.is_empty() || select.selector.is_some() || select.all_namespaces {
            self.add(
                api_version,
                kind,
                (namespace, None),
                &["delete", "get", "list"],
            );
            return;
        }
        for name in &select.names {
            self.add(
                api_version,
                kind,
                (namespace, Some(name)),
                &["delete", "get"],
            );
        }
    }

    fn unclear(&mut self, migration: &Migration, step: &Step) {
        self.notes.insert(format!(
            "migration {}, step {}: which kind it is about is known only when it runs",
            migration.name, step.id
        ));
    }
}

fn migration_spec(migration: &Migration) -> &MigrationSpec {
    &migration.spec
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

/// Groups of Kubernetes itself; their kinds follow the rule, apart from the exceptions below.
const KNOWN_GROUPS: &[&str] = &[
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

fn plural(group: &str, kind: &str, plurals: &Plurals) -> (String, Plural) {
    if let Some(plural) = plurals.get(&(group.to_owned(), kind.to_owned())) {
        return (plural.clone(), Plural::Known);
    }
    let singular = kind.to_lowercase();
    let is_vowel = |it: char| "aeiou".contains(it);
    let plural = if singular == "endpoints" {
        singular
    } else if let Some(stem) = singular
        .strip_suffix('y')
        .filter(|stem| !stem.ends_with(is_vowel))
    {
        format!("{stem}ies")
    } else if ["s", "x", "ch", "sh"]
        .iter()
        .any(|end| singular.ends_with(end))
    {
        format!("{singular}es")
    } else {
        format!("{singular}s")
    };
    let origin = if KNOWN_GROUPS.contains(&group) {
        Plural::Known
    } else {
        Plural::Guessed
    };
    (plural, origin)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", "ConfigMap", "configmaps")]
    #[case("", "Endpoints", "endpoints")]
    #[case("networking.k8s.io", "NetworkPolicy", "networkpolicies")]
    #[case("networking.k8s.io", "Ingress", "ingresses")]
    #[case("storage.k8s.io", "StorageClass", "storageclasses")]
    #[case("storage.k8s.io", "CSIStorageCapacity", "csistoragecapacities")]
    #[case("discovery.k8s.io", "EndpointSlice", "endpointslices")]
    #[case("networking.istio.io", "Gateway", "gateways")]
    fn plurals_follow_the_rule(#[case] group: &str, #[case] kind: &str, #[case] expected: &str) {
        assert_eq!(plural(group, kind, &Plurals::new()).0, expected);
    }

    #[test]
    fn a_definition_of_the_repository_knows_better() {
        let key = ("example.com".to_owned(), "Person".to_owned());
        let plurals = Plurals::from([(key, "people".to_owned())]);
        assert_eq!(
            plural("example.com", "Person", &plurals),
            ("people".to_owned(), Plural::Known)
        );
        assert_eq!(
            plural("example.com", "Person", &Plurals::new()).1,
            Plural::Guessed
        );
    }
}
