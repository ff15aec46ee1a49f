//! Takes a commit or tag apart into what was signed and the signature, as git does.

use git2::{Commit, ErrorCode, Oid, Repository};

/// Something that was signed.
pub(super) struct Signed {
    pub(super) signature: String,
    pub(super) payload: Vec<u8>,
    /// When it says it was made, in seconds since 1970.
    pub(super) time: i64,
}

/// Returns the signature of a commit; none when it has none.
pub(super) fn of_commit(
    repository: &Repository,
    commit: &Commit<'_>,
) -> Result<Option<Signed>, git2::Error> {
    match repository.extract_signature(&commit.id(), None) {
        Ok((signature, payload)) => Ok(Some(Signed {
            signature: String::from_utf8_lossy(&signature).into_owned(),
            payload: payload.to_vec(),
            time: commit.committer().when().seconds(),
        })),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the signature of a tag, which stands at its end; none when it has none.
pub(super) fn of_tag(repository: &Repository, tag: Oid) -> Result<Option<Signed>, git2::Error> {
    let time = repository
        .find_tag(tag)?
        .tagger()
        .map_or(0, |tagger| tagger.when().seconds());
    let database = repository.odb()?;
    let object = database.read(tag)?;
    let content = object.data();
    // As git finds it: the last line that starts a signature.
    let mut start = None;
    let mut offset = 0;
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        if STARTS.iter().any(|known| line.starts_with(known)) {
            start = Some(offset);
        }
        offset += line.len();
    }
    Ok(start.map(|start| Signed {
        signature: String::from_utf8_lossy(&content[start..]).into_owned(),
        payload: content[..start].to_vec(),
        time,
    }))
}

const STARTS: [&[u8]; 4] = [
    b"-----BEGIN PGP SIGNATURE-----",
    b"-----BEGIN PGP MESSAGE-----",
    b"-----BEGIN SIGNED MESSAGE-----",
    b"-----BEGIN SSH SIGNATURE-----",
];
