//! What comes after everything of a component is applied and healthy: its post hook, its commit, and the end of the deploy.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::migration::{Hook, HookPhase, HookScope};
use crate::model::{ComponentName, HoldReason};
use crate::observe::{Health, ObservedObject};
use crate::plan::difference::{Difference, Verdict};
use crate::plan::output::Action;
use crate::plan::view::View;

use super::deploy::in_phase;
use super::gate::{Gate, Standing, due_hook};
use super::input::{CommittedComponent, HookStates};
use super::words;

/// Why something of a component is not as git wants it.
struct Unfinished {
    text: String,
    /// Whether that is a failure, and not only a matter of time.
    is_failure: bool,
}

/// Names the post hooks that are due and what may be committed, once it is known what the plan applies.
pub(in crate::plan) fn settle<'a>(
    gate: &mut Gate<'a>,
    view: &View<'a>,
    differences: &[Difference<'a>],
    (actions, waiting): (&[Action], &BTreeSet<&'a ComponentName>),
) {
    if gate.is_assumed || (gate.deploys.is_empty() && gate.global.is_none()) {
        return;
    }
    let empty = HookStates::default();
    let states = view.input.migrations.states.unwrap_or(&empty);
    let unfinished = unfinished(view, differences, actions);
    let changed: Vec<&ComponentName> = gate
        .deploys
        .iter()
        .filter(|(_, deploy)| deploy.is_changed)
        .map(|(name, _)| *name)
        .collect();
    for name in changed {
        if !gate.frozen.contains(name) && !waiting.contains(name) {
            settle_component(gate, view, states, (name, unfinished.get(name)));
        }
    }
    settle_globally(gate, view, states, &unfinished);
}

fn settle_component<'a>(
    gate: &mut Gate<'a>,
    view: &View<'a>,
    states: &HookStates,
    (name, unfinished): (&'a ComponentName, Option<&Unfinished>),
) {
    let due = gate.due_of(view, name, HookPhase::Post);
    // One that has begun goes on, whatever drifts meanwhile.
    if states.get(&due.hook).is_none()
        && let Some(unfinished) = unfinished
    {
        if unfinished.is_failure && !due.migrations.is_empty() {
            gate.holds.push(words::suppressed(&due, &unfinished.text));
        }
        return;
    }
    let may_begin = !gate.freezes_all;
    if gate.put(due, states, may_begin) == Standing::Done && unfinished.is_none() && may_begin {
        let deploy = &gate.deploys[name];
        let done = CommittedComponent {
            digest: Some(deploy.digest.clone()),
            version: deploy.component.to.clone(),
            begun: None,
        };
        gate.committed.components.insert(name.clone(), done);
    }
}

fn settle_globally<'a>(
    gate: &mut Gate<'a>,
    view: &View<'a>,
    states: &HookStates,
    unfinished: &BTreeMap<ComponentName, Unfinished>,
) {
    let Some(global) = &gate.global else { return };
    let digest = global.digest.clone();
    let record = &gate.committed.global;
    if record.pre.as_ref() != Some(&digest) || record.post.as_ref() == Some(&digest) {
        return;
    }
    let action = record.action.unwrap_or(global.action);
    let components = record.components.clone();
    let hook = Hook {
        scope: HookScope::Global,
        phase: HookPhase::Post,
        deploy: digest.clone(),
    };
    let participants = in_phase(&global.participants, HookPhase::Post, action);
    let due = due_hook(view, hook, &participants, (None, components));
    let uncommitted = gate.deploys.iter().find(|(name, deploy)| {
        let committed = gate.committed.components.get(**name);
        committed.and_then(|it| it.digest.as_ref()) != Some(&deploy.digest)
    });
    if states.get(&due.hook).is_none() {
        let failed = unfinished.iter().find(|(_, it)| it.is_failure);
        if let Some((name, failed)) = failed
            && !due.migrations.is_empty()
        {
            let text = format!("{name}: {}", failed.text);
            gate.holds.push(words::suppressed(&due, &text));
            return;
        }
        if uncommitted.is_some() || !unfinished.is_empty() || gate.freezes_all {
            return;
        }
    }
    if gate.put(due, states, true) == Standing::Done {
        gate.committed.global.post = Some(digest);
        gate.committed.global.components = Vec::new();
    }
}

/// Returns the first thing of each component that is not as git wants it.
fn unfinished(
    view: &View<'_>,
    differences: &[Difference<'_>],
    actions: &[Action],
) -> BTreeMap<ComponentName, Unfinished> {
    let mut found: BTreeMap<ComponentName, Unfinished> = BTreeMap::new();
    let mut note = |name: &ComponentName, text: String, is_failure: bool| {
        let is_worse = found
            .get(name)
            .is_none_or(|before| is_failure && !before.is_failure);
        if is_worse {
            found.insert(name.clone(), Unfinished { text, is_failure });
        }
    };
    for action in actions.iter().filter(|it| it.is_deletion()) {
        note(
            &action.component,
            format!("{} is being deleted", action.key),
            false,
        );
    }
    for difference in differences {
        if let Some((text, is_failure)) = of_object(difference) {
            note(&difference.object.component, text, is_failure);
        }
    }
    let desired = view.input.desired;
    for name in desired.components.keys() {
        let held = desired
            .held
            .values()
            .filter_map(|hold| Some((hold.place.as_ref()?, &hold.message)));
        let unread = desired.unread.iter().map(|it| (&it.place, &it.reason));
        for (place, reason) in held.chain(unread) {
            if View::in_folder(&place.file, name) {
                note(name, format!("{place}: {reason}"), true);
            }
        }
    }
    found
}

fn of_object(difference: &Difference<'_>) -> Option<(String, bool)> {
    let key = &difference.object.key;
    match &difference.verdict {
        Verdict::OutOfScope => None,
        Verdict::Apply(_) | Verdict::Replace(_) => Some((format!("{key} is being applied"), false)),
        Verdict::Waiting => Some((format!("{key} waits"), false)),
        Verdict::Unserved(text) | Verdict::Unobserved(text) => {
            Some((format!("{key}: {text}"), false))
        }
        // Somebody wants it left alone, and nothing else is to stand still for that.
        Verdict::Held(hold) if hold.reason == HoldReason::Disabled => {
            difference.live.and_then(of_health)
        }
        Verdict::Held(hold) if hold.reason == HoldReason::Terminating => {
            Some((format!("{key} is being deleted"), false))
        }
        Verdict::Held(hold) => Some((format!("{key} is held ({})", hold.reason), true)),
        Verdict::InStep => difference.live.and_then(of_health),
    }
}

fn of_health(live: &ObservedObject) -> Option<(String, bool)> {
    let key = &live.key;
    match &live.health {
        Health::Current => None,
        Health::InProgress(text) => Some((format!("{key} is not ready: {text}"), false)),
        Health::Failed(text) => Some((format!("{key} has failed: {text}"), true)),
        Health::Terminating => Some((format!("{key} is being deleted"), false)),
    }
}
