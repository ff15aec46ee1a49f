//! The loop of one run.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Driver;
use super::session::{Leave, Session, Word};
use crate::model::api::{Run, RunCommand, RunPhase, StepRecord};
use crate::model::limits;
use crate::model::migration::Step;
use crate::runs::clock::Clock;
use crate::runs::effects::Effects;
use crate::runs::guard::{Proof, Verdict, prove};
use crate::runs::lookups::{LookupCache, Scene, Surroundings};
use crate::runs::machine::{Next, is_lost, lost_record};
use crate::runs::sight::Sight;
use crate::runs::steps::stop as stop_step;
use crate::runs::store::RunStore;

impl<E: Effects, S: RunStore, C: Clock> Driver<E, S, C> {
    /// Drives a run until it is over, needs a person or a change of the cluster (`Blocked`, `Paused`, `Manual`; `status.nextAt` says
    /// when to look again by itself), another process has taken over, or `stop`. `run` is the record as it was read last; what
    /// is returned is the record as it was written or read last.
    ///
    /// A command is acted on once, however often it is sent; sending one again ends a wait early, as a bell does. The one in the
    /// annotation of `run` counts as well. `on_change` is called after each write.
    ///
    /// `stop` is no cancel: an attempt has a moment to end and to be written down, and whoever drives the run next goes on.
    pub async fn drive(
        &self,
        run: Run,
        commands: watch::Receiver<Option<RunCommand>>,
        stop: &CancellationToken,
        on_change: impl Fn(&Run) + Send + Sync,
    ) -> Run {
        let mut session = Session::new(self, run, commands, stop, on_change);
        // On the heap: whoever drives a run would hold all that its steps need otherwise.
        let driving: BoxFuture<'_, Result<(), Leave>> = Box::pin(session.drive());
        let ended = driving.await;
        session.let_go(ended);
        session.run
    }

    /// Ends a run that has had no effect under way, since its definition or its deploy is no longer wanted. One that is inside an effect
    /// is returned as it is: it ends as it began, from its own copy. It must not be driven at the same time.
    pub async fn supersede(
        &self,
        run: Run,
        why: &str,
        stop: &CancellationToken,
        on_change: impl Fn(&Run) + Send + Sync,
    ) -> Run {
        let mut session = self.session(run, stop, on_change);
        let mut machine = session.machine();
        if machine.supersede(why).is_ok() {
            let status = machine.into_status();
            let ended = session.save(status).await;
            session.let_go(ended);
        }
        session.run
    }

    /// Hands a run whose record decides and was lost to a person: nothing is done until somebody has said whether it ever ran. One
    /// that is over, or that a person is asked about already, is returned as it is.
    pub async fn distrust(
        &self,
        run: Run,
        why: &str,
        stop: &CancellationToken,
        on_change: impl Fn(&Run) + Send + Sync,
    ) -> Run {
        let mut session = self.session(run, stop, on_change);
        let before = session.status();
        if !before.phase.is_over() && !is_lost(&before) {
            let wish = RunCommand::wished(&session.run);
            let status = lost_record(session.name(), why, (&before, wish), self.now());
            let ended = session.save(status).await;
            session.let_go(ended);
        }
        session.run
    }

    /// Begins a run anew that has failed or was cancelled, with new attempts and new time; the guard is asked first. It is not driven
    /// yet. One that is not over, or has succeeded, is returned as it is.
    pub async fn restart(
        &self,
        run: Run,
        stop: &CancellationToken,
        on_change: impl Fn(&Run) + Send + Sync,
    ) -> Run {
        let mut session = self.session(run, stop, on_change);
        let mut machine = session.machine();
        if matches!(
            machine.status().phase,
            RunPhase::Failed | RunPhase::Cancelled
        ) {
            machine.begin_round();
            let status = machine.into_status();
            let ended = session.save(status).await;
            session.let_go(ended);
        }
        session.run
    }

