//! The rights that migrations need on a cluster, read from their definitions: what an operator grants, as a Role has it.
//!
//! `needs` says what each lookup and step asks for, `manifest` writes it as objects that can be applied.

mod manifest;
mod needs;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use manifest::{Subject, manifests};
pub use needs::{Need, Use, Within, needs};

use crate::model::migration::Migration;

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
    let mut all = Vec::new();
    let mut notes = BTreeSet::new();
    for migration in migrations {
        let (found, more) = needs(&migration.name, &migration.spec);
        all.extend(found);
        notes.extend(more);
    }
    (merged(&all, plurals), notes.into_iter().collect())
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

/// Returns each right once.
pub(in crate::runs) fn merged(needs: &[Need], plurals: &Plurals) -> Vec<Right> {
    let mut verbs: BTreeMap<Target, BTreeSet<&'static str>> = BTreeMap::new();
    for need in needs {
        let target = Target {
            namespace: match &need.namespace {
                Within::Named(namespace) => Some(namespace.clone()),
                Within::All | Within::Computed(_) => None,
            },
            group: need.group().to_owned(),
            kind: need.kind.clone(),
            subresource: need.subresource.clone(),
            name: need.name.clone(),
        };
        verbs.entry(target).or_default().insert(need.verb);
    }
    let rights = verbs.into_iter().map(|(target, verbs)| {
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
    });
    rights.collect()
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

/// Returns whether a group is one of Kubernetes itself.
pub(in crate::runs) fn is_of_kubernetes(group: &str) -> bool {
    KNOWN_GROUPS.contains(&group) || group == "extensions"
}

/// Returns the plural name of a kind, and where it is from.
pub(in crate::runs) fn plural(group: &str, kind: &str, plurals: &Plurals) -> (String, Plural) {
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
