//! What needs a person's eye before it goes: what takes much with it, what is many, and what is a whole.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{ComponentName, ObjectKey, limits};
use crate::observe::Ownership;
use crate::plan::kinds;
use crate::plan::output::PruneSettings;
use crate::plan::view::View;

use super::candidates::Candidate;
use super::dependents::{contains_any, count_contents};

/// Candidates that may go now, and those that wait, with the reasons in sentences.
#[derive(Debug, Default)]
pub(super) struct Braked<'a> {
    pub(super) free: Vec<Candidate<'a>>,
    pub(super) waiting: Vec<Candidate<'a>>,
    pub(super) reasons: Vec<String>,
}

/// Divides the candidates. Announced ones are free and count towards no limit. Of the others, the risky ones wait; all of
/// them wait when together they are more than the limits allow.
pub(super) fn brake<'a>(view: &View<'a>, candidates: Vec<Candidate<'a>>) -> Braked<'a> {
    let (mut free, unannounced): (Vec<_>, Vec<_>) = candidates
        .into_iter()
        .partition(|candidate| candidate.announced);
    if unannounced.is_empty() {
        return Braked {
            free,
            ..Braked::default()
        };
    }
    let mut reasons = if view.input.desired.withdrawn {
        let count = objects(unannounced.len());
        vec![format!(
            "the source is deleted, and all that it has applied would go with it ({count})"
        )]
    } else {
        exceeded(view, unannounced.len())
    };
    let all_wait = !reasons.is_empty();
    let gone = vanishing_components(view, &unannounced);
    for (name, count) in &gone {
        reasons.push(format!(
            "{name} disappears as a whole ({})",
            objects(*count)
        ));
    }
    let mut waiting = Vec::new();
    for candidate in unannounced {
        let risk = risk(view, &candidate);
        reasons.extend(risk.clone());
        if all_wait || risk.is_some() || gone.contains_key(&candidate.component) {
            waiting.push(candidate);
        } else {
            free.push(candidate);
        }
    }
    follow(view, &mut free, &mut waiting);
    waiting.sort_by(|one, two| one.live.key.cmp(&two.live.key));
    Braked {
        free,
        waiting,
        reasons,
    }
}

/// Moves to `waiting` what must not go before something that waits.
pub(super) fn follow<'a>(
    view: &View<'a>,
    free: &mut Vec<Candidate<'a>>,
    waiting: &mut Vec<Candidate<'a>>,
) {
    follow_releases(free, waiting);
    follow_contents(view, free, waiting);
}

/// A template goes after the ModuleReleaseMeta that names it on the cluster, so that it waits where that one waits.
fn follow_releases<'a>(free: &mut Vec<Candidate<'a>>, waiting: &mut Vec<Candidate<'a>>) {
    let needed: BTreeSet<ObjectKey> = waiting
        .iter()
        .filter(|it| kinds::is_module_release_meta(&it.live.key.kind))
        .flat_map(templates_named)
        .collect();
    waiting.extend(free.extract_if(.., |it| needed.contains(&it.live.key)));
}

/// A namespace or CRD takes its contents along, so that it waits where one of these waits, even if it was announced.
fn follow_contents<'a>(
    view: &View<'a>,
    free: &mut Vec<Candidate<'a>>,
    waiting: &mut Vec<Candidate<'a>>,
) {
    let takes_along = |candidate: &mut Candidate<'a>| contains_any(view, candidate, waiting);
    let followers: Vec<_> = free.extract_if(.., takes_along).collect();
    waiting.extend(followers);
}

/// Returns the templates that a ModuleReleaseMeta names on the cluster.
pub(super) fn templates_named(candidate: &Candidate<'_>) -> Vec<ObjectKey> {
    let channels = candidate.live.channels.iter().flatten();
    channels
        .map(|(_, version)| crate::plan::channels::template(&candidate.live.key, version))
        .collect()
}

/// Returns which limits a number of deletions is beyond, in sentences.
fn exceeded(view: &View<'_>, count: usize) -> Vec<String> {
    let PruneSettings {
        max_objects,
        max_percent,
        ..
    } = *view.input.prune;
    let mut reasons = Vec::new();
    if count > max_objects as usize {
        reasons.push(format!(
            "{count} deletions are more than `spec.prune.maxObjects` allows ({max_objects})"
        ));
    }
    let total = view
        .live_objects()
        .filter(|live| live.source.as_ref() == Some(view.input.source))
        .filter(|live| matches!(live.ownership, Ownership::Ours { .. }))
        .count();
    // Of two objects one is half: a percentage means nothing there.
    if count > 2 && count * 100 > total * max_percent as usize {
        reasons.push(format!(
            "{count} of {total} objects are more than `spec.prune.maxPercent` allows ({max_percent} %)"
        ));
    }
    reasons
}

/// Returns the components that disappear as a whole, with the number of their candidates.
fn vanishing_components(
    view: &View<'_>,
    candidates: &[Candidate<'_>],
) -> BTreeMap<ComponentName, usize> {
    let mut counts = BTreeMap::new();
    for candidate in candidates {
        *counts.entry(candidate.component.clone()).or_default() += 1;
    }
    counts.retain(|name, _| !still_there(view, name));
    counts
}

/// Returns whether git still has anything of a component.
pub(super) fn still_there(view: &View<'_>, name: &ComponentName) -> bool {
    let desired = view.input.desired;
    let has_objects = desired
        .components
        .get(name)
        .is_some_and(|it| !it.objects.is_empty());
    has_objects
        || desired.held.values().any(|hold| {
            let place = hold.place.as_ref();
            place.is_some_and(|place| View::in_folder(&place.file, name))
        })
}

/// Returns why a deletion is risky whatever the number, in a sentence.
fn risk(view: &View<'_>, candidate: &Candidate<'_>) -> Option<String> {
    let key = &candidate.live.key;
    if kinds::is_storage(&key.kind) {
        return Some(format!("{key} may take its data with it"));
    }
    if !kinds::takes_others_along(&key.kind) {
        return None;
    }
    Some(format!(
        "{key} takes everything in it along: {} of ours, and whatever others have put there",
        objects(count_contents(view, candidate))
    ))
}

/// Words a number of objects.
pub(super) fn objects(count: usize) -> String {
    match count {
        1 => "1 object".to_owned(),
        _ => format!("{count} objects"),
    }
}

/// Whether a set is too large for an approval to name each object.
pub(super) fn too_large_to_approve(count: usize) -> bool {
    count > limits::APPROVAL_OBJECTS_MAX
}

#[cfg(test)]
mod tests;
