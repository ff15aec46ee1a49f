//! What is known of hooks and runs, and how that reads for planning. Every method is short and waits for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Offer;
use super::foresight::{AheadEntry, Foreseen};
use super::naming::hook_of;
use super::once::is_asked;
use crate::model::api::{Run, RunCommand, RunPhase};
use crate::model::migration::{Hook, MigrationSpec};
use crate::plan::hooks::{DueHook, HookState, HookStates, MigrationStand, Once, Stand};
use crate::runs::machine::{has_open_undo, is_new};

/// What a hook's task works on.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) due: DueHook,
    pub(super) revision: String,
    pub(super) author: String,
    pub(super) release: Option<String>,
    pub(super) http_hosts: Vec<String>,
}

impl Wanted {
    pub(super) fn of(offer: &Offer<'_>, due: &DueHook) -> Self {
        Self {
            due: due.clone(),
            revision: offer.revision.to_string(),
            author: offer.author.to_owned(),
            release: offer.release.map(str::to_owned),
            http_hosts: offer.http_hosts.to_vec(),
        }
    }
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
    /// What the target remembers, as it is stored; none before that is known.
    pub(super) once: Option<Once>,
    pub(super) runs: BTreeMap<String, RunEntry>,
    pub(super) hooks: BTreeMap<Hook, HookEntry>,
    /// Hooks that were not begun, of a deploy that has changed nothing yet.
    pub(super) ahead: BTreeMap<Hook, AheadEntry>,
    /// Whether the task that judges them is there.
    pub(super) is_watching_ahead: bool,
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
    /// Whether it has changed something that could be taken back. The record of a run that is over does not tell any more.
    pub(super) has_open_undo: bool,
    /// Why it is to be taken back, until that has begun.
    pub(super) undo: Option<String>,
    /// Whether its record is gone, or is another one, while a task is at work on it.
    pub(super) is_stale: bool,
    /// Whether this process has looked at it: what it waits for may have changed since another one has.
    is_looked_at: bool,
}

/// One hook that is wanted.
pub(super) struct HookEntry {
    wanted: watch::Sender<Arc<Wanted>>,
    stop: CancellationToken,
    pub(super) parts: BTreeMap<String, Part>,
    /// What was just decided before the hook began.
    pub(super) foreseen: Foreseen,
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
                entry.has_open_undo = has_open_undo(&run);
                entry.run = Arc::new(run);
            } else if entry.run.metadata.uid != run.metadata.uid {
                entry.is_stale = true;
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
                has_open_undo: has_open_undo(&run),
                undo: None,
                run: Arc::new(run),
                commands: watch::Sender::new(command),
                is_working: false,
                is_wanted,
                is_stale: false,
                is_looked_at: false,
            };
            self.runs.insert(name.clone(), entry);
        }
        name
    }

    /// Forgets every Run that is not in a list, except where a task is at work.
    pub(super) fn keep_only(&mut self, runs: &[Run]) {
        let names: BTreeSet<String> = runs.iter().map(ResourceExt::name_any).collect();
        self.runs.retain(|name, entry| {
            let is_there = names.contains(name);
            entry.is_stale |= !is_there;
            entry.is_working || is_there
        });
        self.drop_lost_parts();
    }

    /// Forgets a Run that is gone; a task that is at work on it is told to look.
    pub(super) fn forget(&mut self, name: &str) {
        let Some(entry) = self.runs.get_mut(name) else {
            return;
        };
        if entry.is_working {
            entry.is_stale = true;
        } else {
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
        for ahead in self.ahead.values_mut() {
            ahead.drop_lost(|run| self.runs.contains_key(run));
        }
    }

    /// Puts a record as a task has written it, and returns what was known before.
    pub(super) fn wrote(&mut self, run: &Run) -> Option<Arc<Run>> {
        let entry = self.runs.get_mut(&run.name_any())?;
        entry.has_open_undo = has_open_undo(run);
        Some(std::mem::replace(&mut entry.run, Arc::new(run.clone())))
    }

    /// Notes that a run was looked at, and returns whether that was the first time.
    pub(super) fn look_at(&mut self, name: &str) -> bool {
        let entry = self.runs.get_mut(name);
        entry.is_some_and(|entry| !std::mem::replace(&mut entry.is_looked_at, true))
    }

    /// Returns whether a run is blocked by what another process has seen, or somebody has said something of it that was not acted on yet.
    pub(super) fn has_to_look(&self) -> bool {
        let is_due = |entry: &RunEntry| {
            let is_blocked = !entry.is_looked_at && phase_of(&entry.run) == RunPhase::Blocked;
            is_blocked || is_said(&entry.run, entry.commands.borrow().as_ref())
        };
        !self.is_listed || self.runs.values().any(is_due)
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
    pub(super) fn take_offer(&mut self, offer: Offer<'_>, now: Duration) -> (Vec<Begun>, bool) {
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
            let wanted = Arc::new(Wanted::of(&offer, due));
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
            let foreseen = self.foreseen(&due.hook, now);
            let parts = due.migrations.iter().map(|it| {
                let name = it.migration.name.clone();
                let part = if foreseen.nothing.contains(&name) {
                    Part::Done
                } else {
                    Part::Judging(String::new())
                };
                (name, part)
            });
            let entry = HookEntry {
                wanted: sender,
                stop,
                parts: parts.collect(),
                foreseen,
            };
            self.hooks.insert(due.hook.clone(), entry);
        }
        self.take_ahead(&offer);
        let is_first = self.is_told && !self.is_offered;
        self.is_offered = self.is_told;
        let is_news = self.once.as_ref() != Some(offer.once);
        if is_news {
            self.once = Some(offer.once.clone());
        }
        let changed = self.mark_wanted() || is_first || is_news;
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
        if is_undoing(run) {
            return false;
        }
        let name = run.name_any();
        let is_part = |entry: &HookEntry| {
            entry
                .parts
                .values()
                .any(|part| matches!(part, Part::Run(run) if *run == name))
        };
        if self.hooks.values().any(is_part) || self.ahead.values().any(|it| it.has_run(&name)) {
            return true;
        }
        let Some(hook) = hook_of(run) else {
            return false;
        };
        let wanted = match (self.hooks.get(&hook), self.ahead.get(&hook)) {
            (Some(entry), _) => Arc::clone(&entry.wanted.borrow()),
            (None, Some(ahead)) => Arc::clone(&ahead.wanted),
            (None, None) => return false,
        };
        wanted.due.migrations.iter().any(|it| {
            it.migration.name == run.spec.migration
                && it.migration.digest.as_str() == run.spec.definition_digest
        })
    }

    /// Returns another run of the same scope that is not over and no longer wanted: its effects must end before new ones begin.
    pub(super) fn older_run(&self, hook: &Hook) -> Option<String> {
        let mut others = self.runs.iter().filter(|(_, entry)| {
            let is_of_scope = hook_of(&entry.run).is_some_and(|other| {
                other.scope == hook.scope && (other != *hook || is_undoing(&entry.run))
            });
            is_of_scope
                && !entry.is_wanted
                && !phase_of(&entry.run).is_over()
                && !is_asked(&entry.run)
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
        let attached = parts.filter_map(|part| match part {
            Part::Run(name) => Some(name.clone()),
            _ => None,
        });
        // A hook that was just offered finds its runs a moment later.
        let wanted = self.runs.iter().filter_map(|(name, entry)| {
            let hook = hook_of(&entry.run)?;
            self.hooks.contains_key(&hook).then(|| name.clone())
        });
        (ended, attached.chain(wanted).collect())
    }

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
