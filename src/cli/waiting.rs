//! What waits for a person: for `fairway get approvals`, and for approving it.

use jiff::Timestamp;
use serde::Serialize;

use crate::model::HoldReason;
use crate::model::api::{ConditionType, ReleaseSource, Target, find};

/// One thing that waits for a person.
#[derive(Debug, Serialize)]
pub(super) struct Waiting {
    pub(super) kind: &'static str,
    pub(super) source: String,
    pub(super) what: String,
    pub(super) since: Option<Timestamp>,
    pub(super) why: Vec<String>,
    pub(super) command: String,
}

/// Returns everything that waits for a person, by source.
pub(super) fn waiting(sources: &[ReleaseSource], targets: &[Target]) -> Vec<Waiting> {
    let prunes = targets.iter().filter_map(waiting_prune);
    let rewinds = sources.iter().filter_map(waiting_rewind);
    prunes.chain(rewinds).collect()
}

/// Returns the commit of a rewound branch that waits to be approved.
pub(super) fn rewound_to(source: &ReleaseSource) -> Option<String> {
    let holds = &source.status.as_ref()?.holds;
    let held = holds
        .iter()
        .find(|hold| hold.reason == HoldReason::Rewound.as_str())?;
    held.what
        .rsplit_once("sha1:")
        .map(|(_, commit)| commit.to_owned())
}

fn waiting_prune(target: &Target) -> Option<Waiting> {
    let status = target.status.as_ref()?;
    let pending = status.pending_prune.as_ref()?;
    let source = status.source.clone().unwrap_or_default();
    let approved = status
        .approval
        .as_ref()
        .is_some_and(|approval| approval.digest == pending.digest);
    (!approved).then(|| Waiting {
        kind: "prune",
        what: match (pending.count, pending.sample.first()) {
            (1, Some(object)) => format!("deletion of {object}"),
            (count, Some(object)) => format!("{count} deletions, among them {object}"),
            (count, None) => format!("{count} deletions"),
        },
        since: Some(pending.since.0),
        why: pending.reasons.clone(),
        command: format!("fairway approve prune {source} --reason '…'"),
        source,
    })
}

fn waiting_rewind(source: &ReleaseSource) -> Option<Waiting> {
    let commit = rewound_to(source)?;
    let name = source.metadata.name.clone().unwrap_or_default();
    let fetched = find(&source.status.as_ref()?.conditions, ConditionType::Fetched);
    Some(Waiting {
        kind: "rewind",
        what: format!("the branch or tag was set back to {commit}"),
        since: fetched.map(|condition| condition.last_transition_time.0),
        why: fetched
            .map(|condition| condition.message.clone())
            .into_iter()
            .collect(),
        command: format!("fairway approve rewind {name} --reason '…'"),
        source: name,
    })
}
