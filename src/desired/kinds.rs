//! What is known without a cluster about the kinds of objects: their scope, and which names they may have.
//!
//! A kind that is not in the table and has no CustomResourceDefinition in the repository is not judged here; the API server
//! has the last word on it.

use super::finding::nearest;
use crate::model::names::{GROUP, KYMA_GROUP};

/// Whether objects of a kind live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// In a namespace.
    Namespaced,
    /// In none.
    Cluster,
}

/// Returns the scope of a kind that comes with Kubernetes, Kyma or Fairway.
pub(super) fn scope_of(group: &str, kind: &str) -> Option<Scope> {
    let (_, cluster, namespaced) = GROUPS.iter().find(|(name, ..)| *name == group)?;
    if cluster.contains(&kind) {
        Some(Scope::Cluster)
    } else if namespaced.contains(&kind) {
        Some(Scope::Namespaced)
    } else {
        None
    }
}

/// Returns the kind of Kubernetes itself that was probably meant by one which it does not have. A kind without a likeness may come
/// from another version, and is not judged.
pub(super) fn meant_kind(group: &str, kind: &str) -> Option<&'static str> {
    let (_, cluster, namespaced) = GROUPS
        .iter()
        .find(|(name, ..)| *name == group && !matches!(group, KYMA_GROUP | GROUP))?;
    if scope_of(group, kind).is_some() {
        return None;
    }
    nearest(kind, cluster.iter().chain(*namespaced).copied())
}

/// Group, its cluster-scoped kinds, its namespaced kinds, after the API reference of Kubernetes 1.36.
const GROUPS: &[(&str, &[&str], &[&str])] = &[
    (
        "",
        &["Namespace", "Node", "PersistentVolume"],
        &[
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    ),
    (
        "apps",
        &[],
        &[
            "ControllerRevision",
            "DaemonSet",
            "Deployment",
            "ReplicaSet",
            "StatefulSet",
        ],
    ),
    ("batch", &[], &["CronJob", "Job"]),
    ("autoscaling", &[], &["HorizontalPodAutoscaler"]),
    ("policy", &[], &["PodDisruptionBudget"]),
    (
        "rbac.authorization.k8s.io",
        &["ClusterRole", "ClusterRoleBinding"],
        &["Role", "RoleBinding"],
    ),
    (
        "networking.k8s.io",
        &["IPAddress", "IngressClass", "ServiceCIDR"],
        &["Ingress", "NetworkPolicy"],
    ),
    ("discovery.k8s.io", &[], &["EndpointSlice"]),
    ("coordination.k8s.io", &[], &["Lease", "LeaseCandidate"]),
    ("events.k8s.io", &[], &["Event"]),
    (
        "storage.k8s.io",
        &[
            "CSIDriver",
            "CSINode",
            "StorageClass",
            "VolumeAttachment",
            "VolumeAttributesClass",
        ],
        &["CSIStorageCapacity"],
    ),
    ("scheduling.k8s.io", &["PriorityClass"], &[]),
    ("node.k8s.io", &["RuntimeClass"], &[]),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"], &[]),
    ("apiregistration.k8s.io", &["APIService"], &[]),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
        &[],
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        &["FlowSchema", "PriorityLevelConfiguration"],
        &[],
    ),
    (
        "certificates.k8s.io",
        &["CertificateSigningRequest", "ClusterTrustBundle"],
        &["PodCertificateRequest"],
    ),
    (
        "resource.k8s.io",
        &["DeviceClass", "ResourceSlice"],
        &["ResourceClaim", "ResourceClaimTemplate"],
    ),
    (
        KYMA_GROUP,
        &[],
        &[
            "Kyma",
            "Manifest",
            "ModuleReleaseMeta",
            "ModuleTemplate",
            "Watcher",
        ],
    ),
    (GROUP, &[], &["ReleaseSource", "Run", "Target"]),
];

/// Returns the rule that a name breaks for objects of this kind, in words.
pub(super) fn broken_name_rule(group: &str, kind: &str, name: &str) -> Option<&'static str> {
    let rule = match (group, kind) {
        ("", "Namespace" | "Service") => NameRule::Label,
        ("rbac.authorization.k8s.io", _) => NameRule::PathSegment,
        _ if scope_of(group, kind).is_some() => NameRule::Subdomain,
        _ => NameRule::PathSegment,
    };
    match rule {
        NameRule::Label if !is_label(name) => Some(
            "it takes lower-case letters, digits and `-`, at most 63, starting and ending with a letter or digit",
        ),
        NameRule::Subdomain if !is_subdomain(name) => Some(
            "it takes lower-case letters, digits, `-` and `.`, at most 253, each part starting and ending with a letter or digit",
        ),
        NameRule::PathSegment if !is_path_segment(name) => {
            Some("it may not be `.` or `..`, hold `/` or `%`, or be longer than 253 characters")
        }
        _ => None,
    }
}

/// How the names of a kind are checked.
#[derive(Clone, Copy)]
enum NameRule {
    Label,
    Subdomain,
    PathSegment,
}

/// Returns whether a text is a DNS label (RFC 1123).
pub(super) fn is_label(name: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
        && bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
}

/// Returns whether a text is a DNS subdomain as Kubernetes has it: the parts have no length of their own.
pub(super) fn is_subdomain(name: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
            && bytes.first().is_some_and(alphanumeric)
            && bytes.last().is_some_and(alphanumeric)
    };
    name.len() <= 253 && name.split('.').all(is_part)
}

fn is_path_segment(name: &str) -> bool {
    (1..=253).contains(&name.len())
        && name != "."
        && name != ".."
        && !name.contains(['/', '%'])
        && !name.chars().any(char::is_control)
}

/// Returns whether a text can be the key of a label or annotation: an optional subdomain and `/`, then a name.
pub(super) fn is_qualified_name(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_qualified_part(name),
        None => is_qualified_part(key),
    }
}

/// Returns whether a text can be the value of a label.
pub(super) fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_qualified_part(value)
}

fn is_qualified_part(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", "Namespace", Some(Scope::Cluster))]
    #[case("", "ConfigMap", Some(Scope::Namespaced))]
    #[case("rbac.authorization.k8s.io", "ClusterRole", Some(Scope::Cluster))]
    #[case("operator.kyma-project.io", "Kyma", Some(Scope::Namespaced))]
    #[case("apps", "ConfigMap", None)]
    #[case("example.com", "Widget", None)]
    fn scope(#[case] group: &str, #[case] kind: &str, #[case] expected: Option<Scope>) {
        assert_eq!(scope_of(group, kind), expected);
    }

    #[rstest]
    #[case("", "ConfigMap", "a.b-c", true)]
    #[case("", "ConfigMap", "A", false)]
    #[case("", "ConfigMap", "a..b", false)]
    #[case("", "Namespace", "a.b", false)]
    #[case("rbac.authorization.k8s.io", "ClusterRole", "system:reader", true)]
    #[case("rbac.authorization.k8s.io", "ClusterRole", "a/b", false)]
    #[case("example.com", "Widget", "..", false)]
    fn names(#[case] group: &str, #[case] kind: &str, #[case] name: &str, #[case] good: bool) {
        assert_eq!(broken_name_rule(group, kind, name).is_none(), good);
    }

    #[rstest]
    #[case("app.kubernetes.io/name", true)]
    #[case("name", true)]
    #[case("a/b/c", false)]
    #[case("-a", false)]
    #[case("", false)]
    fn label_keys(#[case] key: &str, #[case] good: bool) {
        assert_eq!(is_qualified_name(key), good);
    }
}
