//! The function of this stage: a snapshot becomes what is wanted.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::cache::{Cache, LoadedFile};
use super::custom::CustomKind;
use super::facts::{Definition, SettingsFacts};
use super::finding::nearest;
use super::kinds::is_label;
use super::layout::{FOLDERS, Owner, RESERVED, Role, SETTINGS_FILE};
use super::output::{Desired, DesiredComponent, HeldMigration, RepositorySettings, Unread};
use super::{components, migrations, modules};
use crate::desired::catalog::Catalog;
use crate::model::limits::DIAGNOSTICS_MAX;
use crate::model::migration::Migration;
use crate::model::{
    Code, ComponentName, Diagnostic, GroupKind, Hold, HoldReason, ModuleName, ObjectKey, Place,
    Severity, Snapshot, SourceName,
};

/// What the same repository is read for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluateOptions {
    /// The source: the value of the label on every object.
    pub source: SourceName,
    /// The landscape whose ModuleReleaseMetas replace the others.
    pub landscape: Option<String>,
    /// The namespace of ModuleReleaseMetas and ModuleTemplates on home.
    pub catalog_namespace: String,
}

/// Works out what a snapshot wants. Never fails as a whole: what is wrong is held, unread or a diagnostic.
///
/// The result does not depend on what the cache holds.
pub fn evaluate(snapshot: &Snapshot, options: &EvaluateOptions, cache: &mut Cache) -> Desired {
    let files = cache.load(snapshot, options);
    let mut assembly = Assembly {
        options,
        settings: RepositorySettings::default(),
        settings_error: None,
        custom_kinds: HashMap::new(),
        components: BTreeMap::new(),
        catalog: Catalog::default(),
        held: BTreeMap::new(),
        migrations: Vec::new(),
        held_migrations: Vec::new(),
        unread: Vec::new(),
        diagnostics: Vec::new(),
        omitted: 0,
    };
    assembly.collect(&files);
    assembly.judge_layout(&files);
    components::assemble(&mut assembly, &files, snapshot, cache);
    modules::assemble(&mut assembly, &files, snapshot, cache);
    assembly.check_default_modules(&files);
    components::hold_duplicates(&mut assembly);
    components::check_dependencies(&mut assembly, &files);
    migrations::assemble(&mut assembly, &files, snapshot);
    cache.sweep();
    let has_settings = snapshot.files.contains_key(SETTINGS_FILE);
    assembly.finish(snapshot, has_settings)
}

/// A result under construction.
pub(super) struct Assembly<'a> {
    pub(super) options: &'a EvaluateOptions,
    pub(super) settings: RepositorySettings,
    /// Why the settings are not known, while there is a `fairway.yaml`.
    pub(super) settings_error: Option<(Place, String)>,
    /// Kinds that CustomResourceDefinitions of the repository make known.
    pub(super) custom_kinds: HashMap<GroupKind, CustomKind>,
    pub(super) components: BTreeMap<ComponentName, DesiredComponent>,
    pub(super) catalog: Catalog,
    pub(super) held: BTreeMap<ObjectKey, Hold>,
    pub(super) migrations: Vec<Arc<Migration>>,
    pub(super) held_migrations: Vec<HeldMigration>,
    pub(super) unread: Vec<Unread>,
    pub(super) diagnostics: Vec<Diagnostic>,
    omitted: usize,
}

