//! Why a revision could not be had, whose turn it is, and what to do.

use std::path::PathBuf;
use std::time::Duration;

use super::verify::Refusal;

/// Why a source has no new revision. The last good one stays readable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The URL is not on the allow-list. It is not repeated, since it may hold credentials.
    #[error("the URL of the repository is not accepted: {reason}")]
    Url {
        /// Why.
        reason: &'static str,
    },
    /// No git reference can have this name.
    #[error("{reference} is not a name that git allows")]
    ReferenceInvalid {
        /// What was asked for.
        reference: String,
    },
    /// The range of versions cannot be read.
    #[error("`{range}` is not a range of versions: {reason}")]
    RangeInvalid {
        /// What was given.
        range: String,
        /// Why.
        reason: String,
    },
    /// A commit is written as forty hexadecimal digits.
    #[error("`{text}` is not the full id of a commit")]
    CommitInvalid {
        /// What was given.
        text: String,
    },
    /// A key of the Secret cannot be what it should be.
    #[error(
        "the key `{key}` of the credentials contains a line break or another control character"
    )]
    Credentials {
        /// The key.
        key: &'static str,
    },
    /// What signs in over ssh, or says whom to trust, cannot be used.
    #[error("the key `{key}` of the credentials cannot be used for ssh: {reason}")]
    SshKeys {
        /// The key of the Secret.
        key: &'static str,
        /// Why.
        reason: String,
    },
    /// Nothing vouches for the host.
    #[error("the ssh host {host} is not listed in `known_hosts`; it shows {offered}")]
    HostKeyUnknown {
        /// Host and port.
        host: String,
        /// Kind and fingerprint of its key.
        offered: String,
    },
    /// The host shows another key than the known ones.
    #[error("the ssh host {host} shows {offered}, but `known_hosts` lists {known}")]
    HostKeyChanged {
        /// Host and port.
        host: String,
        /// Kind and fingerprint of its key.
        offered: String,
        /// Kinds and fingerprints of the known ones.
        known: String,
    },
    /// The host shows a key that must not be used any more.
    #[error("the ssh host {host} shows {offered}, which `known_hosts` marks as revoked")]
    HostKeyRevoked {
        /// Host and port.
        host: String,
        /// Kind and fingerprint of its key.
        offered: String,
    },
    /// The bundle of own certificate authorities cannot be used.
    #[error("the key `ca.crt` of the credentials cannot be used: {reason}")]
    Authorities {
        /// Why.
        reason: String,
    },
    /// No connection, or it broke.
    #[error("the connection to {host} failed: {detail}")]
    Network {
        /// Host and port.
        host: String,
        /// What the transport said.
        detail: String,
    },
    /// The server was silent, or the whole took too long.
    #[error("{host} did not finish within {} seconds", .after.as_secs_f32())]
    Timeout {
        /// Host and port.
        host: String,
        /// The limit.
        after: Duration,
    },
    /// The server wants other credentials (401), or any at all.
    #[error("{host} refused the credentials")]
    Unauthorized {
        /// Host and port.
        host: String,
    },
    /// The server knows who asks, and says no (403).
    #[error("{host} does not let these credentials read {url}")]
    Forbidden {
        /// Host and port.
        host: String,
        /// The repository.
        url: String,
    },
    /// The server's certificate is not trusted.
    #[error("the certificate of {host} is not trusted: {detail}")]
    Untrusted {
        /// Host and port.
        host: String,
        /// What is wrong with it.
        detail: String,
    },
    /// There is no such repository, or these credentials may not know of it.
    #[error("there is no repository at {url}")]
    RepositoryNotFound {
        /// The repository.
        url: String,
    },
    /// The server points elsewhere; credentials are not carried there.
    #[error("{host} redirects to another address")]
    Redirected {
        /// Host and port.
        host: String,
    },
    /// The server answered with an error of its own.
    #[error("{host} answered with HTTP status {status}")]
    Server {
        /// Host and port.
        host: String,
        /// The status.
        status: u16,
    },
    /// The repository has no commit yet.
    #[error("the repository at {url} is empty")]
    RepositoryEmpty {
        /// The repository.
        url: String,
    },
    /// The branch, tag or commit is not there (any more).
    #[error("{reference} does not exist in {url}")]
    ReferenceNotFound {
        /// What was asked for.
        reference: String,
        /// The repository.
        url: String,
    },
    /// No tag is inside the range.
    #[error("no tag in {url} is in the range `{range}`: {nearest}")]
    NoTagInRange {
        /// The range.
        range: String,
        /// The repository.
        url: String,
        /// What is there instead, in words.
        nearest: String,
    },
    /// A tag may point at anything.
    #[error("{reference} points at a {kind}, not at a commit")]
    NotACommit {
        /// What was asked for.
        reference: String,
        /// What it is.
        kind: String,
    },
    /// More was sent than may be.
    #[error("{url} sent more than {limit} {unit}")]
    PackTooLarge {
        /// The repository.
        url: String,
        /// The limit.
        limit: usize,
        /// Of what.
        unit: &'static str,
    },
    /// What was sent is no whole pack.
    #[error("{host} sent a damaged or incomplete pack: {detail}")]
    PackBroken {
        /// Host and port.
        host: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The file system has no room.
    #[error("the disk that holds {} is full", .directory.display())]
    DiskFull {
        /// The mirror.
        directory: PathBuf,
    },
    /// The file system refuses.
    #[error("{} cannot be read or written: {detail}", .directory.display())]
    Storage {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        detail: String,
    },
    /// The mirror is damaged, and cloning it anew did not help.
    #[error("the mirror in {} is damaged: {detail}", .directory.display())]
    MirrorCorrupt {
        /// The mirror.
        directory: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// Another fetch into this mirror has not ended yet.
    #[error("the fetch before from {host} has not ended yet")]
    Busy {
        /// Host and port.
        host: String,
    },
    /// The source's `path` is not in this revision.
    #[error("there is no folder `{path}` in {revision}")]
    PathNotFound {
        /// The path.
        path: String,
        /// The revision.
        revision: String,
    },
    /// The source's `path` is something else than a folder.
    #[error("`{path}` is not a folder in {revision}")]
    PathNotAFolder {
        /// The path.
        path: String,
        /// The revision.
        revision: String,
    },
    /// More files than a source may have.
    #[error("the source has more than {limit} files and folders")]
    TooManyFiles {
        /// The limit.
        limit: usize,
    },
    /// The directory does not belong to a git repository.
    #[error("{} is not in a git repository", .directory.display())]
    NotARepository {
        /// The directory.
        directory: PathBuf,
    },
    /// The local repository has no such revision.
    #[error("there is no revision `{name}` in the repository")]
    RevisionNotFound {
        /// What was asked for.
        name: String,
    },
    /// Two revisions without a common past, as far as the local repository knows it.
    #[error("`{one}` and `{other}` have no commit in common")]
    NoMergeBase {
        /// A revision.
        one: String,
        /// The other.
        other: String,
    },
    /// The files that say who may sign cannot be used.
    #[error("the key `{key}` of the allowed signers cannot be used: {reason}")]
    Signers {
        /// The key of the Secret.
        key: String,
        /// Why.
        reason: String,
    },
    /// A signature is missing or not good.
    #[error("{what} is refused: {refusal}")]
    SignatureRefused {
        /// The commit or tag.
        what: String,
        /// Why.
        refusal: Refusal,
    },
    /// Each commit has to be signed, and there are too many of them at once.
    #[error(
        "there are more than {limit} commits since {from} whose signatures would have to be verified"
    )]
    TooManyCommits {
        /// The limit.
        limit: usize,
        /// The commit that was accepted last.
        from: String,
    },
    /// Anything else that the git library reports.
    #[error("git reports: {detail}")]
    Other {
        /// What it said.
        detail: String,
    },
}

