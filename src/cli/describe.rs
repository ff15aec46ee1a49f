//! `fairway describe`: one source, target or run in full, with what is held and what lifts it.

use std::io::Write;

use clap::{Args, ValueEnum};

use super::arguments::OutputFormat;
use super::connection::runtime;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::get::{age, moment};
use super::resources::Home;
use super::runs::{self, Known, Paste, waiting_runs};
use super::terminal::printable;
use super::waiting::{Waiting, waiting};
use crate::model::SourceName;
use crate::model::api::{
    Condition, DeletionPolicy, HOME, HeldItem, HistoryEntry, ReleaseSource, Target,
};

/// Arguments of `fairway describe`.
#[derive(Debug, Args)]
pub struct DescribeArguments {
    /// What to describe
    #[arg(value_enum)]
    what: Described,
    /// The ReleaseSource; of a target SOURCE.RUNTIME, or SOURCE alone for home; of a run its name, or its migration where that has
    /// one run only
    name: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Described {
    /// The source with its conditions, holds and history
    #[value(alias = "sources")]
    Source,
    /// What the source has done on home, or on a runtime
    #[value(alias = "targets")]
    Target,
    /// The run of a migration: what it waits for, what can be done, and what it has done
    #[value(alias = "runs")]
    Run,
}

pub(super) fn run(arguments: &DescribeArguments, context: &mut Context) -> Result<Exit, Failure> {
    match arguments.what {
        Described::Run => return runs::describe(&arguments.name, context),
        Described::Source => source(&source_name(&arguments.name)?, context)?,
        Described::Target => target(&arguments.name, context)?,
    }
    Ok(Exit::Ok)
}

fn source_name(text: &str) -> Result<SourceName, Failure> {
    if text.contains('.') {
        return Err(Failure::Misuse(format!(
            "`{text}` is a target: fairway describe target {text}"
        )));
    }
    SourceName::new(text).map_err(Failure::of)
}

fn source(name: &SourceName, context: &mut Context) -> Result<(), Failure> {
    let paste = Paste::of(context);
    let (source, waits) = runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        let source = home.source(name).await?;
        let targets = home.targets_of(name).await?;
        let mut waits = waiting(std::slice::from_ref(&source), &targets, home.cluster.uid());
        let runs = waiting_runs(&Known::read(&home).await?, &paste);
        waits.extend(runs.into_iter().filter(|one| one.source == name.as_str()));
        Ok::<_, Failure>((source, waits))
    })?;
    if context.output == OutputFormat::Text {
        describe_source(&source, &waits, context)
    } else {
        context.write_value(&source)
    }
}

/// Describes SOURCE, which is home, or SOURCE.RUNTIME; a source's name has no dot.
fn target(name: &str, context: &mut Context) -> Result<(), Failure> {
    let (source, on) = name.split_once('.').unwrap_or((name, HOME));
    let source = source_name(source)?;
    let target = runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        // What `fairway sync` has done needs no source that is declared.
        let target = home.target_of(&source, on).await?;
        if target.is_none() {
            home.source(&source).await?;
        }
        Ok::<_, Failure>(target)
    })?;
    match target {
        Some(target) if context.output == OutputFormat::Text => describe_target(&target, context),
        Some(target) => context.write_value(&target),
        None => Err(Failure::Misuse(format!(
            "{source} has done nothing on `{on}` yet; fairway get targets names the clusters where it has"
        ))),
    }
}

fn describe_source(
    source: &ReleaseSource,
    waiting: &[Waiting],
    context: &mut Context,
) -> Result<(), Failure> {
    let status = source.status.clone().unwrap_or_default();
    let none = || "none".to_owned();
    let spec = &source.spec;
    let followed = [
        &spec.reference.branch,
        &spec.reference.tag,
        &spec.reference.semver,
        &spec.reference.commit,
    ];
    let followed = followed
        .into_iter()
        .flatten()
        .next()
        .cloned()
        .unwrap_or_else(|| "working tree".to_owned());
    let out = &mut context.out;
    writeln!(
        out,
        "Source:     {}",
        source.metadata.name.as_deref().unwrap_or_default()
    )?;
    writeln!(
        out,
        "Follows:    {followed} of {}, path {}",
        spec.url, spec.path
    )?;
    if let Some(account) = &spec.service_account_name {
        writeln!(out, "Acts as:    ServiceAccount {account}")?;
    }
    if spec.suspend {
        writeln!(out, "Suspended:  yes")?;
    }
    if source.metadata.deletion_timestamp.is_some() {
        writeln!(
            out,
            "Deleted:    yes, with policy {:?}",
            spec.deletion_policy
        )?;
    } else if spec.deletion_policy == DeletionPolicy::Delete {
        writeln!(
            out,
            "Deletion:   takes what was applied along, once approved"
        )?;
    }
    writeln!(
        out,
        "Attempted:  {}",
        status.last_attempted_revision.unwrap_or_else(none)
    )?;
    writeln!(
        out,
        "Applied:    {}",
        status.last_applied_revision.unwrap_or_else(none)
    )?;
    conditions(out, &status.conditions)?;
    holds(out, &status.holds, status.hold_count.unwrap_or_default())?;
    if !waiting.is_empty() {
        writeln!(out, "Waits for a person:")?;
        for one in waiting {
            writeln!(out, "  {}: {}", one.what, one.command)?;
        }
    }
    history(out, &status.history)
}

