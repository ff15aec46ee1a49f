//! From files to what is wanted: each rule with the place that it points at, and the laws that hold for every repository.

mod codes;
mod comparison;
mod components;
mod example;
mod laws;
mod mutations;
mod rendering;
mod stored;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use fairway::desired::{Cache, Desired, EvaluateOptions, evaluate};
use fairway::model::snapshot::{CommitInfo, FileEntry};
use fairway::model::{BlobError, BlobId, BlobStore, Diagnostic, EntryKind, Revision, Snapshot};

/// Files by path, kept in memory.
#[derive(Debug, Clone, Default)]
struct Tree {
    files: BTreeMap<String, FileEntry>,
    contents: HashMap<BlobId, Vec<u8>>,
}

impl Tree {
    /// Adds a file.
    fn file(mut self, path: &str, content: &str) -> Self {
        let blob = blob_of(content.as_bytes());
        self.contents.insert(blob, content.into());
        let kind = EntryKind::File;
        self.files.insert(path.to_owned(), FileEntry { kind, blob });
        self
    }

    /// Adds something that is no file.
    fn entry(mut self, path: &str, kind: EntryKind) -> Self {
        let blob = blob_of(path.as_bytes());
        self.files.insert(path.to_owned(), FileEntry { kind, blob });
        self
    }

    /// Removes everything below a path.
    fn without(mut self, prefix: &str) -> Self {
        self.files.retain(|path, _| !path.starts_with(prefix));
        self
    }

    /// Adds a ConfigMap to a component.
    fn config_map(self, component: &str, name: &str) -> Self {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {component}\ndata:\n  key: value\n"
        );
        self.file(&format!("components/{component}/{name}.yaml"), &text)
    }

    /// Adds a version of a module.
    fn version(self, module: &str, version: &str) -> Self {
        let folder = format!("modules/{module}/{version}");
        let template = format!(
            "apiVersion: operator.kyma-project.io/v1beta2\nkind: ModuleTemplate\nmetadata:\n  name: {module}-{version}\n\
             spec:\n  moduleName: {module}\n  version: {version}\n  descriptor: {{}}\n"
        );
        let manifest =
            format!("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {module}-manager\n");
        self.file(&format!("{folder}/module-template.yaml"), &template)
            .file(&format!("{folder}/manifest.yaml"), &manifest)
    }

    /// Adds the channels of a module.
    fn channels(self, module: &str, channels: &[(&str, &str)]) -> Self {
        let path = format!("modules/{module}/module-release-meta.yaml");
        self.file(&path, &release_meta(module, channels))
    }

    /// Adds `fairway.yaml`.
    fn settings(self, text: &str) -> Self {
        let text = format!("apiVersion: fairway.dev/v1alpha1\nkind: Repository\n{text}");
        self.file("fairway.yaml", &text)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            revision: Revision::commit("main", "0123456789012345678901234567890123456789"),
            commit: CommitInfo::default(),
            files: Arc::new(self.files.clone()),
            blobs: Arc::new(Memory(self.contents.clone())),
        }
    }

    fn evaluate(&self) -> Desired {
        self.evaluate_for(None)
    }

    fn evaluate_for(&self, landscape: Option<&str>) -> Desired {
        evaluate(&self.snapshot(), &options(landscape), &mut Cache::new())
    }
}

/// A ModuleReleaseMeta as a file.
fn release_meta(module: &str, channels: &[(&str, &str)]) -> String {
    let mut text = format!(
        "apiVersion: operator.kyma-project.io/v1beta2\nkind: ModuleReleaseMeta\nmetadata:\n  name: {module}\nspec:\n  \
         moduleName: {module}\n  ocmComponentName: kyma-project.io/module/{module}\n  channels:\n"
    );
    for (channel, version) in channels {
        let _ = writeln!(text, "    - channel: {channel}\n      version: {version}");
    }
    text
}

fn options(landscape: Option<&str>) -> EvaluateOptions {
    EvaluateOptions {
        source: "modules".parse().expect("a source name"),
        landscape: landscape.map(str::to_owned),
        catalog_namespace: "kcp-system".to_owned(),
    }
}

/// Returns the id that git gives a content.
fn blob_of(content: &[u8]) -> BlobId {
    let id =
        git2::Oid::hash_object(git2::ObjectType::Blob, content).expect("contents can be hashed");
    BlobId(id.as_bytes().try_into().expect("an id has 20 bytes"))
}

/// Contents in memory; a link has none.
struct Memory(HashMap<BlobId, Vec<u8>>);

impl BlobStore for Memory {
    fn read(&self, blob: BlobId, limit: u64) -> Result<Vec<u8>, BlobError> {
        let content = self.0.get(&blob).ok_or_else(|| BlobError::Unreadable {
            reason: "it is not there".to_owned(),
        })?;
        let size = content.len() as u64;
        if size > limit {
            return Err(BlobError::TooLarge { size, limit });
        }
        Ok(content.clone())
    }
}

/// Diagnostics as a person reads them.
fn listing(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for found in diagnostics {
        let severity = format!("{:?}", found.severity).to_lowercase();
        let _ = writeln!(
            text,
            "{} {severity}[{}] {}",
            found.place, found.code, found.message
        );
        for line in found.help.iter().flat_map(|help| help.lines()) {
            let _ = writeln!(text, "    help: {line}");
        }
    }
    text
}

/// Everything but the objects: diagnostics, what is held, what is unread.
fn findings(desired: &Desired) -> String {
    let mut text = listing(&desired.diagnostics);
    for key in desired.held.keys() {
        let _ = writeln!(text, "  held: {key}");
    }
    for unread in &desired.unread {
        let _ = writeln!(text, "  unread: {}", unread.place);
    }
    text
}
