//! Runs that happen once: whatever is killed or lost, none runs twice by itself, and no kill alone is a question to a person.

use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::tests::{Stage, hook, migration, put};
use super::*;
use crate::model::api::{Resolution, RunCommand, RunPhase, RunStatus, RunVerb};
use crate::model::migration::{DeployAction, DeployComponent};
use crate::model::names::ANNOTATION_COMMAND;
use crate::plan::hooks::{DueMigration, HookState, Stand};
use crate::runs::memory::{Fault, Memory};

/// A migration with one request, of which nothing in the cluster tells that it was made.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a value from json! has no other use"
)]
fn bill(policy: &str, more: Value) -> DueMigration {
    let mut spec = json!({
        "guard": {"needed": "true"},
        "policy": {"run": policy, "idempotencyKey": "bill", "retry": {"jitter": 0.0}},
        "steps": [{"id": "call", "http": {"method": "POST", "url": "https://registry.example.com/bill"}}],
    });
    json_patch::merge(&mut spec, &more);
    migration("bill", spec)
}

/// Where a target's write ends the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kill {
    Before,
    After,
}

/// A target: what it remembers survives every process.
#[derive(Default)]
struct Target {
    once: Once,
    writes: usize,
    kill: Option<(usize, Kill)>,
    /// Migrations that happen once, while the record of the target is lost.
    doubtful: Vec<&'static str>,
}

impl Target {
    /// Does what a pass does: writes down what the records tell, then offers. Returns false where it was killed.
    fn pass(&mut self, stage: &Stage, hooks: &[DueHook]) -> bool {
        let mut learned = self.once.clone();
        if let Some(runs) = stage.conductor.states().once {
            learned.learn(&runs, self.doubtful.iter().copied());
        }
        if learned != self.once {
            self.writes += 1;
            let kill = self.kill.filter(|(number, _)| *number == self.writes);
            if kill.is_some_and(|(_, kill)| kill == Kill::Before) {
                self.kill = None;
                return false;
            }
            self.once = learned;
            if kill.is_some() {
                self.kill = None;
                return false;
            }
        }
        stage.offer_all(hooks, &[], (&self.once, &[]));
        true
    }

    /// Lets one process pass again and again until the hook is as is wanted; returns false where it was killed before.
    async fn live(
        &mut self,
        stage: &Stage,
        due: &DueHook,
        wanted: impl Fn(&HookState) -> bool,
    ) -> bool {
        for _ in 0..2_000 {
            if !self.pass(stage, std::slice::from_ref(due)) {
                return false;
            }
            tokio::select! {
                () = stage.world.stopped() => return false,
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
            }
            let states = stage.conductor.states();
            if states.get(&due.hook).is_some_and(&wanted) {
                return true;
            }
        }
        panic!("it stays as it is: {:#?}", stage.conductor.states());
    }

    async fn until_done(&mut self, stage: &Stage, due: &DueHook) {
        let is_done = |state: &HookState| state.open.is_empty() && state.failed.is_empty();
        assert!(self.live(stage, due, is_done).await);
    }

    async fn until_asked(&mut self, stage: &Stage, due: &DueHook) -> Run {
        let is_asked = |state: &HookState| {
            let mut failed = state.failed.iter();
            failed.any(|it| it.migration == "bill" && it.stand == Stand::Lost)
        };
        assert!(self.live(stage, due, is_asked).await);
        stage.run_of("bill")
    }
}

fn begun(world: &Memory) -> Stage {
    let stage = Stage::in_world(world.clone());
    stage.conductor.listed(world.runs());
    stage
}

/// Ends a process as a kill does: nothing of it happens any more.
#[expect(clippy::needless_pass_by_value, reason = "nobody may use it any more")]
fn kill(stage: Stage) {
    stage.stop.cancel();
    stage.conductor.inner.tasks().abort_all();
    stage.world.restart();
}

fn calls(world: &Memory) -> usize {
    let log = world.log();
    log.iter().filter(|entry| entry.verb == "http").count()
}

fn status(run: &Run) -> RunStatus {
    run.status.clone().unwrap_or_default()
}

