//! Rights as objects that can be applied: a ClusterRole, a Role for each namespace, and their bindings.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Plural, Right};

const API: &str = "rbac.authorization.k8s.io";

/// Who gets rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A ServiceAccount, by namespace and name.
    Account(String, String),
    /// A person, by the name that the API server knows.
    User(String),
}

impl Subject {
    /// Reads who it is from the name of a user, as the API server writes it.
    pub fn of_user(user: &str) -> Self {
        let account = user.strip_prefix("system:serviceaccount:");
        match account.and_then(|account| account.split_once(':')) {
            Some((namespace, name)) => Self::Account(namespace.to_owned(), name.to_owned()),
            None => Self::User(user.to_owned()),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Account(namespace, name) => {
                json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
            }
            Self::User(name) => json!({"kind": "User", "apiGroup": API, "name": name}),
        }
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Account(namespace, name) => write!(f, "account {name} in {namespace}"),
            Self::User(name) => write!(f, "user {name}"),
        }
    }
}

/// Returns roles of this name with their bindings, each with what must be said about guesses.
pub fn manifests(name: &str, rights: &[Right], subject: &Subject) -> Vec<(Value, Vec<String>)> {
    let mut by_namespace: BTreeMap<Option<&str>, Vec<&Right>> = BTreeMap::new();
    for right in rights {
        let of_it = by_namespace.entry(right.namespace.as_deref());
        of_it.or_default().push(right);
    }
    by_namespace
        .into_iter()
        .flat_map(|(namespace, rights)| pair(name, namespace, &rights, subject))
        .collect()
}

fn pair(
    name: &str,
    namespace: Option<&str>,
    rights: &[&Right],
    subject: &Subject,
) -> [(Value, Vec<String>); 2] {
    let rules: Vec<Value> = rights
        .iter()
        .map(|right| {
            let mut rule = json!({
                "apiGroups": [right.group],
                "resources": [right.resource],
                "verbs": right.verbs,
            });
            if !right.names.is_empty() {
                rule["resourceNames"] = json!(right.names);
            }
            rule
        })
        .collect();
    let guessed = rights.iter().filter(|it| it.plural == Plural::Guessed);
    let comments = guessed.map(|right| {
        format!(
            "`{}` is how a resource of kind {} is usually named; kubectl api-resources knows",
            right.resource, right.kind
        )
    });
    let kind = if namespace.is_some() {
        "Role"
    } else {
        "ClusterRole"
    };
    let mut metadata = json!({"name": name});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    let version = format!("{API}/v1");
    let role = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules});
    let binding = json!({
        "apiVersion": version,
        "kind": format!("{kind}Binding"),
        "metadata": metadata,
        "roleRef": {"apiGroup": API, "kind": kind, "name": name},
        "subjects": [subject.value()],
    });
    [(role, comments.collect()), (binding, Vec::new())]
}