impl Assembly<'_> {
    /// Holds an object: it is neither applied nor pruned.
    pub(super) fn hold(&mut self, key: ObjectKey, place: Place, why: &str) {
        self.held.entry(key).or_insert_with_key(|key| Hold {
            what: key.to_string(),
            reason: HoldReason::Invalid,
            message: format!("{why}; it stays as it is until git is mended"),
            place: Some(place),
        });
    }

    /// Notes files whose objects are not known, with the reason in words.
    fn unread(&mut self, diagnostic: Diagnostic) {
        self.unread.push(Unread {
            place: diagnostic.place.clone(),
            reason: diagnostic.message.clone(),
        });
        self.diagnostics.push(diagnostic);
    }

    /// Takes over what files say by themselves.
    fn collect(&mut self, files: &[LoadedFile<'_>]) {
        for file in files {
            let Some(facts) = &file.facts else { continue };
            self.diagnostics.extend_from_slice(&facts.diagnostics);
            self.omitted += facts.diagnostics_omitted;
            self.custom_kinds.extend(facts.custom_kinds.iter().cloned());
            match file.role {
                Role::Component { .. } => self.unread.extend(facts.unread.clone()),
                Role::Settings => {
                    self.settings_error.clone_from(&facts.error);
                    for definition in &facts.definitions {
                        if let Definition::Settings(SettingsFacts { settings, .. }) = definition {
                            self.settings = settings.clone();
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Reports paths that the layout has no place for; each folder once.
    fn judge_layout(&mut self, files: &[LoadedFile<'_>]) {
        let mut reported = "";
        for file in files {
            if !reported.is_empty() && file.path.starts_with(reported) {
                continue;
            }
            let Some((folder, diagnostic)) = misfit(file) else {
                continue;
            };
            reported = folder;
            match file.role {
                Role::Foreign { .. } | Role::Later { .. } => self.diagnostics.push(diagnostic),
                _ => self.unread(diagnostic),
            }
        }
    }

    fn check_default_modules(&mut self, files: &[LoadedFile<'_>]) {
        let definitions = files
            .iter()
            .filter(|file| file.role == Role::Settings)
            .filter_map(|file| file.facts.as_ref())
            .flat_map(|facts| &facts.definitions);
        for definition in definitions {
            let Definition::Settings(facts) = definition else {
                continue;
            };
            let places = &facts.default_module_places;
            for (name, place) in facts.settings.default_modules.iter().zip(places) {
                if self.catalog.modules.contains_key(name) {
                    continue;
                }
                let message = format!("there is no module `{name}`");
                let diagnostic = Diagnostic::error(Code::SchemaViolation, place.clone(), message);
                let names = self.catalog.modules.keys().map(ModuleName::as_str);
                self.diagnostics.push(match nearest(name.as_str(), names) {
                    Some(meant) => diagnostic.help(format!("did you mean `{meant}`?")),
                    None => diagnostic.help(format!("add `modules/{name}/`")),
                });
            }
        }
    }

    fn finish(mut self, snapshot: &Snapshot, has_settings: bool) -> Desired {
        let is_empty = self.components.values().all(|it| it.objects.is_empty())
            && self.held.is_empty()
            && self.unread.is_empty();
        if is_empty && !has_settings {
            let message = "there is nothing here that Fairway reads";
            self.unread(
                Diagnostic::error(Code::KindUnknown, Place::whole_file("."), message).help(format!(
                    "a repository has `{}/`, or at least `{SETTINGS_FILE}`, at its top; is the path right?",
                    FOLDERS.join("/`, `")
                )),
            );
        }
        let order = |one: &Diagnostic, two: &Diagnostic| {
            (&one.place, one.code, &one.message).cmp(&(&two.place, two.code, &two.message))
        };
        self.diagnostics.sort_by(order);
        if self.diagnostics.len() > DIAGNOSTICS_MAX {
            // An error must not fall off behind warnings.
            self.diagnostics.sort_by_key(|it| it.severity);
            self.omitted += self.diagnostics.len() - DIAGNOSTICS_MAX;
            self.diagnostics.truncate(DIAGNOSTICS_MAX);
            self.diagnostics.sort_by(order);
        }
        self.unread.sort_by(|one, two| one.place.cmp(&two.place));
        Desired {
            revision: snapshot.revision.clone(),
            settings: self.settings,
            components: self.components,
            held: self.held,
            unread: self.unread,
            catalog: self.catalog,
            migrations: self.migrations,
            held_migrations: self.held_migrations,
            diagnostics: self.diagnostics,
            diagnostics_omitted: self.omitted,
            withdrawn: false,
        }
    }
}

/// Refuses the one name that means the deploy as a whole.
fn reserved(folder: &str) -> Diagnostic {
    let message =
        format!("`{RESERVED}` is no name for a component: it means the deploy as a whole");
    let place = Place::whole_file(folder.trim_end_matches('/'));
    Diagnostic::error(Code::MigrationBinding, place, message).help("rename the folder")
}

/// Returns what is wrong with a file's path, and the prefix of paths that are said to be wrong with it.
fn misfit<'a>(file: &LoadedFile<'a>) -> Option<(&'a str, Diagnostic)> {
    let path = file.path;
    let error = |code, place: &str, message: String| {
        Diagnostic::error(code, Place::whole_file(place), message)
    };
    let found = match file.role {
        Role::Unsafe(what) => {
            let diagnostic = error(
                Code::PathUnsafe,
                path,
                format!("{what} is not followed or read"),
            );
            (
                path,
                diagnostic.help("put a regular file with a plain name there"),
            )
        }
        Role::Misplaced => {
            let message = "no file of this place is read".to_owned();
            let help = match path.split_once('/') {
                Some(("components", file)) => format!("move it into the folder of a component: components/NAME/{file}"),
                _ => "move it to modules/NAME/, modules/NAME/landscapes/LANDSCAPE/ or modules/NAME/VERSION/".to_owned(),
            };
            (path, error(Code::KindUnknown, path, message).help(help))
        }
        Role::Later { folder } => {
            let message = format!("this release of Fairway does not read `{folder}/` yet");
            (path, error(Code::KindUnknown, path, message))
        }
        Role::Foreign { folder } => {
            let message = format!("the YAML files of `{folder}/` are not read");
            let place = Place::whole_file(path);
            let diagnostic = Diagnostic::warning(Code::KindUnknown, place, message);
            let help = match nearest(folder, FOLDERS.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}/`?"),
                None => format!("what is read stands in `{}/`", FOLDERS.join("/` or `")),
            };
            (&path[..=folder.len()], diagnostic.help(help))
        }
        Role::Component { component } | Role::Migrations(Owner::Component(component))
            if component == RESERVED =>
        {
            let folder = &path[..="components/".len() + component.len()];
            (folder, reserved(folder))
        }
        Role::Module { module, .. }
        | Role::Version { module, .. }
        | Role::Migrations(Owner::Module(module))
            if module == RESERVED =>
        {
            let folder = &path[..="modules/".len() + module.len()];
            (folder, reserved(folder))
        }
        Role::Component { component } | Role::Migrations(Owner::Component(component))
            if !is_label(component) =>
        {
            let folder = &path[..="components/".len() + component.len()];
            let message = format!("`{component}` is no name for a component");
            let diagnostic = error(Code::SchemaViolation, folder.trim_end_matches('/'), message);
            (folder, diagnostic.help("lower-case letters, digits and `-`, at most 63, starting and ending with a letter or digit"))
        }
        Role::Module { module, .. }
        | Role::Version { module, .. }
        | Role::Migrations(Owner::Module(module))
            if ModuleName::new(module).is_err() =>
        {
            let folder = &path[..="modules/".len() + module.len()];
            let message = format!("`{module}` is no name for a module");
            let diagnostic = error(Code::SchemaViolation, folder.trim_end_matches('/'), message);
            (folder, diagnostic.help(super::texts::MODULE_NAME.help))
        }
        Role::Version { module, version } if !super::texts::is_version_folder(version) => {
            let folder = &path[..="modules/".len() + module.len() + 1 + version.len()];
            let message = format!("`{version}` is no version");
            let diagnostic = error(
                Code::IdentityMismatch,
                folder.trim_end_matches('/'),
                message,
            );
            (
                folder,
                diagnostic.help("name the folder as `spec.version` of its ModuleTemplate: 1.42.0"),
            )
        }
        _ => return None,
    };
    debug_assert!(file.facts.is_none() && found.1.severity <= Severity::Warning);
    Some(found)
}
