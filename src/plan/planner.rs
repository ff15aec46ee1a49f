//! From the input to a plan.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{ComponentName, Digest, GroupKind, Hold, HoldReason, ObjectKey, SourceName};
use crate::observe::KindObservation;

use super::difference::{Difference, Verdict, differences, other_owner};
use super::explain;
use super::hooks::{self, Gate, Removals};
use super::jobs;
use super::order;
use super::output::{Action, ActionKind, Plan, PlanInput, Why};
use super::prune::prune;
use super::readiness;
use super::requirements;
use super::view::View;

/// Plans one pass: what to do about the difference between what git wants and what is there.
///
/// Pure and deterministic: the same input gives the same plan, byte for byte, whatever the order in which a map happens to
/// be iterated.
pub fn plan(input: PlanInput<'_>) -> Plan {
    let view = View::new(input);
    let mut differences = differences(&view);
    let mut gate = Gate::new(&view);
    let mut waiting = readiness::waiting(&view, &differences, &gate);
    if let Some(only) = input.only {
        waiting.retain(|name, _| *name == only);
    }
    requirements::narrow(&mut differences, input.only);
    gate.close(&view, &differences, &waiting);
    let is_frozen = |name: &ComponentName| waiting.contains_key(name) || gate.frozen.contains(name);
    requirements::freeze(&mut differences, |name| gate.freezes_all || is_frozen(name));
    requirements::settle(&view, &mut differences);
    jobs::bound(&view, &mut differences);
    let removals = Removals::of(&view);
    let mut pruning = prune(&view, &differences, is_frozen, &removals);
    if gate.freezes_all {
        pruning.actions.clear();
        pruning.undo.clear();
    }
    let names: BTreeSet<&ComponentName> = waiting.keys().copied().collect();
    hooks::settle(&mut gate, &view, &differences, (&pruning.actions, &names));

    let unhealthy = readiness::unhealthy(&differences, input.only);
    let jobs = jobs::remembered(&view, &differences);
    let conflicts = conflicts(&view, &differences);
    let mut outcome = Gathered::gather(&view, differences);
    outcome.frozen.extend(pruning.frozen);
    outcome.actions.extend(pruning.actions);
    outcome.holds.extend(pruning.holds);
    outcome.holds.extend(invalid_holds(&view));
    let mut frozen = outcome.frozen;
    frozen.extend(
        waiting
            .keys()
            .filter(|name| gate.is_changed(name))
            .map(|name| (*name).clone()),
    );
    let mut gated = gate.finish();
    removals.forget_done(&mut gated.committed);
    outcome.holds.extend(gated.holds);
    outcome.holds.extend(
        waiting
            .into_iter()
            .filter(|(name, _)| frozen.contains(name))
            .map(|(_, hold)| hold),
    );
    outcome.holds.sort();

    let mut plan = Plan {
        identity: Digest::from_text(""),
        source: input.source.clone(),
        revision: input.desired.revision.clone(),
        phases: order::phases(outcome.actions),
        holds: outcome.holds,
        jobs,
        conflicts,
        pending: pruning.pending,
        kept: pruning.kept,
        unchanged: outcome.unchanged,
        unhealthy,
        hooks: gated.due,
        ahead: gated.ahead,
        committed: gated.committed,
        migrations: gated.planned,
        undo: removals.to_undo(pruning.undo),
    };
    plan.identity = explain::identity(&plan);
    plan
}

/// Returns what another source owns, with that source.
fn conflicts(view: &View<'_>, differences: &[Difference<'_>]) -> Vec<(ObjectKey, SourceName)> {
    let mut conflicts: Vec<_> = differences
        .iter()
        .filter(
            |it| matches!(&it.verdict, Verdict::Held(hold) if hold.reason == HoldReason::Conflict),
        )
        .filter_map(|it| {
            let owner = other_owner(view, it.live?)?;
            Some((it.object.key.clone(), owner.clone()))
        })
        .collect();
    conflicts.sort();
    conflicts
}

/// Returns the holds that validation has made, of the component that was asked for.
fn invalid_holds(view: &View<'_>) -> Vec<Hold> {
    let in_scope = |hold: &&Hold| match (view.input.only, &hold.place) {
        (Some(only), Some(place)) => View::in_folder(&place.file, only),
        _ => true,
    };
    let held = view.input.desired.held.values();
    held.filter(in_scope).cloned().collect()
}

/// What the verdicts amount to.
#[derive(Default)]
struct Gathered {
    actions: Vec<Action>,
    holds: Vec<Hold>,
    unchanged: usize,
    /// Components that wait for another one and have something to do.
    frozen: BTreeSet<ComponentName>,
}

impl Gathered {
    fn gather(view: &View<'_>, differences: Vec<Difference<'_>>) -> Self {
        let mut gathered = Self::default();
        let mut unobserved: BTreeMap<&GroupKind, (String, usize)> = BTreeMap::new();
        for Difference {
            object,
            verdict,
            requires,
            ..
        } in differences
        {
            match verdict {
                Verdict::InStep => gathered.unchanged += 1,
                Verdict::Apply(why) => gathered.actions.push(Action {
                    key: object.key.clone(),
                    component: object.component.clone(),
                    kind: ActionKind::Apply(object.clone()),
                    why,
                    requires,
                }),
                Verdict::Replace(deletion) => gathered.actions.push(Action {
                    key: object.key.clone(),
                    component: object.component.clone(),
                    kind: ActionKind::Replace(object.clone(), deletion),
                    why: Why::Changed,
                    requires,
                }),
                Verdict::OutOfScope => {}
                Verdict::Held(hold) => gathered.holds.push(hold),
                Verdict::Waiting => {
                    gathered.frozen.insert(object.component.clone());
                }
                Verdict::Unserved(reason) | Verdict::Unobserved(reason) => {
                    unobserved.entry(&object.key.kind).or_insert((reason, 0)).1 += 1;
                }
            }
        }
        for (kind, observation) in &view.input.observed.kinds {
            if let KindObservation::Unlisted(reason) = observation
                && view.input.only.is_none()
                && is_served(view, kind)
            {
                unobserved.entry(kind).or_insert((reason.clone(), 0));
            }
        }
        let holds = unobserved.into_iter().map(|(kind, (reason, count))| Hold {
            what: kind.to_string(),
            reason: HoldReason::Unobserved,
            message: format!(
                "its objects are neither changed nor pruned, {count} of them in git, since what is there is not known: {reason}"
            ),
            place: None,
        });
        gathered.holds.extend(holds);
        gathered
    }
}

/// Returns whether objects of a kind can exist; unknown counts as yes.
fn is_served(view: &View<'_>, kind: &GroupKind) -> bool {
    let served = view.input.observed.served.as_ref();
    served.is_none_or(|served| served.contains_key(kind))
}

#[cfg(test)]
mod tests;
