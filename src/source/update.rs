//! Brings what one reference stands for into a mirror: which names are listed, chosen, downloaded and kept.

use std::collections::BTreeMap;

use git2::{ErrorCode, Oid, Repository};

use super::error::SourceError;
use super::range::{self, VersionRange};
use super::reference::{CommitId, Reference};
use super::transport::{Conversation, RemoteReference};

/// What a reference stands for now.
pub(super) struct Found {
    pub(super) commit: Oid,
    /// The part of the revision before the `@`.
    pub(super) label: String,
}

/// Brings the reference up to date and returns what it points at.
pub(super) fn update(
    mirror: &Repository,
    reference: &Reference,
    conversation: &Conversation<'_>,
) -> Result<Found, SourceError> {
    let commit = match reference {
        Reference::Range(range) => return update_range(mirror, range, conversation),
        Reference::Commit(CommitId(commit)) => {
            update_commit(mirror, *commit, reference, conversation)?
        }
        Reference::Branch(_) | Reference::Tag(_) => update_name(mirror, reference, conversation)?,
    };
    let label = reference.label();
    Ok(Found { commit, label })
}

fn update_name(
    mirror: &Repository,
    reference: &Reference,
    conversation: &Conversation<'_>,
) -> Result<Oid, SourceError> {
    let names = reference.remote_name().zip(reference.mirror_name());
    let (remote_name, mirror_name) = names.expect("branches and tags have names");
    let spec = format!("+{remote_name}:{mirror_name}");
    let listed = conversation.download(mirror, &[&spec])?;
    let Some(found) = listed.iter().find(|found| found.name == remote_name) else {
        return Err(not_found(&listed, reference, conversation));
    };
    keep(mirror, &mirror_name, found.object)?;
    peel(mirror, found.object, reference)
}

/// Lists the server's tags, chooses one, and downloads it if it is not here yet.
fn update_range(
    mirror: &Repository,
    range: &VersionRange,
    conversation: &Conversation<'_>,
) -> Result<Found, SourceError> {
    let listed = conversation.download(mirror, &[range::LIST_ONLY])?;
    let url = || conversation.url.to_string();
    if listed.is_empty() {
        return Err(SourceError::RepositoryEmpty { url: url() });
    }
    let tags: BTreeMap<_, _> = listed
        .iter()
        .filter_map(|found| Some((found.name.strip_prefix("refs/tags/")?, found.object)))
        .collect();
    let Some(tag) = range.highest(tags.keys().copied()) else {
        return Err(SourceError::NoTagInRange {
            range: range.to_string(),
            url: url(),
            nearest: range::words(&range.nearest(tags.keys().copied()), tags.len()),
        });
    };
    let label = tag.to_owned();
    let reference = Reference::Tag(label.clone());
    let known = mirror.find_object(tags[tag], None).is_ok();
    let commit = if let (true, Some(name)) = (known, reference.mirror_name()) {
        keep(mirror, &name, tags[tag])?;
        peel(mirror, tags[tag], &reference)?
    } else {
        update_name(mirror, &reference, conversation)?
    };
    Ok(Found { commit, label })
}

/// A commit never moves: what is here needs no server. Few servers hand out commits by id, so all branches and tags come.
fn update_commit(
    mirror: &Repository,
    commit: Oid,
    reference: &Reference,
    conversation: &Conversation<'_>,
) -> Result<Oid, SourceError> {
    if mirror.find_commit(commit).is_ok() {
        return Ok(commit);
    }
    let specs = [
        "+refs/heads/*:refs/fairway/heads/*",
        "+refs/tags/*:refs/fairway/tags/*",
    ];
    let listed = conversation.download(mirror, &specs)?;
    for found in &listed {
        let Some(short) = found.name.strip_prefix("refs/") else {
            continue;
        };
        let name = format!("refs/fairway/{short}");
        let followed = short.starts_with("heads/") || short.starts_with("tags/");
        // A server may list what is no valid name, as it does for the commit behind a tag.
        if followed && git2::Reference::is_valid_name(&name) {
            keep(mirror, &name, found.object)?;
        }
    }
    match mirror.find_object(commit, None) {
        Ok(_) => peel(mirror, commit, reference),
        Err(_) => Err(not_found(&listed, reference, conversation)),
    }
}

fn not_found(
    listed: &[RemoteReference],
    reference: &Reference,
    conversation: &Conversation<'_>,
) -> SourceError {
    let url = conversation.url.to_string();
    if listed.is_empty() {
        return SourceError::RepositoryEmpty { url };
    }
    SourceError::ReferenceNotFound {
        reference: reference.to_string(),
        url,
    }
}

fn keep(mirror: &Repository, name: &str, object: Oid) -> Result<(), SourceError> {
    if mirror
        .refname_to_id(name)
        .is_ok_and(|known| known == object)
    {
        return Ok(());
    }
    mirror
        .reference(name, object, true, "fetch")
        .map(drop)
        .map_err(|error| SourceError::from_mirror(mirror.path(), &error))
}

fn peel(mirror: &Repository, object: Oid, reference: &Reference) -> Result<Oid, SourceError> {
    let damaged = |error: git2::Error| SourceError::from_mirror(mirror.path(), &error);
    let object = mirror.find_object(object, None).map_err(damaged)?;
    match object.peel(git2::ObjectType::Commit) {
        Ok(commit) => Ok(commit.id()),
        Err(error) if error.code() == ErrorCode::InvalidSpec || error.code() == ErrorCode::Peel => {
            let end = object.peel(git2::ObjectType::Any).map_err(damaged)?;
            let kind = end.kind().map_or("unknown object", |kind| kind.str());
            Err(SourceError::NotACommit {
                reference: reference.to_string(),
                kind: kind.to_owned(),
            })
        }
        Err(error) => Err(damaged(error)),
    }
}
