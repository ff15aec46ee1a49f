//! What a target's task keeps from pass to pass.

use super::record::Record;
use crate::cluster::ClusterError;
use crate::model::api::{ConditionType, ReleaseSource, ReleaseSourceStatus};

/// What the task keeps from pass to pass.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) record: Option<Record>,
    /// The source's status as we wrote it last; none before it was read.
    status: Option<WrittenStatus>,
    /// The last annotation with a decision that could not be read, so that it is said once.
    pub(super) unread_decision: Option<String>,
    /// Passes in a row that could not be finished.
    pub(super) failures: u32,
    /// Whether the account of the source was found to be there, and to be one that can be acted as, since the last fetch.
    pub(super) confirmed: bool,
    /// Whether the source was suspended when it was last looked at; none before the first look.
    pub(super) suspended: Option<bool>,
}

/// A status that we have written, or would write if it were not there already.
struct WrittenStatus {
    status: ReleaseSourceStatus,
    /// The resourceVersion that the source had then.
    version: Option<String>,
}

// === impl Memory ===

impl Memory {
    /// Returns the status as it is stored: as we wrote it last, unless the source has been changed since. Whoever has edited
    /// our status is found out by that, and what they changed is put right.
    pub(super) fn status(&self, resource: &ReleaseSource) -> ReleaseSourceStatus {
        let seen = resource.metadata.resource_version.as_deref();
        match &self.status {
            Some(written) if !is_newer(seen, written.version.as_deref()) => written.status.clone(),
            _ => {
                let mut status = resource.status.clone().unwrap_or_default();
                status
                    .conditions
                    .retain(|one| ConditionType::is_ours(&one.type_));
                status
            }
        }
    }

    /// Keeps in mind which status is stored now, after an attempt to write it.
    pub(super) fn remember(
        &mut self,
        resource: &ReleaseSource,
        (before, after): (ReleaseSourceStatus, ReleaseSourceStatus),
        written: Result<Option<String>, ClusterError>,
    ) -> Result<(), ClusterError> {
        let known = self.status.take().and_then(|known| known.version);
        let seen = resource.metadata.resource_version.clone();
        let seen = if is_newer(seen.as_deref(), known.as_deref()) {
            seen
        } else {
            known
        };
        let (status, version, result) = match written {
            Ok(version) => (after, version.or(seen), Ok(())),
            // Another status is stored by now; the watch shows it.
            Err(error @ ClusterError::Conflict { .. }) => return Err(error),
            Err(error) => (before, seen, Err(error)),
        };
        self.status = Some(WrittenStatus { status, version });
        result
    }
}

/// Returns whether one resourceVersion is later than another. Where they are no numbers, only the same one is not.
fn is_newer(version: Option<&str>, than: Option<&str>) -> bool {
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
    match (number(version), number(than)) {
        (Some(version), Some(than)) => version > than,
        _ => version != than,
    }
}
