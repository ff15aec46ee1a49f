//! What the tests of the driver are made of: a world, a clock that can be set wrong, and agents that come and go.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::model::api::{Evidence, Resolution, Run, RunCommand, RunSpec, RunStatus, RunVerb};
use crate::model::migration::{Decision, HookPhase};
use crate::runs::memory::Memory;
use crate::runs::{Clock, Driver, LookupCache, ResourceKind, RunStore};

pub(super) const NAME: &str = "modules.home.grow-1";

/// Wall time that can be wrong, over a clock that cannot.
#[derive(Clone)]
pub(super) struct TestClock {
    begin: Instant,
    wrong_by: Arc<AtomicI64>,
}

impl TestClock {
    pub(super) fn now(&self) -> Timestamp {
        self.wall()
    }

    pub(super) fn jump(&self, seconds: i64) {
        self.wrong_by.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn wall(&self) -> Timestamp {
        let since = SignedDuration::try_from(self.begin.elapsed()).unwrap();
        let wrong = SignedDuration::from_secs(self.wrong_by.load(Ordering::SeqCst));
        "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + since + wrong
    }

    fn monotonic(&self) -> Duration {
        self.begin.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// A world, and one agent after another in it.
pub(super) struct Bench {
    pub(super) world: Memory,
    pub(super) clock: TestClock,
    pub(super) spec: RunSpec,
    pub(super) commands: watch::Sender<Option<RunCommand>>,
    pub(super) stop: CancellationToken,
    agents: AtomicUsize,
    /// Every status that was written, for the invariants.
    pub(super) written: Arc<Mutex<Vec<RunStatus>>>,
}

impl Bench {
    pub(super) fn new(definition: Value) -> Self {
        Self {
            world: Memory::default(),
            clock: TestClock {
                begin: Instant::now(),
                wrong_by: Arc::default(),
            },
            spec: spec(definition),
            commands: watch::Sender::new(None),
            stop: CancellationToken::new(),
            agents: AtomicUsize::new(0),
            written: Arc::default(),
        }
    }

    /// Makes the driver of a new agent, with a claim of its own.
    pub(super) fn agent(&self) -> Driver<Memory, Memory, TestClock> {
        let number = self.agents.fetch_add(1, Ordering::SeqCst);
        Driver::new(
            self.world.clone(),
            self.world.clone(),
            self.clock.clone(),
            format!("lease/{number}"),
        )
    }

    /// Returns the record, created where there is none.
    pub(super) async fn record(&self) -> Run {
        let mut run = Run::new(NAME, self.spec.clone());
        run.metadata.namespace = Some("fairway-system".to_owned());
        self.world.create(&run).await.unwrap()
    }

    /// Drives the run with a new agent, once.
    pub(super) async fn drive(&self) -> Run {
        let run = self.record().await;
        self.drive_with(&self.agent(), run).await
    }

    pub(super) async fn drive_with(
        &self,
        driver: &Driver<Memory, Memory, TestClock>,
        run: Run,
    ) -> Run {
        let written = Arc::clone(&self.written);
        let note = move |run: &Run| written.lock().unwrap().push(run.status.clone().unwrap());
        let commands = self.commands.subscribe();
        driver.drive(run, commands, &self.stop, note).await
    }

    /// Lets one agent after another do what the agent does until nothing is left to be done: judge, create a record where there is
    /// work, drive it. A fault that stops the process ends one and begins the next. Returns the record, if there is any.
    pub(super) async fn converge(&self) -> Option<Run> {
        loop {
            let life = async {
                let driver = self.agent();
                if self.world.run(NAME).is_none() {
                    let judgement = driver
                        .judge(
                            &self.spec,
                            &LookupCache::new(),
                            &crate::runs::Sight::default(),
                        )
                        .await;
                    if judgement.decision == Decision::NotNeeded {
                        return None;
                    }
                }
                let run = self.record().await;
                Some(self.drive_with(&driver, run).await)
            };
            tokio::select! {
                biased;
                () = self.world.stopped() => self.world.restart(),
                run = life => return run,
            }
        }
    }

    /// Returns the writes of effects that changed something: what, and in which step.
    pub(super) fn effects(&self) -> Vec<String> {
        let log = self.world.log();
        let effects = log
            .iter()
            .filter(|entry| entry.write == crate::runs::memory::Write::Effect && entry.changed);
        effects
            .map(|entry| format!("{} {}", entry.verb, entry.about))
            .collect()
    }

    pub(super) fn say(&self, verb: RunVerb) -> RunCommand {
        let command = RunCommand {
            verb,
            step: None,
            resolution: None,
            by: "anna".to_owned(),
            reason: "because".to_owned(),
            at: self.clock.now(),
            until: None,
        };
        self.commands.send_replace(Some(command.clone()));
        command
    }

    pub(super) fn resolve(&self, resolution: Resolution) {
        let mut command = self.say(RunVerb::Resolve);
        command.at += SignedDuration::from_millis(1);
        command.resolution = Some(resolution);
        self.commands.send_replace(Some(command));
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "a value from json! has no other use"
)]
pub(crate) fn spec(definition: Value) -> RunSpec {
    let mut whole = json!({
        "owner": "logging",
        "bind": {"phase": "pre"},
        "lifecycle": {"never": "it is a test"},
    });
    json_patch::merge(&mut whole, &definition);
    RunSpec {
        source: "modules".to_owned(),
        cluster: "home".to_owned(),
        cluster_uid: "uid".to_owned(),
        migration: "grow".to_owned(),
        component: Some("components/logging".to_owned()),
        phase: HookPhase::Pre,
        action: None,
        from: None,
        to: None,
        release: None,
        revision: "main@sha1:1".to_owned(),
        author: String::new(),
        place: "components/logging/migrations/grow.yaml:1:1".to_owned(),
        deploy: "v1:1".to_owned(),
        definition_digest: "v1:2".to_owned(),
        definition: serde_json::from_value(whole).unwrap(),
        desired: std::collections::BTreeMap::new(),
        components: Vec::new(),
        http_hosts: vec!["registry.example.com".to_owned()],
    }
}

pub(super) fn kind(api_version: &str, kind: &str) -> ResourceKind {
    ResourceKind {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "a value from json! has no other use"
)]
pub(super) fn config_map(name: &str, data: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "a", "name": name}, "data": data,
    })
}

