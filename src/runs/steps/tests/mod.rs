//! Each kind of step against a world in memory.

mod jobs;
mod objects;
mod others;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{StepContext, StepOutcome, StepResult, attempt, recover};
use crate::expression::Bindings;
use crate::model::api::{RunSpec, StepRecord};
use crate::model::migration::Step;
use crate::runs::memory::{Memory, Write};
use crate::runs::{Effects, ResourceKind};

/// One step with its world, its record, and what was looked up for it.
pub(super) struct Trial {
    pub(super) world: Memory,
    pub(super) spec: RunSpec,
    pub(super) step: Step,
    pub(super) record: StepRecord,
    pub(super) objects: BTreeMap<String, Value>,
    pub(super) item: Option<Value>,
}

impl Trial {
    pub(super) fn of(step: Value) -> Self {
        let mut step = step;
        step["id"] = "the-step".into();
        let spec = json!({
            "source": "modules", "cluster": "home", "clusterUid": "u", "migration": "grow", "phase": "pre",
            "revision": "main@sha1:1", "place": "components/web/migrations/grow.yaml:1:1", "deploy": "v1:1",
            "definitionDigest": "v1:2",
            "definition": {
                "owner": "web", "bind": {"phase": "pre"}, "lifecycle": {"never": "a test"},
                "guard": {"needed": "true"}, "params": {"size": "30Gi"},
            },
            "components": [{"name": "components/web", "from": "1.0.0", "to": "1.1.0", "action": "upgrade"}],
            "httpHosts": ["api.example.com"],
        });
        Self {
            world: Memory::default(),
            spec: serde_json::from_value(spec).unwrap(),
            step: serde_json::from_value(step).unwrap(),
            record: StepRecord {
                id: "the-step".to_owned(),
                attempts: 1,
                ..StepRecord::default()
            },
            objects: BTreeMap::new(),
            item: None,
        }
    }

    /// Looks an object up again, as the driver does before each attempt.
    pub(super) async fn look(&mut self, name: &str, object: &Value) {
        let found = self
            .world
            .get(
                &kind_of(object),
                object["metadata"]["namespace"].as_str(),
                name_of(object),
            )
            .await;
        let found = found.unwrap().unwrap_or_default();
        self.objects.insert(name.to_owned(), found);
    }

    pub(super) async fn attempt(&mut self) -> StepResult {
        self.once(false).await
    }

    pub(super) async fn recover(&mut self) -> StepResult {
        self.once(true).await
    }

    /// Attempts and looks until the step no longer waits; the record keeps the progress as the driver does.
    pub(super) async fn until_over(&mut self) -> StepResult {
        for _ in 0..50 {
            match self.attempt().await {
                StepResult::Wait { .. } => {}
                ended => return ended,
            }
        }
        panic!("it waits forever");
    }

    async fn once(&mut self, recovers: bool) -> StepResult {
        let mut bindings = Bindings::default();
        let mut seen = json!(self.objects);
        for object in seen.as_object_mut().unwrap().values_mut() {
            Bindings::redact(object);
        }
        bindings.set("objects", seen);
        bindings.set("params", json!(self.spec.definition.params));
        if let (Some(each), Some(item)) = (&self.step.for_each, &self.item) {
            bindings.set(&each.name, item.clone());
        }
        let context = StepContext {
            effects: &self.world,
            run: "modules.home.grow-1",
            spec: &self.spec,
            step: &self.step,
            item: self.item.as_ref(),
            bindings: &bindings,
            objects: &self.objects,
            record: &self.record,
            idempotency_key: "modules.home.grow-1/the-step",
            deadline: Duration::from_secs(120),
        };
        let work = async {
            if recovers {
                recover(&context).await
            } else {
                attempt(&context).await
            }
        };
        let result = must_be_send(work).await;
        if let StepResult::Wait { progress, .. } | StepResult::Retry { progress, .. } = &result {
            self.record.progress.clone_from(progress);
        }
        result
    }

    /// Returns the writes so far that changed something: verb and subject.
    pub(super) fn effects(&self) -> Vec<(&'static str, String)> {
        let log = self.world.log().into_iter();
        log.filter(|entry| entry.write == Write::Effect && entry.changed)
            .map(|entry| (entry.verb, entry.about))
            .collect()
    }
}

/// The driver spawns its runs.
fn must_be_send<T>(work: impl Future<Output = T> + Send) -> impl Future<Output = T> + Send {
    work
}

pub(super) fn kind_of(object: &Value) -> ResourceKind {
    ResourceKind {
        api_version: object["apiVersion"].as_str().unwrap().to_owned(),
        kind: object["kind"].as_str().unwrap().to_owned(),
    }
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

pub(super) fn object(kind: (&str, &str), name: &str, more: &Value) -> Value {
    let mut object = json!({
        "apiVersion": kind.0, "kind": kind.1, "metadata": {"namespace": "web", "name": name},
    });
    json_patch::merge(&mut object, more);
    object
}

pub(super) fn done(result: StepResult) -> StepOutcome {
    match result {
        StepResult::Done(outcome) => outcome,
        other => panic!("it is not done: {other:?}"),
    }
}

pub(super) fn message(result: &StepResult) -> &str {
    match result {
        StepResult::Wait { message, .. }
        | StepResult::Retry { message, .. }
        | StepResult::Fail { message }
        | StepResult::Unknown { message } => message,
        StepResult::Done(outcome) => panic!("it is done: {outcome:?}"),
    }
}
