//! The bare mirror of one repository: fetches what has moved, and hands out snapshots.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError, mpsc};
use std::time::Instant;

use git2::Repository;
use tokio::sync::oneshot;

use super::blobs::GitBlobs;
use super::credentials::Credentials;
use super::error::SourceError;
use super::local::commit_info;
use super::range;
use super::reference::{CommitId, Reference};
use super::transport::Conversation;
pub use super::transport::MirrorLimits;
use super::tree::{TreeError, TreeReader};
use super::update::{Found, update};
use super::url::SourceUrl;
use super::verify::Verification;
use crate::model::{BlobStore, Revision, Snapshot};

/// The mirror of one repository, in a directory that no other process uses. Cheap to clone.
///
/// One fetch runs at a time, on a thread of its own, so that a silent server holds up neither the caller nor the shutdown of
/// the process.
#[derive(Clone)]
pub struct Mirror(Arc<Inner>);

struct Inner {
    directory: PathBuf,
    url: SourceUrl,
    limits: MirrorLimits,
    blobs: Arc<GitBlobs>,
    /// Held while a fetch runs.
    trees: Mutex<TreeReader>,
}

/// What to fetch.
#[derive(Debug, Clone)]
pub struct FetchRequest {
    /// What to follow.
    pub reference: Reference,
    /// The folder of the repository that is the source; `.` is all of it.
    pub path: String,
    /// The commit that was applied last *from this reference*; none at the first time, or when the reference was changed by
    /// a person.
    pub last: Option<CommitId>,
    /// The tag that `last` was found by, where the reference is a range.
    pub last_tag: Option<String>,
}

/// What a fetch found.
#[derive(Debug)]
pub enum Fetched {
    /// The reference still points at the last commit.
    Unmoved(Snapshot),
    /// The reference points at a successor of the last commit, or there was none.
    Moved(Snapshot),
    /// The branch points at a commit that does not contain the last one: somebody has rewritten or rewound it. Or the tag
    /// points at another commit than before, or the highest tag in the range is not above the last one. To be held until a
    /// person approves.
    Rewound {
        /// The last commit.
        from: CommitId,
        /// The commit that the reference points at now.
        to: CommitId,
        /// The files of that commit.
        snapshot: Snapshot,
    },
}

impl Fetched {
    /// Returns the snapshot, whatever led to it.
    pub fn snapshot(&self) -> &Snapshot {
        match self {
            Self::Unmoved(snapshot) | Self::Moved(snapshot) | Self::Rewound { snapshot, .. } => {
                snapshot
            }
        }
    }
}

// === impl Mirror ===

impl Mirror {
    /// Declares a mirror; nothing is touched before the first fetch.
    pub fn new(directory: impl Into<PathBuf>, url: SourceUrl, limits: MirrorLimits) -> Self {
        let directory = directory.into();
        Self(Arc::new(Inner {
            blobs: Arc::new(GitBlobs::new(directory.clone())),
            directory,
            url,
            limits,
            trees: Mutex::default(),
        }))
    }

    /// Fetches what the reference points at now. Dropping the future cancels the download.
    ///
    /// # Errors
    ///
    /// Says why there is no new revision; earlier snapshots stay readable.
    pub async fn fetch(
        &self,
        request: FetchRequest,
        credentials: Credentials,
    ) -> Result<Fetched, SourceError> {
        let (sender, receiver) = oneshot::channel();
        let guard = self.start(request, credentials, move |result| {
            // Nobody waits any more once the deadline has passed.
            drop(sender.send(result));
        })?;
        let answer = tokio::time::timeout(self.0.limits.deadline, receiver).await;
        drop(guard);
        match answer {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(fetch_panicked()),
            Err(_) => Err(self.timeout()),
        }
    }

