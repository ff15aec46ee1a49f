//! What is known of hooks and runs, and how that reads for planning. Every method is short and waits for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Offer;
use super::naming::hook_of;
use crate::model::api::{Run, RunCommand, RunPhase};
use crate::model::migration::{Hook, MigrationSpec};
use crate::plan::hooks::{DueHook, HookState, HookStates, MigrationStand, Stand};

/// What a hook's task works on.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) due: DueHook,
    pub(super) revision: String,
    pub(super) author: String,
    pub(super) release: Option<String>,
    pub(super) http_hosts: Vec<String>,
}

/// A hook that begins: its task gets what is wanted of it, and is told when nothing is any more.
pub(super) type Begun = (Hook, watch::Receiver<Arc<Wanted>>, CancellationToken);

/// What is known.
#[derive(Default)]
pub(super) struct State {
    /// Whether it is known which Runs there are.
    pub(super) is_listed: bool,
    /// Why it is not known.
    pub(super) unlisted: Option<String>,
    /// Whether how hooks stand was told since then.
    is_told: bool,
    /// Whether a plan that knew it has said what it wants.
    pub(super) is_offered: bool,
    pub(super) runs: BTreeMap<String, RunEntry>,
    pub(super) hooks: BTreeMap<Hook, HookEntry>,
}

/// One Run.
pub(super) struct RunEntry {
    /// The record as it was written or seen last. Of one that is over only what names it and how it ended.
    pub(super) run: Arc<Run>,
    /// What a person wants.
    pub(super) commands: watch::Sender<Option<RunCommand>>,
    /// Whether a task is at work on it.
    pub(super) is_working: bool,
    /// Whether what it is for is wanted.
    pub(super) is_wanted: bool,
}

/// One hook that is wanted.
pub(super) struct HookEntry {
    wanted: watch::Sender<Arc<Wanted>>,
    stop: CancellationToken,
    pub(super) parts: BTreeMap<String, Part>,
}

/// How one migration of a hook stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// It is judged, or waits for something of its hook; the text says for what.
    Judging(String),
    /// There was nothing to do.
    Done,
    /// It has a Run.
    Run(String),
}

// === impl State ===

impl State {
    /// Takes up a Run as it is stored, and returns its name. One that a task is at work on is only asked for a person's word: the
    /// task has the record as it wrote it.
    pub(super) fn see(&mut self, run: Run) -> String {
        let name = run.name_any();
        let command = RunCommand::wished(&run);
        if let Some(entry) = self.runs.get_mut(&name) {
            if !entry.is_working {
                entry.run = Arc::new(run);
            }
            entry.commands.send_if_modified(|known| {
                let is_new = *known != command && command.is_some();
                if is_new {
                    known.clone_from(&command);
                }
                is_new
            });
        } else {
            let is_wanted = self.wants(&run);
            let entry = RunEntry {
                run: Arc::new(run),
                commands: watch::Sender::new(command),
                is_working: false,
                is_wanted,
            };
            self.runs.insert(name.clone(), entry);
        }
        name
    }

    /// Forgets every Run that is not in a list, except where a task is at work.
    pub(super) fn keep_only(&mut self, runs: &[Run]) {
        let names: BTreeSet<String> = runs.iter().map(ResourceExt::name_any).collect();
        self.runs
            .retain(|name, entry| entry.is_working || names.contains(name));
        self.drop_lost_parts();
    }

    /// Forgets a Run that is gone; a task that is at work on it finds that out by itself.
    pub(super) fn forget(&mut self, name: &str) {
        if self.runs.get(name).is_some_and(|entry| !entry.is_working) {
            self.runs.remove(name);
            self.drop_lost_parts();
        }
    }

    /// A migration whose Run is gone is judged again: the state of the cluster decides.
    pub(super) fn drop_lost_parts(&mut self) {
        for hook in self.hooks.values_mut() {
            for part in hook.parts.values_mut() {
                if let Part::Run(name) = part
                    && !self.runs.contains_key(name)
                {
                    *part = Part::Judging("its record is gone".to_owned());
                }
            }
        }
    }

    /// Puts a record as a task has written it, and returns what was known before.
    pub(super) fn wrote(&mut self, run: &Run) -> Option<Arc<Run>> {
        let entry = self.runs.get_mut(&run.name_any())?;
        Some(std::mem::replace(&mut entry.run, Arc::new(run.clone())))
    }

    /// Lets go of what nobody needs of a run that is over: a Run is read again before it is begun anew.
    pub(super) fn shrink(&mut self, name: &str) {
        if let Some(entry) = self.runs.get_mut(name)
            && phase_of(&entry.run).is_over()
        {
            let run = Arc::make_mut(&mut entry.run);
            let keep = MigrationSpec {
                steps: Vec::new(),
                undo: Vec::new(),
                tests: Vec::new(),
                lookups: BTreeMap::new(),
                ..run.spec.definition.clone()
            };
            run.spec.definition = keep;
            run.spec.desired.clear();
            run.spec.components.clear();
            if let Some(status) = &mut run.status {
                status.evidence.clear();
                status.steps.clear();
                status.undone.clear();
                status.timeline.clear();
            }
        }
    }