/// Puts a record back as tools for backups do: another uid, and without what it had said.
fn put_back(world: &Memory, run: &Run, says: Option<RunStatus>) {
    let name = run.name_any();
    world.edit_run(&name, |stored| {
        stored.metadata.uid = Some("another".to_owned());
        stored.status = says;
        stored.metadata.annotations = run.metadata.annotations.clone();
    });
}

fn say(stage: &Stage, run: &Run, resolution: Resolution) {
    let command = RunCommand {
        verb: RunVerb::Resolve,
        step: None,
        resolution: Some(resolution),
        by: "ada".to_owned(),
        reason: "I looked".to_owned(),
        at: "2026-01-01T00:00:00Z".parse().unwrap(),
        until: None,
    };
    let text = serde_json::to_string(&command).unwrap();
    stage.world.edit_run(&run.name_any(), |stored| {
        let annotations = stored.metadata.annotations.get_or_insert_default();
        annotations.insert(ANNOTATION_COMMAND.to_owned(), text);
    });
    let stored = stage.world.run(&run.name_any()).unwrap();
    stage.conductor.seen(stored);
}

#[tokio::test(start_paused = true)]
async fn i13_no_kill_makes_it_run_twice_or_asks_a_person() {
    let due = hook("v1:one", vec![bill("OncePerCluster", json!({}))]);
    let plain = {
        let (world, mut target) = (Memory::default(), Target::default());
        let stage = begun(&world);
        target.until_done(&stage, &due).await;
        // One write of the target, whatever else happens.
        assert_eq!((target.writes, calls(&world)), (1, 1));
        stage.offer_all(&[], &[], (&target.once, &[]));
        assert!(target.pass(&stage, &[]) && target.writes == 1);
        world.writes()
    };
    let mut tried = 0;
    for first in 0..plain {
        for one in [Fault::StopBefore, Fault::StopAfter] {
            for within in 0..=3 {
                for kill_of_target in [None, Some((1, Kill::Before)), Some((1, Kill::After))] {
                    let (world, mut target) = (Memory::default(), Target::default());
                    target.kill = kill_of_target;
                    world.fault(first, one.clone());
                    if within > 0 {
                        world.fault(first + within, Fault::StopBefore);
                    }
                    let is_done =
                        |state: &HookState| state.open.is_empty() && state.failed.is_empty();
                    let mut lives = 0;
                    loop {
                        let stage = begun(&world);
                        let is_over = target.live(&stage, &due, is_done).await;
                        kill(stage);
                        lives += 1;
                        assert!(lives < 6, "it never ends");
                        if is_over {
                            break;
                        }
                    }
                    let runs = world.runs();
                    let what =
                        format!("{one:?} {first}, {within} later, target {kill_of_target:?}");
                    assert_eq!(runs.len(), 1, "{what}");
                    let after = status(&runs[0]);
                    assert_eq!(after.phase, RunPhase::Succeeded, "{what}: {after:#?}");
                    let is_a_question = after
                        .timeline
                        .iter()
                        .any(|it| it.what.contains("by itself"));
                    assert!(!is_a_question, "{what}: {:#?}", after.timeline);
                    // A request whose answer was lost is sent again under its key; nothing else repeats it.
                    let keys: BTreeSet<_> =
                        world.log().into_iter().filter_map(|it| it.key).collect();
                    assert_eq!(keys.len(), 1, "{what}");
                    tried += 1;
                }
            }
        }
    }
    assert!(tried >= 5 * 2 * 4 * 3, "{tried}");
}

