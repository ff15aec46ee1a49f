//! Rules between the files of a module: versions with their folders, channels with their versions, landscapes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cache::{Cache, FinishedVersion, LoadedFile};
use super::catalog::{Assignment, CatalogModule, CatalogRelease, CatalogVersion};
use super::channels::allows_suffix;
use super::evaluate::Assembly;
use super::facts::{Definition, FileFacts, ReleaseFacts, TemplateFacts};
use super::finding::nearest;
use super::layout::{Role, version_file};
use super::module::catalog_key;
use super::object::Finish;
use crate::model::names::{ANNOTATION_VERSION_DIGEST, KYMA_VERSION};
use crate::model::{
    BlobId, ChannelName, Code, ComponentName, DesiredObject, Diagnostic, Digest, ModuleName,
    ModuleVersion, Place, Snapshot,
};

/// Puts the modules together: catalog, objects and holds.
pub(super) fn assemble(
    assembly: &mut Assembly<'_>,
    files: &[LoadedFile<'_>],
    snapshot: &Snapshot,
    cache: &mut Cache,
) {
    let folders = version_folders(snapshot);
    let mut modules: BTreeMap<&str, ModuleFiles<'_>> = BTreeMap::new();
    for file in files {
        let Some(facts) = &file.facts else { continue };
        match file.role {
            Role::Module { module, landscape } => {
                let parts = modules.entry(module).or_default();
                parts.own.push((file.path, landscape, facts));
            }
            Role::Version { module, version } => {
                let parts = modules.entry(module).or_default();
                parts.versions.entry(version).or_default().push(facts);
            }
            _ => {}
        }
    }
    for (name, parts) in &modules {
        let name = ModuleName::new(*name).expect("files of folders with bad names are not read");
        Module {
            name: &name,
            files: parts,
            folders: &folders,
        }
        .assemble(assembly, cache);
    }
}

/// The files of one module that were read.
#[derive(Default)]
struct ModuleFiles<'a> {
    /// Path, landscape and facts of the module's own files.
    own: Vec<(&'a str, Option<&'a str>, &'a Arc<FileFacts>)>,
    /// The YAML files of each version.
    versions: BTreeMap<&'a str, Vec<&'a Arc<FileFacts>>>,
}

/// Every file of each version's folder, whether it is read or not.
type Folders<'a> = BTreeMap<&'a str, Vec<(&'a str, BlobId)>>;

fn version_folders(snapshot: &Snapshot) -> Folders<'_> {
    let mut folders = Folders::new();
    for (path, entry) in snapshot.files.range("modules/".to_owned()..) {
        if !path.starts_with("modules/") {
            break;
        }
        if let Some(file) = version_file(path) {
            let files = folders.entry(file.folder).or_default();
            files.push((file.inner, entry.blob));
        }
    }
    folders
}

/// A module that is being put together.
struct Module<'a> {
    name: &'a ModuleName,
    files: &'a ModuleFiles<'a>,
    folders: &'a Folders<'a>,
}

