//! The rules of a catalog against what is live: which version a channel may move to, and which templates are named.
//!
//! The base of every rule is the live object, not a revision. So what a pull request check would have refused stays held in
//! the agent however many commits follow it, and however it got onto the branch.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::desired::{CatalogModule, Move, MoveRefusal, judge_move};
use crate::model::{
    ChannelName, DesiredObject, Digest, GroupKind, Hold, HoldReason, ModuleName, ObjectKey, names,
};
use crate::observe::ObservedObject;

use super::kinds;
use super::view::View;

/// Returns a hold where a change of a catalog object is one that runtimes could not follow: a channel that goes back or
/// skips versions, or another content under a published version.
pub(super) fn refusal(
    view: &View<'_>,
    object: &DesiredObject,
    live: &ObservedObject,
) -> Option<Hold> {
    if kinds::is_module_release_meta(&object.key.kind) {
        return refused_move(view, object, live);
    }
    if kinds::is_module_template(&object.key.kind) {
        return changed_version(object, live);
    }
    None
}

fn refused_move(view: &View<'_>, object: &DesiredObject, live: &ObservedObject) -> Option<Hold> {
    let module = ModuleName::new(object.key.name.as_str()).ok()?;
    let unknown = CatalogModule::default();
    let catalog = view.input.desired.catalog.modules.get(&module);
    let catalog = catalog.unwrap_or(&unknown);
    let wanted = versions_named(object);
    for (channel, from) in live.channels.iter().flatten() {
        let Some(to) = wanted.get(channel.as_str()) else {
            continue;
        };
        // A channel without a version has nothing to come from.
        if from.is_empty() {
            continue;
        }
        let step = Move {
            module: &module,
            channel: Some(channel),
            from,
            to,
        };
        let policy = view.input.desired.settings.move_policy(Some(channel));
        if let Err(MoveRefusal { message, help, .. }) = judge_move(step, catalog, policy) {
            let assignment = catalog
                .release
                .as_ref()
                .and_then(|release| release.channels.get(channel));
            let place = assignment.map_or(&object.place, |assignment| &assignment.place);
            return Some(Hold {
                what: object.key.to_string(),
                reason: HoldReason::Channel,
                message: format!("{message}; {help}"),
                place: Some(place.clone()),
            });
        }
    }
    None
}

fn changed_version(object: &DesiredObject, live: &ObservedObject) -> Option<Hold> {
    let wanted = object.annotation(names::ANNOTATION_VERSION_DIGEST)?;
    let published = live.version_digest.as_ref().map(Digest::as_str)?;
    (wanted != published).then(|| Hold {
        what: object.key.to_string(),
        reason: HoldReason::VersionChanged,
        message: "the content of this version was changed after it was published, and clusters may run it already; take the \
                  change back and publish a new version"
            .to_owned(),
        place: Some(object.place.clone()),
    })
}

/// Returns each channel of a desired ModuleReleaseMeta with the key of the ModuleTemplate that it names; a mandatory module
/// counts as the one channel `mandatory`.
pub(super) fn templates_named(object: &DesiredObject) -> Vec<(&str, ObjectKey)> {
    versions_named(object)
        .into_iter()
        .map(|(channel, version)| (channel, template(&object.key, version)))
        .collect()
}

/// Returns the key of the template for a version, beside a ModuleReleaseMeta, whose name is the module's.
pub(super) fn template(release: &ObjectKey, version: &str) -> ObjectKey {
    ObjectKey {
        kind: GroupKind::new(names::KYMA_GROUP, "ModuleTemplate"),
        namespace: release.namespace.clone(),
        name: format!("{}-{version}", release.name),
    }
}

/// Returns the channels of a desired ModuleReleaseMeta as they would be observed after it was applied.
pub(super) fn live_channels(object: &DesiredObject) -> BTreeMap<ChannelName, String> {
    versions_named(object)
        .into_iter()
        .filter_map(|(channel, version)| Some((channel.parse().ok()?, version.to_owned())))
        .collect()
}

/// Returns the channels of a desired ModuleReleaseMeta with their versions. An empty version names nothing.
fn versions_named(object: &DesiredObject) -> BTreeMap<&str, &str> {
    let Some(spec) = object.body.get("spec") else {
        return BTreeMap::new();
    };
    let channels = spec.get("channels").and_then(Value::as_array);
    let mandatory = spec
        .get("mandatory")
        .and_then(|mandatory| mandatory.get("version")?.as_str())
        .map(|version| ("mandatory", version));
    channels
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let channel = entry.get("channel")?.as_str()?;
            Some((channel, entry.get("version")?.as_str()?))
        })
        .chain(mandatory)
        .filter(|(_, version)| !version.is_empty())
        .collect()
}

#[cfg(test)]
mod tests;
