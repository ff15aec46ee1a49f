//! Whether somebody else syncs the catalog that we are told to sync.
//!
//! A catalog that lifecycle-manager has synced before is taken over once. When its field manager turns up again, it is still at
//! work: it applies with force in each of its loops, and so would we. We stop, and name it. A person with `kubectl apply` is no such
//! loop: what they have changed is put right like any drift.

use tokio::time::Instant;

use crate::model::SourceName;
use crate::model::limits::RUNTIME_CONTESTED_PAUSE;
use crate::observe::{KindObservation, Observed};

/// Field managers of people, whose fields are taken over as often as they turn up.
const BY_HAND: [&str; 2] = ["kubectl-client-side-apply", "before-first-apply"];

/// What is remembered of other writers on one runtime.
#[derive(Debug, Default)]
pub(super) struct Contest {
    /// Whether their fields were taken over before.
    taken_over: bool,
    /// Until when the catalog is left alone.
    until: Option<Instant>,
}

// === impl Contest ===

impl Contest {
    /// Returns until when the catalog is left alone.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Looks who else writes, of the managers whose fields are taken over. Returns one that is at work although it was taken over
    /// before: the catalog is then left alone for a while.
    pub(super) fn judge(
        &mut self,
        observed: &Observed,
        (source, takeover): (&SourceName, &[String]),
        now: Instant,
    ) -> Option<String> {
        if self.until.is_some_and(|until| until <= now) {
            *self = Self::default();
        }
        let writer = writer(observed, source, takeover);
        match (writer, self.until) {
            (Some(writer), Some(_)) => Some(writer),
            (Some(writer), None) if self.taken_over => {
                self.until = Some(now + RUNTIME_CONTESTED_PAUSE);
                Some(writer)
            }
            (Some(_), None) => {
                self.taken_over = true;
                None
            }
            (None, _) => None,
        }
    }
}

/// Returns the first manager of these that has fields in an object of this source. Another source on the same runtime has
/// rivals of its own.
fn writer(observed: &Observed, source: &SourceName, takeover: &[String]) -> Option<String> {
    let objects = observed.kinds.values().filter_map(|kind| match kind {
        KindObservation::Listed(objects) => Some(objects.values()),
        KindObservation::Unlisted(_) => None,
    });
    let managers = objects
        .flatten()
        .filter(|object| object.source.as_ref() == Some(source))
        .flat_map(|object| object.writers.iter().chain(&object.rivals));
    managers
        .filter(|manager| !BY_HAND.contains(&manager.as_ref()))
        .find(|manager| takeover.iter().any(|one| **one == ***manager))
        .map(ToString::to_string)
}
