//! Time: what is active, what it bounds, and that a clock that jumps changes nothing.

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};

use super::kit::*;
use crate::cluster::Access;
use crate::model::api::{Run, RunPhase, RunStatus, StepState};
use crate::model::migration::{Lookup, Retry, Span};
use crate::runs::machine::delay;
use crate::runs::memory::Memory;
use crate::runs::{
    Deletion, Driver, EffectError, Effects, HttpAnswer, HttpRequest, Listing, ObjectPatch, Removed,
    ResourceKind, Serving,
};

fn waits(timeout: &str, patience: &str) -> Bench {
    let mut definition = two_steps();
    definition["lookups"]["go"] =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "go"});
    definition["guard"] = json!({"needed": "objects.go == null"});
    definition["steps"] = json!([{
        "id": "wait", "wait": {"until": "objects.go != null"},
        "attemptTimeout": patience, "retry": {"interval": "10s", "jitter": 0.0},
    }]);
    definition["policy"]["timeout"] = timeout.into();
    Bench::new(definition)
}

#[tokio::test(start_paused = true)]
async fn a_wait_has_its_patience_and_no_more() {
    let bench = waits("10m", "2m");
    let run = status(&bench.drive().await);
    assert_eq!(
        (run.phase, run.reason.as_str()),
        (RunPhase::Failed, "StepFailed")
    );
    assert!(
        run.message.contains("not over within 2m"),
        "{}",
        run.message
    );
    assert!(
        (119_000..=121_000).contains(&run.active_milliseconds),
        "{}",
        run.active_milliseconds
    );
    assert_eq!(run.steps[0].attempts, 1);
    // One write for its beginning, one for each look, one for the record.
    assert!(bench.world.writes() <= 2 + 13, "{}", bench.world.writes());
}

#[tokio::test(start_paused = true)]
async fn the_whole_run_has_its_time_and_no_more() {
    let bench = waits("1m", "5m");
    let run = status(&bench.drive().await);
    assert_eq!(
        (run.phase, run.reason.as_str()),
        (RunPhase::Failed, "Timeout")
    );
    assert!(
        (60_000..61_000).contains(&run.active_milliseconds),
        "{}",
        run.active_milliseconds
    );
}

/// Drives with an agent that is stopped every twenty seconds, with hours in between.
async fn with_restarts(bench: &Bench, jump: i64) -> RunStatus {
    bench.record().await;
    for _ in 0..100 {
        let stop = tokio_util::sync::CancellationToken::new();
        let timer = stop.clone();
        let timer = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(20)).await;
            timer.cancel();
        });
        let run = bench.world.run(NAME).unwrap();
        let driver = bench.agent();
        let run = driver
            .drive(run, bench.commands.subscribe(), &stop, |_| {})
            .await;
        timer.abort();
        if status(&run).phase.is_over() {
            return status(&run);
        }
        bench.clock.jump(jump);
        tokio::time::sleep(Duration::from_secs(7200)).await;
    }
    panic!("it never ends");
}

#[rstest]
#[case(0)]
#[case(7_200)]
#[case(-14_400)]
#[tokio::test(start_paused = true)]
async fn f14_neither_restarts_nor_jumps_of_the_clock_expire_or_extend(#[case] jump: i64) {
    let bench = waits("10m", "2m");
    let run = with_restarts(&bench, jump).await;
    assert_eq!(
        (run.phase, run.reason.as_str()),
        (RunPhase::Failed, "StepFailed")
    );
    // What an agent has spent since its last write goes with it: less than one look of ten seconds for each of at most twelve.
    let spent = run.active_milliseconds;
    assert!((119_000..=121_000).contains(&spent), "{spent}");
    assert_eq!(run.steps[0].attempts, 1);
}

#[tokio::test(start_paused = true)]
async fn f14_a_jump_while_a_run_waits_changes_nothing() {
    for jump in [7_200, -7_200] {
        let bench = waits("10m", "2m");
        let clock = bench.clock.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(35)).await;
            clock.jump(jump);
        });
        let run = status(&bench.drive().await);
        assert_eq!(run.reason, "StepFailed");
        assert!((119_000..=121_000).contains(&run.active_milliseconds));
    }
}

#[tokio::test(start_paused = true)]
async fn i5_attempts_and_time_only_add_up() {
    let bench = waits("10m", "2m");
    bench.drive().await;
    let written = bench.written.lock().unwrap();
    for pair in written.windows(2) {
        assert!(pair[0].active_milliseconds <= pair[1].active_milliseconds);
        assert!(pair[0].steps.len() <= pair[1].steps.len());
        for (before, after) in pair[0].steps.iter().zip(&pair[1].steps) {
            assert!(before.attempts <= after.attempts);
            assert!(before.active_milliseconds <= after.active_milliseconds);
        }
    }
}

