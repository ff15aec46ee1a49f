//! One crash at each point.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt as _;

use super::history::{Historian, History};
use super::{migrations, stage};
use crate::support::agent::signal;
use crate::support::proxy::Seen;
use crate::support::world::World;

/// Crash points that are tried at the same time: each is mostly waiting.
const SIDE_BY_SIDE: usize = 3;

/// On which side of a request the agent dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Before the server has seen the request.
    Before,
    /// When the server has answered, and the agent has not heard it.
    After,
}

/// What is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Play {
    /// Objects come, change and go.
    Prune,
    /// Components with migrations, and global ones, are deployed.
    Migrations,
}

impl Play {
    async fn set(self, world: &World) {
        match self {
            Self::Prune => stage::set(world).await,
            Self::Migrations => migrations::set(world).await,
        }
    }

    fn act(self, world: &World) -> String {
        match self {
            Self::Prune => stage::act(world),
            Self::Migrations => migrations::act(world),
        }
    }

    async fn scenery(self, world: &World) -> String {
        let scenery = stage::scenery(world).await;
        match self {
            Self::Prune => scenery,
            Self::Migrations => format!("{scenery}\n{}", migrations::scenery(world).await),
        }
    }
}

/// How the play ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) scenery: String,
    pub(super) history: History,
}

/// Plays undisturbed; returns the agent's requests from its start until all is settled, and the ending.
pub(super) async fn undisturbed(play: Play) -> (Vec<Seen>, Ending) {
    let world = World::new().await;
    play.set(&world).await;
    let commit = play.act(&world);
    let historian = Historian::start(&world).await;
    world.proxy.forget();
    let _agent = world.agent();
    stage::settled(&world, &commit).await;
    let seen = world.proxy.seen();
    (
        seen,
        Ending {
            scenery: play.scenery(&world).await,
            history: historian.end().await,
        },
    )
}

/// Plays with a crash at the given request; returns what the request was, if the agent came that far, and the ending.
async fn with_crash(play: Play, number: usize, side: Side) -> (Option<Seen>, Ending) {
    let world = World::new().await;
    play.set(&world).await;
    let commit = play.act(&world);
    let historian = Historian::start(&world).await;
    let (process, died) = (
        Arc::new(AtomicU32::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let at = Arc::new(std::sync::Mutex::new(None));
    let hook = {
        let (process, died, at) = (Arc::clone(&process), Arc::clone(&died), Arc::clone(&at));
        Arc::new(move |count: usize, seen: &Seen| {
            if count != number || died.swap(true, Ordering::SeqCst) {
                return true;
            }
            *at.lock().unwrap() = Some(seen.clone());
            signal(process.load(Ordering::SeqCst), "KILL");
            false
        })
    };
    world.proxy.forget();
    match side {
        Side::Before => world.proxy.before(hook),
        Side::After => world.proxy.after(hook),
    }
    let mut agent = world.agent();
    process.store(agent.id(), Ordering::SeqCst);
    // Requests differ a little from run to run; where the agent settles before it has made so many, nothing dies.
    let dead = async {
        while !died.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = dead => {}
        () = stage::settled(&world, &commit) => {}
    }
    agent.kill();
    let _agent = world.agent();
    stage::settled(&world, &commit).await;
    let ending = Ending {
        scenery: play.scenery(&world).await,
        history: historian.end().await,
    };
    let at = at.lock().unwrap().clone();
    (at, ending)
}

fn all_points(seen: &[Seen]) -> Vec<(usize, Side)> {
    (1..=seen.len())
        .flat_map(|number| [(number, Side::Before), (number, Side::After)])
        .collect()
}

/// Every write that is not one of many alike, on both sides, and each seventh of the other requests.
fn representative(seen: &[Seen]) -> Vec<(usize, Side)> {
    let mut points = Vec::new();
    let mut kinds_of_writes = std::collections::BTreeMap::new();
    for (index, request) in seen.iter().enumerate() {
        let number = index + 1;
        if matches!(request.verb.as_str(), "PATCH" | "POST" | "DELETE") {
            let folder = request
                .path
                .rsplit_once('/')
                .map(|(folder, _)| folder.to_owned());
            let count = kinds_of_writes
                .entry((request.verb.clone(), folder))
                .or_insert(0);
            *count += 1;
            if *count == 1 {
                points.extend([(number, Side::Before), (number, Side::After)]);
            }
        } else if index % 7 == 0 {
            points.push((number, Side::After));
        }
    }
    points
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_agent_loses_nothing_and_repeats_nothing() {
    enumerate(Play::Prune, &["dropped", "dropped-too"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_agent_migrates_as_one_that_was_not() {
    enumerate(Play::Migrations, &[]).await;
}

async fn enumerate(play: Play, deleted: &[&str]) {
    let (seen, wanted) = undisturbed(play).await;
    assert_eq!(
        wanted
            .history
            .deleted
            .keys()
            .map(String::as_str)
            .collect::<Vec<_>>(),
        deleted
    );
    let all = crate::support::environment("FAIRWAY_CRASH_POINTS").as_deref() == Some("all");
    let points = if all {
        all_points(&seen)
    } else {
        representative(&seen)
    };
    let total = points.len();
    let mut results = futures::stream::iter(points)
        .map(|(number, side)| async move { ((number, side), with_crash(play, number, side).await) })
        .buffer_unordered(SIDE_BY_SIDE);
    let mut tried = 0;
    while let Some(((number, side), (at, ending))) = results.next().await {
        tried += 1;
        let what = at.map_or("nothing died".to_owned(), |seen| {
            format!("{} {}", seen.verb, seen.path)
        });
        let _ = writeln!(
            std::io::stderr(),
            "crash point {tried}/{total}: {side:?} request {number}, {what}"
        );
        assert_eq!(
            ending.history.deleted, wanted.history.deleted,
            "{side:?} request {number}, {what}"
        );
        assert_eq!(
            ending.history.created(),
            wanted.history.created(),
            "{side:?} request {number}, {what}"
        );
        assert_eq!(
            ending.scenery, wanted.scenery,
            "{side:?} request {number}, {what}"
        );
    }
    let _ = writeln!(
        std::io::stderr(),
        "{tried} crash points of {} requests",
        seen.len()
    );
}
