//! Trees that no person would make: links, submodules, hostile names, too many files, too much content.

use std::path::Path;

use fairway::model::{BlobError, EntryKind, limits};
use fairway::source::{LocalRepository, SourceError, initialize};
use git2::{ObjectType, Oid, Signature};
use tempfile::TempDir;

use crate::support::repository::Repository;

/// A repository whose trees are written byte by byte, since neither git nor libgit2 would make these.
struct Forge {
    directory: TempDir,
    repository: git2::Repository,
}

impl Forge {
    fn new() -> Self {
        initialize().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init(directory.path()).unwrap();
        Self {
            directory,
            repository,
        }
    }

    fn blob(&self, content: &[u8]) -> Oid {
        self.repository.blob(content).unwrap()
    }

    fn tree(&self, lines: &[(&str, &[u8], Oid)]) -> Oid {
        let mut bytes = Vec::new();
        for (mode, name, id) in lines {
            bytes.extend_from_slice(mode.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(name);
            bytes.push(0);
            bytes.extend_from_slice(id.as_bytes());
        }
        self.repository
            .odb()
            .unwrap()
            .write(ObjectType::Tree, &bytes)
            .unwrap()
    }

    fn commit(&self, tree: Oid) {
        let tree = self.repository.find_tree(tree).unwrap();
        let ada = Signature::now("Ada Example", "ada@example.com").unwrap();
        self.repository
            .commit(Some("HEAD"), &ada, &ada, "odd", &tree, &[])
            .unwrap();
    }

    fn files(&self) -> Result<Vec<(String, EntryKind)>, SourceError> {
        let snapshot = LocalRepository::discover(self.directory.path())?.snapshot("HEAD")?;
        Ok(snapshot
            .files
            .iter()
            .map(|(path, entry)| (path.clone(), entry.kind))
            .collect())
    }
}

#[test]
fn links_submodules_and_unsafe_names_are_entries_that_are_never_entered() {
    let forge = Forge::new();
    let blob = forge.blob(b"x");
    let below = forge.tree(&[("100644", b"hidden", blob)]);
    let root = forge.tree(&[
        ("40000", b"..", below),
        ("40000", b".GIT", below),
        ("100644", b"a\\b", blob),
        ("100644", b"bell\x07", blob),
        ("100755", b"executable", blob),
        ("40000", b"folder", below),
        ("100664", b"group", blob),
        ("120000", b"link", blob),
        ("160000", b"submodule", blob),
        ("100644", b"up/../x", blob),
        ("100644", b"\xff", blob),
    ]);
    forge.commit(root);
    let expected = [
        ("..", EntryKind::Unsafe),
        (".GIT", EntryKind::Unsafe),
        ("\\xff", EntryKind::Unsafe),
        ("a\\\\b", EntryKind::Unsafe),
        ("bell\\u{7}", EntryKind::Unsafe),
        ("executable", EntryKind::File),
        ("folder/hidden", EntryKind::File),
        ("group", EntryKind::File),
        ("link", EntryKind::Symlink),
        ("submodule", EntryKind::Submodule),
        ("up\\x2f..\\x2fx", EntryKind::Unsafe),
    ];
    let found = forge.files().unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|(path, kind)| (path.as_str(), *kind))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_tree_that_contains_itself_many_times_is_refused_soon() {
    let forge = Forge::new();
    // Ten folders in ten folders, ten deep: 10^10 empty folders in eleven objects.
    let names: Vec<_> = (0..10).map(|number| format!("folder-{number}")).collect();
    let mut tree = forge.tree(&[]);
    for _ in 0..10 {
        let lines: Vec<_> = names
            .iter()
            .map(|name| ("40000", name.as_bytes(), tree))
            .collect();
        tree = forge.tree(&lines);
    }
    forge.commit(tree);
    let error = forge.files().unwrap_err();
    assert_eq!(
        error,
        SourceError::TooManyFiles {
            limit: limits::FILES_MAX
        }
    );
}

#[test]
fn a_folder_too_deep_is_one_entry() {
    let forge = Forge::new();
    let mut tree = forge.tree(&[("100644", b"file", forge.blob(b"x"))]);
    for _ in 0..10_000 {
        tree = forge.tree(&[("40000", b"d", tree)]);
    }
    forge.commit(tree);
    let path = vec!["d"; limits::TREE_DEPTH_MAX + 1].join("/");
    assert_eq!(forge.files().unwrap(), [(path, EntryKind::Unsafe)]);
}

#[test]
fn a_large_file_is_refused_by_its_header_alone() {
    initialize().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let repository = Repository::create(directory.path());
    let size = 100 * 1024 * 1024;
    let file = std::fs::File::create(directory.path().join("large.bin")).unwrap();
    file.set_len(size).unwrap();
    repository.commit("Add a large file");

    // Without its body the object can only be refused by its header: reading it would not succeed.
    let blob = repository.git(&["rev-parse", "HEAD:large.bin"]);
    let object = directory
        .path()
        .join(".git/objects")
        .join(&blob[..2])
        .join(&blob[2..]);
    truncate(&object, 4096);

    let snapshot = LocalRepository::discover(directory.path())
        .unwrap()
        .snapshot("HEAD")
        .unwrap();
    let large = snapshot.files["large.bin"].blob;
    assert_eq!(
        snapshot.blobs.read(large, limits::FILE_SIZE_MAX),
        Err(BlobError::TooLarge {
            size,
            limit: limits::FILE_SIZE_MAX
        })
    );
}

#[test]
fn several_threads_read_at_once() {
    let forge = Forge::new();
    let blobs: Vec<_> = (0..50_u8)
        .map(|number| forge.blob(&[number; 100]))
        .collect();
    let names: Vec<_> = (0..50).map(|number| format!("{number:02}")).collect();
    let lines: Vec<_> = names
        .iter()
        .zip(&blobs)
        .map(|(name, blob)| ("100644", name.as_bytes(), *blob))
        .collect();
    forge.commit(forge.tree(&lines));
    let snapshot = LocalRepository::discover(forge.directory.path())
        .unwrap()
        .snapshot("HEAD")
        .unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 * limits::MIRROR_READERS_MAX {
            scope.spawn(|| {
                for (number, entry) in (0..50_u8).zip(snapshot.files.values()) {
                    assert_eq!(snapshot.blobs.read(entry.blob, 100).unwrap(), [number; 100]);
                }
            });
        }
    });
}

fn truncate(file: &Path, length: u64) {
    let mut permissions = std::fs::metadata(file).unwrap().permissions();
    #[expect(
        clippy::permissions_set_readonly_false,
        reason = "a file of this test alone"
    )]
    permissions.set_readonly(false);
    std::fs::set_permissions(file, permissions).unwrap();
    std::fs::File::options()
        .write(true)
        .open(file)
        .unwrap()
        .set_len(length)
        .unwrap();
}