#[test]
fn delays_grow_to_their_bound_and_are_the_same_each_time() {
    let retry = |jitter| Retry {
        max_attempts: 5,
        interval: Span::seconds(10),
        factor: 2.0,
        max_interval: Span::seconds(120),
        jitter,
    };
    let plain: Vec<_> = (1..7)
        .map(|n| delay(&retry(0.0), n, "a").as_secs())
        .collect();
    assert_eq!(plain, [10, 20, 40, 80, 120, 120]);
    assert_eq!(delay(&retry(0.0), u32::MAX, "a").as_secs(), 120);
    for failures in 1..7 {
        let whole = delay(&retry(0.0), failures, "a");
        let spread = delay(&retry(0.2), failures, "run/step");
        assert!(spread <= whole && spread >= whole.mul_f64(0.8));
        assert_eq!(spread, delay(&retry(0.2), failures, "run/step"));
    }
    assert_ne!(
        delay(&retry(0.2), 1, "run/a"),
        delay(&retry(0.2), 1, "run/b")
    );
}

/// What a step meets instead of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Trouble {
    Hang,
    Panic,
}

/// A world whose patches never answer, or take their caller down.
struct Troubled(Memory, Trouble);

impl Effects for Troubled {
    async fn look(&self, lookup: &Lookup) -> Result<Value, EffectError> {
        self.0.look(lookup).await
    }

    async fn serving(&self, kind: &ResourceKind) -> Result<Serving, EffectError> {
        self.0.serving(kind).await
    }

    async fn refused(&self, asked: &[Access]) -> Result<Vec<Access>, EffectError> {
        self.0.refused(asked).await
    }

    async fn user(&self) -> Result<String, EffectError> {
        self.0.user().await
    }

    async fn get(
        &self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>, EffectError> {
        self.0.get(kind, namespace, name).await
    }

    async fn list(
        &self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        selector: Option<&str>,
        page: (u32, Option<&str>),
    ) -> Result<Listing, EffectError> {
        self.0.list(kind, namespace, selector, page).await
    }

    async fn patch(&self, _: &ObjectPatch) -> Result<Value, EffectError> {
        match self.1 {
            Trouble::Hang => std::future::pending().await,
            Trouble::Panic => panic!("index out of range"),
        }
    }

    async fn apply(&self, manifest: &Value) -> Result<Value, EffectError> {
        self.0.apply(manifest).await
    }

    async fn create(&self, manifest: &Value) -> Result<Value, EffectError> {
        Effects::create(&self.0, manifest).await
    }

    async fn replace(&self, manifest: &Value) -> Result<Value, EffectError> {
        self.0.replace(manifest).await
    }

    async fn delete(&self, deletion: &Deletion) -> Result<Removed, EffectError> {
        self.0.delete(deletion).await
    }

    async fn http(&self, request: &HttpRequest) -> Result<HttpAnswer, EffectError> {
        self.0.http(request).await
    }
}

#[rstest]
#[case(Trouble::Hang, "it gave no result in its time", 5 * 120)]
#[case(Trouble::Panic, "it panicked: index out of range", 0)]
#[tokio::test(start_paused = true)]
async fn j07_a_hang_ends_with_its_attempt_and_a_panic_is_kept_apart(
    #[case] trouble: Trouble,
    #[case] message: &str,
    #[case] seconds: u64,
) {
    let mut definition = two_steps();
    definition["policy"]["timeout"] = "1h".into();
    let bench = Bench::new(definition);
    bench.world.put(config_map("one", json!({"size": "10"})));
    let run: Run = bench.record().await;
    let effects = Troubled(bench.world.clone(), trouble);
    let driver = Driver::new(effects, bench.world.clone(), bench.clock.clone(), "lease/1");
    let run = driver
        .drive(run, bench.commands.subscribe(), &bench.stop, |_| {})
        .await;
    let run = status(&run);
    assert_eq!(
        (run.phase, run.reason.as_str()),
        (RunPhase::Failed, "AttemptsUsedUp")
    );
    assert!(run.message.contains(message), "{}", run.message);
    assert_eq!(
        (run.steps[0].attempts, run.steps[0].state),
        (5, StepState::Failed)
    );
    assert!(run.timeline.iter().any(|line| line.what.contains(message)));
    // Between five attempts are delays of 10, 20, 40 and 80 s.
    assert_eq!(run.active_milliseconds / 1_000, seconds + 150);
}

#[tokio::test(start_paused = true)]
async fn a_driven_run_can_move_between_threads() {
    let bench = waits("1m", "1m");
    let run = bench.record().await;
    let driver = bench.agent();
    let (commands, stop) = (bench.commands.subscribe(), bench.stop.clone());
    let task = tokio::spawn(async move { driver.drive(run, commands, &stop, |_| {}).await });
    assert!(status(&task.await.unwrap()).phase.is_over());
}
