//! `fairway approve` and `fairway adopt`: a person's decisions.

use std::fmt::Write as _;
use std::io::Write as _;

use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::connection::runtime;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::identity::who_and_why;
use super::resources::Home;
use super::waiting::rewound_to;
use crate::model::api::{Decision, DecisionKind, HOME, ReleaseSource, Target};
use crate::model::{SourceName, names};

/// Arguments of `fairway approve`.
#[derive(Debug, Args)]
pub struct ApproveArguments {
    /// What kind of thing is approved
    #[arg(value_enum)]
    kind: Approvable,
    /// The ReleaseSource
    source: SourceName,
    /// The cluster: home, or the name of a runtime
    #[arg(long, value_name = "NAME", default_value = HOME)]
    target: String,
    /// Why; it is kept with the decision
    #[arg(long)]
    reason: String,
    /// Who decides; otherwise the user of the kubeconfig's context
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

/// Arguments of `fairway adopt`.
#[derive(Debug, Args)]
pub struct AdoptArguments {
    /// The ReleaseSource
    source: SourceName,
    /// The cluster: home, or the name of a runtime
    #[arg(long, value_name = "NAME", default_value = HOME)]
    target: String,
    /// Why; it is kept with the decision
    #[arg(long)]
    reason: String,
    /// Who decides; otherwise the user of the kubeconfig's context
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Approvable {
    /// The deletions that wait
    Prune,
    /// A branch that no longer contains what was applied from it, or a tag that was moved
    Rewind,
    /// A cluster whose record was lost or is another's, as after restoring a backup; `fairway adopt` is the same
    Identity,
}

pub(super) fn approve(
    arguments: &ApproveArguments,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let name = &arguments.source;
    let reason = (arguments.reason.as_str(), arguments.by.as_deref());
    let waiting: fn(&SourceName, &ReleaseSource, Option<&Target>) -> Result<_, Failure> =
        match arguments.kind {
            Approvable::Prune => |name, _, target| pending_prune(name, target),
            Approvable::Rewind => |name, source, _| rewind(name, source),
            Approvable::Identity => {
                return approve_identity((name, &arguments.target), reason, context);
            }
        };
    let done = runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        let source = home.source(name).await?;
        let target = home.target_of(name, &arguments.target).await?;
        let (kind, digest, what) = waiting(name, &source, target.as_ref())?;
        let last = last_decision(target.as_ref());
        let decision = decision(context, (kind, digest), last, reason)?;
        store(&home, name, &decision).await?;
        Ok::<_, Failure>(what)
    })?;
    writeln!(context.err, "approved: {done}")?;
    Ok(Exit::Ok)
}

pub(super) fn adopt(arguments: &AdoptArguments, context: &mut Context) -> Result<Exit, Failure> {
    let reason = (arguments.reason.as_str(), arguments.by.as_deref());
    let of = (&arguments.source, arguments.target.as_str());
    approve_identity(of, reason, context)
}

fn approve_identity(
    (name, target): (&SourceName, &str),
    reason: (&str, Option<&str>),
    context: &mut Context,
) -> Result<Exit, Failure> {
    let uid = runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        home.source(name).await?;
        let record = home.target_of(name, target).await?;
        let uid = uid_of(&home, (name, target), record.as_ref())?;
        let created = lost_record(name, &uid, record.as_ref())?;
        let decision = decision(context, (DecisionKind::Adopt, uid.clone()), created, reason)?;
        store(&home, name, &decision).await?;
        Ok::<_, Failure>(uid)
    })?;
    writeln!(
        context.err,
        "adopted: what carries the label {}={name} on the cluster {uid} is {name}'s",
        names::LABEL_SOURCE
    )?;
    Ok(Exit::Ok)
}

