//! What can happen to a lease: it cannot be renewed, somebody deletes it, somebody takes it.

use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::replicas::{Replica, SHORT, leases, until_holder, until_lease};
use crate::support::proxy::{Fault, Rule};
use crate::support::world::World;

/// Makes a world with one replica and an object in step.
async fn in_step() -> (World, Replica) {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let one = Replica::start(&world, "one", SHORT).await;
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    (world, one)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_api_server_nothing_is_written_before_a_fresh_claim() {
    let (world, one) = in_step().await;
    until_holder(&world, "one").await;
    for (round, (path, fault)) in [
        ("", Fault::ResetBefore),
        ("", Fault::Hang),
        ("/leases", Fault::Status(503)),
    ]
    .into_iter()
    .enumerate()
    {
        one.proxy.inject(Rule::always("", path, fault));
        one.proxy.disconnect();
        one.until_logged("the lease is lost", round + 1).await;
        one.proxy.forget();
        let value = format!("after {round}");
        world.config_map("web", "settings", &value);
        world.repository.publish("Change settings");
        one.proxy.heal();
        one.proxy.disconnect();
        world.until_value("settings", Some(&value)).await;
        world.reconcile().await;
        one.asks_first();
    }
    until_lease(&world, "each claim is a new one", |spec| {
        spec.lease_transitions >= Some(3)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_somebody_deletes_is_made_anew() {
    let (world, one) = in_step().await;
    let before = until_holder(&world, "one").await;
    leases(&world)
        .delete("fairway-home", &DeleteParams::default())
        .await
        .unwrap();
    one.until_logged("the lease is lost", 1).await;
    let after = until_holder(&world, "one").await;
    assert_ne!(before.uid(), after.uid());
    world.config_map("web", "settings", "two");
    world.publish("Change settings").await;
    assert_eq!(world.value("settings").await.as_deref(), Some("two"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_somebody_takes_is_theirs_until_it_is_over() {
    let (world, one) = in_step().await;
    until_holder(&world, "one").await;
    let theft = json!({"spec": {"holderIdentity": "a person"}});
    leases(&world)
        .patch(
            "fairway-home",
            &PatchParams::default(),
            &Patch::Merge(&theft),
        )
        .await
        .unwrap();
    one.until_logged("the lease is lost", 1).await;
    one.proxy.forget();
    world.config_map("web", "settings", "two");
    world.publish("Change settings").await;
    assert_eq!(world.value("settings").await.as_deref(), Some("two"));
    one.asks_first();
    until_lease(&world, "taken back", |spec| {
        spec.holder_identity.as_deref() == Some("one") && spec.lease_transitions >= Some(1)
    })
    .await;
}
