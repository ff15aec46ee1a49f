//! How hooks and runs stand, as it reads for planning.

use std::time::Duration;

use super::naming::hook_of;
use super::once::is_asked;
use super::state::{HookEntry, Part, State};
use crate::model::api::{Run, RunCommand, RunPhase};
use crate::model::migration::Hook;
use crate::plan::hooks::{HookState, HookStates, MigrationStand, Stand};
use crate::runs::machine::is_new;

// === impl State ===

impl State {
    /// Returns how the hooks stand: those that are wanted, and those of which runs are not over.
    pub(super) fn states(&mut self, now: Duration) -> HookStates {
        self.is_told |= self.is_listed;
        let mut states = HookStates {
            once: self.once_runs(),
            preflight: self.preflight(now),
            ..HookStates::default()
        };
        for (hook, entry) in &self.hooks {
            states.begun.insert(hook.clone(), self.state_of(entry));
        }
        for (name, entry) in &self.runs {
            // What has not begun makes no hook begun: its record may have been made ahead of it.
            let is_over = phase_of(&entry.run).is_over();
            if is_over || is_ahead(&entry.run) || is_undoing(&entry.run) {
                continue;
            }
            if let Some(hook) = hook_of(&entry.run).filter(|hook| !self.hooks.contains_key(hook)) {
                let state: &mut HookState = states.begun.entry(hook).or_default();
                state.open.push(stand_of(name, &entry.run));
            }
        }
        states.undo = self.is_listed.then(|| self.undo_states());
        states
    }

    /// Returns how one hook stands; none where it is not wanted any more.
    pub(super) fn state_of_hook(&self, hook: &Hook) -> Option<HookState> {
        self.hooks.get(hook).map(|entry| self.state_of(entry))
    }

    fn state_of(&self, entry: &HookEntry) -> HookState {
        let mut state = HookState::default();
        for (migration, part) in &entry.parts {
            match part {
                Part::Done => {}
                Part::Judging(message) => state.open.push(MigrationStand {
                    migration: migration.clone(),
                    run: None,
                    stand: Stand::Judging,
                    message: message.clone(),
                    since: None,
                }),
                Part::Run(name) => {
                    let Some(entry) = self.runs.get(name) else {
                        continue;
                    };
                    let stand = stand_of(name, &entry.run);
                    match phase_of(&entry.run) {
                        RunPhase::Succeeded => {}
                        // Its place is taken by another one, or it was left out by its own guard.
                        RunPhase::Superseded if is_left_out(&entry.run) => {}
                        RunPhase::Failed | RunPhase::Cancelled => state.failed.push(stand),
                        // It holds back what a failure does, until a person has said what became of it.
                        _ if is_asked(&entry.run) => state.failed.push(stand),
                        _ => state.open.push(stand),
                    }
                }
            }
        }
        state
    }
}

/// Returns whether a command is one that a record does not have yet.
pub(super) fn is_said(run: &Run, command: Option<&RunCommand>) -> bool {
    let status = run.status.clone().unwrap_or_default();
    command.is_some_and(|command| is_new(&status, command))
}

/// Returns whether a run ended since its guard says to leave it out of this deploy.
pub(super) fn is_left_out(run: &Run) -> bool {
    let status = run.status.as_ref();
    status.is_some_and(|it| it.phase == RunPhase::Superseded && it.reason == "Skipped")
}

/// Returns whether nothing was done of a run, and nothing is before somebody says so.
pub(super) fn is_ahead(run: &Run) -> bool {
    let has_begun = run
        .status
        .as_ref()
        .is_some_and(|it| it.started_at.is_some());
    let is_parked = matches!(
        phase_of(run),
        RunPhase::Pending | RunPhase::Blocked | RunPhase::Paused | RunPhase::Manual
    );
    is_parked && !has_begun
}

/// Returns how far a run is.
pub(super) fn phase_of(run: &Run) -> RunPhase {
    run.status
        .as_ref()
        .map(|status| status.phase)
        .unwrap_or_default()
}

/// Returns whether what a run has done is being taken back, or was.
pub(super) fn is_undoing(run: &Run) -> bool {
    run.status.as_ref().is_some_and(|status| status.undoing)
}

pub(super) fn stand_of(name: &str, run: &Run) -> MigrationStand {
    let status = run.status.as_ref();
    MigrationStand {
        migration: run.spec.migration.clone(),
        run: Some(name.to_owned()),
        stand: match phase_of(run) {
            RunPhase::Blocked => Stand::Blocked,
            RunPhase::Paused => Stand::Paused,
            RunPhase::Manual if is_asked(run) => Stand::Lost,
            RunPhase::Manual => Stand::Manual,
            RunPhase::Failed => Stand::Failed,
            RunPhase::Cancelled => Stand::Cancelled,
            RunPhase::Pending
            | RunPhase::Running
            | RunPhase::Waiting
            | RunPhase::Cancelling
            | RunPhase::Succeeded
            | RunPhase::Superseded => Stand::Running,
        },
        message: status.map(|it| it.message.clone()).unwrap_or_default(),
        since: status.and_then(|it| it.since.as_ref()).map(|since| since.0),
    }
}
