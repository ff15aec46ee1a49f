//! The one wait inside a pass: for a CRD that was just applied to be served, a second at most.

use std::collections::BTreeSet;

use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use crate::cluster::Cluster;
use crate::model::{GroupKind, limits};
use crate::plan::{Action, ActionKind};

/// First pause between two looks at what is served; doubled each time. A CRD was served after 0.25 s.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

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
    let deadline = Instant::now() + limits::CRD_SERVED_DEADLINE;
    let mut pause = FIRST_PAUSE;
    loop {
        let served = match cluster.served().await {
            Ok(served) if wanted.iter().all(|kind| served.kinds.contains_key(*kind)) => return,
            served => served,
        };
        if served.is_err() || stop.is_cancelled() || Instant::now() + pause > deadline {
            return;
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
        if cluster.refresh_served().await.is_err() {
            return;
        }
    }
}