fn describe_target(target: &Target, context: &mut Context) -> Result<(), Failure> {
    let status = target.status.clone().unwrap_or_default();
    let unknown = || "unknown".to_owned();
    let out = &mut context.out;
    writeln!(
        out,
        "Target:     {}",
        target.metadata.name.as_deref().unwrap_or_default()
    )?;
    writeln!(
        out,
        "Cluster:    {}",
        status.cluster_uid.unwrap_or_else(unknown)
    )?;
    if let Some(found) = status.found_cluster_uid {
        writeln!(out, "Found:      {found}")?;
    }
    let since = status
        .since
        .map(|since| format!(", since {}", moment(since.0)))
        .unwrap_or_default();
    writeln!(
        out,
        "Revision:   {}{since}",
        status.revision.unwrap_or_else(unknown)
    )?;
    writeln!(out, "Objects:    {}", status.objects.unwrap_or_default())?;
    writeln!(out, "Kinds:      {}", status.kinds.join(", "))?;
    conditions(out, &status.conditions)?;
    if !status.left_out.is_empty() {
        writeln!(out, "Left out:")?;
        for one in status.left_out {
            let line = format!("{}: {}", one.what, one.reason);
            writeln!(out, "  {}", printable(&line))?;
        }
    }
    if let Some(pending) = status.pending_prune {
        writeln!(
            out,
            "Deletions that wait: {}, since {}, set {}",
            pending.count,
            age(pending.since.0),
            pending.digest
        )?;
        for line in pending.reasons.iter().chain(&pending.sample) {
            writeln!(out, "  {}", printable(line))?;
        }
    }
    if let Some(approval) = status.approval {
        writeln!(
            out,
            "Last approval: set {} by {} at {}: {}",
            printable(&approval.digest),
            printable(&approval.by),
            moment(approval.at.0),
            printable(&approval.reason)
        )?;
    }
    Ok(())
}

fn conditions(out: &mut dyn Write, conditions: &[Condition]) -> Result<(), Failure> {
    writeln!(out, "Conditions:")?;
    let mut shown: Vec<&str> = Vec::new();
    for condition in conditions {
        let since = age(condition.last_transition_time.0);
        writeln!(
            out,
            "  {}={:?} ({}), since {since}",
            condition.type_, condition.status, condition.reason
        )?;
        // Reconciling and Stalled repeat what Ready says, for tools that look at nothing else.
        if shown.contains(&condition.message.as_str()) {
            continue;
        }
        shown.push(&condition.message);
        for line in printable(&condition.message).lines() {
            writeln!(out, "    {line}")?;
        }
    }
    Ok(())
}

fn holds(out: &mut dyn Write, holds: &[HeldItem], count: i64) -> Result<(), Failure> {
    if holds.is_empty() {
        return Ok(());
    }
    writeln!(out, "Held: {count}")?;
    for hold in holds {
        let place = hold
            .place
            .as_ref()
            .map(|place| format!(" at {place}"))
            .unwrap_or_default();
        let title = format!("{} ({}){place}", hold.what, hold.reason);
        writeln!(out, "  {}", printable(&title))?;
        for line in printable(&hold.message).lines() {
            writeln!(out, "    {line}")?;
        }
    }
    let unlisted = count - i64::try_from(holds.len()).unwrap_or_default();
    if unlisted > 0 {
        writeln!(out, "  and {unlisted} more")?;
    }
    Ok(())
}

fn history(out: &mut dyn Write, history: &[HistoryEntry]) -> Result<(), Failure> {
    if history.is_empty() {
        return Ok(());
    }
    writeln!(out, "History:")?;
    for entry in history {
        writeln!(
            out,
            "  {}  {} in {}, {} changed, {}",
            moment(entry.started.0),
            entry.revision,
            entry.duration,
            entry.changed,
            entry.result
        )?;
    }
    Ok(())
}
