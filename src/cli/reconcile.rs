//! `fairway reconcile` and `fairway wait`: asking for a pass, and waiting for a revision.

use std::io::Write;
use std::time::Duration;

use clap::Args;

use super::connection::runtime;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::resources::{Home, is_ready, parse_duration, readiness};
use crate::model::SourceName;
use crate::model::api::{ConditionStatus, ConditionType, ReleaseSource, find};

/// Arguments of `fairway reconcile`.
#[derive(Debug, Args)]
pub struct ReconcileArguments {
    /// The ReleaseSource
    source: SourceName,
    /// How long to wait for the pass
    #[arg(long, value_parser = parse_duration, default_value = "2m")]
    timeout: Duration,
    /// Say nothing when all is well
    #[arg(long, short)]
    quiet: bool,
}

/// Arguments of `fairway wait`.
#[derive(Debug, Args)]
pub struct WaitArguments {
    /// The ReleaseSource
    source: SourceName,
    /// The commit that must be applied in full, at least seven digits; otherwise that the source is ready
    #[arg(long, value_name = "SHA", value_parser = parse_commit)]
    revision: Option<String>,
    /// How long to wait
    #[arg(long, value_parser = parse_duration, default_value = "5m")]
    timeout: Duration,
    /// Say nothing when all is well
    #[arg(long, short)]
    quiet: bool,
}

pub(super) fn reconcile(
    arguments: &ReconcileArguments,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let source = runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        let source = home.source(&arguments.source).await?;
        if source.spec.suspend {
            return Err(Failure::Misuse(readiness(&source)));
        }
        let requested_at = home.request_pass(&arguments.source).await?;
        let handled = move |source: Option<&ReleaseSource>| {
            source
                .and_then(|source| source.status.as_ref())
                .is_some_and(|status| {
                    status.last_handled_reconcile_at.as_ref() == Some(&requested_at)
                })
        };
        home.await_source(&arguments.source, handled, ("the pass", arguments.timeout))
            .await
    })?;
    conclude(&source, arguments.quiet, context)
}

pub(super) fn wait(arguments: &WaitArguments, context: &mut Context) -> Result<Exit, Failure> {
    let revision = arguments.revision.clone();
    let what = match &revision {
        Some(revision) => format!("applying {revision} in full"),
        None => "becoming ready".to_owned(),
    };
    let wanted = revision.clone();
    let source = runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        home.source(&arguments.source).await?;
        let decided = move |source: Option<&ReleaseSource>| {
            source.is_some_and(|source| {
                has_reached(source, wanted.as_deref()) || is_stuck(source, wanted.as_deref())
            })
        };
        home.await_source(&arguments.source, decided, (&what, arguments.timeout))
            .await
    })?;
    let reached = has_reached(&source, revision.as_deref());
    if !(arguments.quiet && reached) {
        writeln!(context.err, "{}", readiness(&source))?;
    }
    Ok(if reached { Exit::Ok } else { Exit::Found })
}

/// Returns whether what is waited for is so.
fn has_reached(source: &ReleaseSource, revision: Option<&str>) -> bool {
    match revision {
        Some(revision) => has_applied(source, revision),
        None => is_ready(source),
    }
}

/// Returns whether waiting is of no use: the agent has looked at this spec, goes on by itself no more, and, where a revision
/// is waited for, it is this one that it is stuck with, or it cannot read any other.
fn is_stuck(source: &ReleaseSource, revision: Option<&str>) -> bool {
    if source.spec.suspend {
        return true;
    }
    let Some(status) = &source.status else {
        return false;
    };
    let is =
        |kind, wanted| find(&status.conditions, kind).is_some_and(|found| found.status == wanted);
    let seen = status.observed_generation >= source.metadata.generation;
    if !seen || !is(ConditionType::Stalled, ConditionStatus::True) {
        return false;
    }
    match (revision, &status.last_attempted_revision) {
        (None, _) => true,
        (Some(_), _) if is(ConditionType::Fetched, ConditionStatus::False) => true,
        (Some(revision), Some(attempted)) => is_of(attempted, revision),
        (Some(_), None) => false,
    }
}

fn conclude(source: &ReleaseSource, quiet: bool, context: &mut Context) -> Result<Exit, Failure> {
    let ready = is_ready(source);
    if !(quiet && ready) {
        writeln!(context.err, "{}", readiness(source))?;
    }
    Ok(if ready { Exit::Ok } else { Exit::Found })
}

fn has_applied(source: &ReleaseSource, commit: &str) -> bool {
    source
        .status
        .as_ref()
        .and_then(|status| status.last_applied_revision.as_deref())
        .is_some_and(|revision| is_of(revision, commit))
}

/// Returns whether a revision, written `main@sha1:…`, is of a commit that is given by its first digits.
fn is_of(revision: &str, commit: &str) -> bool {
    revision
        .rsplit_once(':')
        .is_some_and(|(_, hash)| hash.starts_with(commit))
}

fn parse_commit(text: &str) -> Result<String, String> {
    let digits = text.bytes().all(|b| b.is_ascii_hexdigit());
    if digits && (7..=64).contains(&text.len()) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("a commit has 7 to 40 hexadecimal digits".to_owned())
    }
}
