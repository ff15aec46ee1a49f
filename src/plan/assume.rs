//! What a cluster would show if a revision were fully applied, for planning without a cluster.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::desired::Desired;
use crate::model::{DesiredObject, Digest, GroupKind, SourceName, names};
use crate::observe::{FieldSet, Health, KindObservation, Observed, ObservedObject, Ownership};

use super::channels;
use super::kinds;

/// Returns what a cluster would show if `base` were fully applied for `source`: everything there, covered and healthy.
///
/// The kinds of `wanted` count as listed too, so that a plan from `base` to `wanted` says "created" for what is new.
pub fn observed_from(base: &Desired, wanted: &Desired, source: &SourceName) -> Observed {
    let mut listed: HashMap<GroupKind, HashMap<_, _>> = HashMap::new();
    for object in wanted.objects() {
        listed.entry(object.key.kind.clone()).or_default();
    }
    for key in wanted.held.keys().chain(base.held.keys()) {
        listed.entry(key.kind.clone()).or_default();
    }
    for object in base.objects() {
        listed
            .entry(object.key.kind.clone())
            .or_default()
            .insert(object.key.clone(), Arc::new(applied(object, source)));
    }
    Observed {
        kinds: listed
            .into_iter()
            .map(|(kind, objects)| (kind, KindObservation::Listed(Arc::new(objects))))
            .collect(),
        served: None,
    }
}

/// Returns an object as it would be observed after it was applied and became healthy.
fn applied(object: &DesiredObject, source: &SourceName) -> ObservedObject {
    let disabled = |annotation| object.annotation(annotation) == Some("disabled");
    ObservedObject {
        key: object.key.clone(),
        // There is no object yet; a digest of the key is as stable as a uid would be.
        uid: Digest::of_parts([object.key.to_string().as_str()]).to_string(),
        resource_version: object.digest.to_string(),
        source: Some(source.clone()),
        component: Some(object.component.to_string()),
        digest: Some(object.digest.clone()),
        version_digest: object
            .annotation(names::ANNOTATION_VERSION_DIGEST)
            .map(Digest::from_text),
        deleting: false,
        reconcile_disabled: disabled(names::ANNOTATION_RECONCILE),
        prune_disabled: disabled(names::ANNOTATION_PRUNE),
        ownership: Ownership::Ours {
            api_version: object.api_version(),
            fields: Arc::new(fields_of(&object.body)),
        },
        health: Health::Current,
        channels: kinds::is_module_release_meta(&object.key.kind)
            .then(|| channels::live_channels(object)),
        recent_applies: 0,
        answered: None,
        writers: Vec::new(),
        rivals: Vec::new(),
    }
}

/// Returns the fields that applying a body would own, with every list taken as atomic.
fn fields_of(body: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    if let Value::Object(map) = body {
        for (name, value) in map {
            set.children
                .insert(format!("f:{name}").into(), fields_of(value));
        }
    }
    set
}
