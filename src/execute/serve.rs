//! The one wait inside a pass: for a CRD that was just applied to be served, a second at most.

use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;

use crate::cluster::Cluster;
use crate::model::{GroupKind, limits};
use crate::plan::{Action, ActionKind};

/// Waits until every kind that a later phase applies is served, when this phase has applied a CRD.
///
/// Gives up after [`limits::CRD_SERVED_DEADLINE`]: applying then fails for these objects, and the change of the CRD's
/// health rings the bell of the next pass.
pub(super) async fn wait_for_kinds(
    cluster: &Cluster,
    phase: &[Action],
    later: &[Vec<Action>],
    stop: &CancellationToken,
) {
    if !phase
        .iter()
        .any(|action| action.key.kind.kind == "CustomResourceDefinition")
    {
        return;
    }
    let wanted: BTreeSet<&GroupKind> = later
        .iter()
        .flatten()
        .filter(|action| !matches!(action.kind, ActionKind::Delete(_)))
        .map(|action| &action.key.kind)
        .collect();
    let wanted: Vec<&GroupKind> = wanted.into_iter().collect();
    tokio::select! {
        () = stop.cancelled() => {}
        // Kinds that are not served are told by the applies that need them.
        _ = cluster.until_served(&wanted, limits::CRD_SERVED_DEADLINE) => {}
    }
}
