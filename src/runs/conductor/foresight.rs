//! What is known of hooks before they come, and how that reads for planning. Every method is short and waits for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::Offer;
use super::naming::hook_of;
use super::offers::Wanted;
use super::stands::{is_ahead, is_left_out, phase_of, stand_of};
use super::state::{Part, State};
use crate::model::api::{Run, RunPhase};
use crate::model::limits;
use crate::model::migration::{Decision, Hook, HookPhase, HookScope};
use crate::plan::hooks::{AheadHook, Preflight};
use crate::runs::sight::{Open, Sight};

/// One hook that comes later.
pub(super) struct AheadEntry {
    pub(super) wanted: Arc<Wanted>,
    /// Whether its deploy has begun, so that it is not judged ahead any more.
    pub(super) is_under_way: bool,
    comes_first: bool,
    late: BTreeMap<String, BTreeSet<String>>,
    installs: BTreeSet<(String, String)>,
    pub(super) parts: BTreeMap<String, Ahead>,
    /// Migrations before which others have work to do that may change whatever they look at.
    pub(super) after_work: BTreeSet<String>,
    /// When the last of it was judged, by the monotonic clock.
    pub(super) judged: Duration,
    /// Time for judging.
    pub(super) times: BTreeMap<String, Duration>,
    /// Whether planning was told that there is nothing to do.
    is_told_clear: bool,
}

/// How one migration of a hook that comes later stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ahead {
    /// It is judged; the text says what that waits for.
    Judging(String),
    /// There is nothing to do.
    Nothing,
    /// It has work to do and may begin, as far as can be said now.
    Work,
    /// Nobody can say now; its hook will.
    Later,
    /// It must not begin as things are, and this Run says why; or it has one from before.
    Run(String),
}

/// What a hook need not ask again when it begins.
#[derive(Debug, Default)]
pub(super) struct Foreseen {
    /// Migrations without work.
    pub(super) nothing: BTreeSet<String>,
    /// Migrations with work.
    pub(super) work: BTreeMap<String, Decision>,
    /// Time for judging.
    pub(super) times: BTreeMap<String, Duration>,
}

// === impl AheadEntry ===

impl AheadEntry {
    fn new(offer: &Offer<'_>, ahead: &AheadHook) -> Self {
        let migrations = ahead.due.migrations.iter();
        let parts = migrations.map(|it| {
            let name = it.migration.name.clone();
            (name, Ahead::Judging(String::new()))
        });
        Self {
            wanted: Arc::new(Wanted::of(offer, &ahead.due)),
            is_under_way: ahead.is_under_way,
            comes_first: ahead.comes_first,
            late: ahead.late.clone(),
            installs: ahead.installs.clone(),
            parts: parts.collect(),
            after_work: BTreeSet::new(),
            judged: Duration::ZERO,
            times: BTreeMap::new(),
            is_told_clear: false,
        }
    }

    /// Returns whether a run is one of it.
    pub(super) fn has_run(&self, name: &str) -> bool {
        let is_it = |part: &Ahead| matches!(part, Ahead::Run(run) if run == name);
        self.parts.values().any(is_it)
    }

    /// Has those judged again whose Run is gone.
    pub(super) fn drop_lost(&mut self, is_there: impl Fn(&str) -> bool) {
        for part in self.parts.values_mut() {
            if let Ahead::Run(name) = part
                && !is_there(name)
            {
                *part = Ahead::Judging("its record is gone".to_owned());
            }
        }
    }

    /// Returns whether a migration comes after changes which its own failure would hold.
    pub(super) fn is_late(&self, migration: &str) -> bool {
        self.late.contains_key(migration)
    }

    /// Returns from where a migration is seen.
    pub(super) fn sight(&self, migration: &str) -> Sight {
        let open = match self.late.get(migration) {
            _ if self.after_work.contains(migration) => Open::All,
            Some(open) if !open.is_empty() => Open::Some(open.clone()),
            _ => Open::None,
        };
        Sight {
            open,
            is_late: self.is_late(migration),
            installs: self.installs.clone(),
            guard_alone: false,
        }
    }

    fn is_fresh(&self, now: Duration) -> bool {
        self.comes_first && now.saturating_sub(self.judged) < limits::PREFLIGHT_FRESH
    }
}

// === impl State ===

impl State {
    /// Takes up what a plan says of hooks that come later; what is known of one stays.
    pub(super) fn take_ahead(&mut self, offer: &Offer<'_>) {
        let offered: BTreeSet<&Hook> = offer.ahead.iter().map(|it| &it.due.hook).collect();
        let hooks = &self.hooks;
        self.ahead
            .retain(|hook, _| offered.contains(hook) && !hooks.contains_key(hook));
        for ahead in offer.ahead {
            let hook = &ahead.due.hook;
            if self.hooks.contains_key(hook) {
                continue;
            }
            if let Some(entry) = self.ahead.get_mut(hook) {
                // What it once waited for has changed something by now.
                entry.comes_first &= ahead.comes_first;
                entry.is_under_way = ahead.is_under_way;
                entry.late.clone_from(&ahead.late);
                entry.installs.clone_from(&ahead.installs);
                if entry.wanted.due != ahead.due {
                    entry.wanted = Arc::new(Wanted::of(offer, &ahead.due));
                }
            } else {
                let entry = AheadEntry::new(offer, ahead);
                self.ahead.insert(hook.clone(), entry);
            }
        }
    }