/// Returns the uid of the cluster that is to be adopted: home's own, or the one that a runtime's kubeconfig was found to lead to.
fn uid_of(
    home: &Home,
    (name, target): (&SourceName, &str),
    record: Option<&Target>,
) -> Result<String, Failure> {
    if target == HOME {
        return Ok(home.cluster.uid().to_string());
    }
    let status = record.and_then(|record| record.status.as_ref());
    let found = status.and_then(|status| status.found_cluster_uid.as_ref());
    let found = found.or(status.and_then(|status| status.cluster_uid.as_ref()));
    found.cloned().ok_or_else(|| {
        Failure::Misuse(format!(
            "the runtime {target} of {name} was never reached; kubectl get targets shows the others"
        ))
    })
}

fn pending_prune(
    name: &SourceName,
    target: Option<&Target>,
) -> Result<(DecisionKind, String, String), Failure> {
    let pending = target
        .and_then(|target| target.status.as_ref())
        .and_then(|status| status.pending_prune.as_ref())
        .ok_or_else(|| Failure::Misuse(format!("no deletion of {name} waits for an approval")))?;
    let mut what = format!(
        "{} deletions of {name} (set {})",
        pending.count, pending.digest
    );
    for object in &pending.sample {
        let _ = write!(what, "\n  {object}");
    }
    let unnamed = pending.count - i64::try_from(pending.sample.len()).unwrap_or_default();
    if unnamed > 0 {
        let _ = write!(what, "\n  and {unnamed} more");
    }
    Ok((DecisionKind::Prune, pending.digest.clone(), what))
}

fn rewind(
    name: &SourceName,
    source: &ReleaseSource,
) -> Result<(DecisionKind, String, String), Failure> {
    let commit = rewound_to(source).ok_or_else(|| {
        Failure::Misuse(format!(
            "no rewound branch or tag of {name} waits for an approval"
        ))
    })?;
    let what = format!("{name} follows its branch or tag to {commit}");
    let status = source.status.as_ref();
    let applied = status.and_then(|status| status.last_attempted_revision.as_deref());
    let from = applied
        .and_then(|revision| revision.rsplit_once("sha1:"))
        .map_or("", |(_, hash)| hash);
    Ok((DecisionKind::Rewind, format!("{from}..{commit}"), what))
}

/// Returns when the Target was created whose lost record is to be adopted; only a later decision is about this loss.
fn lost_record(
    name: &SourceName,
    uid: &str,
    target: Option<&Target>,
) -> Result<Option<Timestamp>, Failure> {
    let Some(target) = target else {
        return Err(Failure::Misuse(format!(
            "there is no record of {name} yet, so that nothing is to be adopted; is an agent running in its namespace?"
        )));
    };
    let status = target.status.as_ref();
    if status.and_then(|status| status.cluster_uid.as_deref()) == Some(uid) {
        return Err(Failure::Misuse(format!(
            "the record of {name} is whole; there is nothing to adopt"
        )));
    }
    Ok(target
        .metadata
        .creation_timestamp
        .as_ref()
        .map(|created| created.0))
}

fn last_decision(target: Option<&Target>) -> Option<Timestamp> {
    let approval = target?.status.as_ref()?.approval.as_ref()?;
    Some(approval.at.0)
}

/// Makes a decision. It is dated after the last one that the agent has recorded, whatever this computer's clock says: each
/// counts once, by its date.
fn decision(
    context: &Context,
    (kind, digest): (DecisionKind, String),
    last: Option<Timestamp>,
    (reason, by): (&str, Option<&str>),
) -> Result<Decision, Failure> {
    let (by, reason) = who_and_why(context, reason, by)?;
    let now = crate::agent::clock::now();
    let next = last.and_then(|last| last.checked_add(SignedDuration::from_secs(1)).ok());
    Ok(Decision {
        kind,
        digest,
        by,
        reason,
        at: next.map_or(now, |next| next.max(now)),
    })
}

async fn store(home: &Home, name: &SourceName, decision: &Decision) -> Result<(), Failure> {
    let text = serde_json::to_string(decision).map_err(Failure::of)?;
    let patch = json!({"metadata": {"annotations": {names::ANNOTATION_APPROVED: text}}});
    home.patch(name, &patch).await.map(drop)
}
