//! What a path of the repository means: the layout is a convention, and this is the one place that knows it.

use super::kinds::is_label;
use crate::model::snapshot::{EntryKind, FileEntry};
use crate::model::{ComponentName, ModuleName};

/// What a path is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role<'a> {
    /// `fairway.yaml`.
    Settings,
    /// A YAML file of `modules/NAME/` itself, or of `landscapes/LANDSCAPE/` below it.
    Module {
        module: &'a str,
        landscape: Option<&'a str>,
    },
    /// A YAML file in the folder of a version, at any depth.
    Version { module: &'a str, version: &'a str },
    /// A YAML file in `components/NAME/`, at any depth.
    Component { component: &'a str },
    /// A YAML file in a folder of migrations, at any depth.
    Migrations(Owner<'a>),
    /// A YAML file of a folder whose kinds this release does not read yet.
    Later { folder: &'a str },
    /// A YAML file where no rule of the layout expects one, but inside our folders.
    Misplaced,
    /// A link, a submodule or an odd name inside our folders.
    Unsafe(&'static str),
    /// A YAML file in a folder at the top that is not ours.
    Foreign { folder: &'a str },
    /// Not for us: not YAML, hidden, or outside our folders.
    Ignored,
}

/// Whose migrations stand in a folder, unless they say otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner<'a> {
    /// Those of a folder of `components/`.
    Component(&'a str),
    /// Those of a module.
    Module(&'a str),
    /// Those of the deploy as a whole.
    Repository,
}

impl Owner<'_> {
    /// Returns the component; none for the deploy as a whole, and where the folder's name is none for a component.
    pub(super) fn component(self) -> Option<ComponentName> {
        match self {
            Self::Component(name) => ComponentName::folder(name).ok(),
            Self::Module(name) => ModuleName::new(name).ok().map(ComponentName::Module),
            Self::Repository => None,
        }
    }
}

/// The settings of the repository.
pub(super) const SETTINGS_FILE: &str = "fairway.yaml";
/// The folders at the top that are read.
pub(super) const FOLDERS: &[&str] = &["components", "migrations", "modules"];
/// Folders with definitions that this release does not read yet; silence would be wrong, since they ask for work.
const FOLDERS_LATER: &[&str] = &["operations", "rollouts", "runtimes"];
/// Folders inside a module that are not versions.
const LANDSCAPES: &str = "landscapes";
const MIGRATIONS: &str = "migrations";

/// Returns what a path is for.
pub(super) fn role_of<'a>(path: &'a str, entry: &FileEntry) -> Role<'a> {
    let (top, below) = path.split_once('/').unwrap_or((path, ""));
    let is_ours = path == SETTINGS_FILE || FOLDERS.contains(&top) || FOLDERS_LATER.contains(&top);
    if is_ours {
        match entry.kind {
            EntryKind::File => {}
            EntryKind::Symlink => return Role::Unsafe("a symbolic link"),
            EntryKind::Submodule => return Role::Unsafe("a submodule"),
            EntryKind::Unsafe => return Role::Unsafe("a name that is no safe path"),
        }
        if let Some(why) = odd_name(path) {
            return Role::Unsafe(why);
        }
    }
    if path == SETTINGS_FILE {
        return Role::Settings;
    }
    if !is_yaml(path) || path.split('/').any(|part| part.starts_with('.')) || below.is_empty() {
        return Role::Ignored;
    }
    match top {
        "components" => match below.split_once('/') {
            Some((component, inner))
                if inner.split_once('/').is_some_and(|(f, _)| f == MIGRATIONS) =>
            {
                Role::Migrations(Owner::Component(component))
            }
            Some((component, _)) => Role::Component { component },
            None => Role::Misplaced,
        },
        "modules" => role_in_modules(below),
        MIGRATIONS => Role::Migrations(Owner::Repository),
        _ if FOLDERS_LATER.contains(&top) => Role::Later { folder: top },
        _ => Role::Foreign { folder: top },
    }
}

/// A file of a version's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VersionFile<'a> {
    /// The folder: `modules/telemetry/1.42.0`.
    pub(super) folder: &'a str,
    /// The path inside the folder.
    pub(super) inner: &'a str,
}

/// Returns where a path stands in the folder of a version, whatever the file is: all of it is the version.
pub(super) fn version_file(path: &str) -> Option<VersionFile<'_>> {
    let (module, inner) = path.strip_prefix("modules/")?.split_once('/')?;
    let (version, inner) = inner.split_once('/')?;
    if matches!(version, LANDSCAPES | MIGRATIONS) {
        return None;
    }
    let folder = &path[.."modules/".len() + module.len() + 1 + version.len()];
    Some(VersionFile { folder, inner })
}