    /// Does the same as [`Mirror::fetch`] without a runtime.
    ///
    /// # Errors
    ///
    /// Says why there is no new revision; earlier snapshots stay readable.
    pub fn fetch_blocking(
        &self,
        request: FetchRequest,
        credentials: Credentials,
    ) -> Result<Fetched, SourceError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let guard = self.start(request, credentials, move |result| {
            // Nobody waits any more once the deadline has passed.
            drop(sender.send(result));
        })?;
        let answer = receiver.recv_timeout(self.0.limits.deadline);
        drop(guard);
        match answer {
            Ok(result) => result,
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(fetch_panicked()),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(self.timeout()),
        }
    }

    /// Checks the signatures of what was fetched.
    ///
    /// # Errors
    ///
    /// Names the first commit or tag whose signature is not good.
    pub async fn verify(&self, verification: Verification) -> Result<(), SourceError> {
        let mirror = self.clone();
        tokio::task::spawn_blocking(move || mirror.verify_blocking(&verification))
            .await
            .unwrap_or_else(|_| Err(fetch_panicked()))
    }

    /// Does the same as [`Mirror::verify`] without a runtime.
    ///
    /// # Errors
    ///
    /// Names the first commit or tag whose signature is not good.
    pub fn verify_blocking(&self, verification: &Verification) -> Result<(), SourceError> {
        verification.run(&open_or_create(&self.0.directory)?)
    }

    /// Starts a fetch on a thread of its own; dropping the guard makes the thread stop at the next byte.
    fn start(
        &self,
        request: FetchRequest,
        credentials: Credentials,
        done: impl FnOnce(Result<Fetched, SourceError>) + Send + 'static,
    ) -> Result<CancelOnDrop, SourceError> {
        request.reference.check()?;
        let cancelled = Arc::new(AtomicBool::new(false));
        let guard = CancelOnDrop(Arc::clone(&cancelled));
        let inner = Arc::clone(&self.0);
        std::thread::Builder::new()
            .name("git-fetch".to_owned())
            .spawn(move || done(inner.fetch(&request, &credentials, &cancelled)))
            .map_err(|error| SourceError::Other {
                detail: format!("no thread for a fetch: {error}"),
            })?;
        Ok(guard)
    }

    fn timeout(&self) -> SourceError {
        SourceError::Timeout {
            host: self.0.url.host(),
            after: self.0.limits.deadline,
        }
    }
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn fetch_panicked() -> SourceError {
    SourceError::Other {
        detail: "the fetch has ended without an answer".to_owned(),
    }
}

// === impl Inner ===

impl Inner {
    fn fetch(
        &self,
        request: &FetchRequest,
        credentials: &Credentials,
        cancelled: &AtomicBool,
    ) -> Result<Fetched, SourceError> {
        let mut trees = match self.trees.try_lock() {
            Ok(trees) => trees,
            Err(TryLockError::Poisoned(poisoned)) => {
                let mut trees = poisoned.into_inner();
                *trees = TreeReader::default();
                trees
            }
            Err(TryLockError::WouldBlock) => {
                return Err(SourceError::Busy {
                    host: self.url.host(),
                });
            }
        };
        let conversation = Conversation {
            url: &self.url,
            credentials,
            limits: &self.limits,
            started: Instant::now(),
            cancelled,
        };
        if count_packs(&self.directory) > self.limits.packs_max {
            let aside = self.clone_anew(request, &conversation)?;
            remove_directory(&aside)
                .map_err(|error| SourceError::from_storage(&aside, &error.to_string()))?;
        }
        match self.attempt(request, &conversation, &mut trees) {
            Err(SourceError::MirrorCorrupt { .. }) => {
                tracing::warn!(
                    mirror.directory = %self.directory.display(),
                    "the mirror is damaged; it is cloned anew"
                );
                *trees = TreeReader::default();
                self.clone_anew(request, &conversation)?;
                self.attempt(request, &conversation, &mut trees)
            }
            result => result,
        }
    }

    fn attempt(
        &self,
        request: &FetchRequest,
        conversation: &Conversation<'_>,
        trees: &mut TreeReader,
    ) -> Result<Fetched, SourceError> {
        let mirror = open_or_create(&self.directory)?;
        let found = update(&mirror, &request.reference, conversation)?;
        self.judge(&mirror, &found, request, trees)
    }

