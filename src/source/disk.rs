//! The directories of a mirror: the one in use, and those beside it while it is cloned anew.

use std::path::{Path, PathBuf};

use git2::Repository;

use super::error::SourceError;

/// Returns where a mirror is cloned to before it takes its place.
pub(super) fn fresh(directory: &Path) -> PathBuf {
    beside(directory, ".new")
}

/// Returns where a mirror is put that another one has replaced.
pub(super) fn aside(directory: &Path) -> PathBuf {
    beside(directory, ".old")
}

fn beside(directory: &Path, suffix: &str) -> PathBuf {
    let mut name = directory.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

pub(super) fn open_or_create(directory: &Path) -> Result<Repository, SourceError> {
    if directory.exists() {
        return Repository::open_bare(directory)
            .map_err(|error| SourceError::from_mirror(directory, &error));
    }
    Repository::init_bare(directory)
        .map_err(|error| SourceError::from_storage(directory, error.message()))
}

pub(super) fn count_packs(directory: &Path) -> usize {
    std::fs::read_dir(directory.join("objects/pack")).map_or(0, |entries| {
        entries
            .filter_map(Result::ok)
            .filter(|entry| entry.path().extension().is_some_and(|end| end == "pack"))
            .count()
    })
}

pub(super) fn remove_directory(directory: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
