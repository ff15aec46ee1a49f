//! A directory as a source: what a person is about to commit.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use git2::{ObjectType, Oid, Repository};
use sha2::{Digest as _, Sha256};

use super::error::SourceError;
use super::local::canonical;
use super::tree::{entry, escape, is_safe_name};
use crate::model::snapshot::CommitInfo;
use crate::model::{
    BlobError, BlobId, BlobStore, EntryKind, FileEntry, Revision, Snapshot, limits,
};

/// A directory, with the hashes of its files from the last look.
pub struct WorkingTree {
    root: PathBuf,
    hashes: HashMap<PathBuf, (Stamp, Oid)>,
}

/// What changes whenever a file's content does.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    size: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl WorkingTree {
    /// Opens a directory.
    ///
    /// # Errors
    ///
    /// When it does not exist or cannot be read.
    pub fn open(directory: &Path) -> Result<Self, SourceError> {
        Ok(Self {
            root: canonical(directory)?,
            hashes: HashMap::new(),
        })
    }

    /// Returns the files as they are now. Only those that changed since the last time are read.
    ///
    /// In a git repository, what it ignores is left out, unless it is tracked all the same. Links are not followed.
    ///
    /// # Errors
    ///
    /// When something cannot be read, or there are more files than a source may have.
    pub fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let mut walk = Walk {
            ignore: Ignore::discover(&self.root),
            known: &self.hashes,
            hashes: HashMap::new(),
            files: BTreeMap::new(),
            paths: HashMap::new(),
            visited: 0,
        };
        walk.folder(&self.root, "", 0)?;
        let Walk {
            hashes,
            files,
            paths,
            ..
        } = walk;
        self.hashes = hashes;
        Ok(Snapshot {
            revision: revision(&files),
            commit: CommitInfo::default(),
            files: Arc::new(files),
            blobs: Arc::new(DirectoryBlobs { paths }),
        })
    }

    /// Returns the directory, without links in its path.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// Names the content: equal files, equal revision.
fn revision(files: &BTreeMap<String, FileEntry>) -> Revision {
    let mut hasher = Sha256::new();
    for (path, entry) in files {
        hasher.update(path.as_bytes());
        hasher.update([0, entry.kind as u8]);
        hasher.update(entry.blob.0);
    }
    let mut digest = String::from("sha256:");
    for byte in hasher.finalize() {
        use std::fmt::Write as _;
        let _ = write!(digest, "{byte:02x}");
    }
    Revision {
        reference: "worktree".to_owned(),
        digest,
    }
}

// === impl Walk ===

struct Walk<'a> {
    ignore: Option<Ignore>,
    known: &'a HashMap<PathBuf, (Stamp, Oid)>,
    hashes: HashMap<PathBuf, (Stamp, Oid)>,
    files: BTreeMap<String, FileEntry>,
    paths: HashMap<BlobId, PathBuf>,
    visited: usize,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), SourceError> {
        let failed = |error: std::io::Error| SourceError::from_storage(folder, &error.to_string());
        for found in std::fs::read_dir(folder).map_err(failed)? {
            let found = found.map_err(failed)?;
            let name = found.file_name();
            if name == ".git" {
                continue;
            }
            self.visited += 1;
            if self.visited > limits::FILES_MAX {
                return Err(SourceError::TooManyFiles {
                    limit: limits::FILES_MAX,
                });
            }
            let path = found.path();
            let kind = found.file_type().map_err(failed)?;
            if self
                .ignore
                .as_ref()
                .is_some_and(|ignore| ignore.covers(&path, kind.is_dir()))
            {
                continue;
            }
            let shown = format!("{prefix}{}", escape(name.as_bytes()));
            let safe = is_safe_name(name.as_bytes());
            if kind.is_dir() && safe && depth < limits::TREE_DEPTH_MAX {
                self.folder(&path, &format!("{shown}/"), depth + 1)?;
            } else if kind.is_symlink() && safe {
                let target = std::fs::read_link(&path).map_err(failed)?;
                let blob = hash(target.as_os_str().as_bytes())?;
                self.files.insert(shown, entry(EntryKind::Symlink, blob));
            } else if kind.is_file() && safe {
                self.file(path, shown)?;
            } else {
                // A name that is no safe path, or a socket, pipe or device.
                self.files
                    .insert(shown, entry(EntryKind::Unsafe, Oid::ZERO_SHA1));
            }
        }
        Ok(())
    }

    fn file(&mut self, path: PathBuf, shown: String) -> Result<(), SourceError> {
        let failed = |error: std::io::Error| SourceError::from_storage(&path, &error.to_string());
        let metadata = std::fs::symlink_metadata(&path).map_err(failed)?;
        let stamp = Stamp::of(&metadata);
        let blob = match self.known.get(&path) {
            Some((known, blob)) if *known == stamp => *blob,
            _ => Oid::hash_file(ObjectType::Blob, &path)
                .map_err(|error| SourceError::from_storage(&path, error.message()))?,
        };
        let entry = entry(EntryKind::File, blob);
        self.files.insert(shown, entry);
        self.paths.insert(entry.blob, path.clone());
        // A file that was written a moment ago may be written again within the resolution of its time stamps.
        if is_settled(&stamp) {
            self.hashes.insert(path, (stamp, blob));
        }
        Ok(())
    }
}

