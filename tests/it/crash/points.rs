//! One crash at each point.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt as _;

use tokio_util::sync::DropGuard;

use super::history::{Historian, History};
use super::{examples, migrations, stage};
use crate::migrations::catalogue;
use crate::migrations::examples::{operator, volume_driver, volumes};
use crate::support::agent::signal;
use crate::support::control_plane::ControlPlane;
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
    /// A component is removed whose migration is taken back first.
    Undo,
    /// The example that grows volumes.
    Volumes,
    /// The example that removes an operator with what it made.
    Operator,
    /// All other examples, in one deploy.
    Catalogue,
}

impl Play {
    /// Makes a world, on a control plane that has what the play needs.
    async fn world(self) -> World {
        match self {
            Self::Prune | Self::Migrations | Self::Undo => World::new().await,
            Self::Volumes | Self::Operator | Self::Catalogue => {
                World::on(ControlPlane::full()).await
            }
        }
    }

    async fn set(self, world: &World) {
        match self {
            Self::Prune => stage::set(world).await,
            Self::Migrations => migrations::set(world).await,
            Self::Undo => migrations::set_undo(world).await,
            Self::Volumes => examples::set_volumes(world).await,
            Self::Operator => examples::set_operator(world).await,
            Self::Catalogue => catalogue::set(world).await,
        }
    }

    /// Starts what acts beside the agent, until it is dropped.
    fn others(self, world: &World) -> Option<DropGuard> {
        (self == Self::Volumes).then(|| volume_driver(world))
    }

    fn act(self, world: &World) -> String {
        match self {
            Self::Prune => stage::act(world),
            Self::Migrations => migrations::act(world),
            Self::Undo => migrations::act_undo(world),
            Self::Volumes => examples::act(world, "logging"),
            Self::Operator => examples::act(world, "nats"),
            Self::Catalogue => catalogue::act(world),
        }
    }

    async fn scenery(self, world: &World) -> String {
        let scenery = stage::scenery(world).await;
        let more = match self {
            Self::Prune => return scenery,
            Self::Migrations => migrations::scenery(world).await,
            Self::Undo => migrations::undone(world).await,
            Self::Volumes => examples::scenery(world, volumes(world).await).await,
            Self::Operator => examples::scenery(world, operator(world).await).await,
            Self::Catalogue => examples::scenery(world, catalogue::present(world).await).await,
        };
        format!("{scenery}\n{more}")
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
    let world = play.world().await;
    play.set(&world).await;
    let _others = play.others(&world);
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
    let world = play.world().await;
    play.set(&world).await;
    let _others = play.others(&world);
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

/// Every write that is not one of many alike, on both sides, and each seventh of the other requests. Writes of a Target are not alike: kinds, what is
/// committed and what happens once are written down each before something else.
fn representative(seen: &[Seen]) -> Vec<(usize, Side)> {
    let writes = kinds_of_writes(seen);
    let mut points = Vec::new();
    for number in 1..=seen.len() {
        let request = &seen[number - 1];
        let is_wanted = if is_write(request) {
            request.path.contains("/targets/")
        } else {
            number % 7 == 1
        };
        if writes.contains(&number) {
            points.extend([(number, Side::Before), (number, Side::After)]);
        } else if is_wanted {
            points.push((number, Side::After));
        }
    }
    points
}

/// The writes that only this example has, each on one side: what surrounds them is that of any deploy.
fn own_writes(seen: &[Seen]) -> Vec<(usize, Side)> {
    let is_common = |number: usize| {
        let path = &seen[number - 1].path;
        let common = ["/targets/", "/releasesources/", "/leases", "/events"];
        common.iter().any(|part| path.contains(part))
    };
    let own = kinds_of_writes(seen).into_iter();
    let sides = [Side::After, Side::Before].into_iter().cycle();
    own.filter(|number| !is_common(*number))
        .zip(sides)
        .collect()
}

/// Returns the number of the first write of each kind.
fn kinds_of_writes(seen: &[Seen]) -> Vec<usize> {
    let mut kinds = BTreeSet::new();
    let mut is_first = |request: &Seen| {
        let path = request.path.trim_end_matches("/status");
        let folder = path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
        kinds.insert((request.verb.clone(), folder))
    };
    let numbered = (1..).zip(seen).filter(|(_, request)| is_write(request));
    numbered
        .filter(|(_, request)| is_first(request))
        .map(|(number, _)| number)
        .collect()
}

fn is_write(request: &Seen) -> bool {
    matches!(request.verb.as_str(), "PATCH" | "POST" | "DELETE" | "PUT")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_agent_loses_nothing_and_repeats_nothing() {
    enumerate(Play::Prune, &["dropped", "dropped-too"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_agent_migrates_as_one_that_was_not() {
    enumerate(Play::Migrations, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_agent_takes_back_as_one_that_was_not() {
    enumerate(Play::Undo, &["prices"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_agent_grows_volumes_as_one_that_was_not() {
    enumerate(Play::Volumes, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_agent_removes_an_operator_as_one_that_was_not() {
    enumerate(Play::Operator, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_agent_migrates_with_the_other_examples_as_one_that_was_not() {
    enumerate(Play::Catalogue, &[]).await;
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
    let points = match play {
        _ if all => all_points(&seen),
        Play::Prune | Play::Migrations | Play::Undo => representative(&seen),
        Play::Volumes | Play::Operator => own_writes(&seen),
        // Each kind of step has its own crash points elsewhere.
        Play::Catalogue => own_writes(&seen).into_iter().step_by(4).collect(),
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