#[tokio::test(start_paused = true)]
async fn f15_a_record_that_is_gone_is_a_question_and_not_run_again() {
    for (resolution, wanted, sent) in [
        (Resolution::Done, RunPhase::Succeeded, 1),
        (Resolution::Again, RunPhase::Succeeded, 2),
        (Resolution::Fail, RunPhase::Failed, 1),
    ] {
        let (world, mut target) = (Memory::default(), Target::default());
        let stage = begun(&world);
        let due = hook("v1:one", vec![bill("OncePerCluster", json!({}))]);
        target.until_done(&stage, &due).await;
        let run = stage.run_of("bill");
        world.forget_run(&run.name_any());
        stage.conductor.gone(&run.name_any());
        // While it is asked about, and in a deploy that comes later, too.
        target.until_asked(&stage, &due).await;
        let later = hook("v1:two", vec![bill("OncePerCluster", json!({}))]);
        let asked = target.until_asked(&stage, &later).await;
        assert_eq!((asked.name_any(), calls(&world)), (run.name_any(), 1));
        let message = status(&asked).message;
        assert!(
            message.contains("was begun on this cluster before"),
            "{message}"
        );
        assert!(message.contains("done|again|fail"), "{message}");
        kill(stage);

        let stage = begun(&world);
        target.until_asked(&stage, &later).await;
        say(&stage, &asked, resolution);
        let is_over = |state: &HookState| {
            let mut failed = state.failed.iter();
            state.open.is_empty() && !failed.any(|it| it.stand == Stand::Lost)
        };
        assert!(target.live(&stage, &later, is_over).await);
        assert_eq!(status(&stage.run_of("bill")).phase, wanted);
        assert_eq!(calls(&world), sent);
    }
}

