//! One hook: which of its migrations are needed, in which order they begin, and when it has ended.
//!
//! All guards are judged before the first effect, and one that is blocked keeps its siblings from beginning: a deploy that cannot go on
//! leaves the cluster as it was. Once they have begun, siblings come to their own ends, whatever becomes of one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::foresight::Foreseen;
use super::naming::{new_run, run_name, spec_of};
use super::offers::Wanted;
use super::once::{Found, is_in_the_way};
use super::stands::{is_left_out, is_undoing, phase_of};
use super::state::Part;
use super::{HookTimes, Inner};
use crate::model::api::{Run, RunPhase, RunSpec};
use crate::model::limits;
use crate::model::migration::{Decision, FailurePolicy, Hook, RunPolicy};
use crate::plan::hooks::{DueMigration, HookState};
use crate::runs::clock::Clock;
use crate::runs::driver::Judgement;
use crate::runs::effects::Effects;
use crate::runs::lookups::LookupCache;
use crate::runs::sight::Sight;
use crate::runs::store::{RunStore, StoreError};

/// What a hook's task remembers between its turns.
struct Memory {
    /// When the hook began, by the monotonic clock.
    begun: Duration,
    /// What was decided, of migrations that have no Run yet.
    decided: BTreeMap<String, Decision>,
    /// Migrations that may not begin, as far as was known when their record was made.
    blocking: BTreeSet<String>,
    /// How often a guard could not be evaluated.
    unknown: BTreeMap<String, u32>,
    /// Time for judging.
    judging: BTreeMap<String, Duration>,
    has_ended: bool,
}

/// Conducts one hook until nobody wants it any more.
pub(super) async fn conduct<E, S, C>(
    inner: Arc<Inner<E, S, C>>,
    hook: Hook,
    mut wanted: watch::Receiver<Arc<Wanted>>,
    stop: CancellationToken,
) where
    E: Effects + 'static,
    S: RunStore + 'static,
    C: Clock + 'static,
{
    let mut changed = inner.changed.subscribe();
    let foreseen = {
        let mut state = inner.state();
        let entry = state.hooks.get_mut(&hook);
        entry.map_or_else(Foreseen::default, |entry| {
            std::mem::take(&mut entry.foreseen)
        })
    };
    let mut memory = Memory {
        begun: inner.driver.clock().monotonic(),
        decided: foreseen.work,
        blocking: BTreeSet::new(),
        unknown: BTreeMap::new(),
        judging: foreseen.times,
        has_ended: false,
    };
    let mut told: Option<HookState> = None;
    loop {
        changed.mark_unchanged();
        let current = Arc::clone(&wanted.borrow_and_update());
        let rest = tokio::select! {
            () = stop.cancelled() => return,
            () = inner.stop.cancelled() => return,
            rest = inner.turn(&current, &mut memory) => rest,
        };
        inner.tell_end(&current, &mut memory);
        let state = inner.state().state_of_hook(&hook);
        if state != told {
            told = state;
            (inner.bell)();
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = inner.stop.cancelled() => return,
            _ = changed.changed() => {}
            _ = wanted.changed() => {}
            () = inner.driver.clock().sleep(rest) => {}
        }
    }
}