/// Whose turn it is after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Whoever declared the source.
    User,
    /// The git server or the way to it.
    Server,
    /// The machine or process that runs us.
    Ours,
}

impl SourceError {
    /// Returns whose turn it is.
    pub fn origin(&self) -> Origin {
        match self {
            Self::Network { .. }
            | Self::Timeout { .. }
            | Self::Server { .. }
            | Self::PackBroken { .. } => Origin::Server,
            Self::DiskFull { .. }
            | Self::Storage { .. }
            | Self::MirrorCorrupt { .. }
            | Self::Busy { .. }
            | Self::Other { .. } => Origin::Ours,
            _ => Origin::User,
        }
    }

    /// Returns whether the same attempt may succeed later, with nothing changed in the declaration of the source.
    ///
    /// What a person mends on the server's side (a missing branch, a missing right) is found by the next poll; only a
    /// declaration that is wrong in itself needs no further attempt.
    pub fn is_retryable(&self) -> bool {
        !matches!(
            self,
            Self::Url { .. }
                | Self::ReferenceInvalid { .. }
                | Self::RangeInvalid { .. }
                | Self::CommitInvalid { .. }
                | Self::Credentials { .. }
                | Self::Authorities { .. }
                | Self::SshKeys { .. }
                | Self::HostKeyUnknown { .. }
                | Self::HostKeyChanged { .. }
                | Self::HostKeyRevoked { .. }
                | Self::Signers { .. }
                | Self::SignatureRefused { .. }
                | Self::TooManyCommits { .. }
        )
    }

