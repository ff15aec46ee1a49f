//! `fairway migration retire`: takes the steps out of a migration whose time is over.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::repository::RepositoryArguments;
use crate::desired::migrations::{LifecycleState, retire};

/// The arguments of `fairway migration retire`.
#[derive(Debug, Args)]
pub(super) struct RetireArguments {
    /// The file with the migration
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Retire it although versions that need it are still offered
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
    if !arguments.early {
        check_time(path, &full)?;
    }
    let retired = retire(&text).map_err(|source| {
        let path = path.clone();
        Failure::of(RetireFailure::Text { path, source }).help(
            "one file holds one Migration, written with a line for each field; or take out steps, undo, tests, policy, after and guard.requires by hand",
        )
    })?;
    fs::write(&full, retired).map_err(failed("write"))?;
    writeln!(
        context.err,
        "{} is retired: it never runs again, and blocks where it is still needed; delete it whenever you like",
        path.display()
    )?;
    Ok(Exit::Ok)
}

/// Refuses to retire what some version on offer still needs.
fn check_time(path: &Path, full: &Path) -> Result<(), Failure> {
    let (root, inside) = split(full).ok_or_else(|| {
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
        LifecycleState::Over { .. } => Ok(()),
        LifecycleState::Needed(why) | LifecycleState::Unmeasured(why) => {
            let name = migration.name.clone();
            Err(Failure::of(RetireFailure::Needed { name, why }).help(
                "move channels and versions past `removeIn` first, or say --early if no cluster can come from below",
            ))
        }
    }
}

/// Returns the root of the repository that a file of migrations stands in, and its path inside it.
fn split(file: &Path) -> Option<(PathBuf, String)> {
    let folder = file
        .ancestors()
        .skip(1)
        .find(|folder| folder.file_name().is_some_and(|name| name == "migrations"))?;
    let above = folder.parent()?;
    let is_owned = above.parent().and_then(Path::file_name);
    let root = match is_owned.and_then(|name| name.to_str()) {
        Some("components" | "modules") => above.parent()?.parent()?,
        _ => above,
    };
    let inside = file.strip_prefix(root).ok()?.to_str()?.to_owned();
    Some((root.to_owned(), inside))
}
