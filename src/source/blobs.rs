//! Reads contents out of a git object store, from several threads at once.

use std::path::PathBuf;
use std::sync::Mutex;

use git2::{ObjectType, Oid, Repository};

use crate::model::{BlobError, BlobId, BlobStore, limits};

/// The contents of one repository.
///
/// A `Repository` may move between threads but not be shared, so each reader takes an idle one or opens another.
pub(super) struct GitBlobs {
    directory: PathBuf,
    idle: Mutex<Vec<Repository>>,
}

impl GitBlobs {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Closes the idle ones, after the repository was replaced by another one.
    pub(super) fn forget_opened(&self) {
        self.lock().clear();
    }

    /// Lends a repository to a reader, and takes it back.
    fn with_repository<T>(
        &self,
        read: impl FnOnce(&Repository) -> Result<T, BlobError>,
    ) -> Result<T, BlobError> {
        let idle = self.lock().pop();
        let repository = match idle {
            Some(repository) => repository,
            None => Repository::open(&self.directory).map_err(|error| unreadable(&error))?,
        };
        let result = read(&repository);
        let mut idle = self.lock();
        if idle.len() < limits::MIRROR_READERS_MAX {
            idle.push(repository);
        }
        result
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Repository>> {
        // A reader that panicked left the list as it was.
        self.idle
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl BlobStore for GitBlobs {
    fn read(&self, blob: BlobId, limit: u64) -> Result<Vec<u8>, BlobError> {
        self.with_repository(|repository| {
            let oid = Oid::from_bytes(&blob.0).map_err(|error| unreadable(&error))?;
            let odb = repository.odb().map_err(|error| unreadable(&error))?;
            // The header alone says the size: what is too large is never loaded.
            let (size, kind) = odb.read_header(oid).map_err(|error| unreadable(&error))?;
            if kind != ObjectType::Blob {
                return Err(BlobError::Unreadable {
                    reason: format!("{blob} is not a file but a {kind}"),
                });
            }
            let size = size as u64;
            if size > limit {
                return Err(BlobError::TooLarge { size, limit });
            }
            let object = odb.read(oid).map_err(|error| unreadable(&error))?;
            Ok(object.data().to_vec())
        })
    }
}

fn unreadable(error: &git2::Error) -> BlobError {
    BlobError::Unreadable {
        reason: error.message().to_owned(),
    }
}
