//! What was read before: facts by path and blob id, and finished ModuleTemplates by their folder's files.
//!
//! The path is part of the key, since places, roles and components come from it. Entries that the last passes did not use
//! are forgotten, so that memory follows the repository and not its history.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::catalog::CatalogVersion;
use super::evaluate::EvaluateOptions;
use super::facts::FileFacts;
use super::layout::{Owner, Role, is_folder, is_module, role_of};
use super::read::read_file;
use crate::model::limits::{CACHE_PASSES, FILE_SIZE_MAX, PARSE_THREADS_MAX};
use crate::model::{BlobId, DesiredObject, Digest, FileEntry, Snapshot};

/// What earlier evaluations have read. It never changes a result, only what it costs.
#[derive(Debug, Default)]
pub struct Cache {
    pass: u64,
    options: Option<EvaluateOptions>,
    files: HashMap<String, Vec<CachedFile>>,
    versions: HashMap<String, Vec<CachedVersion>>,
    /// By CustomResourceDefinition, the objects that keep its schema, with the last pass that asked.
    schemas: HashMap<Digest, HashMap<Digest, u64>>,
}

#[derive(Debug)]
struct CachedFile {
    blob: BlobId,
    used: u64,
    facts: Arc<FileFacts>,
}

/// A version whose digest is known, with its finished ModuleTemplate.
#[derive(Debug)]
struct CachedVersion {
    used: u64,
    finished: FinishedVersion,
}

/// A version as the catalog has it, and its object.
#[derive(Debug, Clone)]
pub(super) struct FinishedVersion {
    pub(super) version: Arc<CatalogVersion>,
    /// The ModuleTemplate; none while something in the folder is wrong.
    pub(super) object: Option<Arc<DesiredObject>>,
}

/// One path of a snapshot with its role, and with what its file says where it is read.
pub(super) struct LoadedFile<'a> {
    pub(super) path: &'a str,
    pub(super) role: Role<'a>,
    pub(super) facts: Option<Arc<FileFacts>>,
}

impl Cache {
    /// Makes an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads every file of a snapshot that is for us and was not read before. The result is sorted by path.
    pub(super) fn load<'a>(
        &mut self,
        snapshot: &'a Snapshot,
        options: &EvaluateOptions,
    ) -> Vec<LoadedFile<'a>> {
        if self.options.as_ref() != Some(options) {
            *self = Self {
                options: Some(options.clone()),
                ..Self::default()
            };
        }
        self.pass += 1;
        let mut files = Vec::with_capacity(snapshot.files.len());
        let mut misses = Vec::new();
        for (path, entry) in snapshot.files.iter() {
            let role = role_of(path, entry);
            if role == Role::Ignored {
                continue;
            }
            let facts = self.facts(path, entry.blob);
            if facts.is_none() && is_read(role) {
                misses.push((files.len(), path.as_str(), role, *entry));
            }
            files.push(LoadedFile { path, role, facts });
        }
        for (index, facts) in read_all(snapshot, options, &misses) {
            let (at, path, _, entry) = misses[index];
            let facts = Arc::new(facts);
            files[at].facts = Some(Arc::clone(&facts));
            self.files
                .entry(path.to_owned())
                .or_default()
                .push(CachedFile {
                    blob: entry.blob,
                    used: self.pass,
                    facts,
                });
        }
        files
    }

    fn facts(&mut self, path: &str, blob: BlobId) -> Option<Arc<FileFacts>> {
        let cached = self
            .files
            .get_mut(path)?
            .iter_mut()
            .find(|cached| cached.blob == blob)?;
        cached.used = self.pass;
        Some(Arc::clone(&cached.facts))
    }

    /// Returns a finished version whose folder holds exactly these files.
    pub(super) fn finished(
        &mut self,
        folder: &str,
        files: &[(&str, BlobId)],
    ) -> Option<FinishedVersion> {
        let cached = self.versions.get_mut(folder)?.iter_mut().find(|cached| {
            let known = &cached.finished.version.files;
            known.len() == files.len()
                && known
                    .iter()
                    .zip(files)
                    .all(|((path, blob), file)| (path.as_str(), *blob) == *file)
        })?;
        cached.used = self.pass;
        Some(cached.finished.clone())
    }

    /// Remembers a finished version.
    pub(super) fn finish(&mut self, folder: &str, finished: FinishedVersion) {
        let used = self.pass;
        self.versions
            .entry(folder.to_owned())
            .or_default()
            .push(CachedVersion { used, finished });
    }

    /// Returns whether an object is known to keep the schema of a CustomResourceDefinition, both by digest.
    pub(super) fn keeps_schema(&mut self, (definition, object): (&Digest, &Digest)) -> bool {
        let known = self.schemas.get_mut(definition);
        let Some(used) = known.and_then(|objects| objects.get_mut(object)) else {
            return false;
        };
        *used = self.pass;
        true
    }

    /// Remembers that an object keeps the schema of a CustomResourceDefinition.
    pub(super) fn remember_schema(&mut self, (definition, object): (&Digest, &Digest)) {
        let objects = self.schemas.entry(definition.clone()).or_default();
        objects.insert(object.clone(), self.pass);
    }

    /// Forgets what the last passes did not use.
    pub(super) fn sweep(&mut self) {
        let oldest = self.pass.saturating_sub(CACHE_PASSES - 1);
        self.files.retain(|_, cached| {
            cached.retain(|cached| cached.used >= oldest);
            !cached.is_empty()
        });
        self.schemas.retain(|_, objects| {
            objects.retain(|_, used| *used >= oldest);
            !objects.is_empty()
        });
        self.versions.retain(|_, cached| {
            cached.retain(|cached| cached.used >= oldest);
            !cached.is_empty()
        });
    }
}

