//! Taking back what the migrations of a removed component have changed.

use super::*;
use crate::model::migration::{DeployAction, DeployComponent};
use crate::plan::hooks::UndoState;

const NAME: &str = "components/logging";

fn component() -> ComponentName {
    NAME.parse().unwrap()
}

/// A hook of a component.
fn hook_of(deploy: &str, migrations: Vec<DueMigration>) -> DueHook {
    let mut due = hook(deploy, migrations);
    due.hook.scope = HookScope::Component(component());
    due.component = Some(DeployComponent {
        name: NAME.to_owned(),
        from: None,
        to: None,
        action: DeployAction::Upgrade,
    });
    due
}

/// A migration that makes a ConfigMap of its own name, and takes that back while there is a gate, if it has one.
fn undoable(name: &str, after: &[&str], undo: Value) -> DueMigration {
    let delete = json!({"id": "back", "delete": {"select": {
        "apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "names": [name],
    }}});
    let steps = match undo {
        Value::Null => json!([delete]),
        first => json!([first, delete]),
    };
    migration(name, json!({"after": after, "undo": steps}))
}

fn gate() -> Value {
    json!({
        "id": "gate", "wait": {"until": "objects.gate != null"}, "attemptTimeout": "1m",
    })
}

impl Stage {
    fn undo_state(&self) -> UndoState {
        let states = self.conductor.states();
        let known = states.undo.expect("it is known which Runs there are");
        known.get(&component()).cloned().unwrap_or_default()
    }

    /// Offers the undo of the component as pass after pass does, until it stands as is wanted.
    async fn take_back(&self, wanted: impl Fn(&UndoState) -> bool) {
        for _ in 0..10_000 {
            if wanted(&self.undo_state()) {
                return;
            }
            self.offer_all(&[], &[], (&Once::default(), &[component()]));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it stays as it is: {:#?}", self.undo_state());
    }

    /// Has anna say something about the run of a migration.
    fn wish(&self, migration: &str, what: &str) {
        let mut run = self.run_of(migration);
        let wish = format!(r#"{{{what},"by":"anna","at":"2026-05-31T00:00:00Z"}}"#);
        let annotations = run.metadata.annotations.get_or_insert_default();
        let key = crate::model::names::ANNOTATION_COMMAND;
        annotations.insert(key.to_owned(), wish);
        self.conductor.seen(run);
    }

    fn undone(&self) -> Vec<String> {
        let undone =
            |entry: &&crate::runs::memory::LogEntry| entry.verb == "delete" && entry.changed;
        let log = self.world.log();
        log.iter()
            .filter(undone)
            .map(|it| it.about.clone())
            .collect()
    }
}

async fn deployed(migrations: Vec<DueMigration>) -> (Stage, DueHook) {
    let stage = Stage::new();
    stage.conductor.listed(Vec::new());
    let due = hook_of("v1:one", migrations);
    stage.offer(std::slice::from_ref(&due));
    stage.until_done(&due).await;
    (stage, due)
}

#[tokio::test(start_paused = true)]
async fn the_last_effect_is_taken_back_first_and_each_once() {
    let migrations = vec![
        undoable("c", &["b"], Value::Null),
        undoable("b", &["a"], Value::Null),
        undoable("a", &[], Value::Null),
        migration("kept", json!({})),
    ];
    let (stage, _) = deployed(migrations).await;
    assert_eq!(stage.undo_state().open, 3);
    stage.take_back(UndoState::is_done).await;
    assert_eq!(
        stage.undone(),
        [
            "ConfigMap default/c",
            "ConfigMap default/b",
            "ConfigMap default/a"
        ]
    );
    assert!(stage.value("kept").is_some());
    let writes = stage.world.writes();
    stage.offer_all(&[], &[], (&Once::default(), &[component()]));
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(stage.world.writes(), writes);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_taken_back_that_nobody_asks_for() {
    let (stage, _) = deployed(vec![undoable("a", &[], Value::Null)]).await;
    let writes = stage.world.writes();
    stage.offer_all(
        &[],
        &[],
        (&Once::default(), &["components/other".parse().unwrap()]),
    );
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(stage.world.writes(), writes);
    assert_eq!(stage.undo_state().open, 1);
}

/// Two migrations were done, and the newer one cannot be taken back, so that the older one waits.
async fn stopped_half_way() -> Stage {
    let migrations = vec![
        undoable("b", &["a"], gate()),
        undoable("a", &[], Value::Null),
    ];
    let (stage, _) = deployed(migrations).await;
    let failed = |state: &UndoState| {
        let mut undoing = state.undoing.iter();
        undoing.any(|it| it.stand == Stand::Failed)
    };
    stage.take_back(failed).await;
    stage
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_be_taken_back_stops_those_before_it_until_a_person_has_tried_again() {
    let stage = stopped_half_way().await;
    assert!(stage.value("b").is_some() && stage.value("a").is_some());
    stage.offer_all(&[], &[], (&Once::default(), &[component()]));
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(stage.undone(), Vec::<String>::new());
    put(&stage.world, "gate");
    stage.wish("b", r#""verb":"retry","reason":"mended""#);
    stage.take_back(UndoState::is_done).await;
    assert_eq!(
        stage.undone(),
        ["ConfigMap default/b", "ConfigMap default/a"]
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_is_given_up_is_left_and_those_before_it_are_taken_back() {
    let stage = stopped_half_way().await;
    stage.wish(
        "b",
        r#""verb":"resolve","resolution":"keep","reason":"it may stay""#,
    );
    stage.take_back(UndoState::is_done).await;
    assert_eq!(stage.undone(), ["ConfigMap default/a"]);
    assert!(stage.value("b").is_some());
    let run = stage.run_of("b");
    assert!(run.status.unwrap().is_undo_given_up());
}

#[tokio::test(start_paused = true)]
async fn what_is_being_taken_back_goes_on_after_a_restart_and_nothing_else_begins() {
    let migrations = vec![
        undoable("b", &["a"], gate()),
        undoable("a", &[], Value::Null),
    ];
    let (first, _) = deployed(migrations).await;
    first.take_back(UndoState::is_under_way).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let runs = vec![first.run_of("a"), first.run_of("b")];
    first.stop.cancel();
    first.conductor.end().await;
    put(&first.world, "gate");
    let second = Stage::in_world(first.world.clone());
    second.conductor.listed(runs);
    second.offer(&[]);
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(second.undone(), ["ConfigMap default/b"]);
    assert_eq!(second.undo_state().open, 1);
    second.take_back(UndoState::is_done).await;
    assert!(second.value("a").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_component_that_comes_back_waits_for_the_run_under_way_and_is_migrated_anew() {
    let migrations = vec![
        undoable("b", &["a"], gate()),
        undoable("a", &[], Value::Null),
    ];
    let (stage, due) = deployed(migrations).await;
    stage.take_back(UndoState::is_under_way).await;
    // The same deploy as before, byte for byte: its runs have the same names.
    stage.offer(std::slice::from_ref(&due));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(stage.undo_state().is_under_way());
    assert_eq!(stage.undone(), Vec::<String>::new());
    put(&stage.world, "gate");
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        stage.offer(std::slice::from_ref(&due));
    }
    stage.until_done(&due).await;
    // What was taken back is made again, and the other one was never touched.
    assert_eq!(stage.undone(), ["ConfigMap default/b"]);
    assert!(stage.value("b").is_some() && stage.value("a").is_some());
    assert_eq!(stage.undo_state().open, 2);
}
