//! From hooks to runs: judges what a plan names as due, and drives the runs of what is needed.
//!
//! A pass never waits. It offers the hooks that its plan wants and reads how they stand; everything else happens in tasks of the
//! conductor, which ring the bell of the target when a hook has come further. The rooms: `naming` (what a run is of, and its name),
//! `state` (what is known of hooks and runs), `offers` (what a plan wants), `stands` (how that reads for planning), `once` (runs whose record decides), `hook` (one task for each hook that is wanted: judge,
//! order, begin), `ahead` and `foresight` (one task for all hooks that a deploy comes by later: judge them before its first change), `work` (one task for each run that is not over),
//! `undo` (which run of a removed component is taken back next).
//!
//! What is found after a restart is in the records of runs: those inside a step go on at once, those that wait are first held against
//! what the next plan wants, and are superseded where it wants something else.

mod ahead;
mod foresight;
mod hook;
mod naming;
mod offers;
mod once;
mod stands;
mod state;
mod undo;
mod work;

#[cfg(test)]
mod ahead_tests;
#[cfg(test)]
mod once_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::driver::{Driver, Judgement};
use super::effects::Effects;
use super::store::RunStore;
use crate::model::api::{Run, RunSpec};
use crate::model::migration::Hook;
use crate::model::{ComponentName, Revision, SourceName};
use crate::plan::hooks::{AheadHook, DueHook, HookStates, Once};

pub use naming::{hook_of, labels_of, run_selector};
pub use once::happens_once;
use state::State;

/// The hooks that a plan wants, with what their runs carry.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    /// The revision that asks for them.
    pub revision: &'a Revision,
    /// The author of the commit.
    pub author: &'a str,
    /// The release that `fairway.yaml` names.
    pub release: Option<&'a str>,
    /// Hosts that `http` steps may call.
    pub http_hosts: &'a [String],
    /// The hooks; any other one is no longer wanted.
    pub hooks: &'a [DueHook],
    /// Removed components whose runs are to be taken back; of any other one nothing more is begun.
    pub undo: &'a [ComponentName],
    /// What the target remembers of runs that happen once, as it is stored.
    pub once: &'a Once,
    /// The hooks that are judged before anything of the deploy is changed.
    pub ahead: &'a [AheadHook],
}

/// Runs the migrations of one target.
pub trait Conduct: Send + Sync {
    /// Takes up the hooks that are wanted now. Returns at once.
    fn offer(&self, offer: Offer<'_>);

    /// Returns how the hooks stand that were begun.
    fn states(&self) -> HookStates;
}

/// Hears what becomes of migrations: logs, metrics, events and audit lines are made of this.
pub trait Listen: Send + Sync {
    /// The guard of a migration was judged.
    fn judged(&self, hook: &Hook, spec: &RunSpec, judgement: &Judgement);

    /// The record of a run was written. `before` is what it was; none where it was created.
    fn changed(&self, before: Option<&Run>, run: &Run);

    /// Every migration of a hook has ended.
    fn ended(&self, hook: &Hook, times: &HookTimes);
}

/// How long a hook took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookTimes {
    /// From the first judgement to the end of the last migration.
    pub wall: Duration,
    /// The migrations with the time of each, judging and active time, the slowest first.
    pub migrations: Vec<(String, Duration)>,
}

impl HookTimes {
    /// Returns the time of all migrations together: they overlap, so that it can be more than passed.
    pub fn summed(&self) -> Duration {
        self.migrations.iter().map(|(_, time)| *time).sum()
    }
}

/// Whose migrations a conductor runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whose {
    /// The source.
    pub source: SourceName,
    /// The cluster: `home`, or a runtime's name.
    pub cluster: String,
    /// The identity of that cluster.
    pub cluster_uid: String,
    /// Where Runs are kept.
    pub namespace: String,
}

/// Conducts the migrations of one target. Clones are the same one.
pub struct Conductor<E, S, C> {
    inner: Arc<Inner<E, S, C>>,
}

struct Inner<E, S, C> {
    whose: Whose,
    driver: Driver<E, S, C>,
    bell: Box<dyn Fn() + Send + Sync>,
    listener: Arc<dyn Listen>,
    state: Mutex<State>,
    /// Counts what changed about hooks and runs, for the tasks that wait for it.
    changed: watch::Sender<u64>,
    /// Counts offers: something on the cluster may have changed.
    nudged: watch::Sender<u64>,
    tasks: Mutex<JoinSet<()>>,
    stop: CancellationToken,
}

impl<E, S, C> Clone for Conductor<E, S, C> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

// === impl Conductor ===

