//! A directory as a source: what it lists, what it reads again, and when it rings.

use std::sync::mpsc;
use std::time::Duration;

use fairway::model::{BlobError, EntryKind, limits};
use fairway::source::{Watch, WorkingTree, initialize};
use tempfile::TempDir;

use super::{paths, read};
use crate::support::repository::Repository;

fn repository() -> (TempDir, Repository) {
    initialize().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let repository = Repository::create(directory.path());
    (directory, repository)
}

#[test]
fn a_working_tree_has_the_ids_that_git_gives() {
    let (directory, repository) = repository();
    repository.write("modules/a.yaml", "kind: A\n");
    std::os::unix::fs::symlink("modules/a.yaml", directory.path().join("link")).unwrap();
    repository.commit("Add");
    let mut tree = WorkingTree::open(directory.path()).unwrap();
    let snapshot = tree.snapshot().unwrap();
    assert_eq!(paths(&snapshot), ["link", "modules/a.yaml"]);
    assert_eq!(snapshot.files["link"].kind, EntryKind::Symlink);
    for path in ["link", "modules/a.yaml"] {
        let git = repository.git(&["rev-parse", &format!("HEAD:{path}")]);
        assert_eq!(snapshot.files[path].blob.to_string(), git);
    }
    assert_eq!(read(&snapshot, "modules/a.yaml"), "kind: A\n");
    assert!(
        snapshot
            .revision
            .to_string()
            .starts_with("worktree@sha256:")
    );
}

#[test]
fn what_git_ignores_is_left_out_unless_it_is_tracked() {
    let (directory, repository) = repository();
    repository.write("forced.log", "");
    repository.write("build/forced.yaml", "");
    repository.commit("Add before it is ignored");
    repository.write(".gitignore", "*.log\nbuild/\nscratch/\n");
    repository.write("deploy/.gitignore", "*.local.yaml\n");
    repository.write("deploy/a.yaml", "");
    repository.write("deploy/a.local.yaml", "");
    repository.write("new.log", "");
    repository.write("scratch/b.yaml", "");
    let mut tree = WorkingTree::open(directory.path()).unwrap();
    let expected = [
        ".gitignore",
        "build/forced.yaml",
        "deploy/.gitignore",
        "deploy/a.yaml",
        "forced.log",
    ];
    assert_eq!(paths(&tree.snapshot().unwrap()), expected);
    // A subfolder follows the same rules, and an ignored one is looked at for its own sake.
    let mut tree = WorkingTree::open(&directory.path().join("deploy")).unwrap();
    assert_eq!(paths(&tree.snapshot().unwrap()), [".gitignore", "a.yaml"]);
    let mut tree = WorkingTree::open(&directory.path().join("scratch")).unwrap();
    assert_eq!(paths(&tree.snapshot().unwrap()), ["b.yaml"]);
}

#[test]
fn the_revision_follows_the_content_alone() {
    let (directory, repository) = repository();
    repository.write("a.yaml", "one");
    let mut tree = WorkingTree::open(directory.path()).unwrap();
    let mut revision = || tree.snapshot().unwrap().revision;
    let first = revision();
    repository.write("a.yaml", "two");
    let second = revision();
    assert_ne!(first, second);
    repository.write("a.yaml", "one");
    assert_eq!(first, revision());
    repository.write("b.yaml", "one");
    repository.remove("a.yaml");
    assert_ne!(first, revision(), "the name counts as well");
}

#[test]
fn a_rewrite_that_keeps_size_and_modification_time_is_seen() {
    let (directory, repository) = repository();
    repository.write("a.yaml", "one");
    let path = directory.path().join("a.yaml");
    let old = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let age = || {
        std::fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(old)
            .unwrap();
    };
    age();
    let mut tree = WorkingTree::open(directory.path()).unwrap();
    let first = tree.snapshot().unwrap();
    // The same size, inode and modification time, but not the time of change, which nobody can set.
    std::fs::write(&path, "two").unwrap();
    age();
    let second = tree.snapshot().unwrap();
    assert_ne!(first.files["a.yaml"].blob, second.files["a.yaml"].blob);
}

#[test]
fn a_file_that_changed_after_it_was_listed_is_not_passed_off_as_the_old_one() {
    let (directory, repository) = repository();
    repository.write("a.yaml", "one");
    repository.write("large.yaml", "x".repeat(100));
    let snapshot = WorkingTree::open(directory.path())
        .unwrap()
        .snapshot()
        .unwrap();
    repository.write("a.yaml", "two");
    let changed = snapshot
        .blobs
        .read(snapshot.files["a.yaml"].blob, limits::FILE_SIZE_MAX);
    assert!(matches!(changed, Err(BlobError::Unreadable { reason }) if reason.contains("changed")));
    let large = snapshot.blobs.read(snapshot.files["large.yaml"].blob, 99);
    assert_eq!(
        large,
        Err(BlobError::TooLarge {
            size: 100,
            limit: 99
        })
    );
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "std cannot make a pipe with a name"
)]
fn odd_names_and_pipes_are_entries_that_are_never_opened() {
    use std::os::unix::ffi::OsStrExt as _;
    let (directory, repository) = repository();
    let name = std::ffi::OsStr::from_bytes(b"odd\xff.yaml");
    std::fs::write(directory.path().join(name), "").unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(directory.path().join("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    repository.write("a.yaml", "");
    let snapshot = WorkingTree::open(directory.path())
        .unwrap()
        .snapshot()
        .unwrap();
    assert_eq!(paths(&snapshot), ["a.yaml", "odd\\xff.yaml", "pipe"]);
    assert_eq!(snapshot.files["odd\\xff.yaml"].kind, EntryKind::Unsafe);
    assert_eq!(snapshot.files["pipe"].kind, EntryKind::Unsafe);
}

#[test]
fn a_change_rings_once_it_is_quiet_and_reading_does_not() {
    let (directory, repository) = repository();
    repository.write("modules/a.yaml", "one");
    let (sender, rings) = mpsc::channel();
    let ring = move || sender.send(()).unwrap();
    let _watch = Watch::start(directory.path(), ring).unwrap();
    let wait = Duration::from_secs(10);

    for content in ["two", "three", "four"] {
        repository.write("modules/a.yaml", content);
    }
    rings.recv_timeout(wait).unwrap();
    let snapshot = WorkingTree::open(directory.path())
        .unwrap()
        .snapshot()
        .unwrap();
    assert_eq!(read(&snapshot, "modules/a.yaml"), "four");
    repository.git(&["status"]);
    let quiet = rings.recv_timeout(4 * limits::WATCH_QUIET);
    assert_eq!(
        quiet,
        Err(mpsc::RecvTimeoutError::Timeout),
        "neither reads nor .git ring"
    );

    // A folder that is new is watched as well.
    repository.write("modules/new/b.yaml", "one");
    rings.recv_timeout(wait).unwrap();
    repository.write("modules/new/b.yaml", "two");
    rings.recv_timeout(wait).unwrap();
}
