//! The objects of the cluster, with uid and resourceVersion, and how they go.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::expression::Bindings;
use crate::model::Selector;
use crate::model::migration::Propagation;
use crate::runs::{EffectError, Removed, ResourceKind};

/// When everything happens in a world without a clock.
const MOMENT: &str = "2026-01-01T00:00:00Z";

/// Where an object stands. The version of its kind is no part of it: one object is served in every version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

impl Key {
    pub(super) fn new(kind: &ResourceKind, namespace: Option<&str>, name: &str) -> Self {
        Self {
            group: group(&kind.api_version).to_owned(),
            kind: kind.kind.clone(),
            namespace: namespace.unwrap_or_default().to_owned(),
            name: name.to_owned(),
        }
    }

    pub(super) fn of(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        Self {
            group: group(text("/apiVersion").unwrap_or_default()).to_owned(),
            kind: text("/kind").unwrap_or_default().to_owned(),
            namespace: text("/metadata/namespace").unwrap_or_default().to_owned(),
            name: text("/metadata/name").unwrap_or_default().to_owned(),
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// All objects.
#[derive(Debug, Default)]
pub(super) struct Objects {
    by_key: BTreeMap<Key, Value>,
    /// Group and kind of what the cluster does not serve.
    withdrawn: BTreeSet<(String, String)>,
    /// What is being deleted and was seen so once.
    seen_going: BTreeSet<Key>,
    /// Jobs of steps and their Pods, whose names depend on attempts.
    generated: BTreeSet<Key>,
    created: u64,
    version: u64,
}

impl Objects {
    pub(super) fn put(&mut self, mut object: Value) {
        let key = Key::of(&object);
        let uid = self
            .by_key
            .get(&key)
            .and_then(|it| it.pointer("/metadata/uid"))
            .cloned();
        if object.pointer("/metadata/uid").is_none() {
            object["metadata"]["uid"] = uid.unwrap_or_else(|| self.next_uid());
        }
        self.store(key, object);
    }

    pub(super) fn take(
        &mut self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Value> {
        self.by_key.remove(&Key::new(kind, namespace, name))
    }

    pub(super) fn withdraw(&mut self, kind: &ResourceKind) {
        let served = (group(&kind.api_version).to_owned(), kind.kind.clone());
        self.by_key
            .retain(|key, _| (&key.group, &key.kind) != (&served.0, &served.1));
        self.withdrawn.insert(served);
    }

    pub(super) fn is_served(&self, kind: &ResourceKind) -> bool {
        let served = (group(&kind.api_version).to_owned(), kind.kind.clone());
        !self.withdrawn.contains(&served)
    }

    pub(super) fn get(
        &self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Value> {
        let object = self.by_key.get(&Key::new(kind, namespace, name))?;
        Some(in_version(object, kind))
    }

    /// Returns the objects of a kind in the order of their names, of all namespaces where none is given.
    pub(super) fn list(
        &self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Vec<Value> {
        self.by_key
            .iter()
            .filter(|(key, object)| {
                key.group == group(&kind.api_version)
                    && key.kind == kind.kind
                    && namespace.is_none_or(|namespace| key.namespace == namespace)
                    && selector.matches(object)
            })
            .map(|(_, object)| in_version(object, kind))
            .collect()
    }

    /// Creates an object. `is_generated`: its name depends on attempts.
    pub(super) fn create(
        &mut self,
        manifest: &Value,
        is_generated: bool,
    ) -> Result<Value, EffectError> {
        let key = Key::of(manifest);
        if key.kind.is_empty() || key.name.is_empty() {
            return Err(EffectError::Refused(
                "an object without kind or name cannot be created".to_owned(),
            ));
        }
        if self.by_key.contains_key(&key) {
            return Err(EffectError::Exists(format!("{key} is there already")));
        }
        let mut object = manifest.clone();
        object["metadata"]["uid"] = self.next_uid();
        object["metadata"]["creationTimestamp"] = Value::from(MOMENT);
        if is_generated {
            self.generated.insert(key.clone());
        }
        Ok(self.store(key, object))
    }

    /// Puts `changed` in the place of the object, and says whether it differs.
    pub(super) fn change(&mut self, key: &Key, mut changed: Value) -> (Value, bool) {
        let Some(before) = self.by_key.get(key) else {
            return (changed, false);
        };
        // Nobody changes what the server alone writes.
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "deletionTimestamp",
        ] {
            match before
                .pointer("/metadata")
                .and_then(|metadata| metadata.get(field))
            {
                Some(value) => changed["metadata"][field] = value.clone(),
                None => {
                    if let Some(metadata) = changed["metadata"].as_object_mut() {
                        metadata.remove(field);
                    }
                }
            }
        }
        if *before == changed {
            return (changed, false);
        }
        let object = self.store(key.clone(), changed);
        self.drop_finished(key);
        (object, true)
    }

    /// Returns the object, if it is the one that was seen.
    pub(super) fn seen(
        &self,
        key: &Key,
        uid: Option<&str>,
        resource_version: Option<&str>,
    ) -> Result<&Value, EffectError> {
        let object = self
            .by_key
            .get(key)
            .ok_or_else(|| EffectError::NotFound(format!("{key} is not there")))?;
        let is = |field: &str, wanted: Option<&str>| {
            wanted.is_none_or(|wanted| object["metadata"][field].as_str() == Some(wanted))
        };
        if !is("uid", uid) {
            return Err(EffectError::Conflict(format!(
                "{key} is another one than the one that was seen"
            )));
        }
        if !is("resourceVersion", resource_version) {
            return Err(EffectError::Conflict(format!(
                "{key} has changed since it was seen"
            )));
        }
        Ok(object)
    }

    /// Deletes an object: at once, or with its last finalizer.
    pub(super) fn delete(&mut self, key: &Key, propagation: Propagation) -> Removed {
        let Some(object) = self.by_key.get_mut(key) else {
            return Removed::AlreadyGone;
        };
        if object["metadata"].get("deletionTimestamp").is_none() {
            object["metadata"]["deletionTimestamp"] = Value::from(MOMENT);
            self.version += 1;
            object["metadata"]["resourceVersion"] = Value::from(self.version.to_string());
        }
        let uid = object["metadata"]["uid"].clone();
        let owned: Vec<Key> = self
            .by_key
            .iter()
            .filter(|(_, object)| owners(object).any(|owner| owner["uid"] == uid))
            .map(|(key, _)| key.clone())
            .collect();
        for key in owned {
            match propagation {
                Propagation::Orphan => self.disown(&key, &uid),
                Propagation::Background | Propagation::Foreground => {
                    self.delete(&key, propagation);
                }
            }
        }
        self.drop_finished(key);
        Removed::Accepted
    }

    /// Lets time pass: what is being deleted and was seen so once loses the finalizers that Kubernetes itself takes off. Those of
    /// others stay until a step takes them off.
    pub(super) fn pass(&mut self) {
        let going: Vec<Key> = self
            .by_key
            .iter()
            .filter(|(_, object)| object["metadata"].get("deletionTimestamp").is_some())
            .map(|(key, _)| key.clone())
            .collect();
        for key in going {
            if self.seen_going.insert(key.clone()) {
                continue;
            }
            if let Some(finalizers) = self
                .by_key
                .get_mut(&key)
                .and_then(|object| object["metadata"]["finalizers"].as_array_mut())
            {
                finalizers.retain(|it| !it.as_str().is_some_and(is_kubernetes));
            }
            self.drop_finished(&key);
        }
    }

    pub(super) fn settled(&self) -> Vec<Value> {
        let mut objects = Vec::new();
        for (key, object) in &self.by_key {
            if self.generated.contains(key) {
                continue;
            }
            let mut object = object.clone();
            Bindings::redact(&mut object);
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("uid");
                metadata.remove("resourceVersion");
            }
            objects.push(object);
        }
        objects
    }

    fn disown(&mut self, key: &Key, uid: &Value) {
        if let Some(owners) = self
            .by_key
            .get_mut(key)
            .and_then(|object| object["metadata"]["ownerReferences"].as_array_mut())
        {
            owners.retain(|owner| owner["uid"] != *uid);
        }
    }

    /// Takes away what is being deleted and waits for nobody any more; a CustomResourceDefinition with all its objects.
    fn drop_finished(&mut self, key: &Key) {
        let Some(object) = self.by_key.get(key) else {
            return;
        };
        let waits = object["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|it| !it.is_empty());
        if waits || object["metadata"].get("deletionTimestamp").is_none() {
            return;
        }
        let kind = (key.kind == "CustomResourceDefinition").then(|| {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
            (
                text("/spec/group").unwrap_or_default().to_owned(),
                text("/spec/names/kind").unwrap_or_default().to_owned(),
            )
        });
        self.by_key.remove(key);
        self.seen_going.remove(key);
        if let Some(served) = kind {
            self.by_key
                .retain(|key, _| (&key.group, &key.kind) != (&served.0, &served.1));
            self.withdrawn.insert(served);
        }
    }

    fn store(&mut self, key: Key, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = Value::from(self.version.to_string());
        self.by_key.insert(key, object.clone());
        object
    }

    fn next_uid(&mut self) -> Value {
        self.created += 1;
        json!(format!("00000000-0000-4000-8000-{:012}", self.created))
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
}

fn is_kubernetes(finalizer: &str) -> bool {
    finalizer.starts_with("kubernetes.io/")
        || finalizer.starts_with("batch.kubernetes.io/")
        || matches!(finalizer, "foregroundDeletion" | "orphan")
}

fn in_version(object: &Value, kind: &ResourceKind) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = Value::from(kind.api_version.as_str());
    object
}
