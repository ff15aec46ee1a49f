//! Gives errors of libgit2 and of the file system their names.

use git2::ErrorClass;

use super::error::SourceError;

impl SourceError {
    /// Translates an error from work on a local repository that has no better name.
    pub(super) fn from_local(error: &git2::Error) -> Self {
        Self::Other {
            detail: error.message().to_owned(),
        }
    }

    /// Translates an error from reading or writing below a directory.
    pub(super) fn from_storage(directory: &std::path::Path, detail: &str) -> Self {
        if ["No space left", "quota exceeded", "File too large"]
            .iter()
            .any(|sign| detail.contains(sign))
        {
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
        let refused = [
            "denied",
            "Read-only",
            "No space left",
            "Too many open files",
        ]
        .iter()
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
