//! One run under way in this process: the record as it was seen last, and the one way to write it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Driver;
use crate::model::api::{Evidence, Run, RunCommand, RunPhase, RunSpec, RunStatus};
use crate::model::limits;
use crate::runs::clock::Clock;
use crate::runs::machine::{Machine, is_new};
use crate::runs::store::{RunStore, StoreError};

/// Why this process lets go of a run that is not over. None of these is written anywhere: whoever goes on reads the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Leave {
    /// It was asked to stop.
    Stopped,
    /// Somebody else drives the run, or the record is gone or refused; why.
    NotOurs(String),
}

/// What is written of a run though no step says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// It stops before its next step.
    Paused,
    /// It is cancelled, and nothing is under way any more.
    Cancelled,
    /// Its effects were taken back.
    Undone,
}

/// One run under way.
pub(super) struct Session<'a, E, S, C, F> {
    pub(super) driver: &'a Driver<E, S, C>,
    /// The record as it was seen last.
    pub(super) run: Run,
    /// What it is of, and its name; neither ever changes.
    pub(super) spec: Arc<RunSpec>,
    name: String,
    pub(super) commands: watch::Receiver<Option<RunCommand>>,
    pub(super) stop: &'a CancellationToken,
    on_change: F,
    /// A status that the next write carries: what it says over the record is nothing that could be lost.
    held: Option<RunStatus>,
    /// Until when active time is counted already, by the monotonic clock.
    counted: Duration,
    /// When what is next is due, by the monotonic clock.
    due: Duration,
    /// When the grace of a cancel is over, by the monotonic clock.
    grace: Option<Duration>,
}

// === impl Session ===