impl Module<'_> {
    fn assemble(&self, assembly: &mut Assembly<'_>, cache: &mut Cache) {
        let mut module = CatalogModule::default();
        let mut objects = Vec::new();
        for (version, files) in &self.files.versions {
            if let Some((known, object)) = self.version(assembly, cache, version, files) {
                module.versions.insert((*version).to_owned(), known);
                objects.extend(object);
            }
        }
        for (_, _, facts) in &self.files.own {
            for definition in &facts.definitions {
                if let Definition::Graph(graph) = definition {
                    module.graph = graph.clone();
                }
            }
        }
        objects.extend(self.release(assembly, &mut module));
        objects.sort_by(|one, two| one.place.cmp(&two.place));
        let component = ComponentName::Module(self.name.clone());
        assembly.components.entry(component).or_default().objects = objects;
        assembly.catalog.modules.insert(self.name.clone(), module);
    }

    /// Finishes one version; none where its folder has no ModuleTemplate.
    fn version(
        &self,
        assembly: &mut Assembly<'_>,
        cache: &mut Cache,
        version: &str,
        files: &[&Arc<FileFacts>],
    ) -> Option<(Arc<CatalogVersion>, Option<Arc<DesiredObject>>)> {
        let folder = format!("modules/{}/{version}", self.name);
        let templates: Vec<&TemplateFacts> = files
            .iter()
            .flat_map(|facts| &facts.definitions)
            .filter_map(|definition| match definition {
                Definition::Template(template) => Some(template),
                _ => None,
            })
            .collect();
        let mut error = files.iter().find_map(|facts| facts.error.clone());
        if let [one, two, ..] = templates.as_slice() {
            let message = format!("{folder} has two ModuleTemplates");
            for (here, there) in [(one, two), (two, one)] {
                let place = here.place.clone();
                assembly.diagnostics.push(
                    Diagnostic::error(Code::DuplicateObject, place, message.clone()).help(format!(
                        "the other one is {}; remove one of them",
                        there.place
                    )),
                );
            }
            error.get_or_insert((two.place.clone(), message));
        }
        if templates.is_empty() && error.is_none() {
            return None;
        }
        let content = self
            .folders
            .get(folder.as_str())
            .map_or(&[][..], Vec::as_slice);
        let finished = if let Some(finished) = cache.finished(&folder, content) {
            finished
        } else {
            let template = templates.first().filter(|_| error.is_none());
            let finished = self.finish(assembly, &folder, version, template.copied(), content)?;
            cache.finish(&folder, finished.clone());
            finished
        };
        if let Some((place, message)) = error {
            let namespace = &assembly.options.catalog_namespace;
            let name = format!("{}-{version}", self.name);
            let key = catalog_key("ModuleTemplate", namespace, name);
            assembly.hold(key, place, &message);
        }
        Some((finished.version, finished.object))
    }

    /// Computes the digest of a version's folder, and gives it to the ModuleTemplate.
    fn finish(
        &self,
        assembly: &Assembly<'_>,
        folder: &str,
        version: &str,
        template: Option<&TemplateFacts>,
        content: &[(&str, BlobId)],
    ) -> Option<FinishedVersion> {
        let blobs: Vec<String> = content.iter().map(|(_, blob)| blob.to_string()).collect();
        let digest = Digest::of_parts(
            content
                .iter()
                .zip(&blobs)
                .flat_map(|((path, _), blob)| [*path, blob.as_str()]),
        );
        let known = CatalogVersion {
            version: ModuleVersion::parse(version).ok()?,
            files: content
                .iter()
                .map(|(path, blob)| ((*path).to_owned(), *blob))
                .collect(),
            is_mandatory: template.is_some_and(|template| template.is_mandatory),
            place: template.map_or_else(
                || Place::whole_file(folder),
                |template| template.place.clone(),
            ),
            digest,
        };
        let object = template.map(|template| {
            let finish = Finish {
                source: &assembly.options.source,
                component: &ComponentName::Module(self.name.clone()),
                place: template.place.clone(),
                annotations: vec![(ANNOTATION_VERSION_DIGEST, known.digest.to_string())],
            };
            let namespace = &assembly.options.catalog_namespace;
            let name = format!("{}-{}", self.name, template.version);
            let key = catalog_key("ModuleTemplate", namespace, name);
            Arc::new(finish.object(template.body.clone(), KYMA_VERSION.to_owned(), key))
        });
        Some(FinishedVersion {
            version: Arc::new(known),
            object,
        })
    }

    /// Judges every ModuleReleaseMeta, and returns the object of the one that is for this target.
    fn release(
        &self,
        assembly: &mut Assembly<'_>,
        module: &mut CatalogModule,
    ) -> Option<Arc<DesiredObject>> {
        let mut errors: BTreeMap<Option<&str>, (Place, String)> = BTreeMap::new();
        let mut releases: BTreeMap<Option<&str>, &ReleaseFacts> = BTreeMap::new();
        for (path, landscape, facts) in &self.files.own {
            if let Some(error) = &facts.error {
                errors.entry(*landscape).or_insert_with(|| error.clone());
            }
            if let Some(landscape) = landscape {
                let folder = folder_of(path);
                check_landscape(assembly, landscape, Place::whole_file(folder));
            }
            for definition in &facts.definitions {
                let Definition::Release(release) = definition else {
                    continue;
                };
                if let Some(other) = releases.insert(*landscape, release) {
                    let places = (&other.release.place, &release.release.place);
                    let error = self.report_twice(assembly, places);
                    errors.entry(*landscape).or_insert(error);
                }
            }
        }
        let is_mandatory = releases
            .values()
            .next()
            .map(|it| it.release.mandatory.is_some());
        for (landscape, facts) in &releases {
            if let Some(error) = self.check_release(assembly, module, &facts.release, is_mandatory)
            {
                errors.entry(*landscape).or_insert(error);
            }
        }
        module.releases = releases
            .iter()
            .map(|(landscape, facts)| {
                let landscape = landscape.map(str::to_owned);
                (landscape, Arc::clone(&facts.release))
            })
            .collect();
        self.select(assembly, module, &releases, &errors)
    }

    /// Takes the ModuleReleaseMeta that is for this target, or holds it.
    fn select(
        &self,
        assembly: &mut Assembly<'_>,
        module: &mut CatalogModule,
        releases: &BTreeMap<Option<&str>, &ReleaseFacts>,
        errors: &BTreeMap<Option<&str>, (Place, String)>,
    ) -> Option<Arc<DesiredObject>> {
        let landscape = assembly.options.landscape.clone();
        let landscape = landscape
            .as_deref()
            .filter(|name| releases.contains_key(&Some(name)) || errors.contains_key(&Some(name)));
        let facts = releases.get(&landscape).filter(|facts| {
            match (
                &facts.release.target_landscapes,
                &assembly.options.landscape,
            ) {
                (Some(targets), Some(name)) => targets.iter().any(|(target, _)| target == name),
                _ => true,
            }
        });
        module.release = facts.map(|facts| Arc::clone(&facts.release));
        let settings_error = facts.and(assembly.settings_error.as_ref());
        let error = errors
            .get(&landscape)
            // What is wrong with a module's own files concerns its graph too, which all landscapes share.
            .or_else(|| errors.get(&None))
            .or(settings_error);
        if let Some((place, message)) = error.cloned() {
            let namespace = &assembly.options.catalog_namespace;
            let key = catalog_key("ModuleReleaseMeta", namespace, self.name.as_str());
            assembly.hold(key, place, &message);
            return None;
        }
        facts.map(|facts| Arc::clone(&facts.object))
    }

    fn report_twice(
        &self,
        assembly: &mut Assembly<'_>,
        (one, two): (&Place, &Place),
    ) -> (Place, String) {
        let message = format!("the channels of {} stand twice", self.name);
        for (here, there) in [(one, two), (two, one)] {
            assembly.diagnostics.push(
                Diagnostic::error(Code::DuplicateObject, here.clone(), message.clone())
                    .help(format!("the other ones are {there}; remove one of them")),
            );
        }
        (two.clone(), message)
    }

    /// Judges one ModuleReleaseMeta against versions and settings, and returns the first error.
    fn check_release(
        &self,
        assembly: &mut Assembly<'_>,
        module: &CatalogModule,
        release: &CatalogRelease,
        is_mandatory: Option<bool>,
    ) -> Option<(Place, String)> {
        let mut found = Vec::new();
        if is_mandatory.is_some_and(|other| other != release.mandatory.is_some()) {
            let message = format!(
                "{} is mandatory in one landscape and not in another",
                self.name
            );
            let place = release.place.clone();
            found.push(Diagnostic::error(Code::MandatoryConflict, place, message));
        }
        for (channel, assignment) in release.assignments() {
            if let Some(channel) = channel {
                found.extend(check_channel(assembly, channel, assignment));
            }
            found.extend(self.check_version(module, release, channel, assignment));
        }
        for (landscape, place) in release.target_landscapes.iter().flatten() {
            check_landscape(assembly, landscape, place.clone());
        }
        let first = found
            .iter()
            .find(|it| it.severity == crate::model::Severity::Error)
            .map(|it| (it.place.clone(), it.message.clone()));
        assembly.diagnostics.extend(found);
        first
    }

    /// Judges the version that a channel points at.
    fn check_version(
        &self,
        module: &CatalogModule,
        release: &CatalogRelease,
        channel: Option<&ChannelName>,
        assignment: &Assignment,
    ) -> Option<Diagnostic> {
        let version = assignment.version.as_str();
        let place = assignment.place.clone();
        let name = self.name;
        let what = channel.map_or_else(
            || "the mandatory version".to_owned(),
            |channel| format!("channel `{channel}`"),
        );
        let Some(known) = module.versions.get(version) else {
            let message = if version.is_empty() {
                format!("{what} names no version")
            } else {
                format!("{what} points at {version}, which has no ModuleTemplate")
            };
            let versions = module.versions.keys().map(String::as_str);
            let help = match nearest(version, versions.clone()) {
                Some(meant) => format!(
                    "did you mean {meant}? Or add modules/{name}/{version}/module-template.yaml"
                ),
                None if version.is_empty() => "remove the channel, or name a version".to_owned(),
                None => format!("add modules/{name}/{version}/module-template.yaml"),
            };
            return Some(Diagnostic::error(Code::ChannelVersionMissing, place, message).help(help));
        };
        if channel.is_some() && known.is_mandatory {
            let message =
                format!("{what} points at {version}, whose ModuleTemplate says `mandatory: true`");
            let help = format!(
                "remove `mandatory` from {}, or use `mandatory` instead of `channels`",
                known.place
            );
            return Some(Diagnostic::error(Code::MandatoryConflict, place, message).help(help));
        }
        if let Some(reason) = module.graph.yanked.get(version) {
            let reason = reason
                .as_deref()
                .map(|it| format!(": {it}"))
                .unwrap_or_default();
            let message = format!("{what} points at {version}, which is yanked{reason}");
            return Some(
                Diagnostic::warning(Code::GraphYanked, place, message)
                    .help("move the channel; any way out of a yanked version is allowed"),
            );
        }
        if let Some(deprecation) = release.deprecations.get(version) {
            let reason = deprecation.message.as_deref().map(|it| format!(": {it}"));
            let message = format!(
                "{what} points at {version}, which is deprecated from {}{}",
                deprecation.date,
                reason.unwrap_or_default()
            );
            return Some(
                Diagnostic::warning(Code::VersionDeprecated, place, message)
                    .help("move the channel before that day"),
            );
        }
        None
    }
}

