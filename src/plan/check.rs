//! The one checker of finished plans: what must hold whatever the planner thought, asked again in the simplest way.
//!
//! Tests run it over every plan that they make, and execution runs it in debug builds before the first request.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::model::migration::{FailurePolicy, HookPhase, HookScope};
use crate::model::{ComponentName, ObjectKey};
use crate::observe::{KindObservation, ObservedObject, Ownership};

use super::hooks::{DueHook, Preflight, UndoState, is_gone};
use super::order;
use super::output::{ActionKind, Deletion, Plan, PlanInput};

/// Something that no plan may say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Two actions mean the same object.
    #[error("{0} is in the plan twice")]
    Twice(ObjectKey),
    /// An action is in a phase without any, or phases are empty.
    #[error("a phase has no actions")]
    EmptyPhase,
    /// A later phase holds what must come before an earlier one.
    #[error("{0} comes too late or too early")]
    OutOfOrder(ObjectKey),
    /// What an action requires is not in an earlier phase.
    #[error("{object} requires {required}, which is not in an earlier phase")]
    RequirementNotBefore {
        /// The object of the action.
        object: ObjectKey,
        /// What it requires.
        required: ObjectKey,
    },
    /// Something is applied that git does not want or holds.
    #[error("{0} is applied, but git does not want it or holds it")]
    AppliedUnwanted(ObjectKey),
    /// Something is deleted that git names.
    #[error("{0} is deleted, but git names it")]
    DeletedNamed(ObjectKey),
    /// Something is deleted that is not ours, or not as it was observed.
    #[error("{0} is deleted, but was not observed as ours with these preconditions")]
    DeletedForeign(ObjectKey),
    /// Something is deleted although not everything is known.
    #[error("{0} is deleted, but not all that git wants is known")]
    DeletedUnsafely(ObjectKey),
    /// Something is changed although a migration that comes first is not done.
    #[error("{0} is changed, but a migration that comes first is not done")]
    BeforeMigration(ObjectKey),
    /// Something of a removed component is deleted although what its migrations have changed is to be taken back first.
    #[error(
        "{0} is deleted, but what the migrations of its component have changed is not taken back"
    )]
    BeforeUndo(ObjectKey),
    /// Something is changed although not every migration of the deploy was judged.
    #[error("{0} is changed, but not every migration of the deploy was judged")]
    BeforePreflight(ObjectKey),
    /// A component is committed although a migration of it is not done.
    #[error("{0} is committed, but a migration of it is not done")]
    CommittedTooEarly(ComponentName),
}

/// Checks a finished plan against its input; an empty answer means that all is well.
pub fn check(plan: &Plan, input: &PlanInput<'_>) -> Vec<Violation> {
    let mut violations = order_violations(plan);
    violations.extend(migration_violations(plan, input));
    let wanted: HashSet<&ObjectKey> = input.desired.objects().map(|object| &object.key).collect();
    let held = &input.desired.held;
    let pending = plan.pending.iter().flat_map(|pending| &pending.deletions);
    for action in plan.actions() {
        let key = &action.key;
        match &action.kind {
            ActionKind::Delete(deletion) => {
                violations.extend(deletion_violation(deletion, input, &wanted));
            }
            ActionKind::Apply(object) | ActionKind::Replace(object, _) => {
                if object.key != *key || !wanted.contains(key) || held.contains_key(key) {
                    violations.push(Violation::AppliedUnwanted(key.clone()));
                }
            }
        }
        if let ActionKind::Replace(_, deletion) = &action.kind
            && !is_ours(deletion, input)
        {
            violations.push(Violation::DeletedForeign(key.clone()));
        }
    }
    for deletion in pending {
        violations.extend(deletion_violation(deletion, input, &wanted));
    }
    violations
}