    /// Returns what to do, as sentences.
    pub fn help(&self) -> String {
        let text = match self {
            Self::Url { .. } => {
                "Write the URL as https://HOST/PATH or ssh://git@HOST/PATH; credentials belong into the Secret that `secretRef` names."
            }
            Self::ReferenceInvalid { .. } => "Write the short name, as `main` or `v1.2.3`.",
            Self::RangeInvalid { .. } => {
                "Write it as `^1.4` or `>=1.4.0, <2.0.0`: comparators with commas between them, without `v` and `||`."
            }
            Self::NoTagInRange { .. } => {
                "Push such a tag, or change the range; a pre-release is in it only where the range names one of that version, as `>=2.0.0-rc.1`. What was applied last stays."
            }
            Self::CommitInvalid { .. } => {
                "Write all forty hexadecimal digits, as `git rev-parse` prints them."
            }
            Self::Credentials { .. } => {
                "Create the Secret without the line break, for instance with `printf %s` instead of `echo`."
            }
            Self::SshKeys { .. } => {
                "The Secret that `secretRef` names needs the keys `identity` (a private key without or with its passphrase in `password`) and `known_hosts`, as `ssh-keygen` and `ssh-keyscan` write them."
            }
            Self::Signers { .. } => {
                "The Secret that `verify.secretRef` names holds `allowed_signers` in git's format, OpenPGP certificates in files `*.asc`, or both."
            }
            Self::SignatureRefused { .. } => {
                "What was applied last stays. Push what an allowed signer has signed, or change the Secret that `verify.secretRef` names if this signer is to be allowed."
            }
            Self::TooManyCommits { .. } => {
                "Look at them yourself, set `verify.mode` to Head until they are applied, and then back to EachCommit."
            }
            Self::HostKeyUnknown { .. } => {
                "Compare the fingerprint with the one that the host's operator publishes; if it is the same, add the line that `ssh-keyscan` prints to `known_hosts`."
            }
            Self::HostKeyChanged { .. } => {
                "Compare both with what the host's operator publishes. If the host has a new key, replace its line in `known_hosts`; if not, somebody stands between: do not."
            }
            Self::HostKeyRevoked { .. } => {
                "Do not use this host before its operator has given it a new key."
            }
            Self::Authorities { .. } => {
                "Put certificates in PEM form into `ca.crt`: the authority and every intermediate one."
            }
            Self::Network { .. } => {
                "Check that the host can be reached from here (name, port, network policy). It is tried again."
            }
            Self::Timeout { .. } => {
                "The server or the line is slow. It is tried again; if it persists, look at the server's health."
            }
            Self::Unauthorized { .. } => {
                "Check `username` and `password`, or `bearerToken`, of the Secret that `secretRef` names, for ssh `identity`: a token may have expired, or a key may not be registered with the server."
            }
            Self::Forbidden { .. } => {
                "Give the account or token the right to read this repository."
            }
            Self::Untrusted { .. } => {
                "If the server uses an authority of your own, put it into the key `ca.crt` of the Secret, with every intermediate one."
            }
            Self::RepositoryNotFound { .. } => {
                "Check the URL; many servers also say this when the credentials may not see the repository."
            }
            Self::Redirected { .. } => {
                "Declare the address that the repository has moved to; credentials are not carried to another one."
            }
            Self::Server { .. } => {
                "The server has a problem or limits requests. It is tried again."
            }
            Self::RepositoryEmpty { .. } => "Push a first commit.",
            Self::ReferenceNotFound { .. } => {
                "Check `ref`, or push it. What was applied last stays."
            }
            Self::NotACommit { .. } => "Let the tag point at a commit.",
            Self::PackTooLarge { .. } => {
                "Keep large binaries out of the repository, or use one of its own for the release channels."
            }
            Self::PackBroken { .. } => {
                "The mirror is as it was before. It is tried again; if it persists, run `git fsck` on the server."
            }
            Self::DiskFull { .. } => {
                "Give the volume more room. What was read last stays; it is tried again."
            }
            Self::Storage { .. } => {
                "Check that the directory exists and belongs to the user that runs this process."
            }
            Self::MirrorCorrupt { .. } => {
                "Check the disk; the mirror may be deleted at any time, it is cloned anew."
            }
            Self::Busy { .. } => "It is tried again.",
            Self::PathNotFound { .. } | Self::PathNotAFolder { .. } => {
                "Check `path`: it names a folder from the root of the repository, `.` is the root itself."
            }
            Self::TooManyFiles { .. } => {
                "Narrow `path`, or use a repository of its own for the release channels."
            }
            Self::NotARepository { .. } => "Name a directory inside a clone.",
            Self::RevisionNotFound { .. } => {
                "Fetch it first: `git fetch origin`. A shallow clone in CI lacks history: `git fetch --unshallow`."
            }
            Self::NoMergeBase { .. } => {
                "A shallow clone lacks the common past: `git fetch --unshallow`."
            }
            Self::Other { .. } => "It is tried again; if it persists, please report it.",
        };
        text.to_owned()
    }
}
