//! `fairway approve` and `fairway adopt`: a person's decisions.

use std::fmt::Write as _;
use std::io::Write as _;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::connection::runtime;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::resources::Home;
use super::waiting::rewound_to;
use crate::model::api::{Decision, DecisionKind, ReleaseSource, Target};
use crate::model::{SourceName, names};

/// Arguments of `fairway approve`.
#[derive(Debug, Args)]
pub struct ApproveArguments {
    /// What kind of thing is approved
    #[arg(value_enum)]
    kind: Approvable,
    /// The ReleaseSource
    source: SourceName,
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
}

pub(super) fn approve(
    arguments: &ApproveArguments,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let name = &arguments.source;
    let done = runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        let source = home.source(name).await?;
        let target = home.target(name).await?;
        let (kind, digest, what) = match arguments.kind {
            Approvable::Prune => pending_prune(name, target.as_ref())?,
            Approvable::Rewind => rewind(name, &source)?,
        };
        let decision = decision(
            context,
            kind,
            digest,
            (&arguments.reason, arguments.by.as_deref()),
        );
        store(&home, name, &decision).await?;
        Ok::<_, Failure>(what)
    })?;
    writeln!(context.err, "approved: {done}")?;
    Ok(Exit::Ok)
}

pub(super) fn adopt(arguments: &AdoptArguments, context: &mut Context) -> Result<Exit, Failure> {
    let name = &arguments.source;
    let uid = runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        home.source(name).await?;
        let uid = home.cluster.uid().to_string();
        let reason = (arguments.reason.as_str(), arguments.by.as_deref());
        let decision = decision(context, DecisionKind::Adopt, uid.clone(), reason);
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
    Ok((DecisionKind::Rewind, commit, what))
}

fn decision(
    context: &Context,
    kind: DecisionKind,
    digest: String,
    (reason, by): (&str, Option<&str>),
) -> Decision {
    let by = by.map_or_else(|| user(context), str::to_owned);
    Decision {
        kind,
        digest,
        by,
        reason: reason.to_owned(),
        at: crate::agent::clock::now(),
    }
}

/// Names the user of the current context. The API server's own audit log knows better; this is for people.
fn user(context: &Context) -> String {
    let kubeconfig = match &context.cluster.kubeconfig {
        Some(path) => kube::config::Kubeconfig::read_from(path),
        None => kube::config::Kubeconfig::read(),
    };
    let Ok(kubeconfig) = kubeconfig else {
        return "unknown".to_owned();
    };
    let current = context
        .cluster
        .context
        .clone()
        .or(kubeconfig.current_context);
    kubeconfig
        .contexts
        .into_iter()
        .find(|named| Some(&named.name) == current.as_ref())
        .and_then(|named| named.context?.user)
        .unwrap_or_else(|| "unknown".to_owned())
}

async fn store(home: &Home, name: &SourceName, decision: &Decision) -> Result<(), Failure> {
    let text = serde_json::to_string(decision).map_err(Failure::of)?;
    let patch = json!({"metadata": {"annotations": {names::ANNOTATION_APPROVED: text}}});
    home.patch(name, &patch).await.map(drop)
}
