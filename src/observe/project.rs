//! From an object of the API to the little of it that is kept.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};

use super::health::{Item, health};
use super::{FieldSet, ObservedObject, Ownership};
use crate::model::{ChannelName, Digest, GroupKind, ObjectKey, SourceName, names};

/// Sets of fields, each kept once: objects of one shape own the same fields.
#[derive(Debug, Default)]
pub(super) struct FieldSets {
    sets: HashSet<Arc<FieldSet>>,
    sweep_at: usize,
}

impl FieldSets {
    fn share(&mut self, set: FieldSet) -> Arc<FieldSet> {
        if let Some(known) = self.sets.get(&set) {
            return Arc::clone(known);
        }
        if self.sets.len() >= self.sweep_at {
            self.sets.retain(|set| Arc::strong_count(set) > 1);
            self.sweep_at = 2 * self.sets.len() + 64;
        }
        let set = Arc::new(set);
        self.sets.insert(Arc::clone(&set));
        set
    }
}

/// Makes the projection of an object. None if it has no name, uid or resourceVersion, which every stored object has.
pub(super) fn project(
    kind: &GroupKind,
    item: &Item,
    sets: &mut FieldSets,
) -> Option<ObservedObject> {
    let metadata = &item.metadata;
    let annotation = |name: &str| metadata.annotations.as_ref()?.get(name).map(String::as_str);
    let label = metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(names::LABEL_SOURCE));
    Some(ObservedObject {
        answered: None,
        key: ObjectKey::new(
            kind.clone(),
            metadata.namespace.as_deref(),
            metadata.name.clone()?,
        ),
        uid: metadata.uid.clone()?,
        resource_version: metadata.resource_version.clone()?,
        source: label.and_then(|source| SourceName::new(source).ok()),
        component: annotation(names::ANNOTATION_COMPONENT).map(str::to_owned),
        digest: annotation(names::ANNOTATION_DIGEST).map(Digest::from_text),
        version_digest: annotation(names::ANNOTATION_VERSION_DIGEST).map(Digest::from_text),
        deleting: metadata.deletion_timestamp.is_some(),
        reconcile_disabled: annotation(names::ANNOTATION_RECONCILE) == Some("disabled"),
        prune_disabled: annotation(names::ANNOTATION_PRUNE) == Some("disabled"),
        ownership: ownership(metadata, sets),
        writers: managers(metadata, is_writer),
        rivals: managers(metadata, is_rival),
        health: health(kind, item),
        channels: channels(kind, item),
        recent_applies: 0,
    })
}

fn ownership(metadata: &ObjectMeta, sets: &mut FieldSets) -> Ownership {
    let entries = metadata.managed_fields.as_deref().unwrap_or_default();
    if entries.is_empty() {
        return Ownership::Unsupported;
    }
    let ours = entries.iter().find(|entry| {
        entry.operation.as_deref() == Some("Apply")
            && entry.manager.as_deref() == Some(names::MANAGER)
            && is_of_object(entry)
    });
    match ours {
        None => Ownership::None,
        Some(entry) => Ownership::Ours {
            api_version: entry.api_version.clone().unwrap_or_default(),
            fields: sets.share(
                entry
                    .fields_v1
                    .as_ref()
                    .map_or_else(FieldSet::default, |fields| {
                        FieldSet::from_fields_v1(&fields.0)
                    }),
            ),
        },
    }
}

/// A manager may have an entry for the object and one for each of its subresources.
fn is_of_object(entry: &ManagedFieldsEntry) -> bool {
    entry.subresource.as_deref().unwrap_or_default().is_empty()
}

fn is_writer(entry: &ManagedFieldsEntry) -> bool {
    entry.operation.as_deref() == Some("Update") && is_of_object(entry)
}

fn is_rival(entry: &ManagedFieldsEntry) -> bool {
    entry.subresource.as_deref() != Some("status")
        && entry.manager.as_deref() != Some(names::MANAGER)
        && !is_writer(entry)
}

fn managers(metadata: &ObjectMeta, wanted: fn(&ManagedFieldsEntry) -> bool) -> Vec<Box<str>> {
    let entries = metadata.managed_fields.iter().flatten();
    entries
        .filter(|entry| wanted(entry))
        .filter_map(|entry| entry.manager.as_deref().map(Into::into))
        .collect()
}

fn channels(kind: &GroupKind, item: &Item) -> Option<BTreeMap<ChannelName, String>> {
    if kind.group != names::KYMA_GROUP || kind.kind != "ModuleReleaseMeta" {
        return None;
    }
    let mut channels = BTreeMap::new();
    for entry in item.spec["channels"].as_array().into_iter().flatten() {
        let name = entry["channel"]
            .as_str()
            .and_then(|name| ChannelName::new(name).ok());
        if let (Some(name), Some(version)) = (name, entry["version"].as_str()) {
            channels.insert(name, version.to_owned());
        }
    }
    // A mandatory module counts as the one channel `mandatory`, as planning has it.
    if let Some(version) = item.spec["mandatory"]["version"].as_str()
        && let Ok(name) = ChannelName::new("mandatory")
    {
        channels.insert(name, version.to_owned());
    }
    Some(channels)
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
