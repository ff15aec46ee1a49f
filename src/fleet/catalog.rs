//! The catalog of one runtime: home's, without what the runtime may not see.
//!
//! The filters are lifecycle-manager's: a ModuleReleaseMeta is for runtimes unless it is mandatory; a channel survives when
//! its ModuleTemplate is there and, where that is labelled beta or internal, the Kyma carries the same label; a
//! ModuleTemplate is for a runtime when a surviving channel names it, or the runtime has that version installed. Unlike
//! there, what is left out is named with its reason, and nothing reaches a runtime that home does not have.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::kyma::Kyma;
use crate::desired::{Desired, DesiredComponent, Removal, Unread, UpgradePolicy};
use crate::model::api::LeftOut;
use crate::model::names::{
    ANNOTATION_DIGEST, KYMA_GROUP, LABEL_KYMA_BETA, LABEL_KYMA_INTERNAL, LABEL_KYMA_MANAGED_BY,
    LABEL_RUNTIME,
};
use crate::model::snapshot::CommitInfo;
use crate::model::{ComponentName, DesiredObject, GroupKind, Hold, HoldReason, ObjectKey, Place};
use crate::plan::Plan;

/// What home has of one revision, after a pass.
#[derive(Debug, Clone)]
pub struct Published {
    /// What git wants.
    pub desired: Arc<Desired>,
    /// Who made the revision.
    pub commit: CommitInfo,
    /// Objects that home does not have as git wants them: held, failed, or still to do. Runtimes keep what they have of these.
    pub not_on_home: BTreeSet<ObjectKey>,
}

impl Published {
    /// Tells what home has after a pass, by the plan that was left.
    pub fn of(desired: &Arc<Desired>, left: &Plan, commit: &CommitInfo) -> Self {
        let held: HashSet<&str> = left.holds.iter().map(|hold| hold.what.as_str()).collect();
        let left: HashSet<&ObjectKey> = left.actions().map(|action| &action.key).collect();
        let objects = desired
            .objects()
            .filter(|object| is_catalog_kind(&object.key.kind));
        let not_on_home = objects.filter(|object| {
            left.contains(&object.key)
                || held.contains(object.key.to_string().as_str())
                || held.contains(object.key.kind.to_string().as_str())
                || held.contains(object.component.to_string().as_str())
        });
        Self {
            desired: Arc::clone(desired),
            commit: commit.clone(),
            not_on_home: not_on_home.map(|object| object.key.clone()).collect(),
        }
    }
}

/// The catalog of one runtime.
#[derive(Debug, Clone)]
pub struct RuntimeCatalog {
    /// What is wanted there, complete: planned and applied as home's is.
    pub desired: Desired,
    /// For each object, the digest of home's: a catalog that lifecycle-manager has copied carries it.
    pub home_digests: BTreeMap<ObjectKey, String>,
    /// What the runtime does not get, and why.
    pub left_out: Vec<LeftOut>,
}

/// Works out the catalog of a runtime, in the given namespace there.
pub fn render(published: &Published, kyma: &Kyma, namespace: &str) -> RuntimeCatalog {
    let home = &published.desired;
    let mut rendering = Rendering {
        published,
        kyma,
        namespace,
        catalog: RuntimeCatalog {
            desired: Desired {
                settings: home.settings.clone(),
                unread: home
                    .unread
                    .iter()
                    .filter(|unread| !unread.place.file.starts_with("components/"))
                    .cloned()
                    .collect(),
                catalog: home.catalog.clone(),
                ..Desired::nothing(home.revision.clone())
            },
            home_digests: BTreeMap::new(),
            left_out: Vec::new(),
        },
    };
    rendering.catalog.desired.settings.upgrades = UpgradePolicy::Judged;
    for removal in &mut rendering.catalog.desired.settings.removals {
        if let Removal::Object(key) = removal {
            *key = there(key, namespace);
        }
    }
    for (key, hold) in &home.held {
        if key.kind == GroupKind::new(KYMA_GROUP, "ModuleReleaseMeta") {
            rendering.freeze(key, hold);
        }
    }
    for (name, component) in &home.components {
        if let ComponentName::Module(_) = name {
            rendering.module(name, component);
        }
    }
    rendering.catalog
}

struct Rendering<'a> {
    published: &'a Published,
    kyma: &'a Kyma,
    namespace: &'a str,
    catalog: RuntimeCatalog,
}

/// A ModuleReleaseMeta on its way to a runtime.
struct Release<'a> {
    object: &'a DesiredObject,
    module: &'a str,
    templates: BTreeMap<&'a str, &'a DesiredObject>,
}

// === impl Rendering ===

