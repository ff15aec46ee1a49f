//! Revisions of a repository on this machine, as the command line compares them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::{Commit, ErrorCode, Repository};

use super::blobs::GitBlobs;
use super::error::SourceError;
use super::reference::CommitId;
use super::tree::TreeReader;
use crate::model::snapshot::CommitInfo;
use crate::model::{BlobStore, Revision, Snapshot};

/// The git repository that a directory belongs to, seen from that directory.
pub struct LocalRepository {
    repository: Repository,
    /// The directory as a path from the root of the repository, with `/` between parts; empty for the root itself.
    path: String,
}

impl LocalRepository {
    /// Finds the repository of a directory, which may be any folder inside of it.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read, or is not in a git repository.
    pub fn discover(directory: &Path) -> Result<Self, SourceError> {
        let directory = canonical(directory)?;
        let repository = match Repository::discover(&directory) {
            Ok(repository) => repository,
            Err(error) if error.code() == ErrorCode::NotFound => {
                return Err(SourceError::NotARepository { directory });
            }
            Err(error) => return Err(SourceError::from_storage(&directory, error.message())),
        };
        let path = match repository.workdir().map(canonical).transpose()? {
            Some(root) => below(&root, &directory),
            None => String::new(),
        };
        Ok(Self { repository, path })
    }

    /// Returns the files of a committed revision below the directory. `revision` is what `git rev-parse` takes.
    ///
    /// # Errors
    ///
    /// When there is no such revision, or the directory is not part of it.
    pub fn snapshot(&self, revision: &str) -> Result<Snapshot, SourceError> {
        let commit = self.commit(revision)?;
        let label = Revision::commit(revision, &commit.id().to_string());
        let files = TreeReader::default()
            .files(&self.repository, commit.tree_id(), &self.path)
            .map_err(|error| {
                error.into_source(&self.path, &label.to_string(), SourceError::from_local)
            })?;
        Ok(Snapshot {
            revision: label,
            commit: commit_info(&commit),
            files,
            blobs: Arc::new(GitBlobs::new(self.git_directory())) as Arc<dyn BlobStore>,
        })
    }

    /// Returns the best common ancestor of two revisions.
    ///
    /// # Errors
    ///
    /// When one is not there, or they have none, as far as this clone knows.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<CommitId, SourceError> {
        let (first, second) = (self.commit(one)?.id(), self.commit(other)?.id());
        match self.repository.merge_base(first, second) {
            Ok(base) => Ok(CommitId(base)),
            Err(error) if error.code() == ErrorCode::NotFound => Err(SourceError::NoMergeBase {
                one: one.to_owned(),
                other: other.to_owned(),
            }),
            Err(error) => Err(SourceError::from_local(&error)),
        }
    }

    fn commit(&self, revision: &str) -> Result<Commit<'_>, SourceError> {
        self.repository
            .revparse_single(revision)
            .and_then(|object| object.peel_to_commit())
            .map_err(|_| SourceError::RevisionNotFound {
                name: revision.to_owned(),
            })
    }

    fn git_directory(&self) -> PathBuf {
        self.repository.path().to_owned()
    }
}

/// Returns author, subject and time of a commit; what is not UTF-8 is replaced.
pub(super) fn commit_info(commit: &Commit<'_>) -> CommitInfo {
    let message = commit.message_bytes();
    let subject = message
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    CommitInfo {
        author: String::from_utf8_lossy(commit.author().name_bytes()).into_owned(),
        subject: String::from_utf8_lossy(subject).trim().to_owned(),
        time: commit.time().seconds(),
    }
}

pub(super) fn canonical(directory: &Path) -> Result<PathBuf, SourceError> {
    directory
        .canonicalize()
        .map_err(|error| SourceError::from_storage(directory, &error.to_string()))
}

fn below(root: &Path, directory: &Path) -> String {
    directory
        .strip_prefix(root)
        .unwrap_or(Path::new(""))
        .to_string_lossy()
        .into_owned()
}