    /// Takes up what a plan wants. Returns the hooks that begin, and whether runs that were parked must look again.
    pub(super) fn take_offer(&mut self, offer: Offer<'_>) -> (Vec<Begun>, bool) {
        let offered: BTreeSet<&Hook> = offer.hooks.iter().map(|due| &due.hook).collect();
        self.hooks.retain(|hook, entry| {
            let is_kept = offered.contains(hook);
            if !is_kept {
                entry.stop.cancel();
            }
            is_kept
        });
        let mut begun = Vec::new();
        for due in offer.hooks {
            let wanted = Arc::new(Wanted {
                due: due.clone(),
                revision: offer.revision.to_string(),
                author: offer.author.to_owned(),
                release: offer.release.map(str::to_owned),
                http_hosts: offer.http_hosts.to_vec(),
            });
            if let Some(entry) = self.hooks.get_mut(&due.hook) {
                entry.wanted.send_if_modified(|known| {
                    let differs = known.due != wanted.due;
                    if differs {
                        *known = wanted;
                    }
                    differs
                });
                continue;
            }
            let sender = watch::Sender::new(Arc::clone(&wanted));
            let stop = CancellationToken::new();
            begun.push((due.hook.clone(), sender.subscribe(), stop.clone()));
            let parts = due
                .migrations
                .iter()
                .map(|it| (it.migration.name.clone(), Part::Judging(String::new())));
            let entry = HookEntry {
                wanted: sender,
                stop,
                parts: parts.collect(),
            };
            self.hooks.insert(due.hook.clone(), entry);
        }
        let is_first = self.is_told && !self.is_offered;
        self.is_offered = self.is_told;
        let changed = self.mark_wanted() || is_first;
        (begun, changed)
    }

    /// Notes of each run whether what it is for is wanted; returns whether that changed for any.
    fn mark_wanted(&mut self) -> bool {
        let wanted: Vec<(String, bool)> = self
            .runs
            .iter()
            .filter(|(_, entry)| !phase_of(&entry.run).is_over())
            .map(|(name, entry)| (name.clone(), self.wants(&entry.run)))
            .collect();
        let mut changed = false;
        for (name, is_wanted) in wanted {
            if let Some(entry) = self.runs.get_mut(&name) {
                changed |= entry.is_wanted != is_wanted;
                entry.is_wanted = is_wanted;
            }
        }
        changed
    }

    /// Returns whether any hook wants a run: it is a part of it, or is what the hook would begin.
    fn wants(&self, run: &Run) -> bool {
        let name = run.name_any();
        let is_part = |entry: &HookEntry| {
            entry
                .parts
                .values()
                .any(|part| matches!(part, Part::Run(run) if *run == name))
        };
        if self.hooks.values().any(is_part) {
            return true;
        }
        let Some(entry) = hook_of(run).and_then(|hook| self.hooks.get(&hook)) else {
            return false;
        };
        let wanted = entry.wanted.borrow();
        wanted.due.migrations.iter().any(|it| {
            it.migration.name == run.spec.migration
                && it.migration.digest.as_str() == run.spec.definition_digest
        })
    }

    /// Returns another run of the same scope that is not over and no longer wanted: its effects must end before new ones begin.
    pub(super) fn older_run(&self, hook: &Hook) -> Option<String> {
        let mut others = self.runs.iter().filter(|(_, entry)| {
            let is_of_scope = hook_of(&entry.run)
                .is_some_and(|other| other.scope == hook.scope && other != *hook);
            is_of_scope && !entry.is_wanted && !phase_of(&entry.run).is_over()
        });
        others.next().map(|(name, _)| name.clone())
    }

    /// Returns when the runs that are over have ended, the newest first, and the names of those that are part of a hook.
    pub(super) fn ended(&self) -> (Vec<Timestamp>, BTreeSet<String>) {
        let over = self
            .runs
            .values()
            .filter(|entry| phase_of(&entry.run).is_over());
        let ended = over.filter_map(|entry| {
            let ended = entry.run.status.as_ref()?.ended_at.as_ref()?;
            Some(ended.0)
        });
        let mut ended: Vec<Timestamp> = ended.collect();
        ended.sort_by(|one, two| two.cmp(one));
        let parts = self.hooks.values().flat_map(|hook| hook.parts.values());
        let in_use = parts.filter_map(|part| match part {
            Part::Run(name) => Some(name.clone()),
            _ => None,
        });
        (ended, in_use.collect())
    }

    /// Returns how the hooks stand: those that are wanted, and those of which runs are not over.
    pub(super) fn states(&mut self) -> HookStates {
        self.is_told |= self.is_listed;
        let mut states = HookStates::default();
        for (hook, entry) in &self.hooks {
            states.0.insert(hook.clone(), self.state_of(entry));
        }
        for (name, entry) in &self.runs {
            if phase_of(&entry.run).is_over() {
                continue;
            }
            if let Some(hook) = hook_of(&entry.run).filter(|hook| !self.hooks.contains_key(hook)) {
                let state: &mut HookState = states.0.entry(hook).or_default();
                state.open.push(stand_of(name, &entry.run));
            }
        }
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
                        _ => state.open.push(stand),
                    }
                }
            }
        }
        state
    }
}

/// Returns whether a run ended since its guard says to leave it out of this deploy.
pub(super) fn is_left_out(run: &Run) -> bool {
    let status = run.status.as_ref();
    status.is_some_and(|it| it.phase == RunPhase::Superseded && it.reason == "Skipped")
}

/// Returns how far a run is.
pub(super) fn phase_of(run: &Run) -> RunPhase {
    run.status
        .as_ref()
        .map(|status| status.phase)
        .unwrap_or_default()
}

fn stand_of(name: &str, run: &Run) -> MigrationStand {
    let status = run.status.as_ref();
    MigrationStand {
        migration: run.spec.migration.clone(),
        run: Some(name.to_owned()),
        stand: match phase_of(run) {
            RunPhase::Blocked => Stand::Blocked,
            RunPhase::Paused => Stand::Paused,
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
