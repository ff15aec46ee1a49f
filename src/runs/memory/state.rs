//! Everything that the world remembers, and the gate that each write goes through.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::faults::{Fault, LogEntry, Write};
use super::objects::{Key, Objects};
use super::script::Script;
use crate::model::api::{Run, RunStatus, StepState};
use crate::runs::{EffectError, HttpAnswer, ResourceKind};

#[derive(Default)]
pub(super) struct State {
    pub(super) objects: Objects,
    pub(super) runs: BTreeMap<String, Run>,
    pub(super) writes: usize,
    pub(super) faults: BTreeMap<usize, Fault>,
    pub(super) log: Vec<LogEntry>,
    pub(super) scripts: BTreeMap<String, Script>,
    pub(super) answers: VecDeque<Result<HttpAnswer, EffectError>>,
    /// Rights that the account lacks: verb and resource.
    pub(super) refused_rights: BTreeSet<(String, String)>,
    refused_reads: BTreeMap<(String, String), EffectError>,
    record_version: u64,
    /// The step that the record names.
    step: Option<String>,
    /// Reads since the record named that step.
    looks: u32,
    /// Steps that have left what their scripts say.
    left: BTreeSet<String>,
    /// Jobs that go on until they are told to end, where Jobs do.
    pub(super) running_jobs: Option<Vec<Value>>,
}

/// What comes of a write.
pub(super) enum Outcome<T, E> {
    /// An answer.
    Answer(Result<T, E>),
    /// The process has ended.
    Stop,
}

impl State {
    /// Takes a write through the gate. `act` does it, and says whether anything is different afterwards; `lost` and `failed`
    /// make errors of faults.
    pub(super) fn attempt<T, E>(
        &mut self,
        mut entry: LogEntry,
        act: impl FnOnce(&mut Self) -> Result<(T, bool), E>,
        lost: impl FnOnce(String) -> E,
        failed: impl FnOnce(EffectError) -> E,
    ) -> Outcome<T, E> {
        let fault = self.faults.remove(&self.writes);
        self.writes += 1;
        entry.step.clone_from(&self.step);
        let (write, about) = (entry.write, entry.about.clone());
        self.log.push(entry);
        match fault {
            Some(Fault::StopBefore) => return Outcome::Stop,
            Some(Fault::Fail(error)) => return Outcome::Answer(Err(failed(error))),
            _ => {}
        }
        let result = act(self).map(|(value, changed)| {
            if let Some(entry) = self.log.last_mut() {
                entry.changed = changed;
            }
            value
        });
        if write == Write::Effect && result.is_ok() {
            self.leave();
        }
        match fault {
            Some(Fault::StopAfter) => Outcome::Stop,
            Some(Fault::Lose) => {
                Outcome::Answer(Err(lost(format!("the answer for {about} was lost"))))
            }
            _ => Outcome::Answer(result),
        }
    }

    /// Takes a read through the gate.
    pub(super) fn read(&mut self, kind: &ResourceKind) -> Result<(), EffectError> {
        self.looks += 1;
        if self.looks > 1 && self.current_script().is_some_and(|it| it.by_waiting) {
            self.leave();
        }
        self.objects.pass();
        match self.refused_reads.get(&plain(kind)) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    pub(super) fn refuse_reads(&mut self, kind: &ResourceKind, error: Option<EffectError>) {
        match error {
            Some(error) => self.refused_reads.insert(plain(kind), error),
            None => self.refused_reads.remove(&plain(kind)),
        };
    }

    /// Returns what is scripted for the step that is under way.
    pub(super) fn current_script(&self) -> Option<&Script> {
        self.scripts.get(self.step.as_deref()?)
    }

    /// Stores a record over the version that the caller has seen; none where that is not the one that is stored.
    pub(super) fn store_run(&mut self, run: &Run, status: RunStatus) -> Option<Run> {
        let name = run.metadata.name.as_deref().unwrap_or_default();
        let stored = self.runs.get_mut(name)?;
        if stored.metadata.resource_version != run.metadata.resource_version {
            return None;
        }
        let step = status
            .undone
            .iter()
            .chain(&status.steps)
            .find(|step| step.state == StepState::Running)
            .map(|step| step.id.clone())
            .or_else(|| status.current_step.clone());
        self.record_version += 1;
        stored.metadata.resource_version = Some(self.record_version.to_string());
        stored.status = Some(status);
        let stored = stored.clone();
        if self.step != step {
            self.step = step;
            self.looks = 0;
        }
        Some(stored)
    }

    pub(super) fn create_run(&mut self, run: &Run) -> (Run, bool) {
        let name = run.metadata.name.clone().unwrap_or_default();
        if let Some(stored) = self.runs.get(&name) {
            return (stored.clone(), false);
        }
        let mut stored = run.clone();
        self.record_version += 1;
        stored.metadata.resource_version = Some(self.record_version.to_string());
        stored.metadata.uid = Some(format!("run-{}", self.record_version));
        stored.status = None;
        self.runs.insert(name, stored.clone());
        (stored, true)
    }

    pub(super) fn edit_run(&mut self, name: &str, edit: impl FnOnce(&mut Run)) {
        if let Some(run) = self.runs.get_mut(name) {
            edit(run);
            self.record_version += 1;
            run.metadata.resource_version = Some(self.record_version.to_string());
        }
    }

    /// Leaves what the script of the present step says, once.
    fn leave(&mut self) {
        let Some(step) = self.step.clone() else {
            return;
        };
        let Some(script) = self.scripts.get(&step) else {
            return;
        };
        if script.leaves.is_empty() || !self.left.insert(step) {
            return;
        }
        for left in script.leaves.clone() {
            let namespace = left.namespace.as_deref();
            if left.object.is_null() {
                self.objects.take(&left.kind, namespace, &left.name);
                continue;
            }
            let mut object = self
                .objects
                .get(&left.kind, namespace, &left.name)
                .unwrap_or_else(|| {
                    json!({
                        "apiVersion": left.kind.api_version,
                        "kind": left.kind.kind,
                        "metadata": {"name": left.name},
                    })
                });
            if let Some(namespace) = namespace {
                object["metadata"]["namespace"] = Value::from(namespace);
            }
            json_patch::merge(&mut object, &left.object);
            self.objects.put(object);
        }
    }

    /// Returns an object that is the one that was seen.
    pub(super) fn seen(
        &self,
        key: &Key,
        uid: &str,
        resource_version: Option<&str>,
    ) -> Result<Value, EffectError> {
        let uid = (!uid.is_empty()).then_some(uid);
        self.objects.seen(key, uid, resource_version).cloned()
    }
}

fn plain(kind: &ResourceKind) -> (String, String) {
    let group = kind
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group);
    (group.to_owned(), kind.kind.clone())
}
