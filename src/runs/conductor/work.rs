//! One run: driven until it is over, parked while it needs a person or a change of the cluster, superseded when nobody wants it any
//! more.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use super::Inner;
use super::stands::{is_said, is_undoing, phase_of};
use super::state::RunEntry;
use crate::model::api::{Run, RunCommand, RunPhase};
use crate::model::limits;
use crate::plan::hooks::{Loss, Trust};
use crate::runs::clock::Clock;
use crate::runs::effects::Effects;
use crate::runs::sight::Sight;
use crate::runs::store::RunStore;

/// What a run's task has in hand.
struct Hand {
    run: Arc<Run>,
    commands: watch::Receiver<Option<RunCommand>>,
    is_wanted: bool,
    is_offered: bool,
    /// Why it is to be taken back.
    undo: Option<String>,
    is_stale: bool,
    /// How the run is looked at while its hook has not come, and whether it may begin then.
    ahead: Option<(Sight, bool)>,
}

impl<E, S, C> Inner<E, S, C>
where
    E: Effects + 'static,
    S: RunStore + 'static,
    C: Clock + 'static,
{
    /// Sets a task to work on a run that is not over, or that a person has said something about. One that has its task keeps it.
    pub(super) fn work_on(self: &Arc<Self>, name: &str) {
        {
            let mut state = self.state();
            let Some(entry) = state.runs.get_mut(name) else {
                return;
            };
            if entry.is_working {
                return;
            }
            if is_at_rest(entry) {
                state.shrink(name);
                return;
            }
            entry.is_working = true;
        }
        self.spawn(work(Arc::clone(self), name.to_owned()));
    }

    fn hand(&self, name: &str) -> Option<Hand> {
        let mut state = self.state();
        let entry = state.runs.get_mut(name)?;
        let is_stale = std::mem::take(&mut entry.is_stale);
        let run = Arc::clone(&entry.run);
        let (commands, is_wanted) = (entry.commands.subscribe(), entry.is_wanted);
        let undo = entry.undo.clone();
        Some(Hand {
            commands,
            is_wanted,
            is_offered: state.is_offered,
            undo,
            is_stale,
            ahead: state.sight_of(&run),
            run,
        })
    }

    /// Notes what was written of a run, and tells whoever waits for it.
    fn wrote(&self, run: &Run) {
        let before = self.state().wrote(run);
        if before.as_deref() == Some(run) {
            return;
        }
        self.listener.changed(before.as_deref(), run);
        let words = |run: &Run| {
            let status = run.status.clone().unwrap_or_default();
            (status.phase, status.reason, status.message)
        };
        if before.is_none_or(|before| words(&before) != words(run)) {
            self.note_change();
            (self.bell)();
        }
    }
}

/// Works on one run until it is over, or the conductor is told to stop.
async fn work<E, S, C>(inner: Arc<Inner<E, S, C>>, name: String)
where
    E: Effects + 'static,
    S: RunStore + 'static,
    C: Clock + 'static,
{
    loop {
        inner.go_on(&name).await;
        let mut state = inner.state();
        let Some(entry) = state.runs.get_mut(&name) else {
            return;
        };
        // A person's word that came in between is not lost.
        if is_at_rest(entry) || inner.stop.is_cancelled() {
            entry.is_working = false;
            state.shrink(&name);
            return;
        }
    }
}

