//! The same play, with faults of the API in the place of a crash: every way in which a request can go wrong, at once on reads,
//! watches and writes of one pass. It has to end as undisturbed, with nothing deleted and nothing made twice on the way.

use std::time::{Duration, Instant};

use futures::StreamExt as _;

use super::history::Historian;
use super::points::{Ending, Play, undisturbed};
use super::stage;
use crate::support::control_plane::ControlPlane;
use crate::support::proxy::{Fault, Rule};
use crate::support::world::{Agent, World};

/// Worlds at the same time: each is mostly waiting.
const SIDE_BY_SIDE: usize = 7;
/// What a pod that ends is given before it is started again; a kubelet waits longer, which changes nothing but the time.
const RESTART_DELAY: Duration = Duration::from_millis(500);

/// What goes wrong with the API.
#[derive(Debug, Clone)]
enum Trouble {
    /// Some requests of each kind fail in this way, wherever the agent is by then.
    Requests(Fault),
    /// A write is never answered.
    Hang,
    /// In the midst of the pass the API server stops to answer, dies, and is started again.
    Restart,
    /// The API server is gone for very long. Ten minutes differ from seconds in that nothing the agent knew counts any more and
    /// every back-off is at its longest; an agent that has to start anew meanwhile knows as little.
    Away,
}

/// Each with its name.
fn troubles() -> Vec<(&'static str, Trouble)> {
    let requests = |name, fault| (name, Trouble::Requests(fault));
    vec![
        ("hang", Trouble::Hang),
        ("restart", Trouble::Restart),
        ("away", Trouble::Away),
        requests("401", Fault::Status(401)),
        requests("403", Fault::Status(403)),
        requests("409", Fault::Status(409)),
        requests("410", Fault::Status(410)),
        requests("429, retry after 1 s", Fault::RetryAfter(1)),
        requests("500", Fault::Status(500)),
        requests("applied, answer lost", Fault::ResetAfter),
        requests("reset in the body", Fault::Truncated),
        requests("garbage", Fault::Answer("{\"kind\": 7")),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_of_the_api_changes_nothing_but_the_time() {
    let begun = Instant::now();
    let (_, wanted) = undisturbed(Play::Prune).await;
    let mut results = futures::stream::iter(troubles())
        .map(|(name, trouble)| async move {
            let begun = Instant::now();
            let ending = Box::pin(with(&trouble)).await;
            (name, begun.elapsed(), ending)
        })
        .buffer_unordered(SIDE_BY_SIDE);
    while let Some((name, time, (restarts, ending))) = results.next().await {
        crate::support::say(&format!(
            "{name}: {} s, {restarts} restarts",
            time.as_secs()
        ));
        assert_eq!(ending.history.deleted, wanted.history.deleted, "{name}");
        assert_eq!(ending.history.created(), wanted.history.created(), "{name}");
        assert_eq!(ending.scenery, wanted.scenery, "{name}");
    }
    crate::support::say(&format!("{} s in all", begun.elapsed().as_secs()));
}

/// Plays with a trouble; returns how often the agent ended by itself, and the ending.
async fn with(trouble: &Trouble) -> (usize, Ending) {
    let plane = match trouble {
        Trouble::Restart => ControlPlane::own(),
        _ => ControlPlane::minimal(),
    };
    let world = World::on(plane).await;
    stage::set(&world).await;
    let commit = stage::act(&world);
    let historian = Historian::start(&world).await;
    world.proxy.forget();
    let mut agent = world.agent();
    let restarts = match trouble {
        Trouble::Requests(fault) => {
            inject(&world, fault);
            kept_running(&world, &mut agent, stage::settled(&world, &commit)).await
        }
        Trouble::Hang => {
            let rule = Rule::first(1, "PATCH", "/configmaps/", Fault::Hang);
            world.proxy.inject(rule);
            0
        }
        Trouble::Restart => {
            after_the_first_write(&world).await;
            plane.command(&["pause", "apiserver"]);
            tokio::time::sleep(Duration::from_secs(1)).await;
            plane.command(&["kill", "apiserver"]);
            plane.command(&["start", "apiserver"]);
            0
        }
        Trouble::Away => {
            after_the_first_write(&world).await;
            world.proxy.inject(Rule::always("", "", Fault::ResetBefore));
            world.proxy.disconnect();
            tokio::time::sleep(Duration::from_secs(3)).await;
            agent.kill();
            agent = world.agent();
            let away = tokio::time::sleep(Duration::from_secs(4));
            let restarts = kept_running(&world, &mut agent, away).await;
            world.proxy.heal();
            restarts
        }
    };
    let restarts =
        restarts + kept_running(&world, &mut agent, stage::settled(&world, &commit)).await;
    let ending = Ending {
        scenery: stage::scenery(&world).await,
        history: historian.end().await,
    };
    (restarts, ending)
}

/// Lets some requests of each kind fail: what the agent begins with, lists, watches, its own resources, and each sort of write.
fn inject(world: &World, fault: &Fault) {
    for (times, verb, path) in [
        (1, "GET", "/api/v1/namespaces/kube-system"),
        (2, "GET", "/apis"),
        (1, "GET", "/releasesources"),
        (2, "GET", "/api/v1/configmaps"),
        (1, "GET", "/moduletemplates"),
        (1, "GET", "/secrets/"),
        (2, "WATCH", ""),
        (1, "PATCH", "/namespaces/"),
        (1, "PATCH", "/modulereleasemetas/"),
        (1, "PATCH", "/targets/"),
        (2, "PATCH", "/status"),
        (2, "POST", ""),
        (1, "DELETE", ""),
    ] {
        world
            .proxy
            .inject(Rule::first(times, verb, path, fault.clone()));
    }
}

/// Waits for something, and starts the agent again whenever it ends, as a kubelet does.
async fn kept_running(world: &World, agent: &mut Agent, until: impl Future<Output = ()>) -> usize {
    let mut until = std::pin::pin!(until);
    let mut restarts = 0;
    loop {
        tokio::select! {
            () = &mut until => return restarts,
            () = tokio::time::sleep(RESTART_DELAY) => {
                if agent.has_ended() {
                    restarts += 1;
                    *agent = world.agent();
                }
            }
        }
    }
}

/// Waits until the pass has begun to write.
async fn after_the_first_write(world: &World) {
    while world.proxy.count("PATCH", "/configmaps/") == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
