//! Rules between the files of components: kinds from the repository's own CustomResourceDefinitions, objects that stand
//! twice, and the order of components.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::cache::{Cache, LoadedFile};
use super::evaluate::Assembly;
use super::facts::{ComponentFacts, Definition, FileObject, Unscoped};
use super::finding::{SourceText, nearest};
use super::kinds::Scope;
use super::layout::Role;
use super::object::{Finish, namespace_missing};
use super::output::{DesiredComponent, OnRemove, Unread};
use crate::model::limits::{DIAGNOSTICS_LOCATED_MAX, DIAGNOSTICS_MAX, FILE_SIZE_MAX};
use crate::model::{
    Code, ComponentName, DesiredObject, Diagnostic, GroupKind, ModuleName, ObjectKey, Place,
    Snapshot,
};

/// Puts the objects of components together.
pub(super) fn assemble(
    assembly: &mut Assembly<'_>,
    files: &[LoadedFile<'_>],
    snapshot: &Snapshot,
    cache: &mut Cache,
) {
    let of_components = files.iter().filter_map(|file| match file.role {
        Role::Component { component } => Some((component, file.path, file.facts.as_ref()?)),
        _ => None,
    });
    // Files are sorted by path, so that a component's files stand together.
    let mut current: Option<(&str, DesiredComponent)> = None;
    for (folder, path, facts) in of_components {
        if current.as_ref().is_none_or(|(name, _)| *name != folder) {
            keep(assembly, current.take());
        }
        let (_, component) = current.get_or_insert_with(|| (folder, DesiredComponent::default()));
        component.objects.reserve(facts.objects.len());
        for object in &facts.objects {
            match object {
                FileObject::Ready {
                    object,
                    unscoped: None,
                } => component.objects.push(Arc::clone(object)),
                FileObject::Ready {
                    object,
                    unscoped: Some(unscoped),
                } => {
                    let object = give_scope(assembly, object, unscoped).filter(|object| {
                        keeps_schema(assembly, object, unscoped, (snapshot, path), cache)
                    });
                    component.objects.extend(object);
                }
                FileObject::Held {
                    key,
                    place,
                    message,
                } => {
                    let mut key = key.clone();
                    if scope_of(assembly, &key.kind) == Some(Scope::Cluster) {
                        key.namespace = None;
                    }
                    assembly.hold(key, place.clone(), message);
                }
            }
        }
    }
    keep(assembly, current);
}

fn keep(assembly: &mut Assembly<'_>, component: Option<(&str, DesiredComponent)>) {
    if let Some((folder, component)) = component {
        assembly.components.insert(name_of(folder), component);
    }
}

fn name_of(folder: &str) -> ComponentName {
    ComponentName::folder(folder).expect("files of folders with bad names are not read")
}

/// Judges an object whose kind a CustomResourceDefinition of the repository may make known.
fn give_scope(
    assembly: &mut Assembly<'_>,
    object: &Arc<DesiredObject>,
    unscoped: &Unscoped,
) -> Option<Arc<DesiredObject>> {
    match scope_of(assembly, &object.key.kind) {
        Some(Scope::Namespaced) if object.key.namespace.is_none() => {
            let diagnostic = namespace_missing(&object.key.kind).at(unscoped.metadata.clone());
            assembly.unread.push(Unread {
                place: diagnostic.place.clone(),
                reason: diagnostic.message.clone(),
            });
            assembly.diagnostics.push(diagnostic);
            None
        }
        Some(Scope::Cluster) if object.key.namespace.is_some() => {
            let mut body = match object.body.as_ref() {
                Value::Object(body) => body.clone(),
                _ => return None,
            };
            super::object::normalise(&mut body, &object.key.kind);
            let key = ObjectKey {
                namespace: None,
                ..object.key.clone()
            };
            let finish = Finish {
                source: &assembly.options.source,
                component: &object.component,
                place: object.place.clone(),
                annotations: Vec::new(),
            };
            Some(Arc::new(finish.object(body, object.version.clone(), key)))
        }
        _ => Some(Arc::clone(object)),
    }
}

fn scope_of(assembly: &Assembly<'_>, kind: &GroupKind) -> Option<Scope> {
    assembly.custom_kinds.get(kind).map(|kind| kind.scope)
}

/// Checks an object against the repository's CustomResourceDefinition of its kind, and holds it when it breaks the schema.
fn keeps_schema(
    assembly: &mut Assembly<'_>,
    object: &DesiredObject,
    unscoped: &Unscoped,
    (snapshot, path): (&Snapshot, &str),
    cache: &mut Cache,
) -> bool {
    let Some(kind) = assembly.custom_kinds.get(&object.key.kind) else {
        return true;
    };
    let digests = (&kind.definition.digest, &object.digest);
    if cache.keeps_schema(digests) {
        return true;
    }
    let findings = kind.check(object);
    if findings.is_empty() {
        cache.remember_schema(digests);
        return true;
    }
    let blob = snapshot.files[path].blob;
    let bytes = snapshot.blobs.read(blob, FILE_SIZE_MAX).unwrap_or_default();
    let text = SourceText {
        path,
        bytes: &bytes,
    };
    let mut hold = None;
    for finding in findings.into_iter().take(DIAGNOSTICS_LOCATED_MAX) {
        let finding = finding.below(&unscoped.base);
        let diagnostic = if assembly.diagnostics.len() < DIAGNOSTICS_MAX {
            text.diagnose(unscoped.at, finding)
        } else {
            finding.at(text.start(unscoped.at))
        };
        hold.get_or_insert((diagnostic.place.clone(), diagnostic.message.clone()));
        assembly.diagnostics.push(diagnostic);
    }
    if let Some((place, message)) = hold {
        assembly.hold(object.key.clone(), place, &message);
    }
    false
}

/// Holds every object that stands twice; which one is meant is not for us to guess.
pub(super) fn hold_duplicates(assembly: &mut Assembly<'_>) {
    let mut first: HashMap<&ObjectKey, &Place> = HashMap::new();
    let mut twice: Vec<(ObjectKey, Place, Place)> = Vec::new();
    for (key, hold) in &assembly.held {
        if let Some(place) = &hold.place {
            first.insert(key, place);
        }
    }
    let objects = assembly
        .components
        .values()
        .flat_map(|component| component.objects.iter());
    for object in objects {
        if let Some(other) = first.insert(&object.key, &object.place) {
            twice.push((object.key.clone(), other.clone(), object.place.clone()));
        }
    }
    if twice.is_empty() {
        return;
    }
    let keys: BTreeSet<ObjectKey> = twice.iter().map(|(key, ..)| key.clone()).collect();
    for component in assembly.components.values_mut() {
        component
            .objects
            .retain(|object| !keys.contains(&object.key));
    }
    for (key, one, two) in twice {
        let message = format!("{key} stands twice");
        for (here, there) in [(&one, &two), (&two, &one)] {
            assembly.diagnostics.push(
                Diagnostic::error(Code::DuplicateObject, here.clone(), message.clone())
                    .help(format!("the other one is {there}; remove one of them")),
            );
        }
        assembly.hold(key, one, &message);
    }
}

/// Takes over the settings of components, and holds those whose order cannot be known.
pub(super) fn check_dependencies(assembly: &mut Assembly<'_>, files: &[LoadedFile<'_>]) {
    let (settings, mut broken) = collect_settings(assembly, files);
    for (name, facts) in &settings {
        let component = assembly.components.entry(name.clone()).or_default();
        component.version.clone_from(&facts.version);
        component.health_timeout = facts.health_timeout;
        component.on_remove = facts.on_remove;
        component.depends_on = facts
            .depends_on
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
    }
    for name in broken.keys() {
        let component = assembly.components.entry(name.clone()).or_default();
        component.on_remove = OnRemove::Unread;
    }
    for (name, facts) in &settings {
        if let Some(error) = check_existence(assembly, facts) {
            broken.entry(name.clone()).or_insert(error);
        }
    }
    for (name, error) in find_cycles(&settings) {
        assembly.diagnostics.push(
            Diagnostic::error(Code::ComponentCycle, error.0.clone(), error.1.clone())
                .help("remove one of these dependencies"),
        );
        broken.entry(name).or_insert(error);
    }
    for (name, (place, message)) in broken {
        hold_component(assembly, &name, &place, &message);
    }
}

