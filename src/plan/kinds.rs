//! The kinds that planning treats in a special way.

use crate::model::{GroupKind, names};

pub(super) fn namespace() -> GroupKind {
    GroupKind::new("", "Namespace")
}

pub(super) fn is_namespace(kind: &GroupKind) -> bool {
    kind.group.is_empty() && kind.kind == "Namespace"
}

pub(super) fn is_definition(kind: &GroupKind) -> bool {
    kind.group == "apiextensions.k8s.io" && kind.kind == "CustomResourceDefinition"
}

/// Returns whether deleting such an object deletes data outside it: volumes and their claims.
pub(super) fn is_storage(kind: &GroupKind) -> bool {
    kind.group.is_empty()
        && matches!(
            kind.kind.as_str(),
            "PersistentVolume" | "PersistentVolumeClaim"
        )
}

pub(super) fn is_job(kind: &GroupKind) -> bool {
    kind.group == "batch" && kind.kind == "Job"
}

pub(super) fn is_module_template(kind: &GroupKind) -> bool {
    kind.group == names::KYMA_GROUP && kind.kind == "ModuleTemplate"
}

pub(super) fn is_module_release_meta(kind: &GroupKind) -> bool {
    kind.group == names::KYMA_GROUP && kind.kind == "ModuleReleaseMeta"
}

/// Returns whether deleting such an object deletes more than itself.
pub(super) fn takes_others_along(kind: &GroupKind) -> bool {
    is_namespace(kind) || is_definition(kind) || is_storage(kind)
}