impl<E, S, C> Inner<E, S, C>
where
    E: Effects + 'static,
    S: RunStore + 'static,
    C: Clock + 'static,
{
    /// Does one thing about a run, and waits where there is nothing to do.
    async fn go_on(self: &Arc<Self>, name: &str) {
        let mut changed = self.changed.subscribe();
        let Some(mut hand) = self.hand(name) else {
            return;
        };
        if hand.is_stale {
            return self.read_again(name).await;
        }
        if let Some(why) = hand.undo {
            return self.take_back(name, &why, hand.commands).await;
        }
        let trust = self.state().trust(&hand.run);
        match trust {
            Trust::Known => {}
            // Its first effect comes after it is written down.
            Trust::Unwritten => {
                return self.rest(&mut changed, &mut hand.commands, None).await;
            }
            Trust::Lost(loss) => return self.distrust(name, &hand, loss).await,
        }
        let phase = phase_of(&hand.run);
        let is_parked = matches!(
            phase,
            RunPhase::Pending | RunPhase::Blocked | RunPhase::Paused | RunPhase::Manual
        );
        let is_said = is_said(&hand.run, hand.commands.borrow().as_ref());
        if is_parked && !hand.is_offered {
            // What the next plan wants decides.
            return self.rest(&mut changed, &mut hand.commands, None).await;
        }
        let run = (*hand.run).clone();
        if is_parked && !hand.is_wanted && !is_undoing(&hand.run) {
            let why = "its definition or its deploy is no longer wanted";
            let written = |run: &Run| self.wrote(run);
            let run = self.driver.supersede(run, why, &self.stop, written).await;
            if phase_of(&run).is_over() {
                return self.wrote(&run);
            }
        }
        if matches!(phase, RunPhase::Paused | RunPhase::Manual) && !is_said {
            return self.rest(&mut changed, &mut hand.commands, None).await;
        }
        if let Some((sight, may_begin)) = hand.ahead.take() {
            if may_begin && !is_said {
                return self.rest(&mut changed, &mut hand.commands, None).await;
            }
            return self.go_ahead(name, (hand, &sight), changed).await;
        }
        let run = (*hand.run).clone();
        let written = |run: &Run| self.wrote(run);
        let run = self
            .driver
            .drive(run, hand.commands.clone(), &self.stop, written)
            .await;
        self.wrote(&run);
        if self.state().look_at(name) {
            (self.bell)();
        }
        let is_same = run == *hand.run;
        match phase_of(&run) {
            phase if phase.is_over() => {}
            RunPhase::Blocked => {
                let look = self.until(&run);
                self.rest(&mut changed, &mut hand.commands, Some(look))
                    .await;
            }
            RunPhase::Paused | RunPhase::Manual if !is_same => {}
            // Let go of: by us, since we stop, or since somebody else has written.
            _ if self.stop.is_cancelled() => {}
            _ => self.read_again(name).await,
        }
    }

    /// Begins to take a run back, and drives that until it is over or needs a person. What is known of a run that is over is not its
    /// whole record, which is read first.
    async fn take_back(
        self: &Arc<Self>,
        name: &str,
        why: &str,
        commands: watch::Receiver<Option<RunCommand>>,
    ) {
        let Ok(Some(run)) = self.driver.store().read(name).await else {
            return self.read_again(name).await;
        };
        let written = |run: &Run| {
            // It is in the record from the first write on.
            if let Some(entry) = self.state().runs.get_mut(name) {
                entry.undo = None;
            }
            self.wrote(run);
        };
        let undone = self.driver.undo(run, why, commands, &self.stop, written);
        let run = undone.await;
        let is_stopped = self.stop.is_cancelled();
        self.wrote(&run);
        let is_left = {
            let mut state = self.state();
            let entry = state.runs.get_mut(name);
            // Where it could not be begun at all, planning says what to do next.
            entry.is_some_and(|entry| entry.undo.take().is_some())
        };
        if is_left && !is_stopped {
            self.note_change();
            (self.bell)();
        }
    }

    /// Has a person asked about a run whose record was lost.
    async fn distrust(&self, name: &str, hand: &Hand, loss: Loss) {
        let (run, why) = ((*hand.run).clone(), loss.to_string());
        let written = |run: &Run| self.wrote(run);
        let run = self.driver.distrust(run, &why, &self.stop, written).await;
        self.wrote(&run);
        if run == *hand.run {
            self.read_again(name).await;
        }
    }

    /// Asks whether a run may begin whose hook has not come, and waits while it may not.
    async fn go_ahead(
        self: &Arc<Self>,
        name: &str,
        (mut hand, sight): (Hand, &Sight),
        mut changed: watch::Receiver<u64>,
    ) {
        let written = |run: &Run| self.wrote(run);
        let asked = (hand.commands.clone(), sight);
        let run = (*hand.run).clone();
        let (run, may_begin) = self
            .driver
            .look_ahead(run, asked, &self.stop, written)
            .await;
        self.wrote(&run);
        if self.state().look_at(name) {
            (self.bell)();
        }
        if may_begin {
            self.state().let_begin(&run);
            self.note_change();
            (self.bell)();
        } else if phase_of(&run) == RunPhase::Blocked {
            let look = self.until(&run);
            self.rest(&mut changed, &mut hand.commands, Some(look))
                .await;
        } else if !phase_of(&run).is_over() && run == *hand.run && !self.stop.is_cancelled() {
            self.read_again(name).await;
        }
    }

    /// Returns how long until a run wants to be looked at by itself.
    fn until(&self, run: &Run) -> Duration {
        let next: Option<Timestamp> = run
            .status
            .as_ref()
            .and_then(|status| status.next_at.as_ref())
            .map(|next| next.0);
        let Some(next) = next else {
            return limits::BLOCKED_LOOK_MAX;
        };
        let left = next.duration_since(self.now());
        let left = Duration::try_from(left).unwrap_or_default();
        left.clamp(limits::BLOCKED_LOOK_MIN, limits::BLOCKED_LOOK_MAX)
    }

    /// Waits until a person says something, or something about hooks and runs has changed. Where a look is due by itself, the cluster's
    /// bell makes it earlier, though not at once each time.
    async fn rest(
        &self,
        changed: &mut watch::Receiver<u64>,
        commands: &mut watch::Receiver<Option<RunCommand>>,
        look: Option<Duration>,
    ) {
        let mut nudged = self.nudged.subscribe();
        let clock = self.driver.clock();
        let bell = async {
            match look {
                Some(look) => tokio::select! {
                    () = clock.sleep(look) => {}
                    () = async {
                        clock.sleep(limits::BLOCKED_LOOK_MIN).await;
                        tokio::select! {
                            _ = nudged.changed() => {}
                            _ = changed.changed() => {}
                        }
                    } => {}
                },
                None => {
                    let _ = changed.changed().await;
                }
            }
        };
        tokio::select! {
            () = self.stop.cancelled() => {}
            _ = commands.changed() => {}
            () = bell => {}
        }
    }

    /// Takes the record as it is stored after somebody else has written it; one that is gone is no run any more.
    async fn read_again(&self, name: &str) {
        tokio::select! {
            () = self.stop.cancelled() => return,
            () = self.driver.clock().sleep(limits::BLOCKED_LOOK_MIN) => {}
        }
        match self.driver.store().read(name).await {
            Ok(Some(run)) => self.wrote(&run),
            Ok(None) => {
                let mut state = self.state();
                state.runs.remove(name);
                state.drop_lost_parts();
                drop(state);
                self.note_change();
                (self.bell)();
            }
            Err(error) => tracing::warn!(run.name = name, %error, "failed to read a run"),
        }
    }
}

fn is_at_rest(entry: &RunEntry) -> bool {
    let command = entry.commands.borrow();
    phase_of(&entry.run).is_over() && entry.undo.is_none() && !is_said(&entry.run, command.as_ref())
}