pub(super) fn status(run: &Run) -> RunStatus {
    run.status.clone().unwrap_or_default()
}

/// Returns what evidence says, without when.
pub(super) fn said(evidence: &[Evidence]) -> Vec<String> {
    evidence
        .iter()
        .map(|one| format!("{}: {}", one.about, one.result))
        .collect()
}

/// A migration of two steps on two objects: each is one effect, and `needed` is true until the last.
pub(super) fn two_steps() -> Value {
    json!({
        "lookups": {
            "one": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "one"},
            "two": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "two"},
        },
        "guard": {"needed": "(objects.one != null && objects.one.data.size != '30') || (objects.two != null && objects.two.data.size != '30')"},
        "steps": [
            {"id": "one", "when": "objects.one.data.size != '30'", "patch": {"ref": "one", "body": {"data": {"size": "30"}}}},
            {"id": "two", "when": "objects.two.data.size != '30'", "patch": {"ref": "two", "body": {"data": {"size": "30"}}}},
        ],
        "policy": {"retry": {"jitter": 0.0}},
    })
}

/// The logging migration of the reference, M1: grow a claim, wait for it, and release the set that keeps it small.
pub(super) fn logging() -> Value {
    json!({
        "params": {"size": "30Gi"},
        "lookups": {
            "claim": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "kyma-system", "name": "storage-logging-loki-0"},
            "set": {"apiVersion": "apps/v1", "kind": "StatefulSet", "namespace": "kyma-system", "name": "logging-loki"},
            "classes": {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "list": true, "limit": 200},
        },
        "guard": {
            "needed": "(objects.claim != null && quantity(objects.claim.spec.resources.requests.storage).isLessThan(quantity(params.size))) || (objects.set != null && objects.set.spec.volumeClaimTemplates.exists(t, quantity(t.spec.resources.requests.storage).isLessThan(quantity(params.size))))",
            "requires": [{
                "cel": "objects.claim == null || objects.classes.exists(c, c.metadata.name == objects.claim.spec.storageClassName && has(c.allowVolumeExpansion) && c.allowVolumeExpansion)",
                "message": "The storage class of the Loki claim must allow volume expansion.",
                "runbook": "https://example.com/loki",
            }],
        },
        "steps": [
            {"id": "grow-claim", "when": "objects.claim != null && quantity(objects.claim.spec.resources.requests.storage).isLessThan(quantity(params.size))",
             "patch": {"ref": "claim", "body": {"spec": {"resources": {"requests": {"storage": "${params.size}"}}}}}},
            {"id": "release-set", "when": "objects.set != null && objects.set.spec.volumeClaimTemplates.exists(t, quantity(t.spec.resources.requests.storage).isLessThan(quantity(params.size)))",
             "delete": {"ref": "set", "propagation": "Orphan", "waitGone": true}},
        ],
        "policy": {"retry": {"maxAttempts": 5, "interval": "10s", "jitter": 0.2}},
    })
}

pub(super) fn claim(size: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": "kyma-system", "name": "storage-logging-loki-0"},
        "spec": {"storageClassName": "std", "resources": {"requests": {"storage": size}}},
    })
}

pub(super) fn set(size: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"namespace": "kyma-system", "name": "logging-loki"},
        "spec": {"volumeClaimTemplates": [{"spec": {"resources": {"requests": {"storage": size}}}}]},
    })
}

pub(super) fn class(expands: bool) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "std"}, "allowVolumeExpansion": expands,
    })
}

/// Writes of an undisturbed run of [`two_steps`]: 0 create, 1 attempt, 2 effect, 3 result, 4 attempt, 5 effect, 6 result, 7 end.
pub(super) fn two() -> Bench {
    let bench = Bench::new(two_steps());
    bench.world.put(config_map("one", json!({"size": "10"})));
    bench.world.put(config_map("two", json!({"size": "10"})));
    bench
}
