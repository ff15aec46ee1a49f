//! Which action comes before which: few phases, so that what is independent goes at once.
//!
//! Components that proceed in one plan never depend on each other (see `readiness`), so only kinds matter: namespaces and
//! CRDs of all components first, then what workloads need, then workloads, and last what stands in the way of others when
//! it is not ready yet. Deletions go the other way round, after everything was applied.

use std::collections::BTreeMap;

use crate::model::GroupKind;

use super::kinds;
use super::output::{Action, ActionKind};

/// The place of a kind in the order of applying, after the order that kubectl's users know from Helm and Flux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// What others live in.
    Namespaces,
    /// What brings other kinds.
    Definitions,
    /// Accounts, roles and limits: they must be there before anything refers to them.
    Foundations,
    /// Bindings, which the server checks against their roles, and what workloads mount and reach.
    Supplies,
    /// Workloads, ModuleTemplates, custom resources and whatever else there is.
    Workloads,
    /// ModuleReleaseMetas, which name ModuleTemplates.
    Releases,
    /// Aggregated APIs and webhooks: while their workload is not ready they fail requests of others.
    Gates,
}

impl Rank {
    pub(super) fn of(kind: &GroupKind) -> Self {
        if kinds::is_namespace(kind) {
            return Self::Namespaces;
        }
        if kinds::is_definition(kind) {
            return Self::Definitions;
        }
        if kinds::is_module_release_meta(kind) {
            return Self::Releases;
        }
        match (kind.group.as_str(), kind.kind.as_str()) {
            ("", "ServiceAccount" | "ResourceQuota" | "LimitRange")
            | ("rbac.authorization.k8s.io", "Role" | "ClusterRole")
            | ("scheduling.k8s.io", "PriorityClass")
            | ("storage.k8s.io", "StorageClass")
            | ("node.k8s.io", "RuntimeClass")
            | ("networking.k8s.io", "NetworkPolicy" | "IngressClass") => Self::Foundations,
            (
                "",
                "ConfigMap" | "Secret" | "Service" | "PersistentVolume" | "PersistentVolumeClaim",
            )
            | ("rbac.authorization.k8s.io", _) => Self::Supplies,
            ("apiregistration.k8s.io" | "admissionregistration.k8s.io", _) => Self::Gates,
            _ => Self::Workloads,
        }
    }

    /// The phase of an action, counted so that it can be compared: namespaces and CRDs go together, and deletions follow all
    /// applies in the opposite order, with CRDs before namespaces.
    fn phase(self, deletes: bool) -> i8 {
        const FIRST_DELETION: i8 = 10;
        match (deletes, self) {
            (false, Self::Namespaces) => Self::Definitions as i8,
            (false, rank) => rank as i8,
            (true, rank) => FIRST_DELETION + Self::Gates as i8 - rank as i8,
        }
    }
}

/// Returns the phase of an action; only the order of phases means anything.
pub(super) fn phase(action: &Action) -> i8 {
    let deletes = matches!(action.kind, ActionKind::Delete(_));
    Rank::of(&action.key.kind).phase(deletes)
}

/// Sorts actions into phases, and by key inside each.
pub(super) fn phases(actions: Vec<Action>) -> Vec<Vec<Action>> {
    let mut phases: BTreeMap<i8, Vec<Action>> = BTreeMap::new();
    for action in actions {
        phases.entry(phase(&action)).or_default().push(action);
    }
    let mut phases: Vec<_> = phases.into_values().collect();
    for phase in &mut phases {
        phase.sort_by(|one, two| one.key.cmp(&two.key));
    }
    phases
}