fn hash(content: &[u8]) -> Result<Oid, SourceError> {
    Oid::hash_object(ObjectType::Blob, content).map_err(|error| SourceError::from_local(&error))
}

/// Longer than the resolution of any file system's time stamps but FAT's.
const TIMESTAMP_RESOLUTION_MAX: Duration = Duration::from_secs(1);

/// Judges by the time of change, which no program can set back.
fn is_settled(stamp: &Stamp) -> bool {
    let (seconds, nanoseconds) = stamp.changed;
    let (Ok(seconds), Ok(nanoseconds)) = (u64::try_from(seconds), u32::try_from(nanoseconds))
    else {
        return false;
    };
    (SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds))
        .elapsed()
        .is_ok_and(|age| age > TIMESTAMP_RESOLUTION_MAX)
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.size(),
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

// === impl Ignore ===

/// The ignore rules of the repository around a directory.
struct Ignore {
    repository: Repository,
    index: Option<git2::Index>,
    workdir: PathBuf,
}

impl Ignore {
    fn discover(root: &Path) -> Option<Self> {
        let repository = Repository::discover(root).ok()?;
        let workdir = repository.workdir()?.canonicalize().ok()?;
        // A directory that is ignored as a whole (a scratch directory) is looked at for its own sake.
        let whole = root != workdir
            && repository
                .is_path_ignored(root.strip_prefix(&workdir).ok()?)
                .unwrap_or(false);
        (!whole).then(|| Self {
            index: repository.index().ok(),
            workdir,
            repository,
        })
    }

    fn covers(&self, path: &Path, is_folder: bool) -> bool {
        let Ok(relative) = path.strip_prefix(&self.workdir) else {
            return false;
        };
        // What is tracked is not ignored, whatever the rules say; looking it up is also the cheaper question.
        let tracked = self.index.as_ref().is_some_and(|index| {
            if is_folder {
                index
                    .find_prefix(format!("{}/", relative.display()))
                    .is_ok()
            } else {
                index.get_path(relative, 0).is_some()
            }
        });
        !tracked && self.repository.is_path_ignored(relative).unwrap_or(false)
    }
}

// === impl DirectoryBlobs ===

/// Reads files by the hash that they had; a file that has changed since is an error, not another content.
struct DirectoryBlobs {
    paths: HashMap<BlobId, PathBuf>,
}

impl BlobStore for DirectoryBlobs {
    fn read(&self, blob: BlobId, limit: u64) -> Result<Vec<u8>, BlobError> {
        let unreadable = |reason: String| BlobError::Unreadable { reason };
        let failed = |error: std::io::Error| unreadable(error.to_string());
        let path = self
            .paths
            .get(&blob)
            .ok_or_else(|| unreadable("it is not part of this snapshot".to_owned()))?;
        let metadata = std::fs::symlink_metadata(path).map_err(failed)?;
        if !metadata.is_file() {
            return Err(unreadable("it is no regular file any more".to_owned()));
        }
        let size = metadata.len();
        if size > limit {
            return Err(BlobError::TooLarge { size, limit });
        }
        let file = File::open(path).map_err(failed)?;
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        // One byte more than may be, so that a file that grows meanwhile is noticed.
        file.take(limit + 1)
            .read_to_end(&mut content)
            .map_err(failed)?;
        let now = Oid::hash_object(ObjectType::Blob, &content)
            .map_err(|error| unreadable(error.message().to_owned()))?;
        if now.as_bytes() != blob.0 {
            return Err(unreadable("it has changed since it was listed".to_owned()));
        }
        Ok(content)
    }
}