/// What components say about themselves.
type Settings<'a> = BTreeMap<ComponentName, &'a ComponentFacts>;
/// Components whose settings cannot be trusted, with the first reason.
type Broken = BTreeMap<ComponentName, (Place, String)>;

fn collect_settings<'a>(
    assembly: &mut Assembly<'_>,
    files: &'a [LoadedFile<'_>],
) -> (Settings<'a>, Broken) {
    let mut settings = Settings::new();
    let mut broken = Broken::new();
    for file in files {
        let Some(facts) = &file.facts else { continue };
        let (component, error) = match file.role {
            Role::Component { component } => {
                let unread = facts.unread.as_ref();
                let error = unread.map(|unread| (&unread.place, &unread.reason));
                (name_of(component), error)
            }
            Role::Module {
                module,
                landscape: None,
            } => {
                let name =
                    ModuleName::new(module).expect("files of folders with bad names are not read");
                let error = facts.error.as_ref().map(|(place, reason)| (place, reason));
                (ComponentName::Module(name), error)
            }
            _ => continue,
        };
        let mut break_it = |place: &Place, message: &str| {
            broken
                .entry(component.clone())
                .or_insert_with(|| (place.clone(), message.to_owned()));
        };
        let name = file.path.rsplit('/').next();
        if let Some((place, reason)) = error
            && matches!(name, Some("component.yaml" | "component.yml"))
        {
            break_it(place, reason);
        }
        for definition in &facts.definitions {
            match definition {
                Definition::Component(facts) => {
                    let Some(other) = settings.insert(component.clone(), facts) else {
                        continue;
                    };
                    let message = format!("{component} has two Components");
                    break_it(&facts.place, &message);
                    let help = format!("the other one is {}; remove one of them", other.place);
                    let place = facts.place.clone();
                    assembly
                        .diagnostics
                        .push(Diagnostic::error(Code::DuplicateObject, place, message).help(help));
                }
                Definition::BrokenComponent { place, message } => break_it(place, message),
                _ => {}
            }
        }
    }
    (settings, broken)
}