impl<'a, E, S, C, F> Session<'a, E, S, C, F>
where
    E: Send + Sync,
    S: RunStore,
    C: Clock,
    F: Fn(&Run) + Send + Sync,
{
    pub(super) fn new(
        driver: &'a Driver<E, S, C>,
        run: Run,
        commands: watch::Receiver<Option<RunCommand>>,
        stop: &'a CancellationToken,
        on_change: F,
    ) -> Self {
        let now = driver.clock.monotonic();
        let mut session = Self {
            driver,
            spec: Arc::new(run.spec.clone()),
            name: run.name_any(),
            run,
            commands,
            stop,
            on_change,
            held: None,
            counted: now,
            due: now,
            grace: None,
        };
        session.begin_grace();
        session
    }

    /// Returns the name of the run.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the status to work on.
    pub(super) fn status(&self) -> RunStatus {
        match &self.held {
            Some(status) => status.clone(),
            None => self.run.status.clone().unwrap_or_default(),
        }
    }

    /// Returns the machine at this moment.
    pub(super) fn machine(&self) -> Machine<'_> {
        let now = self.driver.now();
        Machine::new(&self.name, &self.spec, self.status(), now)
    }

    /// Dates evidence.
    pub(super) fn dated(&self, mut found: Evidence) -> Evidence {
        found.at = Some(Time(self.driver.now()));
        found
    }

    /// Returns the active time since it was asked for last. A jump of the wall clock does not show here, and the time while no
    /// agent was there was never counted.
    pub(super) fn elapsed(&mut self) -> Duration {
        let now = self.driver.clock.monotonic();
        let elapsed = now.saturating_sub(self.counted);
        self.counted = now;
        elapsed
    }

    /// Plans what is next for after a delay.
    pub(super) fn wait_for(&mut self, delay: Duration) {
        self.due = self.driver.clock.monotonic().saturating_add(delay);
    }

    /// Returns whether what is next is due.
    pub(super) fn is_due(&self) -> bool {
        self.driver.clock.monotonic() >= self.due
    }

    /// Returns how long it is until something is due, the end of a cancel's grace included.
    pub(super) fn left(&self) -> Duration {
        let until = self.grace.map_or(self.due, |grace| grace.min(self.due));
        until.saturating_sub(self.driver.clock.monotonic())
    }

    /// Returns how long what is under way may last once a cancel was heard.
    pub(super) fn grace_left(&self) -> Option<Duration> {
        let now = self.driver.clock.monotonic();
        self.grace.map(|grace| grace.saturating_sub(now))
    }

    /// Begins the grace of a cancel, where there is one. After a restart it begins anew: it is seconds, and ends.
    fn begin_grace(&mut self) {
        if self.status().phase == RunPhase::Cancelling {
            let grace = self.spec.definition.policy.cancel_grace.0;
            let end = self.driver.clock.monotonic().saturating_add(grace);
            self.grace.get_or_insert(end);
        } else {
            self.grace = None;
        }
    }

    /// Acts on what people have said since. It is in the record before it counts.
    pub(super) async fn hear(&mut self) -> Result<(), Leave> {
        let said = self.commands.borrow_and_update().clone();
        for command in [said, RunCommand::wished(&self.run)].into_iter().flatten() {
            if !is_new(&self.status(), &command) {
                continue;
            }
            let mut machine = self.machine();
            machine.act(&command);
            let status = machine.into_status();
            self.save(status).await?;
            self.wait_for(Duration::ZERO);
        }
        Ok(())
    }

    /// Writes down that a run pauses or is over.
    pub(super) async fn write_down(&mut self, word: Word) -> Result<(), Leave> {
        let spent = self.elapsed();
        let mut machine = self.machine();
        machine.spend(spent);
        match word {
            Word::Paused => machine.pauses(),
            Word::Cancelled => machine.end_cancel(),
            Word::Undone => machine.end_undo(),
        }
        let status = machine.into_status();
        self.save(status).await
    }

    /// Keeps a status for the next write.
    pub(super) fn hold(&mut self, status: RunStatus) {
        self.held = Some(status);
    }

    /// Writes the status, however long that takes. What it tells about has happened, so it is written again until it is there; the
    /// effect is never repeated for it.
    pub(super) async fn save(&mut self, mut status: RunStatus) -> Result<(), Leave> {
        status.claim = Some(self.driver.claim.clone());
        let mut delay = limits::RECORD_RETRY_MIN;
        loop {
            match self.driver.store.write(&self.run, status.clone()).await {
                Ok(run) => {
                    self.run = run;
                    self.written();
                    return Ok(());
                }
                Err(StoreError::Conflict(_)) => {
                    if self.reload(&status).await? {
                        self.written();
                        return Ok(());
                    }
                }
                Err(StoreError::Unavailable(_)) => self.pause(&mut delay).await?,
                Err(
                    error @ (StoreError::Gone(_)
                    | StoreError::ClaimLost(_)
                    | StoreError::Refused(_)),
                ) => return Err(Leave::NotOurs(error.to_string())),
            }
        }
    }

    /// Takes the record as it is stored after somebody has written in between. Returns whether it already says what was to be
    /// written, since an answer was lost.
    async fn reload(&mut self, wanted: &RunStatus) -> Result<bool, Leave> {
        let name = self.run.name_any();
        let mut delay = limits::RECORD_RETRY_MIN;
        let stored = loop {
            match self.driver.store.read(&name).await {
                Ok(Some(stored)) => break stored,
                Ok(None) => {
                    return Err(Leave::NotOurs(format!("the record of run {name} is gone")));
                }
                Err(StoreError::Unavailable(_)) => self.pause(&mut delay).await?,
                Err(error) => return Err(Leave::NotOurs(error.to_string())),
            }
        };
        let theirs = stored.status.as_ref();
        let claim = theirs.and_then(|status| status.claim.as_deref());
        // A person's annotation changes the version and nothing of the status.
        let ours = claim == Some(self.driver.claim.as_str()) || theirs == self.run.status.as_ref();
        let written = theirs == Some(wanted);
        self.run = stored;
        if ours {
            Ok(written)
        } else {
            Err(Leave::NotOurs(format!(
                "another process has taken over run {name}"
            )))
        }
    }

    fn written(&mut self) {
        self.held = None;
        self.begin_grace();
        (self.on_change)(&self.run);
    }

    /// Waits for the store to come back. That is no active time: nothing can be done meanwhile.
    async fn pause(&mut self, delay: &mut Duration) -> Result<(), Leave> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => return Err(Leave::Stopped),
            () = self.driver.clock.sleep(*delay) => {}
        }
        *delay = (*delay * 2).min(limits::RECORD_RETRY_MAX);
        self.elapsed();
        Ok(())
    }
}