    /// Clones into a directory beside the mirror and puts it in its place once it is complete. Returns where the old one is
    /// now: a damaged one is kept there until the next time, for whoever wants to know what happened to it.
    fn clone_anew(
        &self,
        request: &FetchRequest,
        conversation: &Conversation<'_>,
    ) -> Result<PathBuf, SourceError> {
        let beside = |suffix: &str| {
            let mut name = self.directory.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let (fresh, aside) = (beside(".new"), beside(".old"));
        let storage =
            |error: std::io::Error| SourceError::from_storage(&self.directory, &error.to_string());
        remove_directory(&fresh).map_err(storage)?;
        {
            let mirror = open_or_create(&fresh)?;
            update(&mirror, &request.reference, conversation)?;
        }
        remove_directory(&aside).map_err(storage)?;
        std::fs::rename(&self.directory, &aside).map_err(storage)?;
        std::fs::rename(&fresh, &self.directory).map_err(storage)?;
        self.blobs.forget_opened();
        Ok(aside)
    }

    fn judge(
        &self,
        mirror: &Repository,
        found: &Found,
        request: &FetchRequest,
        trees: &mut TreeReader,
    ) -> Result<Fetched, SourceError> {
        let snapshot = self.snapshot(mirror, found, request, trees)?;
        let Some(CommitId(last)) = request.last else {
            return Ok(Fetched::Moved(snapshot));
        };
        if last == found.commit {
            return Ok(Fetched::Unmoved(snapshot));
        }
        let forward = match &request.reference {
            // The whole history of the branch is here: what is not part of it is no ancestor.
            Reference::Branch(_) => {
                mirror.find_commit(last).is_ok()
                    && mirror
                        .graph_descendant_of(found.commit, last)
                        .map_err(|error| SourceError::from_mirror(&self.directory, &error))?
            }
            // Whoever names a tag means what it pointed at; also a later commit is another one.
            Reference::Tag(_) => false,
            Reference::Range(_) => {
                let last_tag = request.last_tag.as_deref();
                last_tag.is_some_and(|last| range::is_above(&found.label, last))
            }
            // A commit that a person has named is what they want, wherever it stands.
            Reference::Commit(_) => true,
        };
        Ok(if forward {
            Fetched::Moved(snapshot)
        } else {
            Fetched::Rewound {
                from: CommitId(last),
                to: CommitId(found.commit),
                snapshot,
            }
        })
    }

    fn snapshot(
        &self,
        mirror: &Repository,
        found: &Found,
        request: &FetchRequest,
        trees: &mut TreeReader,
    ) -> Result<Snapshot, SourceError> {
        let damaged = |error: &git2::Error| SourceError::from_mirror(&self.directory, error);
        let revision = Revision::commit(found.label.clone(), &found.commit.to_string());
        let commit = mirror
            .find_commit(found.commit)
            .map_err(|error| damaged(&error))?;
        let files = trees
            .files(mirror, commit.tree_id(), &request.path)
            .map_err(|error: TreeError| {
                error.into_source(&request.path, &revision.to_string(), damaged)
            })?;
        Ok(Snapshot {
            revision,
            commit: commit_info(&commit),
            files,
            blobs: Arc::clone(&self.blobs) as Arc<dyn BlobStore>,
        })
    }
}

// === the repository on disk ===

fn open_or_create(directory: &Path) -> Result<Repository, SourceError> {
    if directory.exists() {
        return Repository::open_bare(directory)
            .map_err(|error| SourceError::from_mirror(directory, &error));
    }
    Repository::init_bare(directory)
        .map_err(|error| SourceError::from_storage(directory, error.message()))
}

fn count_packs(directory: &Path) -> usize {
    std::fs::read_dir(directory.join("objects/pack")).map_or(0, |entries| {
        entries
            .filter_map(Result::ok)
            .filter(|entry| entry.path().extension().is_some_and(|end| end == "pack"))
            .count()
    })
}

fn remove_directory(directory: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
