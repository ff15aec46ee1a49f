//! Which components must wait for the components that they depend on.
//!
//! A component is ready when each object that git names for it is there, healthy, and in need of nothing. One with an action
//! in this very plan is not ready, whatever the object's kind: a pass never waits, and what is applied now is judged by the
//! next pass, which the change itself rings for. An object that is held counts by what is on the cluster, its last good
//! state: otherwise a disabled object would stop every component behind it for as long as it stays disabled.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::model::{ComponentName, Hold, HoldReason, ObjectKey};
use crate::observe::{Health, ObservedObject};

use super::difference::{Difference, Verdict};
use super::hooks::Gate;
use super::view::View;

/// Returns, for each component that must wait, what it waits for.
pub(super) fn waiting<'a>(
    view: &View<'a>,
    differences: &[Difference<'a>],
    gate: &Gate<'a>,
) -> BTreeMap<&'a ComponentName, Hold> {
    let components = &view.input.desired.components;
    if components.values().all(|it| it.depends_on.is_empty()) {
        return BTreeMap::new();
    }
    let obstacles = obstacles(view, differences, gate);
    components
        .iter()
        .filter_map(|(name, component)| {
            let (dependency, obstacle) = component.depends_on.iter().find_map(|dependency| {
                if !components.contains_key(dependency) {
                    return Some((dependency, "it does not exist".to_owned()));
                }
                Some((dependency, obstacles.get(dependency)?.clone()))
            })?;
            let hold = Hold {
                what: name.to_string(),
                reason: HoldReason::DependencyNotReady,
                message: format!(
                    "it depends on {dependency}, which is not ready: {obstacle}. It goes on by itself as soon as that is mended"
                ),
                place: component.objects.iter().map(|it| &it.place).min().cloned(),
            };
            Some((name, hold))
        })
        .collect()
}

/// Returns what is missing of each component that is not healthy, in the order of names; where only one was asked for,
/// of that one.
pub(super) fn unhealthy(
    differences: &[Difference<'_>],
    only: Option<&ComponentName>,
) -> Vec<(ComponentName, String)> {
    let ailments = first_by_component(differences, |difference| {
        let asked = only.is_none_or(|only| *only == difference.object.component);
        difference.live.filter(|_| asked).and_then(ailment)
    });
    ailments
        .into_iter()
        .map(|(name, first)| match first.others {
            0 => (name.clone(), first.text),
            more => (name.clone(), format!("{}; and {more} more", first.text)),
        })
        .collect()
}

/// Returns the first thing that is missing of each component that is not ready.
fn obstacles<'a>(
    view: &View<'a>,
    differences: &[Difference<'a>],
    gate: &Gate<'a>,
) -> BTreeMap<&'a ComponentName, String> {
    let mut found: BTreeMap<&ComponentName, String> = first_by_component(differences, obstacle)
        .into_iter()
        .map(|(name, first)| (name, first.text))
        .collect();
    for name in view.input.desired.components.keys() {
        if !found.contains_key(name)
            && let Some(text) = obstacle_in_folder(view, name).or_else(|| gate.obstacle(name))
        {
            found.insert(name, text);
        }
    }
    found
}

/// What is found for one component: the text for its first object by key, so that the order of files does not matter.
struct First<'a> {
    key: &'a ObjectKey,
    text: String,
    others: usize,
}

fn first_by_component<'a>(
    differences: &[Difference<'a>],
    find: impl Fn(&Difference<'a>) -> Option<String>,
) -> BTreeMap<&'a ComponentName, First<'a>> {
    let mut found: BTreeMap<&ComponentName, First<'a>> = BTreeMap::new();
    for difference in differences {
        let Some(text) = find(difference) else {
            continue;
        };
        let key = &difference.object.key;
        match found.entry(&difference.object.component) {
            Entry::Vacant(entry) => {
                let others = 0;
                entry.insert(First { key, text, others });
            }
            Entry::Occupied(mut entry) => {
                let first = entry.get_mut();
                first.others += 1;
                if key < first.key {
                    (first.key, first.text) = (key, text);
                }
            }
        }
    }
    found
}

fn obstacle(difference: &Difference<'_>) -> Option<String> {
    let key = &difference.object.key;
    match (&difference.verdict, difference.live) {
        (Verdict::OutOfScope, _) | (Verdict::InStep, None) => None,
        (Verdict::Apply(_) | Verdict::Replace(_), _) => Some(format!("{key} is being applied")),
        (Verdict::Unserved(text) | Verdict::Unobserved(text), _) => Some(format!("{key}: {text}")),
        (Verdict::InStep | Verdict::Held(_) | Verdict::Waiting, Some(live)) => ailment(live),
        (Verdict::Held(hold), None) => Some(format!("{key} is held ({})", hold.reason)),
        (Verdict::Waiting, None) => Some(format!("{key} is not there yet")),
    }
}

/// Looks for what is wrong in the component's folder without being an object of the component.
fn obstacle_in_folder(view: &View<'_>, name: &ComponentName) -> Option<String> {
    let desired = view.input.desired;
    let unread = desired
        .unread
        .iter()
        .find(|unread| View::in_folder(&unread.place.file, name))
        .map(|unread| format!("{}: {}", unread.place, unread.reason));
    unread.or_else(|| {
        desired.held.iter().find_map(|(key, hold)| {
            let place = hold.place.as_ref()?;
            if !View::in_folder(&place.file, name) {
                return None;
            }
            match view.live(key) {
                Some(live) => ailment(live),
                None => Some(format!("{key} is held ({}) at {place}", hold.reason)),
            }
        })
    })
}

fn ailment(live: &ObservedObject) -> Option<String> {
    let key = &live.key;
    match &live.health {
        Health::Current => None,
        Health::InProgress(text) => Some(format!("{key} is not ready: {text}")),
        Health::Failed(text) => Some(format!("{key} has failed: {text}")),
        Health::Terminating => Some(format!("{key} is being deleted")),
    }
}
