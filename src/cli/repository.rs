//! Reading a working directory as the agent would read the repository, for `plan` and `sync`.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::context::Context;
use super::failure::Failure;
use super::terminal::printable;
use crate::desired::{Cache, Desired, EvaluateOptions, evaluate};
use crate::model::{Severity, Snapshot, SourceName};
use crate::source::{LocalRepository, WorkingTree};

/// Which files are meant, and how they are read.
#[derive(Debug, Clone, Args)]
pub(super) struct RepositoryArguments {
    /// The folder with the repository's files
    #[arg(default_value = ".", value_name = "DIR")]
    pub(super) directory: PathBuf,
    /// The name of the source, which labels every object
    #[arg(long, value_name = "NAME", default_value = "modules")]
    pub(super) source: SourceName,
    /// The landscape whose files replace the others
    #[arg(long, value_name = "NAME")]
    pub(super) landscape: Option<String>,
    /// Where ModuleReleaseMetas and ModuleTemplates go
    #[arg(long, value_name = "NAMESPACE", default_value = "kcp-system")]
    pub(super) catalog_namespace: String,
}

// === impl RepositoryArguments ===

impl RepositoryArguments {
    /// Means a folder, read as it is where nothing else is said.
    pub(super) fn of_directory(directory: PathBuf) -> Self {
        Self {
            directory,
            source: SourceName::new("modules").expect("the name is one"),
            landscape: None,
            catalog_namespace: "kcp-system".to_owned(),
        }
    }

    /// Returns how the files are read.
    pub(super) fn options(&self) -> EvaluateOptions {
        EvaluateOptions {
            source: self.source.clone(),
            landscape: self.landscape.clone(),
            catalog_namespace: self.catalog_namespace.clone(),
        }
    }

    /// Reads the folder as it stands.
    pub(super) fn working_tree(&self) -> Result<Snapshot, Failure> {
        let mut tree = WorkingTree::open(&self.directory)?;
        Ok(tree.snapshot()?)
    }

    /// Reads the folder as a revision has it.
    pub(super) fn revision(&self, revision: &str) -> Result<Snapshot, Failure> {
        Ok(LocalRepository::discover(&self.directory)?.snapshot(revision)?)
    }

    /// Reads the folder as it stood where the present branch left another revision.
    pub(super) fn base(&self, revision: &str) -> Result<Snapshot, Failure> {
        self.base_of("HEAD", revision)
    }

    /// Reads the folder as it stood where one revision left another.
    pub(super) fn base_of(&self, ours: &str, revision: &str) -> Result<Snapshot, Failure> {
        let repository = LocalRepository::discover(&self.directory)?;
        let base = repository.merge_base(ours, revision)?;
        Ok(repository.snapshot(&base.to_string())?)
    }

    /// Evaluates a snapshot.
    pub(super) fn evaluate(&self, snapshot: &Snapshot) -> Desired {
        evaluate(snapshot, &self.options(), &mut Cache::default())
    }
}

/// Says on stderr what is wrong with the files, in one line each.
pub(super) fn warn_about(desired: &Desired, context: &mut Context) -> Result<(), Failure> {
    for found in desired
        .diagnostics
        .iter()
        .filter(|found| found.severity == Severity::Error)
    {
        writeln!(context.err, "held: {}", printable(&found.to_string()))?;
    }
    Ok(())
}

/// Returns the root of the repository that a file of migrations stands in, and its path inside it.
pub(super) fn split_migration(file: &Path) -> Option<(PathBuf, String)> {
    let folder = file
        .ancestors()
        .skip(1)
        .find(|folder| folder.file_name().is_some_and(|name| name == "migrations"))?;
    let above = folder.parent()?;
    let is_owned = above.parent().and_then(Path::file_name);
    let root = match is_owned.and_then(|name| name.to_str()) {
        Some("components" | "modules") => above.parent()?.parent()?,
        _ => above,
    };
    let inside = file.strip_prefix(root).ok()?.to_str()?.to_owned();
    Some((root.to_owned(), inside))
}
