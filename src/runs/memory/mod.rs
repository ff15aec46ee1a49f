//! A world in memory: a cluster's objects, Jobs that end at once, HTTP answers from a script, and the records of runs.
//!
//! `fairway migration test` runs definitions against it without a cluster, and the step machine is tried with a stop before
//! and after every write and every pair of writes. It is deterministic: no clock, no chance, uids and versions are counted.
//!
//! What it models: uid and resourceVersion with their preconditions, label selectors, pages, merge and JSON patches, the
//! strategic patch for the lists whose keys `patches` knows, apply as a merge of fields, finalizers, owner references with the
//! three propagations, Jobs with the Pod that tells their result, and a CustomResourceDefinition that takes its objects
//! along. What it does not: schemas, defaults and admission; controllers other than for Jobs; field ownership, hence neither
//! conflicts between managers nor the removal of fields that an earlier apply had set; namespaces as objects.

mod effects;
mod faults;
mod jobs;
mod objects;
mod patches;
mod script;
mod state;
mod store;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

pub use faults::{Fault, LogEntry, Write};
pub use script::{Leaves, Script};

use super::{EffectError, HttpAnswer, ResourceKind};
use crate::model::api::Run;
use state::State;

/// The world. Clones share it, so that one can be the [`Effects`](super::Effects) and another the
/// [`RunStore`](super::RunStore) of the same driver.
#[derive(Clone)]
pub struct Memory {
    state: Arc<Mutex<State>>,
    down: watch::Sender<bool>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            down: watch::Sender::new(false),
        }
    }
}

impl Memory {
    /// Puts an object there, as somebody else would. It gets a uid and a resourceVersion where it has none; one that is there
    /// already is replaced and keeps its uid. Not counted as a write.
    pub fn put(&self, object: Value) {
        self.lock().objects.put(object);
    }

    /// Takes an object away at once, whatever its finalizers say. Not counted as a write.
    pub fn take(&self, kind: &ResourceKind, namespace: Option<&str>, name: &str) -> Option<Value> {
        self.lock().objects.take(kind, namespace, name)
    }

    /// Returns an object. Unlike a read by a run it moves nothing.
    pub fn object(
        &self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Value> {
        self.lock().objects.get(kind, namespace, name)
    }

    /// Returns all objects as they may be compared between two worlds: without uid, resourceVersion and generated names of
    /// Jobs and their Pods, and without the values of Secrets.
    pub fn settled(&self) -> Vec<Value> {
        self.lock().objects.settled()
    }

    /// Returns a record.
    pub fn run(&self, name: &str) -> Option<Run> {
        self.lock().runs.get(name).cloned()
    }

    /// Returns all records.
    #[cfg(test)]
    pub(in crate::runs) fn runs(&self) -> Vec<Run> {
        self.lock().runs.values().cloned().collect()
    }

    /// Changes a record as somebody else would: a person's annotation, or another agent. Not counted as a write.
    pub fn edit_run(&self, name: &str, edit: impl FnOnce(&mut Run)) {
        self.lock().edit_run(name, edit);
    }

    /// Takes a record away. Not counted as a write.
    pub fn forget_run(&self, name: &str) {
        self.lock().runs.remove(name);
    }

    /// Lets the write with this number, counted from 0 over the whole life of the world, meet a fault.
    pub fn fault(&self, write: usize, fault: Fault) {
        self.lock().faults.insert(write, fault);
    }

    /// Returns how many writes were attempted: effects and records.
    pub fn writes(&self) -> usize {
        self.lock().writes
    }

    /// Returns every write that was attempted, in order.
    pub fn log(&self) -> Vec<LogEntry> {
        self.lock().log.clone()
    }

    /// Says what a step's Job or request comes to, and what it leaves behind.
    pub fn script(&self, step: &str, script: Script) {
        self.lock().scripts.insert(step.to_owned(), script);
    }

    /// Lets Jobs go on that are created from now on, until [`Memory::finish_jobs`].
    #[cfg(test)]
    pub(super) fn hold_jobs(&self) {
        self.lock().running_jobs = Some(Vec::new());
    }

    /// Ends well the Jobs that go on.
    #[cfg(test)]
    pub(super) fn finish_jobs(&self) {
        let mut state = self.lock();
        for job in state.running_jobs.take().unwrap_or_default() {
            jobs::finish(&mut state.objects, &job, &Script::default());
        }
    }

    /// Queues an answer over HTTP; it comes before those of scripts.
    pub fn answer(&self, answer: Result<HttpAnswer, EffectError>) {
        self.lock().answers.push_back(answer);
    }

    /// Lets every read of a kind fail, or work again.
    pub fn refuse_reads(&self, kind: &ResourceKind, error: Option<EffectError>) {
        self.lock().refuse_reads(kind, error);
    }

    /// Takes a right away from the account, or gives it back.
    pub fn refuse_right(&self, verb: &str, resource: &str, is_refused: bool) {
        let right = (verb.to_owned(), resource.to_owned());
        let mut state = self.lock();
        if is_refused {
            state.refused_rights.insert(right);
        } else {
            state.refused_rights.remove(&right);
        }
    }

    /// Lets the cluster not serve a kind.
    pub fn withdraw_kind(&self, kind: &ResourceKind) {
        self.lock().objects.withdraw(kind);
    }

    /// Waits until a fault has stopped the process. Whoever drives a run selects between this and the run, and drops the run.
    pub async fn stopped(&self) {
        let mut down = self.down.subscribe();
        // An error means that the sender is gone, and it lives as long as self.
        let _ = down.wait_for(|is_down| *is_down).await;
    }

    /// Starts the process again after a fault has stopped it; what is stored stays.
    pub fn restart(&self) {
        self.down.send_replace(false);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
