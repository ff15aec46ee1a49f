//! From a git tree to the sorted files below a path. What has not changed since the last time is not read again.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use git2::{ObjectType, Oid, Repository};

use super::error::SourceError;
use crate::model::{BlobId, EntryKind, FileEntry, limits};

/// The files of a snapshot by path.
pub(super) type Files = Arc<BTreeMap<String, FileEntry>>;

/// Reads trees, and remembers those of the last reading by id.
#[derive(Default)]
pub(super) struct TreeReader {
    trees: HashMap<Oid, Arc<[Item]>>,
    last: Option<(Oid, Files)>,
}

/// Why a tree could not be read.
pub(super) enum TreeError {
    /// Something is missing in the object store, or damaged.
    Git(git2::Error),
    /// There is nothing at the path.
    PathNotFound,
    /// There is something else than a folder at the path.
    PathNotAFolder,
    /// The tree is larger than a source may be.
    TooManyFiles,
}

/// One line of a tree.
struct Item {
    name: Box<str>,
    node: Node,
}

#[derive(Clone, Copy)]
enum Node {
    Entry(FileEntry),
    Folder(Oid),
}

impl From<git2::Error> for TreeError {
    fn from(error: git2::Error) -> Self {
        Self::Git(error)
    }
}

impl TreeError {
    /// Gives the error its place and name; `git` names what is wrong with the object store.
    pub(super) fn into_source(
        self,
        path: &str,
        revision: &str,
        git: impl FnOnce(&git2::Error) -> SourceError,
    ) -> SourceError {
        let (path, revision) = (path.to_owned(), revision.to_owned());
        match self {
            Self::Git(error) => git(&error),
            Self::PathNotFound => SourceError::PathNotFound { path, revision },
            Self::PathNotAFolder => SourceError::PathNotAFolder { path, revision },
            Self::TooManyFiles => SourceError::TooManyFiles {
                limit: limits::FILES_MAX,
            },
        }
    }
}

impl TreeReader {
    /// Returns the files below `path` of a commit's tree.
    pub(super) fn files(
        &mut self,
        repository: &Repository,
        root: Oid,
        path: &str,
    ) -> Result<Files, TreeError> {
        let folder = find_folder(repository, root, path)?;
        if let Some((known, files)) = &self.last
            && *known == folder
        {
            return Ok(Arc::clone(files));
        }
        let mut walk = Walk {
            repository,
            known: &self.trees,
            read: HashMap::new(),
            files: Vec::new(),
            visited: 0,
        };
        walk.folder(folder, "", 0)?;
        let Walk { read, files, .. } = walk;
        let files = Arc::new(files.into_iter().collect());
        // What this tree does not contain is forgotten, so that memory follows the tree and not the history.
        self.trees = read;
        self.last = Some((folder, Arc::clone(&files)));
        Ok(files)
    }
}

fn find_folder(repository: &Repository, root: Oid, path: &str) -> Result<Oid, TreeError> {
    let mut folder = root;
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        let tree = repository.find_tree(folder)?;
        let entry = tree.get_name(part).ok_or(TreeError::PathNotFound)?;
        if entry.kind() != Some(ObjectType::Tree) {
            return Err(TreeError::PathNotAFolder);
        }
        folder = entry.id();
    }
    Ok(folder)
}

struct Walk<'a> {
    repository: &'a Repository,
    known: &'a HashMap<Oid, Arc<[Item]>>,
    read: HashMap<Oid, Arc<[Item]>>,
    files: Vec<(String, FileEntry)>,
    visited: usize,
}

impl Walk<'_> {
    fn folder(&mut self, folder: Oid, prefix: &str, depth: usize) -> Result<(), TreeError> {
        let items = self.items(folder)?;
        // Empty folders are counted as well: a few trees that contain each other many times make billions of them.
        self.visited += items.len();
        if self.visited > limits::FILES_MAX {
            return Err(TreeError::TooManyFiles);
        }
        for item in items.iter() {
            let path = format!("{prefix}{}", item.name);
            match item.node {
                Node::Entry(entry) => self.files.push((path, entry)),
                Node::Folder(below) if depth == limits::TREE_DEPTH_MAX => {
                    self.files.push((path, entry(EntryKind::Unsafe, below)));
                }
                Node::Folder(below) => self.folder(below, &format!("{path}/"), depth + 1)?,
            }
        }
        Ok(())
    }

    fn items(&mut self, folder: Oid) -> Result<Arc<[Item]>, TreeError> {
        if let Some(items) = self.read.get(&folder) {
            return Ok(Arc::clone(items));
        }
        let items = match self.known.get(&folder) {
            Some(items) => Arc::clone(items),
            None => self
                .repository
                .find_tree(folder)?
                .iter()
                .map(|line| item(&line))
                .collect(),
        };
        self.read.insert(folder, Arc::clone(&items));
        Ok(items)
    }
}

fn item(line: &git2::TreeEntry<'_>) -> Item {
    let id = line.id();
    let name = line.name_bytes();
    if !is_safe_name(name) {
        return Item {
            name: escape(name).into(),
            node: Node::Entry(entry(EntryKind::Unsafe, id)),
        };
    }
    let node = match line.filemode_raw() & 0o170_000 {
        0o040_000 => Node::Folder(id),
        0o100_000 => Node::Entry(entry(EntryKind::File, id)),
        0o120_000 => Node::Entry(entry(EntryKind::Symlink, id)),
        0o160_000 => Node::Entry(entry(EntryKind::Submodule, id)),
        _ => Node::Entry(entry(EntryKind::Unsafe, id)),
    };
    Item {
        name: escape(name).into(),
        node,
    }
}

pub(super) fn entry(kind: EntryKind, id: Oid) -> FileEntry {
    FileEntry {
        kind,
        blob: blob_id(id),
    }
}

pub(super) fn blob_id(id: Oid) -> BlobId {
    let bytes = id.as_bytes().try_into();
    BlobId(bytes.expect("ids are SHA-1, since repositories of other formats are not opened"))
}

/// Returns whether a name can be part of a path without meaning something else to git or a file system.
pub(super) fn is_safe_name(name: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(name) else {
        return false;
    };
    !matches!(text, "" | "." | "..")
        && !text.eq_ignore_ascii_case(".git")
        && !text
            .chars()
            .any(|char| char.is_control() || matches!(char, '/' | '\\'))
}

/// Writes a name so that it can be shown and stays distinct; a safe name stays as it is.
pub(super) fn escape(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '\\' => text.push_str("\\\\"),
                '/' => text.push_str("\\x2f"),
                char if char.is_control() => text.extend(char.escape_default()),
                char => text.push(char),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(b"module-template.yaml", "module-template.yaml", true)]
    #[case("größe.yaml".as_bytes(), "größe.yaml", true)]
    #[case(b".gitignore", ".gitignore", true)]
    #[case(b"", "", false)]
    #[case(b"..", "..", false)]
    #[case(b".", ".", false)]
    #[case(b".GiT", ".GiT", false)]
    #[case(b"a/b", "a\\x2fb", false)]
    #[case(b"a\\b", "a\\\\b", false)]
    #[case(b"a\nb", "a\\nb", false)]
    #[case(b"\x1b[2J", "\\u{1b}[2J", false)]
    #[case(b"\xff\xfe.yaml", "\\xff\\xfe.yaml", false)]
    fn names_are_judged_and_escaped(#[case] name: &[u8], #[case] shown: &str, #[case] safe: bool) {
        assert_eq!(escape(name), shown);
        assert_eq!(is_safe_name(name), safe);
    }
}
