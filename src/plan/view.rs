//! The input with the indexes that every room of the planner looks things up in.

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::{ComponentName, DesiredObject, GroupKind, ObjectKey};
use crate::observe::{KindObservation, ObservedObject};

use super::output::PlanInput;

/// The input, indexed.
pub(super) struct View<'a> {
    pub(super) input: PlanInput<'a>,
    /// What git wants and does not hold, in git's order, each key once.
    pub(super) objects: Vec<&'a Arc<DesiredObject>>,
    /// The position in `objects` by key.
    positions: HashMap<&'a ObjectKey, usize>,
    /// The position in `objects` of the CRD that defines a kind.
    definitions: HashMap<GroupKind, usize>,
}

impl<'a> View<'a> {
    pub(super) fn new(input: PlanInput<'a>) -> Self {
        let mut view = Self {
            input,
            objects: Vec::new(),
            positions: HashMap::new(),
            definitions: HashMap::new(),
        };
        for object in input.desired.objects() {
            // Validation holds both places of a duplicate; should one slip through, the first counts in every pass.
            if input.desired.held.contains_key(&object.key)
                || view.positions.contains_key(&object.key)
            {
                continue;
            }
            let position = view.objects.len();
            if let Some(kind) = defined_kind(object) {
                view.definitions.insert(kind, position);
            }
            view.positions.insert(&object.key, position);
            view.objects.push(object);
        }
        view
    }

    /// Returns where an object stands among those that git wants and does not hold.
    pub(super) fn position(&self, key: &ObjectKey) -> Option<usize> {
        self.positions.get(key).copied()
    }

    /// Returns whether git names the object at all, held or not.
    pub(super) fn names(&self, key: &ObjectKey) -> bool {
        self.positions.contains_key(key) || self.input.desired.held.contains_key(key)
    }

    /// Returns every key that git names, held or not.
    pub(super) fn named_keys(&self) -> impl Iterator<Item = &'a ObjectKey> {
        let held = self.input.desired.held.keys();
        self.positions.keys().copied().chain(held)
    }

    /// Returns where the CRD that defines a kind stands among those that git wants and does not hold.
    pub(super) fn definition(&self, kind: &GroupKind) -> Option<usize> {
        self.definitions.get(kind).copied()
    }

    /// Returns what is on the cluster under a key; none also where its kind could not be listed.
    pub(super) fn live(&self, key: &ObjectKey) -> Option<&'a ObservedObject> {
        match self.input.observed.kinds.get(&key.kind)? {
            KindObservation::Listed(objects) => objects.get(key).map(Arc::as_ref),
            KindObservation::Unlisted(_) => None,
        }
    }

    /// Returns every observed object of every source, in no order.
    pub(super) fn live_objects(&self) -> impl Iterator<Item = &'a ObservedObject> {
        self.input
            .observed
            .kinds
            .values()
            .filter_map(|kind| match kind {
                KindObservation::Listed(objects) => Some(objects.values().map(Arc::as_ref)),
                KindObservation::Unlisted(_) => None,
            })
            .flatten()
    }

    /// Returns whether a place lies in the folder of a component.
    pub(super) fn in_folder(file: &str, component: &ComponentName) -> bool {
        file.strip_prefix(component.to_string().as_str())
            .is_some_and(|rest| rest.starts_with('/'))
    }
}

/// Returns the kind that a CRD defines.
fn defined_kind(object: &DesiredObject) -> Option<GroupKind> {
    if !super::kinds::is_definition(&object.key.kind) {
        return None;
    }
    let spec = object.body.get("spec")?;
    Some(GroupKind::new(
        spec.get("group")?.as_str()?,
        spec.get("names")?.get("kind")?.as_str()?,
    ))
}