fn migration_violations(plan: &Plan, input: &PlanInput<'_>) -> Vec<Violation> {
    let Some(states) = input.migrations.states else {
        return Vec::new();
    };
    let is_done = |due: &DueHook| {
        states.is_clear(&due.hook)
            || states.get(&due.hook).is_some_and(|state| {
                let mut failed = state.failed.iter();
                state.open.is_empty()
                    && failed.all(|stand| {
                        let mut of_it = due.migrations.iter();
                        of_it.any(|it| {
                            it.migration.name == stand.migration
                                && it.failure_policy(&due.hook) == FailurePolicy::Warn
                        })
                    })
            })
    };
    let mut violations = undo_violations(plan, input);
    let is_judged = |hook| matches!(states.preflight.get(hook), Some(Preflight::Judged { .. }));
    let mut ahead = plan.ahead.iter().filter(|it| !it.is_under_way);
    if ahead.any(|it| !is_judged(&it.due.hook)) {
        let first = plan.actions().next();
        violations.extend(first.map(|it| Violation::BeforePreflight(it.key.clone())));
    }
    for due in plan.hooks.iter().filter(|due| !is_done(due)) {
        let scope = &due.hook.scope;
        let of_it = |name: &ComponentName| match scope {
            HookScope::Global => true,
            HookScope::Component(component) => component == name,
        };
        if due.hook.phase == HookPhase::Pre {
            let mut actions = plan.actions();
            let first = actions.find(|action| of_it(&action.component));
            violations.extend(first.map(|it| Violation::BeforeMigration(it.key.clone())));
        }
        if let HookScope::Component(name) = scope
            && plan
                .committed
                .components
                .get(name)
                .is_some_and(|it| it.digest.as_ref() == Some(&due.hook.deploy))
        {
            violations.push(Violation::CommittedTooEarly(name.clone()));
        }
    }
    violations
}

fn undo_violations(plan: &Plan, input: &PlanInput<'_>) -> Vec<Violation> {
    let known = input.migrations.states.and_then(|it| it.undo.as_ref());
    let is_open = |name: &ComponentName| {
        let said_so = input.migrations.committed.undo_on_remove.contains(name);
        let state = known.and_then(|known| known.get(name));
        let is_done = known.is_some() && state.is_none_or(UndoState::is_done);
        said_so && !input.desired.withdrawn && is_gone(input.desired, name) && !is_done
    };
    let deletions = plan.actions().filter(|action| action.is_deletion());
    let early = deletions.filter(|action| is_open(&action.component));
    early
        .map(|it| Violation::BeforeUndo(it.key.clone()))
        .collect()
}

fn deletion_violation(
    deletion: &Deletion,
    input: &PlanInput<'_>,
    wanted: &HashSet<&ObjectKey>,
) -> Option<Violation> {
    let key = deletion.key.clone();
    let desired = input.desired;
    if wanted.contains(&key) || desired.held.contains_key(&key) {
        return Some(Violation::DeletedNamed(key));
    }
    if !is_ours(deletion, input) {
        return Some(Violation::DeletedForeign(key));
    }
    let known = desired.unread.is_empty() && (desired.withdrawn || !wanted.is_empty());
    if !known || input.record.is_err() || !input.prune.enabled {
        return Some(Violation::DeletedUnsafely(key));
    }
    None
}

fn is_ours(deletion: &Deletion, input: &PlanInput<'_>) -> bool {
    let Some(KindObservation::Listed(objects)) = input.observed.kinds.get(&deletion.key.kind)
    else {
        return false;
    };
    objects
        .get(&deletion.key)
        .is_some_and(|live: &std::sync::Arc<ObservedObject>| {
            live.source.as_ref() == Some(input.source)
                && matches!(live.ownership, Ownership::Ours { .. })
                && live.uid == deletion.uid
                && live.resource_version == deletion.resource_version
        })
}

fn order_violations(plan: &Plan) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut before: HashMap<&ObjectKey, usize> = HashMap::new();
    let mut highest = BTreeMap::new();
    for (number, phase) in plan.phases.iter().enumerate() {
        if phase.is_empty() {
            violations.push(Violation::EmptyPhase);
        }
        for action in phase {
            let place = order::phase(action);
            if highest
                .range(..number)
                .any(|(_, earlier)| *earlier >= place)
            {
                violations.push(Violation::OutOfOrder(action.key.clone()));
            }
            if before.insert(&action.key, number).is_some() {
                violations.push(Violation::Twice(action.key.clone()));
            }
            for required in &action.requires {
                if before
                    .get(required)
                    .is_none_or(|earlier| *earlier >= number)
                {
                    violations.push(Violation::RequirementNotBefore {
                        object: action.key.clone(),
                        required: required.clone(),
                    });
                }
            }
        }
        let place = phase.iter().map(order::phase).max();
        highest.extend(place.map(|place| (number, place)));
    }
    violations
}
