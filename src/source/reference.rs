//! What a source follows, and the commits that it finds.

use std::fmt;
use std::str::FromStr;

use git2::Oid;

use super::error::SourceError;
use super::range::VersionRange;

/// The branch, tag, range of tags or commit that a source follows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reference {
    /// The tip of a branch, by its short name.
    Branch(String),
    /// What a tag points at, by its short name.
    Tag(String),
    /// The tag with the highest version inside a range.
    Range(VersionRange),
    /// One commit, reachable from a branch or tag.
    Commit(CommitId),
}

impl Reference {
    /// Returns the full name on the server, where it has one.
    pub(super) fn remote_name(&self) -> Option<String> {
        match self {
            Self::Branch(name) => Some(format!("refs/heads/{name}")),
            Self::Tag(name) => Some(format!("refs/tags/{name}")),
            Self::Range(_) | Self::Commit(_) => None,
        }
    }

    /// Returns the name under which the mirror keeps what it points at, so that a later fetch can say what is there.
    pub(super) fn mirror_name(&self) -> Option<String> {
        match self {
            Self::Branch(name) => Some(format!("refs/fairway/heads/{name}")),
            Self::Tag(name) => Some(format!("refs/fairway/tags/{name}")),
            Self::Range(_) | Self::Commit(_) => None,
        }
    }

    /// Checks that git could have a reference of this name.
    pub(super) fn check(&self) -> Result<(), SourceError> {
        match self.remote_name() {
            Some(name) if !git2::Reference::is_valid_name(&name) => {
                Err(SourceError::ReferenceInvalid {
                    reference: self.to_string(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Returns the part of a revision before the `@`; for a range that is the tag that was found, so that the range itself
    /// stands only for what it is.
    pub fn label(&self) -> String {
        match self {
            Self::Branch(name) | Self::Tag(name) => name.clone(),
            Self::Range(range) => range.to_string(),
            Self::Commit(_) => "HEAD".to_owned(),
        }
    }

    /// Returns whether a revision with this label may have been read from this reference.
    pub fn may_have_given(&self, label: &str) -> bool {
        match self {
            Self::Range(range) => range.contains(label),
            _ => self.label() == label,
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Branch(name) => write!(f, "branch `{name}`"),
            Self::Tag(name) => write!(f, "tag `{name}`"),
            Self::Range(range) => write!(f, "a tag in the range `{range}`"),
            Self::Commit(commit) => write!(f, "commit {commit}"),
        }
    }
}

/// The id of a commit, forty hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub(super) Oid);

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for CommitId {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        // `Oid::from_str` would fill up a short id with zeros.
        let invalid = || SourceError::CommitInvalid {
            text: text.to_owned(),
        };
        if text.len() != 40 {
            return Err(invalid());
        }
        Oid::from_str(text).map(Self).map_err(|_| invalid())
    }
}