/// Judges a channel and the form of its version against the settings.
fn check_channel(
    assembly: &Assembly<'_>,
    channel: &ChannelName,
    assignment: &Assignment,
) -> Option<Diagnostic> {
    let declared = &assembly.settings.channels;
    if declared.is_empty() {
        return None;
    }
    let Some(suffixes) = declared.get(channel) else {
        let place = assignment.channel_place.clone();
        let message = format!("channel `{channel}` is not declared");
        let names = declared.keys().map(ChannelName::as_str);
        let help = match nearest(channel.as_str(), names) {
            Some(meant) => format!(
                "did you mean `{meant}`? Or declare it in fairway.yaml:\nchannels:\n  {channel}: {{}}"
            ),
            None => format!("declare it in fairway.yaml:\nchannels:\n  {channel}: {{}}"),
        };
        return Some(Diagnostic::error(Code::ChannelUndeclared, place, message).help(help));
    };
    let version = ModuleVersion::parse(&assignment.version).ok()?;
    if allows_suffix(suffixes, &version) {
        return None;
    }
    let place = assignment.place.clone();
    let message = format!("channel `{channel}` does not take {version}");
    let letters: String = version
        .suffix()
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect();
    let help = if suffixes.is_empty() {
        format!(
            "it takes releases only; to allow this form, write in fairway.yaml:\nchannels:\n  {channel}: {{suffixes: [{letters}]}}"
        )
    } else {
        format!("it takes releases and the suffixes {}", suffixes.join(", "))
    };
    Some(Diagnostic::error(Code::VersionPolicy, place, message).help(help))
}

/// Checks a landscape's name against the declared ones.
fn check_landscape(assembly: &mut Assembly<'_>, landscape: &str, place: Place) {
    let declared = &assembly.settings.landscapes;
    if declared.is_empty() || declared.iter().any(|name| name == landscape) {
        return;
    }
    let message = format!("landscape `{landscape}` is not declared in fairway.yaml");
    let help = match nearest(landscape, declared.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("declared are {}", declared.join(", ")),
    };
    let diagnostic = Diagnostic::error(Code::SchemaViolation, place, message).help(help);
    assembly.diagnostics.push(diagnostic);
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(folder, _)| folder)
}