impl<E, S, C> Conductor<E, S, C>
where
    E: Effects + 'static,
    S: RunStore + 'static,
    C: Clock + 'static,
{
    /// Makes one, which does nothing before it is told which Runs there are, see [`Conductor::listed`].
    pub fn new(
        whose: Whose,
        driver: Driver<E, S, C>,
        listener: Arc<dyn Listen>,
        bell: impl Fn() + Send + Sync + 'static,
        stop: CancellationToken,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                whose,
                driver,
                bell: Box::new(bell),
                listener,
                state: Mutex::default(),
                changed: watch::Sender::new(0),
                nudged: watch::Sender::new(0),
                tasks: Mutex::default(),
                stop,
            }),
        }
    }

    /// Is told of every Run of this source on this cluster. Those that are inside a step go on at once.
    pub fn listed(&self, runs: Vec<Run>) {
        let names: Vec<String> = {
            let mut state = self.inner.state();
            state.is_listed = true;
            state.unlisted = None;
            state.keep_only(&runs);
            runs.into_iter().map(|run| state.see(run)).collect()
        };
        for name in names {
            self.inner.work_on(&name);
        }
        self.inner.note_change();
        (self.inner.bell)();
    }

    /// Is told what the target remembers of runs that happen once, where no plan has told yet: those that are inside a step go on.
    pub fn recall(&self, once: Once) {
        self.inner.state().once.get_or_insert(once);
        self.inner.note_change();
    }

    /// Is told why it is not known which Runs there are. What was known before stays.
    pub fn unlisted(&self, reason: &str) {
        self.inner.state().unlisted = Some(reason.to_owned());
        self.inner.note_change();
    }

    /// Is told of a Run that somebody has written; a person's word is in its annotation.
    pub fn seen(&self, run: Run) {
        let (name, is_stale) = {
            let mut state = self.inner.state();
            let name = state.see(run);
            let is_stale = state.runs.get(&name).is_some_and(|entry| entry.is_stale);
            (name, is_stale)
        };
        self.inner.work_on(&name);
        if is_stale {
            self.inner.note_change();
        }
    }

    /// Is told of a Run that is gone.
    pub fn gone(&self, name: &str) {
        self.inner.state().forget(name);
        self.inner.note_change();
        (self.inner.bell)();
    }

    /// Returns whether what it tells of blocked runs is only what another process has seen. The bell rings once it is not.
    pub fn has_to_look(&self) -> bool {
        self.inner.state().has_to_look()
    }

    /// Returns when the runs that are over have ended, the newest first, and the names of those whose record a deploy still asks for.
    /// None while that is not known: no plan that knew the runs has said yet what it wants.
    pub fn ended(&self) -> Option<(Vec<Timestamp>, BTreeSet<String>)> {
        let state = self.inner.state();
        state.is_offered.then(|| state.ended())
    }

    /// Waits until every task has ended, which they do once the conductor is told to stop.
    pub async fn end(&self) {
        loop {
            let mut tasks = std::mem::take(&mut *self.inner.tasks());
            if tasks.is_empty() {
                return;
            }
            while tasks.join_next().await.is_some() {}
        }
    }
}

impl<E, S, C> Conduct for Conductor<E, S, C>
where
    E: Effects + 'static,
    S: RunStore + 'static,
    C: Clock + 'static,
{
    fn offer(&self, offer: Offer<'_>) {
        let now = self.inner.driver.clock().monotonic();
        let (begun, parked) = self.inner.state().take_offer(offer, now);
        self.inner.watch_ahead();
        for (hook, wanted, stop) in begun {
            let inner = Arc::clone(&self.inner);
            self.inner.spawn(hook::conduct(inner, hook, wanted, stop));
        }
        if parked {
            self.inner.note_change();
        }
        let why = format!("its component is gone since {}", offer.revision);
        let next = self.inner.state().begin_undo(offer.undo, &why);
        for name in next {
            self.inner.work_on(&name);
        }
        self.inner.nudged.send_modify(|count| *count += 1);
    }

    fn states(&self) -> HookStates {
        let now = self.inner.driver.clock().monotonic();
        self.inner.state().states(now)
    }
}

// === impl Inner ===

impl<E, S, C> Inner<E, S, C> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("nothing panics while holding the state")
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks
            .lock()
            .expect("nothing panics while holding the tasks")
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        // Those that have ended are forgotten, so that the set stays small.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    fn note_change(&self) {
        self.changed.send_modify(|count| *count += 1);
    }
}

impl<E, S, C: Clock> Inner<E, S, C> {
    fn now(&self) -> Timestamp {
        self.driver.clock().wall()
    }
}
