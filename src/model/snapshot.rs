//! A snapshot: every file of one revision by path, with contents that are read on demand.
//!
//! What comes in is a git tree or a working directory; what goes out is the same for both. Contents are addressed by the
//! blob id that git would give them, so that an unchanged file is recognised without being read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Revision;

/// The id of a file's content: git's SHA-1 blob id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId(pub [u8; 20]);

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobId({self})")
    }
}

/// What a path of a snapshot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file, executable or not.
    File,
    /// A symbolic link; never followed.
    Symlink,
    /// A submodule; never entered.
    Submodule,
    /// A file or folder whose name is no safe path: not UTF-8, control characters, a backslash, `..`, `.git`, or nested
    /// beyond `limits::TREE_DEPTH_MAX`. Its path in the snapshot is escaped (`\xff`), and nothing below it is listed.
    Unsafe,
}

/// One path of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileEntry {
    /// Whether it is a file, a link, a submodule or something with an unsafe name.
    pub kind: EntryKind,
    /// The content's id; for a submodule the commit, for an unsafe folder its tree.
    pub blob: BlobId,
}

/// A file's content that could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// The content is larger than the limit; it was not read.
    #[error("{size} bytes, more than the {limit} that a file may have")]
    TooLarge {
        /// Size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The content is not there or cannot be read.
    #[error("its content cannot be read: {reason}")]
    Unreadable {
        /// The reason, in words.
        reason: String,
    },
}

/// Reads contents by id. Implementations are the mirror and the working directory; reads may come from several threads.
pub trait BlobStore: Send + Sync {
    /// Reads one content.
    ///
    /// # Errors
    ///
    /// When it is larger than `limit` bytes (it must then not be loaded into memory), missing or damaged.
    fn read(&self, blob: BlobId, limit: u64) -> Result<Vec<u8>, BlobError>;
}

/// Every file of one revision, below the source's `path`.
#[derive(Clone)]
pub struct Snapshot {
    /// Which revision this is.
    pub revision: Revision,
    /// Author and subject of the commit, for messages; empty for a working tree.
    pub commit: CommitInfo,
    /// Path inside the source's `path` (with `/` between parts) to what is there. Sorted, so that everything that follows
    /// is deterministic.
    pub files: Arc<BTreeMap<String, FileEntry>>,
    /// Where contents come from.
    pub blobs: Arc<dyn BlobStore>,
}

/// Who made a commit, and what they called it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitInfo {
    /// The author's name.
    pub author: String,
    /// The first line of the message.
    pub subject: String,
    /// The commit's time in seconds since 1970, zero for a working tree.
    pub time: i64,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot({}, {} files)", self.revision, self.files.len())
    }
}