fn role_in_modules(below: &str) -> Role<'_> {
    let Some((module, inner)) = below.split_once('/') else {
        return Role::Misplaced;
    };
    match inner.split_once('/') {
        None => Role::Module {
            module,
            landscape: None,
        },
        Some((LANDSCAPES, rest)) => match rest.split_once('/') {
            Some((landscape, file)) if !file.contains('/') => Role::Module {
                module,
                landscape: Some(landscape),
            },
            _ => Role::Misplaced,
        },
        Some((MIGRATIONS, _)) => Role::Migrations(Owner::Module(module)),
        Some((version, _)) => Role::Version { module, version },
    }
}

/// What no component may be called: messages and hooks use the word for the deploy as a whole.
pub(super) const RESERVED: &str = "global";

/// Returns whether a folder below `components/` can be that of a component.
pub(super) fn is_folder(name: &str) -> bool {
    is_label(name) && name != RESERVED
}

/// Returns whether a folder below `modules/` can be that of a module.
pub(super) fn is_module(name: &str) -> bool {
    ModuleName::new(name).is_ok() && name != RESERVED
}

/// Returns whether a file is read as YAML, by its name.
pub(super) fn is_yaml(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    matches!(extension, Some("yaml" | "yml"))
}

/// Returns what is odd about a path, if anything: names that a shell, a terminal or Windows would take for something else.
fn odd_name(path: &str) -> Option<&'static str> {
    if path.chars().any(char::is_control) {
        Some("a name with control characters")
    } else if path.contains('\\') {
        Some("a name with a backslash")
    } else if path
        .split('/')
        .any(|part| matches!(part, "" | "." | "..") || part.trim() != part)
    {
        Some("a name that is empty, `.` or `..`, or begins or ends with a space")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::model::BlobId;

    #[rstest]
    #[case("fairway.yaml", Role::Settings)]
    #[case("README.md", Role::Ignored)]
    #[case("mkdocs.yaml", Role::Ignored)]
    #[case("components/ingress/README.md", Role::Ignored)]
    #[case("components/ingress/.sops.yaml", Role::Ignored)]
    #[case("components/a/b/c.yml", Role::Component { component: "a" })]
    #[case(
        "components/a/migrations/c.yaml",
        Role::Migrations(Owner::Component("a"))
    )]
    #[case("migrations/c.yaml", Role::Migrations(Owner::Repository))]
    #[case("components/a/b/migrations/c.yaml", Role::Component { component: "a" })]
    #[case("modules/nats/1.0.0/migrations/m.yaml", Role::Version { module: "nats", version: "1.0.0" })]
    #[case("components/stray.yaml", Role::Misplaced)]
    #[case("modules/stray.yaml", Role::Misplaced)]
    #[case("modules/nats/module-release-meta.yaml", Role::Module { module: "nats", landscape: None })]
    #[case("modules/nats/landscapes/stage/m.yaml", Role::Module { module: "nats", landscape: Some("stage") })]
    #[case("modules/nats/landscapes/m.yaml", Role::Misplaced)]
    #[case("modules/nats/1.0.0/manifest.yaml", Role::Version { module: "nats", version: "1.0.0" })]
    #[case(
        "modules/nats/migrations/m.yaml",
        Role::Migrations(Owner::Module("nats"))
    )]
    #[case("operations/reset.yaml", Role::Later { folder: "operations" })]
    #[case("docs/a.yaml", Role::Foreign { folder: "docs" })]
    #[case(".github/workflows/a.yaml", Role::Ignored)]
    #[case(
        "components/a\u{7}/x.yaml",
        Role::Unsafe("a name with control characters")
    )]
    fn roles(#[case] path: &str, #[case] role: Role<'_>) {
        let entry = FileEntry {
            kind: EntryKind::File,
            blob: BlobId([0; 20]),
        };
        assert_eq!(role_of(path, &entry), role);
    }

    #[rstest]
    #[case("components", true)]
    #[case("modules/nats/1.0.0", true)]
    #[case("components/a/README.md", true)]
    #[case("docs/link", false)]
    fn links_are_unsafe_inside_our_folders(#[case] path: &str, #[case] is_unsafe: bool) {
        let entry = FileEntry {
            kind: EntryKind::Symlink,
            blob: BlobId([0; 20]),
        };
        assert_eq!(matches!(role_of(path, &entry), Role::Unsafe(_)), is_unsafe);
    }
}
