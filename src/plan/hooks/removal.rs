//! Components that git has removed and that said `onRemove: Undo`: what their migrations have changed is taken back before what is
//! left of them is deleted.
//!
//! That is as dangerous as a deletion, and begins only where the deletions of the component would go ahead: they are announced or
//! approved, and all that git wants is known. Which components said so is in the target's record, see [`remember`]: the folder that
//! said it is gone by then.

use std::collections::{BTreeMap, BTreeSet};

use crate::desired::{Desired, OnRemove};
use crate::model::{ComponentName, Hold, limits};
use crate::plan::view::View;

use super::input::{Committed, UndoState};
use super::words;

/// The removed components whose migrations are to be taken back.
#[derive(Debug, Default)]
pub(in crate::plan) struct Removals<'a> {
    /// How far that is; none where it is not known.
    gone: BTreeMap<&'a ComponentName, Option<&'a UndoState>>,
    /// Whether nobody judges hooks, and the plan shows what would be done if all ended well.
    is_assumed: bool,
}

static NOTHING_LEFT: UndoState = UndoState {
    open: 0,
    running: None,
    undoing: None,
};

impl<'a> Removals<'a> {
    /// Finds the removed components. There are none while anything forbids to delete at all.
    pub(in crate::plan) fn of(view: &View<'a>) -> Self {
        let input = &view.input;
        let states = input.migrations.states;
        let is_unsafe = input.desired.withdrawn
            || !input.desired.unread.is_empty()
            || view.objects.is_empty()
            || input.record.is_err()
            || !input.prune.enabled;
        if is_unsafe {
            return Self::default();
        }
        let names = input.migrations.committed.undo_on_remove.iter();
        let gone = names
            .filter(|name| {
                input.only.is_none_or(|only| only == *name) && is_gone(input.desired, name)
            })
            .map(|name| {
                let known = states.and_then(|states| states.undo.as_ref());
                let state = known.map(|known| known.get(name).unwrap_or(&NOTHING_LEFT));
                (name, state)
            });
        Self {
            gone: gone.collect(),
            is_assumed: states.is_none(),
        }
    }

    /// Returns whether the deletions of a component have to wait.
    pub(in crate::plan) fn holds(&self, name: &ComponentName) -> bool {
        let state = self.gone.get(name).copied();
        let is_open = state.is_some_and(|state| state.is_none_or(|it| !it.is_done()));
        is_open && !self.is_assumed
    }

    /// Returns the components whose deletions have to wait.
    pub(in crate::plan) fn open(&self) -> impl Iterator<Item = &'a ComponentName> {
        self.gone.keys().copied().filter(|name| self.holds(name))
    }

    /// Returns the hold of the deletions of a component. `is_released` is whether nothing else holds them.
    pub(in crate::plan) fn hold(&self, name: &ComponentName, is_released: bool) -> Hold {
        let state = self.gone.get(name).copied().flatten();
        words::undo_first(name, state, is_released)
    }

    /// Returns the hold of a removal of which nothing is left on the cluster that could be approved.
    pub(in crate::plan) fn unannounced(name: &ComponentName) -> Hold {
        words::unannounced_undo(name)
    }

    /// Returns what a plan says about this: the components that are taken back now, or would be.
    pub(in crate::plan) fn to_undo(&self, released: BTreeSet<ComponentName>) -> Vec<ComponentName> {
        if self.is_assumed {
            return self.gone.keys().map(|name| (*name).clone()).collect();
        }
        released.into_iter().collect()
    }

    /// Forgets the components of which nothing is left to take back.
    pub(in crate::plan) fn forget_done(&self, committed: &mut Committed) {
        for (name, state) in &self.gone {
            if state.is_some_and(UndoState::is_done) {
                committed.undo_on_remove.remove(*name);
            }
        }
    }
}

/// Returns whether git has nothing of a component any more, not even something that is wrong.
pub(in crate::plan) fn is_gone(desired: &Desired, name: &ComponentName) -> bool {
    let migrations = desired
        .migrations
        .iter()
        .map(|it| (&it.components, &it.place));
    let held = desired.held_migrations.iter();
    let mut migrations = migrations.chain(held.map(|it| (&it.components, &it.place)));
    let mut held = desired.held.values().filter_map(|it| it.place.as_ref());
    !desired.components.contains_key(name)
        && !held.any(|place| View::in_folder(&place.file, name))
        && !migrations.any(|(components, place)| {
            components.contains(name) || View::in_folder(&place.file, name)
        })
}

/// Writes down what the components that git has say about their removal. Returns a hold where the record has no room for it.
pub(super) fn remember(view: &View<'_>, committed: &mut Committed) -> Option<Hold> {
    let components = view.input.desired.components.iter();
    let of_scope = components.filter(|(name, _)| view.input.only.is_none_or(|only| only == *name));
    let names = &mut committed.undo_on_remove;
    let mut omitted = None;
    for (name, component) in of_scope {
        match component.on_remove {
            OnRemove::Keep => {
                names.remove(name);
            }
            OnRemove::Undo if names.len() < limits::COMMITTED_MAX => {
                names.insert(name.clone());
            }
            OnRemove::Undo if !names.contains(name) => omitted = Some(name),
            OnRemove::Undo | OnRemove::Unread => {}
        }
    }
    omitted.map(words::too_many_to_undo)
}

#[cfg(test)]
mod tests;
