//! The bare mirror of one repository: fetches what has moved, and hands out snapshots.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, mpsc};
use std::time::Instant;

use git2::Repository;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::blobs::GitBlobs;
use super::credentials::Credentials;
use super::disk::{aside, count_packs, fresh, open_or_create, remove_directory};
use super::error::SourceError;
use super::https::Connections;
use super::local::commit_info;
use super::range;
use super::reference::{CommitId, Reference};
use super::stored;
use super::transport::Conversation;
pub use super::transport::MirrorLimits;
use super::tree::{TreeError, TreeReader};
use super::update::{Found, update};
use super::url::SourceUrl;
use super::verify::Verification;
use crate::model::{BlobStore, Revision, Snapshot, limits};

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
    connections: Connections,
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
            connections: Connections::default(),
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
        request.reference.check()?;
        self.run(move |inner, cancelled| inner.fetch(&request, &credentials, cancelled))
            .await
    }

    /// Opens the revision that `request.last` names without asking the server, if this very source (URL, reference and path)
    /// has once led to it; it is read as a whole first. None when it has not, as far as the mirror knows.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the mirror; nothing is changed in it.
    pub async fn stored(&self, request: FetchRequest) -> Result<Option<Snapshot>, SourceError> {
        self.run(move |inner, cancelled| inner.stored(&request, cancelled))
            .await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner, &CancellationToken) -> Result<T, SourceError> + Send + 'static,
    ) -> Result<T, SourceError> {
        let (sender, mut receiver) = oneshot::channel();
        let guard = self.start(work, move |result| {
            // Nobody waits any more once the deadline has passed.
            drop(sender.send(result));
        })?;
        if let Ok(answer) = tokio::time::timeout(self.0.limits.deadline, &mut receiver).await {
            return answer.unwrap_or_else(|_| Err(fetch_panicked()));
        }
        drop(guard);
        // So that the next fetch does not find this one still under way.
        drop(tokio::time::timeout(limits::FETCH_STOP_PATIENCE, receiver).await);
        Err(self.timeout())
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
        request.reference.check()?;
        let work = move |inner: &Inner, cancelled: &CancellationToken| {
            inner.fetch(&request, &credentials, cancelled)
        };
        let guard = self.start(work, move |result| {
            // Nobody waits any more once the deadline has passed.
            drop(sender.send(result));
        })?;
        match receiver.recv_timeout(self.0.limits.deadline) {
            Ok(result) => result,
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(fetch_panicked()),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                drop(guard);
                drop(receiver.recv_timeout(limits::FETCH_STOP_PATIENCE));
                Err(self.timeout())
            }
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

    /// Starts work on a thread of its own; dropping the guard makes the thread stop waiting for the server.
    fn start<T>(
        &self,
        work: impl FnOnce(&Inner, &CancellationToken) -> Result<T, SourceError> + Send + 'static,
        done: impl FnOnce(Result<T, SourceError>) + Send + 'static,
    ) -> Result<DropGuard, SourceError> {
        let cancelled = CancellationToken::new();
        let guard = cancelled.clone().drop_guard();
        let inner = Arc::clone(&self.0);
        std::thread::Builder::new()
            .name("git-fetch".to_owned())
            .spawn(move || done(work(&inner, &cancelled)))
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
        cancelled: &CancellationToken,
    ) -> Result<Fetched, SourceError> {
        let mut trees = self.turn()?;
        let conversation = Conversation {
            url: &self.url,
            credentials,
            limits: &self.limits,
            started: Instant::now(),
            cancelled,
            connections: &self.connections,
        };
        let result = self.fetch_or_clone(request, &conversation, &mut trees);
        if matches!(result, Err(SourceError::DiskFull { .. })) && self.directory.exists() {
            // Neither half a clone nor a damaged mirror is worth the room that it takes.
            drop(remove_directory(&fresh(&self.directory)));
            drop(remove_directory(&aside(&self.directory)));
        }
        result
    }

    fn fetch_or_clone(
        &self,
        request: &FetchRequest,
        conversation: &Conversation<'_>,
        trees: &mut TreeReader,
    ) -> Result<Fetched, SourceError> {
        if count_packs(&self.directory) > self.limits.packs_max {
            let aside = self.clone_anew(request, conversation)?;
            remove_directory(&aside)
                .map_err(|error| SourceError::from_storage(&aside, &error.to_string()))?;
        }
        match self.attempt(request, conversation, trees) {
            Err(SourceError::MirrorCorrupt { .. }) => {
                tracing::warn!(
                    mirror.directory = %self.directory.display(),
                    "the mirror is damaged; it is cloned anew"
                );
                *trees = TreeReader::default();
                self.clone_anew(request, conversation)?;
                self.attempt(request, conversation, trees)
            }
            result => result,
        }
    }

    /// Takes the turn of the one fetch at a time.
    fn turn(&self) -> Result<MutexGuard<'_, TreeReader>, SourceError> {
        match self.trees.try_lock() {
            Ok(trees) => Ok(trees),
            Err(TryLockError::Poisoned(poisoned)) => {
                let mut trees = poisoned.into_inner();
                *trees = TreeReader::default();
                Ok(trees)
            }
            Err(TryLockError::WouldBlock) => Err(SourceError::Busy {
                host: self.url.host(),
            }),
        }
    }

    fn stored(
        &self,
        request: &FetchRequest,
        cancelled: &CancellationToken,
    ) -> Result<Option<Snapshot>, SourceError> {
        let mut trees = self.turn()?;
        let (Some(CommitId(commit)), true) = (request.last, self.directory.exists()) else {
            return Ok(None);
        };
        let mirror = open_or_create(&self.directory)?;
        if !stored::is_marked(&mirror, &self.url, request, CommitId(commit))? {
            return Ok(None);
        }
        let label = request.last_tag.clone();
        let label = label.unwrap_or_else(|| request.reference.label());
        let snapshot = self.snapshot(&mirror, &Found { commit, label }, request, &mut trees)?;
        stored::verify(&mirror, &snapshot, cancelled)?;
        Ok(Some(snapshot))
    }

    fn attempt(
        &self,
        request: &FetchRequest,
        conversation: &Conversation<'_>,
        trees: &mut TreeReader,
    ) -> Result<Fetched, SourceError> {
        let mirror = open_or_create(&self.directory)?;
        let found = update(&mirror, &request.reference, conversation)?;
        let commit = found.commit;
        let fetched = self.judge(&mirror, &found, request, trees)?;
        if !matches!(fetched, Fetched::Rewound { .. }) {
            stored::mark(&mirror, &self.url, request, commit)?;
        }
        Ok(fetched)
    }

    /// Clones into a directory beside the mirror and puts it in its place once it is complete. Returns where the old one is
    /// now: a damaged one is kept there until the next time, for whoever wants to know what happened to it.
    fn clone_anew(
        &self,
        request: &FetchRequest,
        conversation: &Conversation<'_>,
    ) -> Result<PathBuf, SourceError> {
        let (fresh, aside) = (fresh(&self.directory), aside(&self.directory));
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
