//! From a git repository to a [`Snapshot`](crate::model::Snapshot): which files one revision has, and how to read them.
//!
//! What comes in is a URL and a [`Reference`] (the agent, [`Mirror`]), a working directory ([`WorkingTree`]) or a revision of
//! a local repository ([`LocalRepository`]). What goes out is the same for all three.
//!
//! Guaranteed: nothing is ever checked out, no child process runs, and no configuration, hook, filter, link or submodule of
//! a repository is followed. A failure is a [`SourceError`] that says what to do, holds no secret, and leaves the last good
//! revision readable. git2 stays inside this folder.
//!
//! [`initialize()`] must be called once, before the process starts threads.

mod blobs;
mod credentials;
mod disk;
mod error;
mod exchange;
mod https;
mod initialize;
mod local;
mod mirror;
mod range;
mod reference;
mod smart;
mod ssh;
mod stored;
mod translation;
mod transport;
mod tree;
mod trust;
mod update;
mod url;
mod verify;
mod watch;
mod working_tree;

pub use credentials::Credentials;
pub use error::{Origin, SourceError};
pub use initialize::initialize;
pub use local::LocalRepository;
pub use mirror::{FetchRequest, Fetched, Mirror, MirrorLimits};
pub use range::VersionRange;
pub use reference::{CommitId, Reference};
pub use trust::CertificateAuthorities;
pub use url::SourceUrl;
pub use verify::{Refusal, Signers, Verification, VerifyMode};
pub use watch::Watch;
pub use working_tree::WorkingTree;
