//! What waits for a person: for `fairway get approvals`, and for approving it.

use jiff::Timestamp;
use serde::Serialize;

use crate::model::api::{ConditionStatus, ConditionType, HOME, ReleaseSource, Target, find};
use crate::model::{ClusterUid, HoldReason, names};

/// What most of the commands do.
const APPROVE: &str = "approve it";

/// One thing that waits for a person.
#[derive(Debug, Serialize)]
pub(super) struct Waiting {
    pub(super) kind: &'static str,
    pub(super) source: String,
    pub(super) what: String,
    pub(super) since: Option<Timestamp>,
    pub(super) why: Vec<String>,
    pub(super) command: String,
    /// What the command does, in words.
    #[serde(skip)]
    pub(super) does: &'static str,
}

/// Returns everything that waits for a person on this cluster.
pub(super) fn waiting(
    sources: &[ReleaseSource],
    targets: &[Target],
    cluster: &ClusterUid,
) -> Vec<Waiting> {
    let prunes = targets.iter().filter_map(waiting_prune);
    let rewinds = sources.iter().filter_map(waiting_rewind);
    let identities = targets
        .iter()
        .filter_map(|target| waiting_identity(target, cluster));
    prunes.chain(rewinds).chain(identities).collect()
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
        command: format!(
            "fairway approve prune {source}{} --reason '…'",
            of_target(target)
        ),
        source,
        does: APPROVE,
    })
}

/// Returns the argument that names a runtime; nothing for home.
fn of_target(target: &Target) -> String {
    let name = target.metadata.name.as_deref().unwrap_or_default();
    match name.split_once('.') {
        Some((_, cluster)) if cluster != HOME => format!(" --target {cluster}"),
        _ => String::new(),
    }
}

/// A record that is another cluster's, or was lost: as after a backup was restored, or after somebody has deleted the Target.
fn waiting_identity(target: &Target, cluster: &ClusterUid) -> Option<Waiting> {
    let name = target.metadata.name.as_deref()?;
    let (source, of) = name.split_once('.')?;
    let status = target.status.as_ref()?;
    let recorded = status.cluster_uid.as_deref();
    let found = if of == HOME {
        cluster.as_str()
    } else {
        status.found_cluster_uid.as_deref()?
    };
    // Without a source in it the agent has only just made the record.
    if status.source.is_none() || recorded == Some(found) {
        return None;
    }
    let what = match recorded {
        Some(uid) => {
            format!("its record was written for another cluster (uid {uid}, this one is {found})")
        }
        None => "its record on this cluster was lost".to_owned(),
    };
    let (waits, place) = if of == HOME {
        ("everything is applied, and nothing is deleted", "here")
    } else if recorded.is_some() {
        ("nothing is written there", "there")
    } else {
        ("everything is applied, and nothing is deleted", "there")
    };
    let pruned = find(&status.conditions, ConditionType::Pruned)
        .filter(|pruned| pruned.status == ConditionStatus::False);
    let since = pruned.map(|pruned| pruned.last_transition_time.0);
    Some(Waiting {
        kind: "identity",
        source: source.to_owned(),
        what,
        since: since.or_else(|| Some(target.metadata.creation_timestamp.as_ref()?.0)),
        why: vec![format!(
            "{waits}, until a person says that what carries the label {}={source} {place} is this source's",
            names::LABEL_SOURCE
        )],
        command: format!(
            "fairway approve identity {source}{} --reason '…'",
            of_target(target)
        ),
        does: APPROVE,
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
        does: APPROVE,
    })
}
