//! A migration under way when its agent loses the lease.

use fairway::model::api::RunPhase;
use kube::ResourceExt as _;
use serde_json::json;

use super::replicas::{Replica, SHORT, until_holder};
use crate::migrations::deploy::stage::{self, WEB, gate, mark};
use crate::support::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f12_who_has_lost_the_lease_in_mid_run_lets_go_of_it() {
    let world = World::new().await;
    stage::allow(&world).await;
    world.config_map("web", "settings", "one");
    let wait = json!({"id": "wait", "wait": {"until": "objects.gate != null"}});
    let steps = [
        stage::applies(&world, "first", "first"),
        wait,
        stage::applies(&world, "last", "long"),
    ];
    let more = gate(&world, json!({"steps": steps}));
    stage::marks(&world, &mark("long", WEB, "pre", more));
    world.repository.publish("A long migration");
    let one = Replica::start(&world, "one", SHORT).await;
    world.declare(json!({})).await;
    let waiting = stage::until_run(&world, "long", RunPhase::Waiting).await;
    let two = Replica::start(&world, "two", SHORT).await;
    two.until_logged("the lease has a holder", 1).await;

    one.signal("STOP");
    until_holder(&world, "two").await;
    stage::open_gate(&world).await;
    let run = stage::until_run(&world, "long", RunPhase::Succeeded).await;
    stage::until_committed(&world, WEB, None).await;
    let claim = |run: &fairway::model::api::Run| run.status.clone().unwrap().claim;
    assert_ne!(claim(&run), claim(&waiting), "the other one's claim");
    let attempts: Vec<_> = run.status.clone().unwrap().steps;
    assert!(
        attempts.iter().all(|step| step.attempts == 1),
        "{attempts:#?}"
    );
    let made = world.config_maps().get("first").await.unwrap();

    // It wakes up inside of its step, and hears that its claim is over.
    one.proxy.forget();
    one.signal("CONT");
    one.until_logged("the lease is lost", 1).await;
    world.reconcile().await;
    assert_eq!(one.writes(), Vec::<String>::new());
    let after = stage::all_runs(&world).await;
    assert_eq!(after[0].resource_version(), run.resource_version());
    let same = world.config_maps().get("first").await.unwrap();
    assert_eq!(same.resource_version(), made.resource_version());
}
