//! Gives errors of libgit2 and of the file system their names.

use git2::ErrorClass;

use super::error::SourceError;

/// How the system says that there is no more room: on the volume, for this user, or for this process.
const DISK_FULL: &[&str] = &["No space left", "quota exceeded", "File too large"];

impl SourceError {
    /// Translates an error from work on a local repository that has no better name.
    pub(super) fn from_local(error: &git2::Error) -> Self {
        Self::Other {
            detail: error.message().to_owned(),
        }
    }

    /// Translates an error from reading or writing below a directory.
    pub(super) fn from_storage(directory: &std::path::Path, detail: &str) -> Self {
        if DISK_FULL.iter().any(|sign| detail.contains(sign)) {
            return Self::DiskFull {
                directory: directory.to_owned(),
            };
        }
        Self::Storage {
            directory: directory.to_owned(),
            detail: detail.to_owned(),
        }
    }

    /// Translates an error from reading what a mirror should hold: anything but the file system means damage.
    pub(super) fn from_mirror(directory: &std::path::Path, error: &git2::Error) -> Self {
        let refused = ["denied", "Read-only", "Too many open files"];
        let refused = refused
            .iter()
            .chain(DISK_FULL)
            .any(|sign| error.message().contains(sign));
        if error.class() == ErrorClass::Os && refused {
            return Self::from_storage(directory, error.message());
        }
        Self::MirrorCorrupt {
            directory: directory.to_owned(),
            detail: error.message().to_owned(),
        }
    }
}