#[tokio::test(start_paused = true)]
async fn f15_a_record_that_was_put_back_is_a_question_whatever_it_says() {
    let wish = r#"{"verb":"resolve","resolution":"again","by":"old","reason":"long ago","at":"2025-01-01T00:00:00Z"}"#;
    let waits = json!({"steps": [
        {"id": "call", "http": {"method": "POST", "url": "https://registry.example.com/bill"}},
        {"id": "wait", "wait": {"until": "objects.gate != null"}},
    ]});
    for keeps_status in [false, true] {
        let (world, mut target) = (Memory::default(), Target::default());
        let due = hook("v1:one", vec![bill("OncePerCluster", waits.clone())]);
        let stage = begun(&world);
        let waits = |state: &HookState| state.open.iter().any(|it| it.stand == Stand::Running);
        assert!(target.live(&stage, &due, waits).await);
        while calls(&world) == 0 {
            assert!(target.live(&stage, &due, waits).await);
        }
        let mut run = stage.run_of("bill");
        put(&world, "gate");
        target.until_done(&stage, &due).await;
        kill(stage);
        // The backup is older than the end, and has a word of a person that was acted on long ago.
        let annotations = run.metadata.annotations.get_or_insert_default();
        annotations.insert(ANNOTATION_COMMAND.to_owned(), wish.to_owned());
        put_back(&world, &run, run.status.clone().filter(|_| keeps_status));
        let stage = begun(&world);
        let asked = target.until_asked(&stage, &due).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(calls(&world), 1);
        assert_eq!(
            status(&asked).commands.len(),
            1,
            "it was noted, and not acted on"
        );
        say(&stage, &asked, Resolution::Done);
        target.until_done(&stage, &due).await;
        assert_eq!(calls(&world), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn f15_a_memory_that_is_lost_is_learned_from_the_records() {
    let (world, mut target) = (Memory::default(), Target::default());
    let due = hook("v1:one", vec![bill("OncePerCluster", json!({}))]);
    let stage = begun(&world);
    target.until_done(&stage, &due).await;
    let remembered = std::mem::take(&mut target.once);
    target.doubtful = vec!["bill"];
    kill(stage);
    let stage = begun(&world);
    let later = hook("v1:two", vec![bill("OncePerCluster", json!({}))]);
    target.until_done(&stage, &later).await;
    assert_eq!((target.once.clone(), calls(&world)), (remembered, 1));
    kill(stage);

    // Both are lost: nobody knows. A kill before the question is written down changes nothing about that.
    target.once = Once::default();
    world.forget_run(&world.runs()[0].name_any());
    let writes = world.writes();
    world.fault(writes, Fault::StopAfter);
    let stage = begun(&world);
    assert!(
        !target
            .live(&stage, &due, |state| !state.failed.is_empty())
            .await
    );
    kill(stage);
    // Meanwhile somebody says that the cluster is the source's.
    target.doubtful.clear();
    let stage = begun(&world);
    let asked = target.until_asked(&stage, &due).await;
    assert!(
        status(&asked)
            .message
            .contains("was lost, and so was the record")
    );
    assert_eq!(calls(&world), 1);
    assert!(target.pass(&stage, std::slice::from_ref(&due)));
    assert!(target.once.doubts.is_empty(), "the question is a record");
}

#[tokio::test(start_paused = true)]
async fn f15_a_hop_from_nobody_knows_where_is_the_one_that_a_record_tells_of() {
    let of = |from: Option<&str>, deploy: &str| {
        let mut due = hook(deploy, vec![bill("OncePerHop", json!({}))]);
        due.component = Some(DeployComponent {
            name: "components/shop".to_owned(),
            from: from.map(str::to_owned),
            to: Some("1.4.0".to_owned()),
            action: DeployAction::Upgrade,
        });
        due
    };
    let (world, mut target) = (Memory::default(), Target::default());
    let stage = begun(&world);
    target
        .until_done(&stage, &of(Some("1.3.0"), "v1:one"))
        .await;
    // The target has lost from where it came.
    target.once = Once::default();
    target.until_done(&stage, &of(None, "v1:two")).await;
    assert_eq!((calls(&world), world.runs().len()), (1, 1));
    target
        .until_done(&stage, &of(Some("1.2.0"), "v1:three"))
        .await;
    assert_eq!((calls(&world), world.runs().len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn what_was_superseded_before_it_began_runs_when_it_is_wanted_again() {
    let (world, mut target) = (Memory::default(), Target::default());
    let closed =
        json!({"guard": {"requires": [{"cel": "objects.gate != null", "message": "closed"}]}});
    let due = hook("v1:one", vec![bill("OncePerCluster", closed)]);
    let stage = begun(&world);
    let is_blocked = |state: &HookState| state.open.iter().any(|it| it.stand == Stand::Blocked);
    assert!(target.live(&stage, &due, is_blocked).await);
    // It leaves git, and comes back.
    for _ in 0..50 {
        assert!(target.pass(&stage, &[]));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(stage.heard().contains(&"bill Superseded".to_owned()));
    put(&world, "gate");
    target.until_done(&stage, &due).await;
    assert_eq!(calls(&world), 1);
    // Once it has run, coming back is no reason to run again.
    for _ in 0..50 {
        assert!(target.pass(&stage, &[]));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    target.until_done(&stage, &due).await;
    assert_eq!((calls(&world), world.runs().len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_question_keeps_siblings_back_unless_its_migration_only_warns() {
    for (on_failure, sibling_runs) in [("BlockComponent", false), ("Warn", true)] {
        let (world, mut target) = (Memory::default(), Target::default());
        let policy = json!({"policy": {"onFailure": on_failure}});
        let due = hook("v1:one", vec![bill("OncePerCluster", policy.clone())]);
        let stage = begun(&world);
        target.until_done(&stage, &due).await;
        let name = stage.run_of("bill").name_any();
        world.forget_run(&name);
        stage.conductor.gone(&name);
        let sibling = migration("sibling", json!({}));
        let both = hook("v1:two", vec![bill("OncePerCluster", policy), sibling]);
        target.until_asked(&stage, &both).await;
        for _ in 0..20 {
            assert!(target.pass(&stage, std::slice::from_ref(&both)));
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        let has_run = stage.heard().contains(&"sibling Succeeded".to_owned());
        assert_eq!(has_run, sibling_runs, "{on_failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_memory_that_is_full_begins_nothing_and_says_so() {
    let (world, mut target) = (Memory::default(), Target::default());
    for number in 0..crate::model::limits::ONCE_REMEMBERED_MAX {
        let name = format!("modules.home.old-{number}");
        target.once.begun.insert(name, "uid".to_owned());
    }
    let due = hook("v1:one", vec![bill("OncePerCluster", json!({}))]);
    let stage = begun(&world);
    let is_told = |state: &HookState| state.open.iter().any(|it| it.message.contains("onceRuns"));
    assert!(target.live(&stage, &due, is_told).await);
    assert_eq!((world.runs().len(), world.writes()), (0, 0));
    target.once.begun.pop_first();
    target.until_done(&stage, &due).await;
    assert_eq!((calls(&world), target.writes), (1, 1));
}
