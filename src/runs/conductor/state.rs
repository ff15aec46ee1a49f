//! What is known of hooks and runs: the records as they are seen and written. Every method of the state is short and waits for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::foresight::{AheadEntry, Foreseen};
use super::naming::hook_of;
use super::offers::Wanted;
use super::stands::{is_said, phase_of};
use crate::model::api::{Run, RunCommand, RunPhase};
use crate::model::migration::{Hook, MigrationSpec};
use crate::plan::hooks::Once;
use crate::runs::machine::has_open_undo;

/// What is known.
#[derive(Default)]
pub(super) struct State {
    /// Whether it is known which Runs there are.
    pub(super) is_listed: bool,
    /// Why it is not known.
    pub(super) unlisted: Option<String>,
    /// Whether how hooks stand was told since then.
    pub(super) is_told: bool,
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
    pub(super) wanted: watch::Sender<Arc<Wanted>>,
    pub(super) stop: CancellationToken,
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
}
