use std::collections::BTreeMap;
use std::sync::Mutex as StdMutex;

use serde_json::{Value, json};

mod undoing;

use super::*;
use crate::model::api::RunPhase;
use crate::model::migration::{HookPhase, HookScope, Migration, MigrationSpec};
use crate::model::{Digest, Place};
use crate::plan::hooks::{DueMigration, Stand};
use crate::runs::memory::Memory;
use crate::runs::{EffectError, ProcessClock, ResourceKind};

/// What was heard, in order.
#[derive(Default)]
pub(super) struct Heard(StdMutex<Vec<String>>);

impl Listen for Heard {
    fn judged(&self, _: &Hook, spec: &RunSpec, judgement: &Judgement) {
        let line = format!("{} {}", spec.migration, judgement.decision);
        self.0.lock().unwrap().push(line);
    }

    fn changed(&self, before: Option<&Run>, run: &Run) {
        let phase = |run: &Run| run.status.clone().unwrap_or_default().phase;
        if before.map(phase) != Some(phase(run)) {
            let line = format!("{} {}", run.spec.migration, phase(run));
            self.0.lock().unwrap().push(line);
        }
    }

    fn ended(&self, hook: &Hook, times: &HookTimes) {
        let line = format!("{hook} ended with {}", times.migrations.len());
        self.0.lock().unwrap().push(line);
    }
}