    /// Returns what need not be asked again of a hook that begins now.
    pub(super) fn foreseen(&self, hook: &Hook, now: Duration) -> Foreseen {
        let mut foreseen = Foreseen::default();
        let Some(entry) = self.ahead.get(hook) else {
            return foreseen;
        };
        foreseen.times.clone_from(&entry.times);
        let counts = entry.is_told_clear
            || (entry.is_fresh(now) && (is_first(hook) || !self.has_global_work()));
        for (migration, part) in entry.parts.iter().filter(|_| counts) {
            match part {
                Ahead::Nothing => {
                    foreseen.nothing.insert(migration.clone());
                }
                Ahead::Work => {
                    foreseen.work.insert(migration.clone(), Decision::Run);
                }
                _ => {}
            }
        }
        foreseen
    }

    /// Returns whether global migrations that come before everything else have, or may have, work to do.
    fn has_global_work(&self) -> bool {
        let mut ahead = self.ahead.iter().filter(|(hook, _)| is_first(hook));
        self.is_global_work_begun()
            || ahead.any(|(_, entry)| entry.parts.values().any(|part| *part != Ahead::Nothing))
    }

    fn is_global_work_begun(&self) -> bool {
        let mut hooks = self.hooks.iter().filter(|(hook, _)| is_first(hook));
        hooks.any(|(_, entry)| entry.parts.values().any(|part| *part != Part::Done))
    }

    /// Returns what preflight says of hooks that come later.
    pub(super) fn preflight(&mut self, now: Duration) -> BTreeMap<Hook, Preflight> {
        let (has_work, is_overtaken) = (self.has_global_work(), self.is_global_work_begun());
        let mut clear = BTreeSet::new();
        for (hook, entry) in &mut self.ahead {
            // Global work changes what was seen.
            entry.comes_first &= !is_overtaken || is_first(hook);
            entry.is_told_clear = entry.parts.values().all(|part| *part == Ahead::Nothing)
                && entry.is_fresh(now)
                && (is_first(hook) || !has_work);
            if entry.is_told_clear {
                clear.insert(hook.clone());
            }
        }
        let states = self.ahead.iter().map(|(hook, entry)| {
            let state = self.preflight_of(entry, clear.contains(hook));
            (hook.clone(), state)
        });
        states.collect()
    }

    fn preflight_of(&self, entry: &AheadEntry, is_clear: bool) -> Preflight {
        let mut findings = Vec::new();
        let mut judging: Option<String> = None;
        for part in entry.parts.values() {
            match part {
                Ahead::Nothing | Ahead::Work | Ahead::Later => {}
                Ahead::Judging(message) => {
                    // What has something to say is what is said.
                    let known = judging.get_or_insert_default();
                    if known.is_empty() {
                        known.clone_from(message);
                    }
                }
                Ahead::Run(name) => match self.runs.get(name) {
                    // Its task looks at it.
                    Some(run) if phase_of(&run.run) == RunPhase::Pending => {
                        judging.get_or_insert_default();
                    }
                    Some(run) if is_well(&run.run) => {}
                    Some(run) => findings.push(stand_of(name, &run.run)),
                    None => {
                        judging.get_or_insert_default();
                    }
                },
            }
        }
        match judging {
            Some(message) => Preflight::Judging(message),
            None => Preflight::Judged { findings, is_clear },
        }
    }

    /// Returns how a run is looked at while its hook has not come, and whether it may begin then; none where it is driven.
    pub(super) fn sight_of(&self, run: &Run) -> Option<(Sight, bool)> {
        let hook = hook_of(run)?;
        if !is_ahead(run) || self.hooks.contains_key(&hook) {
            return None;
        }
        let entry = self.ahead.get(&hook)?;
        let migration = &run.spec.migration;
        let part = entry.parts.get(migration)?;
        let may_begin = matches!(part, Ahead::Work | Ahead::Later);
        Some((entry.sight(migration), may_begin))
    }

    /// Notes that nothing keeps a run from beginning when its hook comes.
    pub(super) fn let_begin(&mut self, run: &Run) {
        let entry = hook_of(run).and_then(|hook| self.ahead.get_mut(&hook));
        if let Some(part) = entry.and_then(|entry| entry.parts.get_mut(&run.spec.migration)) {
            *part = Ahead::Work;
        }
    }
}

/// Returns whether a hook comes before every other one.
fn is_first(hook: &Hook) -> bool {
    hook.scope == HookScope::Global && hook.phase == HookPhase::Pre
}

/// Returns whether a run has ended in a way that keeps nothing from being changed.
fn is_well(run: &Run) -> bool {
    phase_of(run) == RunPhase::Succeeded || is_left_out(run)
}
