//! `fairway sync` works alone: it takes the lease of the agent, or names who holds it.

use std::process::{Child, Stdio};

use kube::ResourceExt as _;
use rstest::rstest;

use super::replicas::{LONG, Replica, SHORT, leases, until_holder, until_lease};
use crate::support::agent::{FAIRWAY, command, signal};
use crate::support::proxy::{Fault, Rule};
use crate::support::world::World;

fn arguments(world: &World) -> [String; 5] {
    let directory = world.repository.path().to_str().unwrap().to_owned();
    ["sync", &directory, "--source", &world.name, "--yes"].map(str::to_owned)
}

fn through_proxy(world: &World) -> (i32, String, String) {
    world.fairway_through_proxy(&arguments(world).each_ref().map(String::as_str))
}

fn sync(world: &World) -> (i32, String, String) {
    world.fairway(&arguments(world).each_ref().map(String::as_str))
}

/// Starts a sync that goes on until it is told to stop, since what it has applied never becomes healthy.
fn long_sync(world: &World) -> Child {
    command(FAIRWAY)
        .arg("--kubeconfig")
        .arg(world.plane.kubeconfig())
        .args(["--namespace", &world.name])
        .args(arguments(world))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn never_healthy(world: &World) {
    let text = format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: waits, namespace: {}}}\nspec:\n  selector: {{matchLabels: {{app: waits}}}}\n  \
         template:\n    metadata: {{labels: {{app: waits}}}}\n    spec: {{containers: [{{name: main, image: none}}]}}\n",
        world.apps
    );
    world
        .repository
        .write("components/slow/deployment.yaml", text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_refuses_beside_an_agent_and_follows_one_that_has_stopped() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    let mut agent = Replica::start(&world, "the-agent", LONG).await;
    until_holder(&world, "the-agent").await;
    let (code, _, err) = sync(&world);
    assert_eq!(code, 2, "{err}");
    for part in [
        "the-agent holds the lease",
        "since 20",
        "scale deployment fairway",
    ] {
        assert!(err.contains(part), "{part} is missing: {err}");
    }
    assert_eq!(world.value("settings").await, None);

    let (_, well) = agent.agent.terminate();
    assert!(well, "{}", agent.agent.log());
    let (code, out, err) = sync(&world);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("settings applied"), "{out}");
    let lease = leases(&world).get("fairway-home").await.unwrap();
    assert_eq!(
        lease.spec.unwrap().holder_identity,
        None,
        "it was given back"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_agent_is_waited_for_until_its_lease_is_over() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    let mut agent = Replica::start(&world, "the-agent", SHORT).await;
    let lease = until_holder(&world, "the-agent").await;
    agent.agent.kill();
    // As long as the lease may be alive by the clocks, it is somebody's.
    let (mut code, mut err) = (2, String::new());
    for _ in 0..100 {
        let ended = sync(&world);
        (code, err) = (ended.0, ended.2);
        if code == 0 {
            break;
        }
        assert!(err.contains("the-agent holds the lease"), "{err}");
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("is silent"), "{err}");
    assert_eq!(world.value("settings").await.as_deref(), Some("one"));
    let after = leases(&world).get("fairway-home").await.unwrap();
    assert_eq!(after.uid(), lease.uid());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_one_is_refused_and_an_interrupted_one_gives_the_lease_back() {
    let world = World::new().await;
    never_healthy(&world);
    let mut first = long_sync(&world);
    until_lease(&world, "held by a sync", |spec| {
        spec.holder_identity
            .as_ref()
            .is_some_and(|holder| holder.starts_with("sync-"))
    })
    .await;
    let (code, _, err) = sync(&world);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("sync-"), "{err}");
    assert!(err.contains("holds the lease"), "{err}");
    assert!(signal(first.id(), "INT"));
    let ended = first.wait().unwrap();
    assert_eq!(ended.code(), Some(2), "it says that it is not done");
    let lease = leases(&world).get("fairway-home").await.unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity, None);
}

/// What fails of the requests on the lease, and what was on it before.
#[rstest]
#[case::creation(false, "POST", 0)]
#[case::taking_over(true, "PUT", 0)]
#[case::giving_back(false, "PUT", 0)]
#[case::giving_back_what_was_taken_over(true, "PUT", 1)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_about_the_lease_is_nobody_elses_hold(
    #[case] is_there: bool,
    #[case] verb: &'static str,
    #[case] skip: usize,
) {
    let world = World::new().await;
    if is_there {
        let (code, _, err) = sync(&world);
        assert_eq!(code, 0, "{err}");
    }
    world.config_map("web", "settings", "one");
    let lease = format!("/namespaces/{}/leases", world.name);
    let mut lost = Rule::first(1, verb, lease.clone(), Fault::ResetAfter);
    lost.skip = skip;
    world.proxy.inject(lost);
    let (code, out, err) = through_proxy(&world);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("settings applied"), "{out}");
    let left = leases(&world).get("fairway-home").await.unwrap();
    assert_eq!(left.spec.unwrap().holder_identity, None);
    // The next one has nobody to wait for.
    world.config_map("web", "settings", "two");
    let (code, _, err) = sync(&world);
    assert_eq!(code, 0, "{err}");
    assert!(!err.contains("is silent"), "{err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_that_may_not_take_the_lease_says_so_at_once() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    let lease = format!("/namespaces/{}/leases", world.name);
    world
        .proxy
        .inject(Rule::always("POST", lease.clone(), Fault::Status(403)));
    let (code, _, err) = through_proxy(&world);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("cannot be taken"), "{err}");
    assert_eq!(world.proxy.count("POST", &lease), 1);
}