impl<E, S, C> Inner<E, S, C>
where
    E: Effects + 'static,
    S: RunStore + 'static,
    C: Clock + 'static,
{
    /// Does what can be done now; returns how long until something may be due by itself.
    async fn turn(self: &Arc<Self>, wanted: &Wanted, memory: &mut Memory) -> Duration {
        let hook = &wanted.due.hook;
        let (is_listed, unlisted) = {
            let state = self.state();
            (state.is_listed, state.unlisted.clone())
        };
        if !is_listed {
            if let Some(reason) = unlisted {
                let what = format!("its records cannot be read: {reason}");
                for migration in &wanted.due.migrations {
                    self.set(hook, &migration.migration.name, Part::Judging(what.clone()));
                }
            }
            return limits::HOOK_REST;
        }
        let mut open: Vec<(&DueMigration, RunSpec, String)> = Vec::new();
        let mut lost: Vec<(RunSpec, String)> = Vec::new();
        for migration in self.unresolved(wanted) {
            let spec = spec_of(&self.whose, wanted, migration);
            match self.find(wanted, &spec) {
                Found::Existing(name) => self.attach(hook, &spec.migration, &name),
                Found::New(name) => open.push((migration, spec, name)),
                Found::Lost(name) => lost.push((spec, name)),
            }
        }
        if !wanted.due.may_begin {
            return limits::HOOK_REST;
        }
        let mut rest = limits::HOOK_REST;
        for (spec, name) in &lost {
            // It is made, and asks a person: no guard is judged for that.
            match self.begin(hook, spec, name).await {
                Ok(()) if spec.definition.policy.on_failure != Some(FailurePolicy::Warn) => {
                    memory.blocking.insert(spec.migration.clone());
                }
                Ok(()) => {}
                Err(message) => {
                    self.set(hook, &spec.migration, Part::Judging(message));
                    rest = limits::GUARD_RETRY;
                }
            }
        }
        if open.is_empty() {
            return rest;
        }
        let older = self.state().older_run(hook);
        if let Some(older) = older {
            self.wait_for(
                hook,
                &open,
                &format!("run {older} of an earlier deploy has to end first"),
            );
            return limits::HOOK_REST;
        }
        rest = rest.min(self.judge_all(hook, &open, memory).await);
        rest.min(self.begin_all(wanted, &open, memory).await)
    }

    /// Returns the migrations of which nothing is known yet.
    fn unresolved<'w>(&self, wanted: &'w Wanted) -> Vec<&'w DueMigration> {
        let state = self.state();
        let Some(entry) = state.hooks.get(&wanted.due.hook) else {
            return Vec::new();
        };
        let migrations = wanted.due.migrations.iter();
        migrations
            .filter(|it| matches!(entry.parts.get(&it.migration.name), Some(Part::Judging(_))))
            .collect()
    }

    /// Looks for the Run of a migration.
    pub(super) fn find(&self, wanted: &Wanted, spec: &RunSpec) -> Found {
        let state = self.state();
        let previous = wanted.due.previous.as_ref();
        if spec.definition.policy.run.is_once() {
            return state.find_once(spec, previous);
        }
        for again in 0..limits::RUNS_AGAIN_MAX {
            let name = run_name(spec, previous, again);
            let Some(entry) = state.runs.get(&name) else {
                return Found::New(name);
            };
            let counts = match phase_of(&entry.run) {
                // It was taken back. Where that has ended half-way the state of the cluster decides as well.
                _ if is_undoing(&entry.run) => false,
                RunPhase::Superseded => is_left_out(&entry.run),
                // The record is evidence; whether there is work again is for the state of the cluster to say.
                RunPhase::Succeeded => {
                    let definition = &spec.definition;
                    definition.policy.run != RunPolicy::WhenNeeded
                        || definition.guard.done_when.is_some()
                }
                _ => true,
            };
            if counts {
                return Found::Existing(name);
            }
        }
        Found::Existing(run_name(spec, previous, limits::RUNS_AGAIN_MAX - 1))
    }

    fn attach(self: &Arc<Self>, hook: &Hook, migration: &str, name: &str) {
        self.set(hook, migration, Part::Run(name.to_owned()));
        if let Some(entry) = self.state().runs.get_mut(name) {
            entry.is_wanted = true;
        }
        self.work_on(name);
        // Its task may have waited for the hook to come.
        self.note_change();
    }

    fn set(&self, hook: &Hook, migration: &str, part: Part) {
        if let Some(entry) = self.state().hooks.get_mut(hook) {
            entry.parts.insert(migration.to_owned(), part);
        }
    }

    fn wait_for(&self, hook: &Hook, open: &[(&DueMigration, RunSpec, String)], what: &str) {
        for (_, spec, _) in open {
            self.set(hook, &spec.migration, Part::Judging(what.to_owned()));
        }
    }

    /// Judges every guard that may be judged now; returns when one that could not be evaluated is judged again.
    async fn judge_all(
        &self,
        hook: &Hook,
        open: &[(&DueMigration, RunSpec, String)],
        memory: &mut Memory,
    ) -> Duration {
        let mut due = Vec::new();
        for (migration, spec, _) in open {
            match self.obstacle(hook, migration) {
                Some(obstacle) => self.set(hook, &spec.migration, Part::Judging(obstacle)),
                None if !memory.decided.contains_key(&spec.migration) => due.push(spec),
                None => {}
            }
        }
        let lookups = LookupCache::new();
        let mut judging = Vec::new();
        for spec in due {
            judging.push(self.judge_one(spec, &lookups).boxed());
        }
        let mut judged = futures::stream::iter(judging).buffer_unordered(limits::HOOK_CONCURRENCY);
        let mut rest = limits::HOOK_REST;
        while let Some((spec, judgement)) = judged.next().await {
            self.listener.judged(hook, spec, &judgement);
            *memory.judging.entry(spec.migration.clone()).or_default() += judgement.took;
            match judgement.decision {
                Decision::NotNeeded | Decision::Skip => {
                    self.set(hook, &spec.migration, Part::Done);
                }
                Decision::Unknown => {
                    let count = memory.unknown.entry(spec.migration.clone()).or_default();
                    *count += 1;
                    if *count >= limits::GUARD_TRIES {
                        memory
                            .decided
                            .insert(spec.migration.clone(), Decision::Unknown);
                    } else {
                        rest = rest.min(limits::GUARD_RETRY * *count);
                        self.set(hook, &spec.migration, Part::Judging(judgement.message));
                    }
                }
                decision => {
                    memory.decided.insert(spec.migration.clone(), decision);
                }
            }
        }
        rest
    }

    async fn judge_one<'a>(
        &self,
        spec: &'a RunSpec,
        lookups: &LookupCache,
    ) -> (&'a RunSpec, Judgement) {
        let now = Sight::default();
        (spec, self.driver.judge(spec, lookups, &now).await)
    }

    /// Returns what a migration of the hook waits for, of those that it names in `after`.
    fn obstacle(&self, hook: &Hook, migration: &DueMigration) -> Option<String> {
        let state = self.state();
        let parts = &state.hooks.get(hook)?.parts;
        migration
            .migration
            .spec
            .after
            .iter()
            .find_map(|name| match parts.get(name)? {
                Part::Done => None,
                Part::Judging(_) => Some(format!("it comes after {name}")),
                Part::Run(run) => match phase_of(&state.runs.get(run)?.run) {
                    RunPhase::Succeeded => None,
                    RunPhase::Superseded if is_left_out(&state.runs.get(run)?.run) => None,
                    RunPhase::Failed | RunPhase::Cancelled => {
                        Some(format!("it comes after {name}, which has not ended well"))
                    }
                    _ => Some(format!("it comes after {name}")),
                },
            })
    }

    /// Begins the runs of what was decided; returns when to try again where a record could not be made.
    async fn begin_all(
        self: &Arc<Self>,
        wanted: &Wanted,
        open: &[(&DueMigration, RunSpec, String)],
        memory: &mut Memory,
    ) -> Duration {
        let hook = &wanted.due.hook;
        let mut rest = limits::HOOK_REST;
        // What blocks is written down first: it keeps the others from beginning.
        for is_clear in [false, true] {
            for (_, spec, name) in open {
                let decision = memory.decided.get(&spec.migration);
                if decision.is_none_or(|decision| (*decision == Decision::Run) != is_clear) {
                    continue;
                }
                if is_clear && let Some(reason) = self.not_now(hook, &memory.blocking) {
                    self.set(hook, &spec.migration, Part::Judging(reason));
                    continue;
                }
                match self.begin(hook, spec, name).await {
                    Ok(()) => {
                        memory.decided.remove(&spec.migration);
                        if !is_clear {
                            memory.blocking.insert(spec.migration.clone());
                        }
                    }
                    Err(message) => {
                        self.set(hook, &spec.migration, Part::Judging(message));
                        rest = rest.min(limits::GUARD_RETRY);
                    }
                }
            }
        }
        rest
    }

    /// Returns why no further migration of the hook begins now.
    fn not_now(&self, hook: &Hook, blocking: &BTreeSet<String>) -> Option<String> {
        let state = self.state();
        let mut active = 0;
        for (migration, part) in &state.hooks.get(hook)?.parts {
            let Part::Run(name) = part else { continue };
            let Some(entry) = state.runs.get(name) else {
                continue;
            };
            let has_begun = entry
                .run
                .status
                .as_ref()
                .is_some_and(|it| it.started_at.is_some());
            match phase_of(&entry.run) {
                RunPhase::Blocked | RunPhase::Pending
                    if !has_begun && blocking.contains(migration) =>
                {
                    return Some(format!(
                        "it begins as soon as {migration} is not blocked any more"
                    ));
                }
                _ if is_in_the_way(&entry.run) => {
                    return Some(format!(
                        "it begins as soon as a person has said what became of {migration}"
                    ));
                }
                phase if !phase.is_over() => active += 1,
                _ => {}
            }
        }
        (active >= limits::HOOK_CONCURRENCY).then(|| {
            format!(
                "{} migrations of the hook are under way",
                limits::HOOK_CONCURRENCY
            )
        })
    }

    async fn begin(
        self: &Arc<Self>,
        hook: &Hook,
        spec: &RunSpec,
        name: &str,
    ) -> Result<(), String> {
        if spec.definition.policy.run.is_once()
            && let Some(reason) = self.state().no_room(name)
        {
            return Err(reason);
        }
        let run = new_run(&self.whose, name, spec.clone());
        let stored: Run = match self.driver.store().create(&run).await {
            Ok(stored) => stored,
            Err(StoreError::ClaimLost(message)) => return Err(message),
            Err(error) => return Err(format!("its record cannot be made: {error}")),
        };
        self.listener.changed(None, &stored);
        self.state().see(stored);
        self.attach(hook, &spec.migration, name);
        Ok(())
    }

    /// Says once how long the hook took, as soon as every migration of it has ended.
    fn tell_end(&self, wanted: &Wanted, memory: &mut Memory) {
        if memory.has_ended {
            return;
        }
        let times = {
            let state = self.state();
            let Some(entry) = state.hooks.get(&wanted.due.hook) else {
                return;
            };
            let mut migrations: Vec<(String, Duration)> = Vec::new();
            for (migration, part) in &entry.parts {
                let mut time = memory.judging.get(migration).copied().unwrap_or_default();
                match part {
                    Part::Judging(_) => return,
                    Part::Done => {}
                    Part::Run(name) => {
                        let Some(entry) = state.runs.get(name) else {
                            return;
                        };
                        if !phase_of(&entry.run).is_over() {
                            return;
                        }
                        let status = entry.run.status.as_ref();
                        let active = status.map_or(0, |status| status.active_milliseconds);
                        time += Duration::from_millis(active);
                    }
                }
                migrations.push((migration.clone(), time));
            }
            migrations.sort_by(|one, two| two.1.cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
            HookTimes {
                wall: self.driver.clock().monotonic().saturating_sub(memory.begun),
                migrations,
            }
        };
        memory.has_ended = true;
        self.listener.ended(&wanted.due.hook, &times);
    }
}
