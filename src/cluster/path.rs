//! Paths of objects in the API, with names that cannot leave their segment.

use std::fmt::Write as _;

use super::error::ClusterError;
use crate::model::{GroupKind, ObjectKey, Scope, ServedKind};

/// Returns the path of one object under one served version.
///
/// # Errors
///
/// When the key cannot name an object of this kind: a namespace is missing or too much, or the name is no path segment.
pub(super) fn object_path(
    key: &ObjectKey,
    served: &ServedKind,
    version: &str,
) -> Result<String, ClusterError> {
    let mut path = version_path(&key.kind, version);
    match (served.scope, &key.namespace) {
        (Scope::Namespaced, Some(namespace)) if is_segment(namespace) => {
            let _ = write!(path, "/namespaces/{}", segment(namespace));
        }
        (Scope::Cluster, None) => {}
        (Scope::Namespaced, _) => {
            return Err(misnamed(
                key,
                "the kind is namespaced, and no namespace is named",
            ));
        }
        (Scope::Cluster, Some(_)) => {
            return Err(misnamed(
                key,
                "the kind has no namespaces, but one is named",
            ));
        }
    }
    if !is_segment(&key.name) {
        return Err(misnamed(key, "the name cannot stand in a path"));
    }
    let _ = write!(path, "/{}/{}", segment(&served.plural), segment(&key.name));
    Ok(path)
}

/// Returns the path of all objects of a kind, in one namespace or in all of them.
///
/// # Errors
///
/// When a namespace is named that cannot be, or the kind has none.
pub(super) fn collection_path(
    kind: &GroupKind,
    served: &ServedKind,
    version: &str,
    namespace: Option<&str>,
) -> Result<String, ClusterError> {
    let mut path = version_path(kind, version);
    match (served.scope, namespace) {
        (_, None) => {}
        (Scope::Namespaced, Some(namespace)) if is_segment(namespace) => {
            let _ = write!(path, "/namespaces/{}", segment(namespace));
        }
        (scope, Some(namespace)) => {
            return Err(ClusterError::Invalid {
                request: format!("address {kind} in {namespace:?}"),
                message: match scope {
                    Scope::Cluster => "the kind has no namespaces, but one is named".to_owned(),
                    Scope::Namespaced => "the namespace cannot stand in a path".to_owned(),
                },
            });
        }
    }
    let _ = write!(path, "/{}", segment(&served.plural));
    Ok(path)
}

fn version_path(kind: &GroupKind, version: &str) -> String {
    if kind.group.is_empty() {
        format!("/api/{}", segment(version))
    } else {
        format!("/apis/{}/{}", segment(&kind.group), segment(version))
    }
}

/// The API server's own rule for names that stand in paths.
fn is_segment(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '%'])
}

fn misnamed(key: &ObjectKey, rule: &str) -> ClusterError {
    ClusterError::Invalid {
        request: format!("address {key}"),
        message: rule.to_owned(),
    }
}

/// Encodes everything that is not plainly allowed inside a path segment or a query value.
pub(super) fn segment(text: &str) -> String {
    text.bytes()
        .fold(String::with_capacity(text.len()), |mut encoded, byte| {
            if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
                encoded.push(char::from(byte));
            } else {
                let _ = write!(encoded, "%{byte:02X}");
            }
            encoded
        })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn served(plural: &str, scope: Scope) -> ServedKind {
        ServedKind {
            scope,
            plural: plural.into(),
            versions: vec!["v1".into()],
        }
    }

    #[rstest]
    #[case(
        "",
        "ConfigMap",
        "configmaps",
        Some("default"),
        "a",
        "/api/v1/namespaces/default/configmaps/a"
    )]
    #[case(
        "apps",
        "Deployment",
        "deployments",
        Some("default"),
        "a",
        "/apis/apps/v1/namespaces/default/deployments/a"
    )]
    #[case("", "Namespace", "namespaces", None, "a", "/api/v1/namespaces/a")]
    #[case(
        "rbac.authorization.k8s.io",
        "ClusterRole",
        "clusterroles",
        None,
        "system:node?x=é",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node%3Fx%3D%C3%A9"
    )]
    fn paths(
        #[case] group: &str,
        #[case] kind: &str,
        #[case] plural: &str,
        #[case] namespace: Option<&str>,
        #[case] name: &str,
        #[case] path: &str,
    ) {
        let scope = namespace.map_or(Scope::Cluster, |_| Scope::Namespaced);
        let key = ObjectKey::new(GroupKind::new(group, kind), namespace, name);
        assert_eq!(
            object_path(&key, &served(plural, scope), "v1").unwrap(),
            path
        );
    }

    #[rstest]
    #[case(Some("default"), "..")]
    #[case(Some("default"), "a/b")]
    #[case(Some("default"), "a%2fb")]
    #[case(Some("default"), "")]
    #[case(Some(".."), "a")]
    #[case(Some(""), "a")]
    #[case(None, "a")]
    fn a_name_cannot_leave_its_segment(#[case] namespace: Option<&str>, #[case] name: &str) {
        let key = ObjectKey::new(GroupKind::new("", "ConfigMap"), namespace, name);
        let error = object_path(&key, &served("configmaps", Scope::Namespaced), "v1").unwrap_err();
        assert!(!error.is_retryable());
    }

    #[test]
    fn a_cluster_scoped_kind_takes_no_namespace() {
        let key = ObjectKey::new(GroupKind::new("", "Namespace"), Some("default"), "a");
        assert!(object_path(&key, &served("namespaces", Scope::Cluster), "v1").is_err());
    }
}
