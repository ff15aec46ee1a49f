//! Sources against real repositories: made with `git`, served from disk and over https.

#![expect(clippy::unwrap_used, reason = "what fails in a test fails the test")]

mod connections;
mod https;
mod local;
mod mirror;
mod odd_trees;
mod recovery;
mod signatures;
pub(crate) mod ssh;
mod stored;
mod tags;
mod working_tree;

use fairway::model::Snapshot;
use fairway::source::{
    CommitId, Credentials, FetchRequest, Fetched, Mirror, MirrorLimits, Reference, SourceError,
    SourceUrl, initialize,
};
use tempfile::TempDir;

use crate::support::repository::Repository;

/// A repository on disk, and a mirror of it.
struct Scene {
    directory: TempDir,
    repository: Repository,
    mirror: Mirror,
}

impl Scene {
    fn new() -> Self {
        Self::with_limits(MirrorLimits::default())
    }

    fn with_limits(limits: MirrorLimits) -> Self {
        initialize().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::create(&directory.path().join("repository"));
        let url = SourceUrl::parse(repository.path().to_str().unwrap()).unwrap();
        let mirror = Mirror::new(directory.path().join("mirror"), url, limits);
        Self {
            directory,
            repository,
            mirror,
        }
    }

    /// Commits one file and returns the commit.
    fn commit(&self, path: &str, content: &str) -> CommitId {
        self.repository.write(path, content);
        self.repository
            .commit(&format!("Write {path}"))
            .parse()
            .unwrap()
    }

    fn fetch(&self, last: Option<CommitId>) -> Result<Fetched, SourceError> {
        self.mirror
            .fetch_blocking(main(last), Credentials::default())
    }

    /// The names in the mirror's folder of packs.
    fn packs(&self) -> Vec<String> {
        packs(&self.directory.path().join("mirror"))
    }
}

fn packs(mirror: &std::path::Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(mirror.join("objects/pack")) else {
        return Vec::new();
    };
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A request for the branch `main`, all of it.
fn main(last: Option<CommitId>) -> FetchRequest {
    FetchRequest {
        reference: Reference::Branch("main".to_owned()),
        path: ".".to_owned(),
        last,
        last_tag: None,
    }
}

/// The content of a file as text.
fn read(snapshot: &Snapshot, path: &str) -> String {
    let content = snapshot
        .blobs
        .read(snapshot.files[path].blob, 1024 * 1024)
        .unwrap();
    String::from_utf8(content).unwrap()
}

fn paths(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.files.keys().map(String::as_str).collect()
}