impl Rendering<'_> {
    fn module(&mut self, name: &ComponentName, component: &DesiredComponent) {
        let of_kind = |kind: &'static str| {
            component
                .objects
                .iter()
                .map(AsRef::as_ref)
                .filter(move |object| object.key.kind == GroupKind::new(KYMA_GROUP, kind))
        };
        let templates: BTreeMap<&str, &DesiredObject> = of_kind("ModuleTemplate")
            .map(|object| (object.key.name.as_str(), object))
            .collect();
        let mut rendered = DesiredComponent::default();
        for object in of_kind("ModuleReleaseMeta") {
            let release = Release {
                object,
                module: &object.key.name,
                templates: templates.clone(),
            };
            self.release(name, &release, &mut rendered);
        }
        if !rendered.objects.is_empty() {
            self.catalog
                .desired
                .components
                .insert(name.clone(), rendered);
        }
    }

    fn release(
        &mut self,
        name: &ComponentName,
        release: &Release<'_>,
        rendered: &mut DesiredComponent,
    ) {
        let spec = &release.object.body["spec"];
        if spec.get("mandatory").is_some_and(|it| !it.is_null()) {
            self.leave_out(name.to_string(), "a mandatory module is in no catalog");
            return;
        }
        if let Some(hold) = self.missing_on_home(release) {
            self.freeze(&release.object.key, &hold);
            return;
        }
        let mut channels = Vec::new();
        let mut wanted = BTreeSet::new();
        for entry in spec["channels"].as_array().into_iter().flatten() {
            let channel = entry["channel"].as_str().unwrap_or_default();
            let version = entry["version"].as_str().unwrap_or_default();
            match self.refusal(release, version) {
                None => {
                    channels.push(entry.clone());
                    wanted.insert(version.to_owned());
                }
                Some(reason) => self.leave_out(format!("{name} in {channel}"), &reason),
            }
        }
        let installed = self.kyma.modules.get(release.module);
        if let Some(version) = installed.and_then(|used| used.version.clone())
            && self.refusal(release, &version).is_none()
        {
            wanted.insert(version);
        }
        for version in &wanted {
            if let Some(template) = release.template(version) {
                self.put(template, template.body.as_ref().clone(), name, rendered);
            }
        }
        if !channels.is_empty() {
            let mut body = release.object.body.as_ref().clone();
            body["spec"]["channels"] = Value::Array(channels);
            self.put(release.object, body, name, rendered);
        }
    }

    /// Returns a hold when home does not have the release, or one of the templates that it names, as git wants it.
    fn missing_on_home(&self, release: &Release<'_>) -> Option<Hold> {
        let entries = release.object.body["spec"]["channels"].as_array();
        let versions = entries.into_iter().flatten();
        let named = versions.map(|entry| {
            let version = entry["version"].as_str().unwrap_or_default();
            let mut key = release.object.key.clone();
            key.kind = GroupKind::new(KYMA_GROUP, "ModuleTemplate");
            key.name = format!("{}-{version}", release.module);
            key
        });
        let home = &self.published.desired.held;
        let missing = std::iter::once(release.object.key.clone())
            .chain(named)
            .find(|key| self.published.not_on_home.contains(key) || home.contains_key(key))?;
        let message = match home.get(&missing) {
            Some(hold) => hold.message.clone(),
            None => {
                "home does not have it as git wants it yet; it follows when home has".to_owned()
            }
        };
        Some(Hold {
            what: missing.to_string(),
            reason: HoldReason::Requires,
            message,
            place: Some(release.object.place.clone()),
        })
    }

    /// Keeps what the runtime has of a module: its release is held, and nothing is pruned for its sake.
    fn freeze(&mut self, release: &ObjectKey, hold: &Hold) {
        let key = there(release, self.namespace);
        let hold = Hold {
            what: key.to_string(),
            ..hold.clone()
        };
        let place = hold.place.clone();
        self.catalog.desired.unread.push(Unread {
            place: place.unwrap_or_else(|| Place::whole_file("modules")),
            reason: format!("{} is held", release.name),
        });
        self.catalog.desired.held.insert(key, hold);
    }

    /// Returns why a runtime may not see a version of a module; nothing when it may.
    fn refusal(&self, release: &Release<'_>, version: &str) -> Option<String> {
        let Some(template) = release.template(version) else {
            return Some(format!(
                "home has no ModuleTemplate {}-{version}",
                release.module
            ));
        };
        let needs = |label| template.label(label) == Some("true");
        if needs(LABEL_KYMA_BETA) && !self.kyma.beta {
            return Some(format!(
                "{version} is beta, and the Kyma is not labelled {LABEL_KYMA_BETA}=true"
            ));
        }
        if needs(LABEL_KYMA_INTERNAL) && !self.kyma.internal {
            return Some(format!(
                "{version} is internal, and the Kyma is not labelled {LABEL_KYMA_INTERNAL}=true"
            ));
        }
        None
    }

    /// Adds an object as the runtime gets it.
    fn put(
        &mut self,
        object: &DesiredObject,
        mut body: Value,
        name: &ComponentName,
        rendered: &mut DesiredComponent,
    ) {
        let key = there(&object.key, self.namespace);
        if let Some(annotations) = body["metadata"]["annotations"].as_object_mut() {
            annotations.remove(ANNOTATION_DIGEST);
        }
        body["metadata"]["namespace"] = json!(self.namespace);
        body["metadata"]["labels"][LABEL_KYMA_MANAGED_BY] = json!("kyma");
        body["metadata"]["labels"][LABEL_RUNTIME] = json!(self.kyma.name.label());
        self.catalog
            .home_digests
            .insert(key.clone(), object.digest.to_string());
        rendered.objects.push(Arc::new(DesiredObject::sealed(
            body,
            object.version.clone(),
            key,
            name.clone(),
            object.place.clone(),
        )));
    }

    fn leave_out(&mut self, what: String, reason: &str) {
        let reason = reason.to_owned();
        self.catalog.left_out.push(LeftOut { what, reason });
    }
}

// === impl Release ===

impl<'a> Release<'a> {
    fn template(&self, version: &str) -> Option<&'a DesiredObject> {
        let name = format!("{}-{version}", self.module);
        self.templates.get(name.as_str()).copied()
    }
}

fn is_catalog_kind(kind: &GroupKind) -> bool {
    kind.group == KYMA_GROUP && matches!(kind.kind.as_str(), "ModuleTemplate" | "ModuleReleaseMeta")
}

/// Returns the key of a catalog object on a runtime; keys of other kinds stay as they are, and mean nothing there.
fn there(key: &ObjectKey, namespace: &str) -> ObjectKey {
    let mut key = key.clone();
    if is_catalog_kind(&key.kind) {
        key.namespace = Some(namespace.to_owned());
    }
    key
}

#[cfg(test)]
mod tests;