/// A world, and one conductor after another in it.
pub(super) struct Stage {
    pub(super) world: Memory,
    heard: Arc<Heard>,
    pub(super) conductor: Conductor<Memory, Memory, ProcessClock>,
    pub(super) stop: CancellationToken,
    source: SourceName,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self::in_world(Memory::default())
    }

    pub(super) fn in_world(world: Memory) -> Self {
        let source = SourceName::new("modules").unwrap();
        let whose = Whose {
            source: source.clone(),
            cluster: "home".to_owned(),
            cluster_uid: "uid".to_owned(),
            namespace: "fairway-system".to_owned(),
        };
        let (heard, stop) = (Arc::new(Heard::default()), CancellationToken::new());
        let clock = ProcessClock::new(|| Timestamp::UNIX_EPOCH);
        let driver = Driver::new(world.clone(), world.clone(), clock, "lease/1");
        let conductor = Conductor::new(whose, driver, heard.clone(), || {}, stop.clone());
        Self {
            world,
            heard,
            conductor,
            stop,
            source,
        }
    }

    pub(super) fn offer(&self, hooks: &[DueHook]) {
        self.offer_with(hooks, &[]);
    }

    pub(super) fn offer_with(&self, hooks: &[DueHook], ahead: &[AheadHook]) {
        self.offer_all(hooks, ahead, (&Once::default(), &[]));
    }

    /// Offers hooks, beside what the target remembers.
    pub(super) fn offer_all(
        &self,
        hooks: &[DueHook],
        ahead: &[AheadHook],
        (once, undo): (&Once, &[ComponentName]),
    ) {
        let revision = Revision::commit("main", "0123456789012345678901234567890123456789");
        self.conductor.states();
        self.conductor.offer(Offer {
            revision: &revision,
            author: "Ada",
            release: None,
            http_hosts: &["registry.example.com".to_owned()],
            hooks,
            undo,
            once,
            ahead,
        });
    }

    /// Waits until a hook stands as is wanted, in virtual time.
    async fn until(&self, hook: &DueHook, wanted: impl Fn(&crate::plan::hooks::HookState) -> bool) {
        for _ in 0..10_000 {
            let states = self.conductor.states();
            if states.get(&hook.hook).is_some_and(&wanted) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it stays as it is: {:#?}", self.conductor.states());
    }

    pub(super) async fn until_done(&self, hook: &DueHook) {
        self.until(hook, |state| {
            state.open.is_empty() && state.failed.is_empty()
        })
        .await;
    }

    pub(super) async fn until_open(&self, hook: &DueHook, migration: &str, stand: Stand) {
        self.until(hook, |state| {
            let mut open = state.open.iter();
            open.any(|it| it.migration == migration && it.stand == stand)
        })
        .await;
    }

    pub(super) fn heard(&self) -> Vec<String> {
        self.heard.0.lock().unwrap().clone()
    }

    pub(super) fn value(&self, name: &str) -> Option<Value> {
        let kind = kind();
        self.world.object(&kind, Some("default"), name)
    }

    pub(super) fn run_of(&self, migration: &str) -> Run {
        let state = self.conductor.inner.state();
        let mut runs = state.runs.iter();
        let found = runs.find(|(_, entry)| entry.run.spec.migration == migration);
        self.world.run(found.unwrap().0).unwrap()
    }
}

pub(super) fn kind() -> ResourceKind {
    ResourceKind {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
    }
}

/// A migration that makes a ConfigMap of its own name.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a value from json! has no other use"
)]
pub(super) fn migration(name: &str, more: Value) -> DueMigration {
    let mut spec = json!({
        "owner": "team-a", "bind": {"phase": "pre"}, "lifecycle": {"never": "it is a test"},
        "lookups": {
            "mark": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": name},
            "gate": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "gate"},
        },
        "guard": {"needed": "objects.mark == null"},
        "steps": [{"id": "mark", "apply": {"manifest": {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
        }}}],
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let spec: MigrationSpec = serde_json::from_value(spec).unwrap();
    DueMigration {
        migration: Arc::new(Migration {
            name: name.to_owned(),
            components: Vec::new(),
            digest: Digest::of(&serde_json::to_value(&spec).unwrap()),
            spec,
            place: Place::new(format!("migrations/{name}.yaml"), 1, 1),
        }),
        desired: BTreeMap::new(),
    }
}

pub(super) fn hook(deploy: &str, migrations: Vec<DueMigration>) -> DueHook {
    DueHook {
        hook: Hook {
            scope: HookScope::Global,
            phase: HookPhase::Pre,
            deploy: Digest::from_text(deploy),
        },
        migrations,
        previous: None,
        component: None,
        components: Vec::new(),
        may_begin: true,
    }
}

pub(super) fn gated() -> Value {
    json!({"guard": {
        "needed": "objects.mark == null",
        "requires": [{"cel": "objects.gate != null", "message": "the gate is closed"}],
    }})
}

pub(super) fn put(world: &Memory, name: &str) {
    world.put(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
    }));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_needed_leaves_nothing() {
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    let names: Vec<String> = (0..100).map(|number| format!("m{number}")).collect();
    for name in &names {
        put(&stage.world, name);
    }
    let due = hook(
        "v1:one",
        names
            .iter()
            .map(|name| migration(name, json!({})))
            .collect(),
    );
    stage.offer(std::slice::from_ref(&due));
    stage.until_done(&due).await;
    assert_eq!(stage.world.writes(), 0);
    assert!(
        stage
            .heard()
            .contains(&"global pre ended with 100".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_needed_runs_once_however_often_it_is_offered() {
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    let due = hook(
        "v1:one",
        vec![migration("a", json!({})), migration("b", json!({}))],
    );
    for _ in 0..3 {
        stage.offer(std::slice::from_ref(&due));
    }
    stage.until_done(&due).await;
    stage.offer(std::slice::from_ref(&due));
    stage.until_done(&due).await;
    assert!(stage.value("a").is_some() && stage.value("b").is_some());
    // A create, an attempt, an effect, a result and an end for each.
    assert!(stage.world.writes() <= 10, "{:#?}", stage.world.log());
    let run = stage.run_of("a");
    assert_eq!(run.status.unwrap().phase, RunPhase::Succeeded);
    assert!(run.metadata.name.unwrap().starts_with("modules.home.a-"));
}

#[tokio::test(start_paused = true)]
async fn nothing_begins_before_it_is_known_which_runs_there_are() {
    let stage = Stage::new();
    let due = hook("v1:one", vec![migration("a", json!({}))]);
    stage.offer(std::slice::from_ref(&due));
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(stage.world.writes(), 0);
    stage.conductor.unlisted("the request was forbidden");
    stage
        .until(&due, |state| {
            state.open[0].message.contains("the request was forbidden")
        })
        .await;
    // The bell rings, and the pass that it rings for offers what it wants.
    stage.conductor.listed(Vec::new());
    stage.offer(std::slice::from_ref(&due));
    stage.until_done(&due).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_is_blocked_keeps_its_siblings_from_beginning() {
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    let due = hook(
        "v1:one",
        vec![migration("a", json!({})), migration("b", gated())],
    );
    stage.offer(std::slice::from_ref(&due));
    stage.until_open(&due, "b", Stand::Blocked).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(stage.value("a").is_none());
    // What it waits for rings no bell here: it is looked at by itself.
    put(&stage.world, "gate");
    stage.until_done(&due).await;
    assert!(stage.value("a").is_some() && stage.value("b").is_some());
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_another_one_is_judged_after_it() {
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    let second = migration("a", json!({"after": ["b"]}));
    let due = hook("v1:one", vec![second, migration("b", json!({}))]);
    stage.offer(std::slice::from_ref(&due));
    stage.until_done(&due).await;
    let heard = stage.heard();
    let position = |line: &str| heard.iter().position(|it| it == line).unwrap();
    assert!(position("b Succeeded") < position("a Run"), "{heard:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_is_superseded_when_nobody_wants_it_any_more() {
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    let first = hook("v1:one", vec![migration("a", gated())]);
    stage.offer(std::slice::from_ref(&first));
    stage.until_open(&first, "a", Stand::Blocked).await;
    let second = hook("v1:two", vec![migration("a", json!({}))]);
    stage.offer(std::slice::from_ref(&second));
    stage.until_done(&second).await;
    assert!(
        stage.heard().contains(&"a Superseded".to_owned()),
        "{:#?}",
        stage.heard()
    );
    // Back again: the one that was superseded does not count.
    let third = hook("v1:one", vec![migration("a", gated())]);
    stage.offer(std::slice::from_ref(&third));
    stage.until_done(&third).await;
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_cannot_be_evaluated_is_tried_again_and_never_taken_for_false() {
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    let refused = EffectError::Forbidden("configmaps is forbidden".to_owned());
    stage.world.refuse_reads(&kind(), Some(refused));
    let due = hook("v1:one", vec![migration("a", json!({}))]);
    stage.offer(std::slice::from_ref(&due));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(
        stage
            .heard()
            .iter()
            .filter(|line| *line == "a Unknown")
            .count()
            >= 3
    );
    assert!(!stage.heard().contains(&"a NotNeeded".to_owned()));
    let states = stage.conductor.states();
    assert!(
        !states.get(&due.hook).unwrap().open.is_empty()
            || !states.get(&due.hook).unwrap().failed.is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn open_runs_go_on_after_a_restart_whatever_git_says_by_then() {
    let world = Memory::default();
    let first = Stage::in_world(world.clone());
    first.conductor.listed(Vec::new());
    let steps = json!({"steps": [
        {"id": "wait", "wait": {"until": "objects.gate != null"}},
        {"id": "mark", "apply": {"manifest": {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "NAME", "namespace": "default"},
        }}},
    ]});
    let names: Vec<String> = (0..50).map(|number| format!("m{number}")).collect();
    let hooks: Vec<DueHook> = names
        .iter()
        .map(|name| {
            let steps: Value =
                serde_json::from_str(&steps.to_string().replace("NAME", name)).unwrap();
            let mut due = hook("v1:one", vec![migration(name, steps)]);
            due.hook.scope = HookScope::Component(format!("components/{name}").parse().unwrap());
            due.component = Some(crate::model::migration::DeployComponent {
                name: format!("components/{name}"),
                from: None,
                to: None,
                action: crate::model::migration::DeployAction::Upgrade,
            });
            due
        })
        .collect();
    first.offer(&hooks);
    for due in &hooks {
        let name = &due.migrations[0].migration.name;
        first.until_open(due, name, Stand::Running).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let runs: Vec<Run> = names.iter().map(|name| first.run_of(name)).collect();
    first.stop.cancel();
    first.conductor.end().await;

    put(&world, "gate");
    let second = Stage::in_world(world.clone());
    second.conductor.listed(runs);
    second.offer(&[]);
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    for name in &names {
        assert!(
            second.value(name).is_some(),
            "{name}: {:#?}",
            second.run_of(name).status
        );
    }
    assert_eq!(second.source.as_str(), "modules");
}