    /// Takes back what a run has done, by the `undo` of its own copy of the definition, and drives that as [`Driver::drive`] does.
    /// What somebody has changed since is left, and `status.undone` says so. A run that is being undone already is gone on with.
    pub async fn undo(
        &self,
        run: Run,
        why: &str,
        commands: watch::Receiver<Option<RunCommand>>,
        stop: &CancellationToken,
        on_change: impl Fn(&Run) + Send + Sync,
    ) -> Run {
        let mut session = Session::new(self, run, commands, stop, on_change);
        let mut machine = session.machine();
        if !machine.status().undoing {
            if let Err(reason) = machine.begin_undo(why) {
                tracing::debug!(run.name = session.name(), reason, "nothing is undone");
                return session.run;
            }
            let status = machine.into_status();
            if session.save(status).await.is_err() {
                return session.run;
            }
        }
        // On the heap: whoever drives a run would hold all that its steps need otherwise.
        let driving: BoxFuture<'_, Result<(), Leave>> = Box::pin(session.drive());
        let ended = driving.await;
        session.let_go(ended);
        session.run
    }

    /// Takes up a run without anybody to command it.
    fn session<'a, F: Fn(&Run) + Send + Sync>(
        &'a self,
        run: Run,
        stop: &'a CancellationToken,
        on_change: F,
    ) -> Session<'a, E, S, C, F> {
        let (_, commands) = watch::channel(None);
        Session::new(self, run, commands, stop, on_change)
    }
}

// === impl Session ===

