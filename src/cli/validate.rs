//! `fairway validate`: checks a repository without a cluster, as the agent would.

use clap::Args;

use super::context::Context;
use super::draw::draw_diagnostics;
use super::failure::{Exit, Failure};
use super::progress::with_progress;
use super::repository::RepositoryArguments;
use crate::agent::clock;
use crate::desired::{Desired, compare_with_base};
use crate::model::{Diagnostic, Severity, Snapshot, limits};
use crate::source;

/// The arguments of `fairway validate`.
#[derive(Debug, Args)]
pub struct ValidateArguments {
    #[command(flatten)]
    repository: RepositoryArguments,

    /// Check this revision instead of the files as they are now
    #[arg(long, value_name = "REV")]
    revision: Option<String>,

    /// Check also how channels and versions move, from where the work branched off this revision
    #[arg(long, value_name = "REV")]
    base: Option<String>,
}

/// Exits with 1 when there is an error; silent when there is nothing to say.
pub(super) fn run(arguments: &ValidateArguments, context: &mut Context) -> Result<Exit, Failure> {
    source::initialize()?;
    let what = format!("checking {}", arguments.repository.directory.display());
    let (snapshot, desired) = with_progress(context, &what, || check(arguments))?;
    let read = |path: &str| {
        let entry = snapshot.files.get(path)?;
        snapshot.blobs.read(entry.blob, limits::FILE_SIZE_MAX).ok()
    };
    draw_diagnostics(
        context,
        &desired.diagnostics,
        desired.diagnostics_omitted,
        &read,
    )?;
    let is_error = |found: &Diagnostic| found.severity == Severity::Error;
    Ok(if desired.diagnostics.iter().any(is_error) {
        Exit::Found
    } else {
        Exit::Ok
    })
}

fn check(arguments: &ValidateArguments) -> Result<(Snapshot, Desired), Failure> {
    let repository = &arguments.repository;
    let snapshot = match &arguments.revision {
        Some(revision) => repository.revision(revision)?,
        None => repository.working_tree()?,
    };
    let mut desired = repository.evaluate(&snapshot);
    if let Some(base) = &arguments.base {
        // What others merged since the work branched off is no change of ours.
        let ours = arguments.revision.as_deref().unwrap_or("HEAD");
        let base = repository.evaluate(&repository.base_of(ours, base)?);
        let changes = compare_with_base(&base, &desired, today());
        desired.diagnostics.extend(changes);
        desired
            .diagnostics
            .sort_by(|one, two| one.place.cmp(&two.place));
    }
    Ok((snapshot, desired))
}

fn today() -> jiff::civil::Date {
    clock::now().to_zoned(jiff::tz::TimeZone::UTC).date()
}
