//! One attempt of one step: look, write down, act, write down.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::Value;

use super::look::{Look, View};
use super::session::{Leave, Session};
use crate::model::api::Run;
use crate::model::limits;
use crate::model::migration::{OnUnknown, Step, StepAction};
use crate::runs::clock::Clock;
use crate::runs::effects::Effects;
use crate::runs::guard::Proof;
use crate::runs::machine::{Outputs, Position};
use crate::runs::steps::{StepContext, StepResult, attempt, intend, recover};
use crate::runs::store::RunStore;

/// How an attempt came to its end here.
enum Ended {
    Result(StepResult),
    /// Its time was over before it said anything.
    Hung,
}

// === impl Session ===

impl<E: Effects, S: RunStore, C: Clock, F: Fn(&Run) + Send + Sync> Session<'_, E, S, C, F> {
    /// Begins a step, or goes on with it.
    pub(super) async fn step(&mut self, position: Position) -> Result<(), Leave> {
        let mut machine = self.machine();
        if position.item.is_none() && machine.is_settled(&position) {
            machine.close(&position);
            let status = machine.into_status();
            return self.save(status).await;
        }
        let is_look = machine.is_look(&position);
        if !is_look && machine.is_out_of_time(&position) {
            let status = machine.into_status();
            return self.save(status).await;
        }
        let step = machine.carried_out(&position);
        drop(machine);
        let look = self.look(&position, &step, is_look).await;
        let spent = self.elapsed();
        let mut machine = self.machine();
        if is_look {
            machine.spend_on(&position, spent);
        } else {
            machine.spend(spent);
        }
        let (view, found) = match look {
            Look::Ready(view, found) => (view, found),
            Look::LeaveOut(found, why) => {
                machine.skip(&position, found, &why);
                let status = machine.into_status();
                self.hold(status);
                return Ok(());
            }
            Look::Elements(elements, found) => {
                let settled = machine.settle(&position, &elements, found);
                if let Err(message) = &settled {
                    machine.fails(&position, message.clone());
                }
                let status = machine.into_status();
                if settled.is_err() {
                    return self.save(status).await;
                }
                self.hold(status);
                return Ok(());
            }
            Look::Unclear { message, transient } => {
                let delay = if is_look {
                    // What is under way goes on; only the look at it failed.
                    let progress = machine.progress(&position);
                    machine.waits(&position, message, limits::BLOCKED_INTERVAL, progress)
                } else {
                    machine.stumbles(&position, message, transient)
                };
                let status = machine.into_status();
                self.wait_for(delay);
                return self.save(status).await;
            }
        };
        if machine.is_told(&position) {
            let status = machine.into_status();
            self.hold(status);
        } else {
            machine.begin(&position, view.item.as_ref(), found);
            let status = machine.into_status();
            self.hold(status);
            let intended = self.intended(&position, &step, &view).await;
            let mut machine = self.machine();
            machine.intend(&position, intended);
            let status = machine.into_status();
            self.save(status).await?;
        }
        let ended = self.carry_out(&position, &step, &view, false).await?;
        self.conclude(&position, &step, &view, ended).await
    }

    /// Finds out what became of a step that was found under way.
    pub(super) async fn recover(&mut self, position: Position) -> Result<(), Leave> {
        self.elapsed();
        let mut machine = self.machine();
        let found = machine.found(&position);
        let restarts = machine
            .record(&position)
            .map_or(0, |record| record.restarts);
        if restarts >= limits::RESTARTS_ALERT {
            let step = &machine.step(&position).id;
            tracing::warn!(
                run.name = self.name(),
                run.step = step,
                restarts,
                "agents end again and again while this step is under way"
            );
        }
        if let Err(message) = &found {
            machine.fails(&position, message.clone());
        }
        let step = machine.carried_out(&position);
        let status = machine.into_status();
        self.save(status).await?;
        if found.is_err() {
            return Ok(());
        }
        let mut delay = limits::RECORD_RETRY_MIN;
        let view = loop {
            match self.look(&position, &step, true).await {
                Look::Ready(view, _) => break view,
                Look::Unclear { message, .. } => {
                    // Nothing is known until it can be read; the step stays as it was found.
                    let spent = self.elapsed();
                    let mut machine = self.machine();
                    machine.spend_on(&position, spent);
                    let over = machine.time_left().is_zero();
                    if over {
                        machine.unknown(&position, message, None);
                    }
                    let status = machine.into_status();
                    if over {
                        return self.save(status).await;
                    }
                    self.hold(status);
                    self.sleep(delay).await?;
                    delay = (delay * 2).min(limits::RECORD_RETRY_MAX);
                }
                Look::LeaveOut(..) | Look::Elements(..) => return Ok(()),
            }
        };
        let ended = self.carry_out(&position, &step, &view, true).await?;
        self.conclude(&position, &step, &view, ended).await
    }

    async fn sleep(&self, delay: Duration) -> Result<(), Leave> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Leave::Stopped),
            () = self.driver.clock().sleep(delay) => Ok(()),
        }
    }

    /// Looks what an attempt is about to change, for an undo.
    async fn intended(&self, position: &Position, step: &Step, view: &View) -> Value {
        if self.status().undoing {
            return Value::Null;
        }
        let machine = self.machine();
        let key = machine.idempotency_key(position);
        let record = machine.record(position).cloned().unwrap_or_default();
        drop(machine);
        let (spec, run) = (self.spec.clone(), self.name().to_owned());
        let context = StepContext {
            effects: self.driver.effects(),
            run: &run,
            spec: &spec,
            step,
            item: view.item.as_ref(),
            bindings: &view.scene.bindings,
            objects: &view.scene.objects,
            record: &record,
            idempotency_key: &key,
            deadline: limits::ATTEMPT_MIN,
        };
        intend(&context).await
    }

    /// Makes an attempt. A panic ends nothing but the attempt; a hang ends with its time; a stop or a cancel gives it a moment.
    async fn carry_out(
        &mut self,
        position: &Position,
        step: &Step,
        view: &View,
        recovers: bool,
    ) -> Result<Ended, Leave> {
        let driver = self.driver;
        let machine = self.machine();
        let key = machine.idempotency_key(position);
        let record = machine.record(position).cloned().unwrap_or_default();
        let mut left = machine.attempt_left(position).max(limits::ATTEMPT_MIN);
        drop(machine);
        left = left.min(self.grace_left().unwrap_or(left));
        let (spec, run) = (self.spec.clone(), self.name().to_owned());
        let context = StepContext {
            effects: driver.effects(),
            run: &run,
            spec: &spec,
            step,
            item: view.item.as_ref(),
            bindings: &view.scene.bindings,
            objects: &view.scene.objects,
            record: &record,
            idempotency_key: &key,
            deadline: left,
        };
        let attempt = async {
            if recovers {
                recover(&context).await
            } else {
                attempt(&context).await
            }
        };
        let attempt = AssertUnwindSafe(attempt).catch_unwind();
        tokio::pin!(attempt);
        let clock = driver.clock();
        let mut end = clock.monotonic().saturating_add(left);
        let (mut stopping, mut heard) = (false, true);
        loop {
            let left = end.saturating_sub(clock.monotonic());
            tokio::select! {
                biased;
                result = &mut attempt => return Ok(Ended::Result(match result {
                    Ok(result) => result,
                    Err(panic) => StepResult::Unknown { message: format!("it panicked: {}", words(&*panic)) },
                })),
                () = self.stop.cancelled(), if !stopping => {
                    stopping = true;
                    end = end.min(clock.monotonic().saturating_add(limits::STOP_GRACE));
                }
                changed = self.commands.changed(), if heard => {
                    heard = changed.is_ok();
                    self.hear().await?;
                    if let Some(grace) = self.grace_left() {
                        end = end.min(clock.monotonic().saturating_add(grace));
                    }
                }
                () = clock.sleep(left) => {
                    return if stopping { Err(Leave::Stopped) } else { Ok(Ended::Hung) };
                }
            }
        }
    }

    /// Takes in what came of an attempt, and writes it down.
    async fn conclude(
        &mut self,
        position: &Position,
        step: &Step,
        view: &View,
        ended: Ended,
    ) -> Result<(), Leave> {
        let spent = self.elapsed();
        let waits = matches!(ended, Ended::Result(StepResult::Wait { .. }) | Ended::Hung);
        let (proof, outputs) = match &ended {
            Ended::Result(StepResult::Unknown { .. }) => match self.proof().await {
                Proof::Done(found) => (found, Ok(Outputs::new())),
                Proof::NotDone(_) | Proof::Unknown(_) => (None, Ok(Outputs::new())),
            },
            Ended::Result(StepResult::Done(outcome)) => {
                (None, self.outputs(step, view, &outcome.result).await)
            }
            _ => (None, Ok(Outputs::new())),
        };
        let grace_over = self.grace_left() == Some(Duration::ZERO);
        let mut machine = self.machine();
        machine.spend_on(position, spent);
        let mut delay = Duration::ZERO;
        match ended {
            Ended::Result(StepResult::Done(mut outcome)) => {
                let now = machine.status().timeline.last().map(|last| last.at.clone());
                for found in &mut outcome.evidence {
                    found.at = found.at.take().or_else(|| now.clone());
                }
                match outputs {
                    Ok(outputs) => machine.done(position, outcome, outputs),
                    Err(message) => machine.fails(position, message),
                }
            }
            Ended::Result(StepResult::Wait {
                message,
                after,
                progress,
            }) => delay = machine.waits(position, message, after, progress),
            Ended::Result(StepResult::Retry {
                message,
                after,
                counts,
                progress,
            }) => {
                machine.keep(position, progress);
                delay = machine.failed(position, message, after, counts);
            }
            Ended::Result(StepResult::Fail { message }) => machine.fails(position, message),
            Ended::Result(StepResult::Unknown { message }) => {
                delay = machine.unknown(position, message, proof);
            }
            Ended::Hung if grace_over => {
                // It stays as it is in the record, and what is next is the end.
                let status = machine.into_status();
                self.hold(status);
                return Ok(());
            }
            Ended::Hung => {
                let message = "it gave no result in its time".to_owned();
                let job = matches!(step.action, StepAction::Job(_));
                if job && !machine.time_left().is_zero() {
                    // The Job has a name of its own: what became of it is looked up, not guessed.
                    let status = machine.into_status();
                    self.hold(status);
                    return Ok(());
                }
                delay = if machine.on_unknown(position) == OnUnknown::Retry {
                    machine.failed(position, message, None, true)
                } else {
                    machine.unknown(position, message, None)
                };
            }
        }
        let status = machine.into_status();
        self.wait_for(delay);
        let given_up = waits && status.phase.is_over();
        self.save(status).await?;
        if given_up {
            // Its time is over, and it may still run.
            let record = self.machine().record(position).cloned();
            self.ask_step_to_stop(step.clone(), record.unwrap_or_default())
                .await;
        }
        Ok(())
    }

    /// Computes what a step leaves for later ones.
    async fn outputs(&self, step: &Step, view: &View, result: &Value) -> Result<Outputs, String> {
        let mut bindings = view.scene.bindings.clone();
        bindings.set("result", result.clone());
        let mut outputs = BTreeMap::new();
        for (name, text) in &step.outputs {
            match self.evaluate("outputs", text, &bindings).await.0 {
                Ok(value) => outputs.insert(name.clone(), value),
                Err(error) => {
                    return Err(format!(
                        "it is done, and its output `{name}` is unknown: {error}"
                    ));
                }
            };
        }
        Ok(outputs)
    }
}

/// Returns what a panic said.
fn words(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a word")
}
