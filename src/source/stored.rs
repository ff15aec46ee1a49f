//! What a mirror still holds of a revision that was taken before, for when its server cannot be asked.
//!
//! Each fetch that finds the reference at the last commit or at a successor of it leaves a mark in the mirror: a reference
//! whose name is a digest of URL, reference and path. A commit is handed out without the server only where the mark of the
//! very same source names it or a successor of it: not what somebody has rewound to, and not what another declaration led to.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use git2::{ErrorCode, Oid, Repository};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::error::SourceError;
use super::mirror::FetchRequest;
use super::reference::CommitId;
use super::url::SourceUrl;
use crate::model::{EntryKind, Snapshot, limits};

const MARKS: &str = "refs/fairway/taken";

/// Marks a commit as what this source leads to; marks of other declarations go.
pub(super) fn mark(
    mirror: &Repository,
    url: &SourceUrl,
    request: &FetchRequest,
    commit: Oid,
) -> Result<(), SourceError> {
    let name = name(url, request);
    if mirror
        .refname_to_id(&name)
        .is_ok_and(|known| known == commit)
    {
        return Ok(());
    }
    let replace = || {
        for other in mirror.references_glob(&format!("{MARKS}/*"))? {
            let mut other = other?;
            if other.name().ok() != Some(name.as_str()) {
                other.delete()?;
            }
        }
        mirror.reference(&name, commit, true, "fetch").map(drop)
    };
    replace().map_err(|error| SourceError::from_mirror(mirror.path(), &error))
}

/// Returns whether a commit was once what this source leads to.
pub(super) fn is_marked(
    mirror: &Repository,
    url: &SourceUrl,
    request: &FetchRequest,
    CommitId(commit): CommitId,
) -> Result<bool, SourceError> {
    let marked = match mirror.refname_to_id(&name(url, request)) {
        Ok(marked) if marked == commit => return Ok(true),
        Ok(marked) => mirror.graph_descendant_of(marked, commit),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(false),
        Err(error) => Err(error),
    };
    marked.map_err(|error| SourceError::from_mirror(mirror.path(), &error))
}

/// Makes sure that each file of a snapshot is there and whole, by reading it: libgit2 compares the hash of what it reads.
pub(super) fn verify(
    mirror: &Repository,
    snapshot: &Snapshot,
    cancelled: &CancellationToken,
) -> Result<(), SourceError> {
    let damaged = |error: git2::Error| SourceError::from_mirror(mirror.path(), &error);
    let objects = mirror.odb().map_err(damaged)?;
    let files = snapshot.files.values();
    let blobs: BTreeSet<_> = files
        .filter(|entry| entry.kind == EntryKind::File)
        .map(|entry| entry.blob.0)
        .collect();
    for blob in blobs {
        if cancelled.is_cancelled() {
            break;
        }
        let id = Oid::from_bytes(&blob).map_err(damaged)?;
        let (size, _) = objects.read_header(id).map_err(damaged)?;
        // What is larger is never read.
        if size as u64 <= limits::FILE_SIZE_MAX {
            objects.read(id).map_err(damaged)?;
        }
    }
    Ok(())
}

fn name(url: &SourceUrl, request: &FetchRequest) -> String {
    let mut digest = Sha256::new();
    for part in [
        url.to_string(),
        request.reference.to_string(),
        request.path.clone(),
    ] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let mut name = format!("{MARKS}/");
    for byte in digest.finalize() {
        let _ = write!(name, "{byte:02x}");
    }
    name
}