/// Reports dependencies on components that are not there, and returns the first.
fn check_existence(assembly: &mut Assembly<'_>, facts: &ComponentFacts) -> Option<(Place, String)> {
    let mut first = None;
    for (other, place) in &facts.depends_on {
        if assembly.components.contains_key(other) {
            continue;
        }
        let message = format!("there is no {other} to depend on");
        let diagnostic = Diagnostic::error(Code::ComponentCycle, place.clone(), message.clone());
        let wanted = other.to_string();
        let names: Vec<String> = assembly
            .components
            .keys()
            .map(ToString::to_string)
            .collect();
        let diagnostic = match nearest(&wanted, names.iter().map(String::as_str)) {
            Some(meant) => diagnostic.help(format!("did you mean `{meant}`?")),
            None => diagnostic,
        };
        assembly.diagnostics.push(diagnostic);
        first.get_or_insert((place.clone(), message));
    }
    first
}

/// Returns each component that depends on itself, with the place of the dependency that leads round.
///
/// Components that nothing open depends on, or that depend on nothing open, are taken away until none is left to take; what
/// remains stands in a circle, or between two.
fn find_cycles(settings: &Settings<'_>) -> Vec<(ComponentName, (Place, String))> {
    let mut open: BTreeSet<&ComponentName> = settings.keys().collect();
    loop {
        let wanted: BTreeSet<&ComponentName> = open
            .iter()
            .flat_map(|name| settings[*name].depends_on.iter().map(|(name, _)| name))
            .collect();
        let before = open.len();
        open = open
            .iter()
            .copied()
            .filter(|name| {
                let depends_on = &settings[*name].depends_on;
                wanted.contains(name) && depends_on.iter().any(|(name, _)| open.contains(name))
            })
            .collect();
        if open.len() == before {
            break;
        }
    }
    open.iter()
        .filter_map(|name| {
            let depends_on = &settings[*name].depends_on;
            let (other, place) = depends_on.iter().find(|(other, _)| open.contains(other))?;
            let message = if other == *name {
                format!("{name} depends on itself")
            } else {
                format!("{name} depends on itself through {other}")
            };
            Some(((*name).clone(), (place.clone(), message)))
        })
        .collect()
}

fn hold_component(assembly: &mut Assembly<'_>, name: &ComponentName, place: &Place, message: &str) {
    let Some(component) = assembly.components.get_mut(name) else {
        return;
    };
    for object in std::mem::take(&mut component.objects) {
        assembly.hold(object.key.clone(), place.clone(), message);
    }
}