/// Returns whether the content of a file with this role is read.
fn is_read(role: Role<'_>) -> bool {
    match role {
        Role::Settings => true,
        Role::Component { component } => is_folder(component),
        Role::Module { module, .. } => is_module(module),
        Role::Migrations(owner) => match owner {
            Owner::Component(component) => is_folder(component),
            Owner::Module(module) => is_module(module),
            Owner::Repository => true,
        },
        Role::Version { module, version } => {
            is_module(module) && super::texts::is_version_folder(version)
        }
        _ => false,
    }
}

type Miss<'a> = (usize, &'a str, Role<'a>, FileEntry);

/// Reads files with several threads. Each takes the next file that nobody has; the order of results does not matter.
fn read_all(
    snapshot: &Snapshot,
    options: &EvaluateOptions,
    misses: &[Miss<'_>],
) -> Vec<(usize, FileFacts)> {
    /// Files that are not worth a thread of their own.
    const FILES_PER_THREAD: usize = 16;
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores
        .min(PARSE_THREADS_MAX)
        .min(misses.len().div_ceil(FILES_PER_THREAD));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((_, path, role, entry)) = misses.get(index) else {
                return done;
            };
            let content = snapshot.blobs.read(entry.blob, FILE_SIZE_MAX);
            done.push((index, read_file(path, *role, content, options)));
        }
    };
    if threads <= 1 {
        return work();
    }
    thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        handles
            .into_iter()
            .flat_map(|handle| handle.join().expect("reading a file does not panic"))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::desired::evaluate;
    use crate::model::snapshot::CommitInfo;
    use crate::model::{BlobError, BlobStore, EntryKind, Revision};

    /// Every file is an empty one.
    struct Empty;

    impl BlobStore for Empty {
        fn read(&self, _: BlobId, _: u64) -> Result<Vec<u8>, BlobError> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn what_the_last_passes_did_not_use_is_forgotten() {
        let mut cache = Cache::new();
        let options = EvaluateOptions {
            source: "modules".parse().unwrap(),
            landscape: None,
            catalog_namespace: "kcp-system".to_owned(),
        };
        for pass in 0..20 {
            let path = format!("components/shop/{pass}.yaml");
            let entry = FileEntry {
                kind: EntryKind::File,
                blob: BlobId([pass; 20]),
            };
            let snapshot = Snapshot {
                revision: Revision::commit("main", "0123456789012345678901234567890123456789"),
                commit: CommitInfo::default(),
                files: Arc::new(BTreeMap::from([(path, entry)])),
                blobs: Arc::new(Empty),
            };
            evaluate(&snapshot, &options, &mut cache);
            assert!(cache.files.len() <= 2, "{} files", cache.files.len());
        }
    }
}
