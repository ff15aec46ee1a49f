//! `fairway migration retire`: takes the steps out of a migration whose time is over.

use std::cmp::Ordering;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::repository::{RepositoryArguments, split_migration};
use crate::desired::Desired;
use crate::desired::migrations::{LifecycleState, retire};
use crate::model::ModuleVersion;
use crate::model::migration::Migration;

/// The arguments of `fairway migration retire`.
#[derive(Debug, Args)]
pub(super) struct RetireArguments {
    /// The file with the migration
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Retire it although versions that need it are still offered; `removeIn` becomes the lowest of them
    #[arg(long)]
    early: bool,
}

#[derive(Debug, thiserror::Error)]
enum RetireFailure {
    #[error("failed to {what} {}", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} stands in no folder of migrations", path.display())]
    Elsewhere { path: PathBuf },
    #[error("failed to retire {}", path.display())]
    Text {
        path: PathBuf,
        source: crate::desired::migrations::RetireError,
    },
    #[error("{name} is still needed: {why}")]
    Needed { name: String, why: String },
    #[error("{name} cannot go early: {why}")]
    NotEarly { name: String, why: String },
    #[error("no valid migration stands in {path}")]
    Invalid { path: String },
}

/// Rewrites the file in place. Nothing is written unless the result is the same definition without what is taken out.
pub(super) fn run(arguments: &RetireArguments, context: &mut Context) -> Result<Exit, Failure> {
    crate::source::initialize()?;
    let path = &arguments.file;
    let failed = |what| {
        move |source| {
            let path = path.clone();
            Failure::of(RetireFailure::File { what, path, source })
        }
    };
    let full = path.canonicalize().map_err(failed("find"))?;
    let text = fs::read_to_string(&full).map_err(failed("read"))?;
    let end = check_time(path, &full, arguments.early)?;
    let retired = retire(&text, end.as_deref()).map_err(|source| {
        let path = path.clone();
        Failure::of(RetireFailure::Text { path, source }).help(
            "one file holds one Migration, written with a line for each field; or take out steps, undo, tests, policy, after and guard.requires by hand",
        )
    })?;
    fs::write(&full, retired).map_err(failed("write"))?;
    if let Some(end) = end {
        writeln!(
            context.err,
            "removeIn is {end} now: whoever comes from below goes without it, or is blocked where it is still needed"
        )?;
    }
    writeln!(
        context.err,
        "{} is retired: it never runs again, and blocks where it is still needed; delete it whenever you like",
        path.display()
    )?;
    Ok(Exit::Ok)
}

/// Refuses to retire what some version on offer still needs. With `early` it returns the version in which the migration goes instead
/// of the one that is written, so that what is left is one whose time is over.
fn check_time(path: &Path, full: &Path, early: bool) -> Result<Option<String>, Failure> {
    let (root, inside) = split_migration(full).ok_or_else(|| {
        Failure::of(RetireFailure::Elsewhere {
            path: path.to_owned(),
        })
        .help("migrations stand in components/NAME/migrations/, modules/NAME/migrations/ or migrations/")
    })?;
    let repository = RepositoryArguments::of_directory(root);
    let desired = repository.evaluate(&repository.working_tree()?);
    let migration = desired
        .migrations
        .iter()
        .find(|migration| migration.place.file == inside)
        .ok_or_else(|| {
            Failure::of(RetireFailure::Invalid {
                path: inside.clone(),
            })
            .help("fairway validate says what is wrong with it")
        })?;
    match desired.lifecycle_of(migration) {
        LifecycleState::Over { .. } => Ok(None),
        LifecycleState::Needed(_) | LifecycleState::Unmeasured(_) if early => {
            earlier_end(&desired, migration).map(Some)
        }
        LifecycleState::Needed(why) | LifecycleState::Unmeasured(why) => {
            let name = migration.name.clone();
            Err(Failure::of(RetireFailure::Needed { name, why }).help(
                "move channels and versions past `removeIn` first, or say --early if no cluster can come from below",
            ))
        }
    }
}

/// Returns the version in which a migration can go now: the lowest that is offered, above the one in which it came.
fn earlier_end(desired: &Desired, migration: &Migration) -> Result<String, Failure> {
    let refused = |why: String, help: &str| {
        let name = migration.name.clone();
        Failure::of(RetireFailure::NotEarly { name, why }).help(help)
    };
    let lifecycle = &migration.spec.lifecycle;
    if let Some(reason) = &lifecycle.never {
        return Err(refused(
            format!("it says that it can never go: {reason}"),
            "write introducedIn and removeIn in place of `never` first",
        ));
    }
    let Some(lowest) = desired.lowest_offer(migration) else {
        return Err(refused(
            "no version of what it belongs to is offered, so that there is nothing to measure it on".to_owned(),
            "write `version` in component.yaml, or `release` in fairway.yaml",
        ));
    };
    let first = lifecycle.introduced_in.as_deref().unwrap_or_default();
    let is_above = ModuleVersion::parse(first)
        .is_ok_and(|first| lowest.partial_cmp(&first) == Some(Ordering::Greater));
    if is_above {
        return Ok(lowest.to_string());
    }
    Err(refused(
        format!("it takes part from {first} on, and the lowest version on offer is {lowest}"),
        "raise that version first: a migration goes in a later version than it comes in",
    ))
}
