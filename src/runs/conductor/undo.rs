//! Which runs of removed components are taken back: one at a time, the newest first. Whoever plans says when; a run that has begun comes
//! to its end, also where its component is in git again meanwhile.

use std::collections::BTreeMap;

use super::stands::{is_undoing, phase_of, stand_of};
use super::state::{RunEntry, State};
use crate::model::ComponentName;
use crate::model::api::Run;
use crate::plan::hooks::{Stand, UndoState};
use crate::runs::machine::undo_order;

// === impl State ===

impl State {
    /// Returns what of components could be taken back, or is.
    pub(super) fn undo_states(&self) -> BTreeMap<ComponentName, UndoState> {
        let mut states: BTreeMap<ComponentName, UndoState> = BTreeMap::new();
        for (name, entry) in &self.runs {
            let Some(component) = component_of(&entry.run) else {
                continue;
            };
            let is_over = phase_of(&entry.run).is_over();
            if is_over && !entry.has_open_undo {
                continue;
            }
            let state = states.entry(component).or_default();
            state.open += usize::from(entry.has_open_undo);
            let mut stand = stand_of(name, &entry.run);
            if entry.undo.is_some() {
                stand.stand = Stand::Running;
                state.undoing = Some(stand);
            } else if is_undoing(&entry.run) {
                // One that is under way counts more than one that has ended without success.
                if state.undoing.is_none() || !is_over {
                    state.undoing = Some(stand);
                }
            } else if !is_over {
                state.running = Some(stand);
            }
        }
        states
    }

    /// Has the next run of each component taken back, where none is under way. Returns their names.
    pub(super) fn begin_undo(&mut self, components: &[ComponentName], why: &str) -> Vec<String> {
        let mut begun = Vec::new();
        for component in components {
            if let Some(name) = self.next_to_undo(component)
                && let Some(entry) = self.runs.get_mut(&name)
            {
                entry.undo = Some(why.to_owned());
                begun.push(name);
            }
        }
        begun
    }

    fn next_to_undo(&self, component: &ComponentName) -> Option<String> {
        if !self.is_listed {
            return None;
        }
        let of_it = || {
            let runs = self.runs.iter();
            runs.filter(|(_, entry)| component_of(&entry.run).as_ref() == Some(component))
        };
        if of_it().any(|(_, entry)| is_in_the_way(entry)) {
            return None;
        }
        let open: Vec<(&String, &Run)> = of_it()
            .filter(|(_, entry)| entry.has_open_undo)
            .map(|(name, entry)| (name, entry.run.as_ref()))
            .collect();
        let runs: Vec<&Run> = open.iter().map(|(_, run)| *run).collect();
        let first = undo_order(&runs).first().copied()?;
        Some(open[first].0.clone())
    }
}

/// Returns whether a run keeps others of its component from being taken back: it has not ended, or was not taken back well and nobody
/// has given that up.
fn is_in_the_way(entry: &RunEntry) -> bool {
    entry.undo.is_some()
        || !phase_of(&entry.run).is_over()
        || (is_undoing(&entry.run) && entry.has_open_undo)
}

fn component_of(run: &Run) -> Option<ComponentName> {
    run.spec.component.as_ref()?.parse().ok()
}