impl<E: Effects, S: RunStore, C: Clock, F: Fn(&Run) + Send + Sync> Session<'_, E, S, C, F> {
    /// Says why a run was let go of that is not over.
    pub(super) fn let_go(&self, ended: Result<(), Leave>) {
        if let Err(Leave::NotOurs(reason)) = ended {
            tracing::info!(run.name = self.name(), reason, "let go of a run");
        }
    }

    /// Goes on until there is nothing to be done now.
    async fn drive(&mut self) -> Result<(), Leave> {
        self.take_up().await?;
        loop {
            if self.stop.is_cancelled() {
                return Err(Leave::Stopped);
            }
            self.hear().await?;
            if self.grace_left() == Some(Duration::ZERO) {
                self.ask_to_stop().await;
                self.write_down(Word::Cancelled).await?;
            }
            let next = self.machine().next();
            match next {
                Next::Over | Next::Rest => return Ok(()),
                Next::Pause => self.write_down(Word::Paused).await?,
                Next::EndCancel => self.write_down(Word::Cancelled).await?,
                Next::EndUndo => self.write_down(Word::Undone).await?,
                Next::Judge if self.is_due() => self.judge().await?,
                Next::Prove if self.is_due() => self.prove().await?,
                Next::Step(position) if self.is_due() => self.step(position).await?,
                Next::Recover(position) => self.recover(position).await?,
                Next::Judge | Next::Prove | Next::Step(_) => self.wait().await?,
            }
        }
    }

    /// Asks a Job that has not ended within the grace of a cancel to stop.
    async fn ask_to_stop(&self) {
        let machine = self.machine();
        let Some(position) = machine.under_way() else {
            return;
        };
        let step = machine.carried_out(&position);
        let record = machine.record(&position).cloned().unwrap_or_default();
        drop(machine);
        self.ask_step_to_stop(step, record).await;
    }

    /// Asks what a step has started to stop. Where it cannot be asked its own deadline ends it.
    pub(super) async fn ask_step_to_stop(&self, step: Step, record: StepRecord) {
        let asked = tokio::select! {
            biased;
            asked = stop_step(self.driver.effects(), &step, &record) => asked,
            () = self.driver.clock().sleep(limits::STOP_GRACE) => return,
        };
        if let Err(error) = asked {
            tracing::warn!(
                run.name = self.name(),
                step.id = record.id,
                %error,
                "failed to ask a step of a run that is over to stop"
            );
        }
    }

    /// Takes a run up as somebody has left it: a delay that was planned is kept, what blocked it is asked again.
    async fn take_up(&mut self) -> Result<(), Leave> {
        let status = self.status();
        if status.phase == RunPhase::Waiting {
            let delay = self.machine().resumed_wait();
            self.wait_for(delay);
        }
        let is_blocked = status.phase == RunPhase::Blocked;
        if status.undoing && !self.machine().is_begun() {
            if is_blocked || status.phase == RunPhase::Running {
                self.review_undo().await?;
            }
        } else if is_blocked {
            self.judge().await?;
        }
        Ok(())
    }

    /// Asks the guard. A run that is blocked for the same reason as before is not written again.
    async fn judge(&mut self) -> Result<(), Leave> {
        let machine = self.machine();
        let (overridden, blocked) = (
            machine.is_overridden(),
            machine.status().phase == RunPhase::Blocked,
        );
        let verdict = self.verdict(overridden, &Sight::default()).await;
        let spent = self.elapsed();
        let before = self.status();
        let mut machine = self.machine();
        // Waiting for a precondition is no active time.
        if !blocked {
            machine.spend(spent);
        }
        let delay = machine.judged(verdict);
        let (phase, status) = (machine.status().phase, machine.into_status());
        if blocked && status == before {
            return Ok(());
        }
        self.wait_for(delay);
        if phase == RunPhase::Running {
            // Nothing was done yet that is worth a write of its own: the first attempt carries this.
            self.hold(status);
            return Ok(());
        }
        self.save(status).await
    }

    /// Asks the guard, and looks whether the work can be done.
    pub(super) async fn verdict(&self, overridden: bool, sight: &Sight) -> Verdict {
        let spec = self.spec.clone();
        let name = self.name().to_owned();
        let surroundings = Surroundings {
            run: &name,
            steps: &[],
        };
        let lookups = LookupCache::new();
        let judged = self
            .driver
            .judge_run(&spec, (&lookups, surroundings), overridden, sight);
        judged.await.into()
    }

    /// Asks for the proof that the work is done.
    async fn prove(&mut self) -> Result<(), Leave> {
        let proof = self.proof().await;
        let spent = self.elapsed();
        let mut machine = self.machine();
        machine.spend(spent);
        let delay = machine.proved(proof);
        let status = machine.into_status();
        self.wait_for(delay);
        self.save(status).await
    }

    /// Looks whether the work is done by the state of the cluster.
    pub(super) async fn proof(&self) -> Proof {
        let scene = self.scene().await;
        let spec = self.spec.clone();
        let proof = self
            .driver
            .clock()
            .apart(move || prove(&spec, &scene))
            .await;
        match proof.unwrap_or_else(Proof::Unknown) {
            Proof::Done(found) => Proof::Done(found.map(|found| self.dated(found))),
            Proof::NotDone(found) => Proof::NotDone(self.dated(found)),
            unknown @ Proof::Unknown(_) => unknown,
        }
    }

    /// Looks everything up anew that the migration names.
    pub(super) async fn scene(&self) -> Scene {
        let status = self.status();
        let name = self.name().to_owned();
        let surroundings = Surroundings {
            run: &name,
            steps: &status.steps,
        };
        Scene::look(
            self.driver.effects(),
            &LookupCache::new(),
            &self.spec,
            None,
            surroundings,
        )
        .await
    }

    /// Waits until what is next is due, or somebody says something.
    async fn wait(&mut self) -> Result<(), Leave> {
        let left = self.left().min(limits::RUN_WAIT_MAX);
        let (stop, clock) = (self.stop, self.driver.clock());
        tokio::select! {
            biased;
            () = stop.cancelled() => return Err(Leave::Stopped),
            rung = self.commands.changed() => match rung {
                Ok(()) => self.wait_for(Duration::ZERO),
                // Nobody says anything any more; time goes on.
                Err(_) => clock.sleep(left).await,
            },
            () = clock.sleep(left) => {}
        }
        Ok(())
    }
}
