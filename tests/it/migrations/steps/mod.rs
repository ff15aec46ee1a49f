//! Each kind of step on the real control plane, with faults on the way to it.

mod builtin;
mod claims;
mod http;
pub(crate) mod jobs;
mod objects;
mod rewrite;

use std::collections::BTreeMap;
use std::time::Duration;

use fairway::cluster::Cluster;
use fairway::expression::Bindings;
use fairway::model::api::{RunSpec, StepRecord};
use fairway::model::migration::Step;
use fairway::runs::steps::{StepContext, StepOutcome, StepResult, attempt, recover, stop};
use fairway::runs::{ClusterEffects, Effects as _, ResourceKind};
use serde_json::{Value, json};

use crate::support::control_plane::ControlPlane;
use crate::support::proxy::Proxy;

/// One step, its record, and the cluster behind a proxy.
pub(super) struct Trial {
    pub(super) plane: &'static ControlPlane,
    pub(super) proxy: Proxy,
    pub(super) namespace: String,
    pub(super) effects: ClusterEffects,
    pub(super) record: StepRecord,
    pub(super) objects: BTreeMap<String, Value>,
    pub(super) hosts: Vec<String>,
    pub(super) deadline: Duration,
    step: Step,
}

impl Trial {
    /// Makes one on the control plane that all tests share; `NAMESPACE` in the step becomes one that nobody else uses.
    pub(super) async fn new(step: Value) -> Self {
        Self::on(ControlPlane::minimal(), step).await
    }

    pub(super) async fn on(plane: &'static ControlPlane, step: Value) -> Self {
        let proxy = Proxy::start(plane).await;
        let namespace = plane.namespace().await;
        let cluster = Cluster::connect(proxy.config(), None).await.unwrap();
        cluster.served().await.unwrap();
        let mut trial = Self {
            plane,
            effects: ClusterEffects::new(&cluster.acting_as_itself(), &namespace),
            proxy,
            namespace,
            record: StepRecord {
                attempts: 1,
                ..StepRecord::default()
            },
            objects: BTreeMap::new(),
            hosts: Vec::new(),
            deadline: Duration::from_secs(60),
            step: serde_json::from_value(json!({"id": "x", "wait": {"until": "true"}})).unwrap(),
        };
        trial.set(step);
        trial
    }

    /// Takes another step, with a record of its own.
    pub(super) fn set(&mut self, mut step: Value) {
        step["id"] = "the-step".into();
        let text = step.to_string().replace("NAMESPACE", &self.namespace);
        self.step = serde_json::from_str(&text).unwrap();
        self.record.progress.clear();
        self.proxy.forget();
    }

    /// Connects anew, so that what is served by now is known.
    pub(super) async fn reconnected(&self) -> ClusterEffects {
        let cluster = Cluster::connect(self.proxy.config(), None).await.unwrap();
        cluster.served().await.unwrap();
        ClusterEffects::new(&cluster.acting_as_itself(), &self.namespace)
    }

    /// Applies an object as somebody else, in the namespace of the test.
    pub(super) async fn put(&self, manager: &str, mut object: Value) {
        object["metadata"]["namespace"] = self.namespace.as_str().into();
        let client = self.plane.client().await;
        self.plane.apply_as(&client, manager, object).await;
    }

    /// Reads an object of the test's namespace.
    pub(super) async fn live(&self, kind: (&str, &str), name: &str) -> Option<Value> {
        let kind = ResourceKind {
            api_version: kind.0.to_owned(),
            kind: kind.1.to_owned(),
        };
        let found = self.effects.get(&kind, Some(&self.namespace), name).await;
        found.unwrap()
    }

    /// Looks an object up for a `ref`, as the driver does before each attempt.
    pub(super) async fn look(&mut self, kind: (&str, &str), name: &str) {
        let found = self.live(kind, name).await.unwrap_or_default();
        self.objects.insert("it".to_owned(), found);
        self.proxy.forget();
    }

    pub(super) async fn attempt(&mut self) -> StepResult {
        self.once(false).await
    }

    pub(super) async fn recover(&mut self) -> StepResult {
        self.once(true).await
    }

    /// Attempts and looks until the step no longer waits, as the driver does.
    pub(super) async fn until_over(&mut self) -> StepResult {
        let begin = tokio::time::Instant::now();
        while begin.elapsed() < Duration::from_secs(90) {
            match self.attempt().await {
                StepResult::Wait { after, .. } => {
                    tokio::time::sleep(after.min(Duration::from_millis(200))).await;
                }
                ended => return ended,
            }
        }
        panic!("it still waits: {:?}", self.attempt().await);
    }

    /// Asks what was started to stop.
    pub(super) async fn stop(&self) {
        stop(&self.effects, &self.step, &self.record).await.unwrap();
    }

    async fn once(&mut self, recovers: bool) -> StepResult {
        let (spec, bindings) = (self.spec(), self.bindings());
        let context = self.context(&spec, &bindings);
        let result = if recovers {
            recover(&context).await
        } else {
            attempt(&context).await
        };
        if let StepResult::Wait { progress, .. } | StepResult::Retry { progress, .. } = &result {
            self.record.progress.clone_from(progress);
        }
        result
    }

    fn context<'a>(
        &'a self,
        spec: &'a RunSpec,
        bindings: &'a Bindings,
    ) -> StepContext<'a, ClusterEffects> {
        StepContext {
            effects: &self.effects,
            run: &self.namespace,
            spec,
            step: &self.step,
            item: None,
            bindings,
            objects: &self.objects,
            record: &self.record,
            idempotency_key: &self.namespace,
            deadline: self.deadline,
        }
    }

    fn bindings(&self) -> Bindings {
        let mut seen = json!(self.objects);
        for object in seen.as_object_mut().unwrap().values_mut() {
            Bindings::redact(object);
        }
        let mut bindings = Bindings::default();
        bindings.set("objects", seen);
        bindings.set("params", json!({"size": "30Gi"}));
        bindings
    }

    fn spec(&self) -> RunSpec {
        let spec = json!({
            "source": "modules", "cluster": "home", "clusterUid": "u", "migration": "grow", "phase": "pre",
            "revision": "main@sha1:1", "place": "migrations/grow.yaml:1:1", "deploy": "v1:1",
            "definitionDigest": "v1:2", "httpHosts": self.hosts,
            "definition": {
                "owner": "web", "bind": {"phase": "pre"}, "lifecycle": {"never": "a test"},
                "guard": {"needed": "true"},
            },
        });
        serde_json::from_value(spec).unwrap()
    }
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
