//! The history of a source: one entry for each revision, until it is applied in full.

use jiff::{SignedDuration, Unit};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::pass::PassReport;
use crate::model::Revision;
use crate::model::api::{ConditionReason as Reason, HistoryEntry};
use crate::model::limits::HISTORY_MAX;

/// Keeps one entry for a revision until it is applied in full. What happens to it later (drift that cannot be corrected, and
/// its end) is an entry of its own; a result that stays the same is not written again.
pub(super) fn remember(
    history: &mut Vec<HistoryEntry>,
    revision: &Revision,
    result: Reason,
    report: &PassReport<'_>,
) {
    let revision = revision.to_string();
    let result = result.as_str();
    let mut entry = HistoryEntry {
        revision,
        started: Time(report.started),
        duration: String::new(),
        changed: i64::try_from(report.changes().count()).unwrap_or(i64::MAX),
        result: result.to_owned(),
    };
    if let Some(latest) = history.first()
        && latest.revision == entry.revision
    {
        if latest.result == result {
            return;
        }
        if latest.result != Reason::Synced.as_str() {
            entry.started = latest.started.clone();
            entry.changed = entry.changed.saturating_add(latest.changed);
            history.remove(0);
        }
    }
    entry.duration = words(report.ended.duration_since(entry.started.0));
    history.insert(0, entry);
    history.truncate(HISTORY_MAX);
}

/// Returns a duration as people and Go write it, to the second: `1h 2m 3s` without the spaces, `850ms` below a second.
fn words(duration: SignedDuration) -> String {
    let unit = if duration < SignedDuration::from_secs(1) {
        Unit::Millisecond
    } else {
        Unit::Second
    };
    let rounded = duration.round(unit).unwrap_or(duration);
    format!("{rounded:#}").replace(' ', "")
}
