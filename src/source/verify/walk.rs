//! Which commits and tags have to be signed.

use std::sync::Arc;
use std::time::Instant;

use git2::{Commit, ErrorCode, ObjectType, Oid, Repository, Sort};

use super::refusal::Refusal;
use super::signed;
use super::signers::Signers;
use crate::model::limits::{FETCH_DEADLINE, VERIFY_COMMITS_MAX};
use crate::source::error::SourceError;
use crate::source::reference::CommitId;

/// What has to be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyMode {
    /// The tag where it is signed, and else the commit that is applied.
    Head,
    /// Also every commit since the last one that was accepted.
    EachCommit,
}

/// A revision to verify, and by whom it may be signed.
#[derive(Debug, Clone)]
pub struct Verification {
    /// What has to be signed.
    pub mode: VerifyMode,
    /// By whom.
    pub signers: Arc<Signers>,
    /// The tag that led to the commit, if one did.
    pub tag: Option<String>,
    /// The commit that was accepted last; none at the first time.
    pub from: Option<CommitId>,
    /// The commit to accept.
    pub to: CommitId,
    /// The present time, in seconds since 1970.
    pub now: i64,
}

// === impl Verification ===

impl Verification {
    /// Checks all that has to be signed, the oldest first.
    pub(in super::super) fn run(&self, repository: &Repository) -> Result<(), SourceError> {
        let damaged = |error: git2::Error| SourceError::from_mirror(repository.path(), &error);
        let tag_is_good = match &self.tag {
            Some(tag) => self.tag(repository, tag, damaged)?,
            None => false,
        };
        if tag_is_good && self.mode == VerifyMode::Head {
            return Ok(());
        }
        let started = Instant::now();
        for commit in self.commits(repository, damaged)? {
            if started.elapsed() > FETCH_DEADLINE {
                return Err(SourceError::Other {
                    detail: "verifying the signatures took too long".to_owned(),
                });
            }
            let commit = repository.find_commit(commit).map_err(damaged)?;
            let signed = signed::of_commit(repository, &commit).map_err(damaged)?;
            let judged = match signed {
                Some(signed) => self.signers.judge(&signed, self.now),
                None => Err(Refusal::Missing),
            };
            judged.map_err(|refusal| refused(describe(&commit), refusal))?;
        }
        Ok(())
    }

    /// Returns whether the tag is signed, and well.
    fn tag(
        &self,
        repository: &Repository,
        name: &str,
        damaged: impl Fn(git2::Error) -> SourceError,
    ) -> Result<bool, SourceError> {
        let object = repository
            .refname_to_id(&format!("refs/fairway/tags/{name}"))
            .and_then(|object| repository.find_object(object, None))
            .map_err(&damaged)?;
        let refuse = |refusal| refused(format!("tag `{name}`"), refusal);
        let commit = object.peel(ObjectType::Commit).map_err(&damaged)?.id();
        if commit != self.to.0 {
            return Err(refuse(Refusal::unusable("the tag has moved meanwhile")));
        }
        let Some(tag) = object.as_tag() else {
            return Ok(false);
        };
        let Some(signed) = signed::of_tag(repository, tag.id()).map_err(&damaged)? else {
            return Ok(false);
        };
        self.signers.judge(&signed, self.now).map_err(&refuse)?;
        // Else the signed tag of one version could be shown under the name of another.
        if tag.name_bytes() != name.as_bytes() {
            let inside = String::from_utf8_lossy(tag.name_bytes());
            return Err(refuse(Refusal::unusable(format!(
                "it is of the tag `{inside}`"
            ))));
        }
        Ok(true)
    }

    fn commits(
        &self,
        repository: &Repository,
        damaged: impl Fn(git2::Error) -> SourceError + Copy,
    ) -> Result<Vec<Oid>, SourceError> {
        let head = self.to.0;
        let known = |from: &CommitId| match repository.find_commit(from.0) {
            Ok(_) => Ok(true),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(false),
            Err(error) => Err(damaged(error)),
        };
        let from = match (self.mode, self.from) {
            (VerifyMode::EachCommit, Some(from)) if known(&from)? => from,
            _ => return Ok(vec![head]),
        };
        let mut walk = repository.revwalk().map_err(damaged)?;
        walk.set_sorting(Sort::TOPOLOGICAL).map_err(damaged)?;
        walk.push(head).map_err(damaged)?;
        walk.hide(from.0).map_err(damaged)?;
        let mut commits = walk
            .take(VERIFY_COMMITS_MAX + 1)
            .collect::<Result<Vec<_>, _>>()
            .map_err(damaged)?;
        if commits.len() > VERIFY_COMMITS_MAX {
            return Err(SourceError::TooManyCommits {
                limit: VERIFY_COMMITS_MAX,
                from: from.to_string(),
            });
        }
        if commits.is_empty() {
            // The same commit again, or an approved way back.
            commits.push(head);
        }
        commits.reverse();
        Ok(commits)
    }
}

fn refused(what: String, refusal: Refusal) -> SourceError {
    SourceError::SignatureRefused { what, refusal }
}

fn describe(commit: &Commit<'_>) -> String {
    let info = crate::source::local::commit_info(commit);
    format!(
        "commit {} ({:?} by {})",
        commit.id(),
        info.subject,
        info.author
    )
}
