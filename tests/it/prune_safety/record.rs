//! The record of a target goes missing while something else fails as well, or while the agent lives.

use kube::api::DeleteParams;

use super::witness::{in_step, nothing_is_lost, only_this_goes};
use crate::support::proxy::{Fault, Rule};
use crate::support::world::{World, ready};

async fn lose_the_record(world: &World) {
    let name = format!("{}.home", world.name);
    let targets = world.targets();
    targets
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
}

fn adopt(world: &World) {
    let (code, _, err) = world.fairway(&["adopt", &world.name, "--reason", "tested"]);
    assert_eq!(code, 0, "{err}");
}

#[tokio::test]
async fn a_kind_that_cannot_be_listed_is_no_proof_that_the_cluster_was_never_used() {
    let (world, mut agent, wanted) = in_step().await;
    agent.kill();
    lose_the_record(&world).await;
    world.repository.remove("components/web/one.yaml");
    world.repository.publish("Drop one");
    world
        .proxy
        .inject(Rule::always("GET", "/configmaps", Fault::Status(403)));
    let mut agent = world.agent();
    world.reconcile().await;
    world.proxy.heal();
    agent.kill();
    let _agent = world.agent();
    let source = world.reconcile().await;
    nothing_is_lost(&world, &wanted, "record lost, nothing listed").await;
    assert_eq!(ready(&source).1, "PartiallyApplied", "{:?}", ready(&source));
    adopt(&world);
    only_this_goes(&world, &wanted, "one", "adopted").await;
}

#[tokio::test]
async fn a_record_that_goes_missing_under_our_feet_stops_the_next_deletion() {
    let (world, _agent, wanted) = in_step().await;
    lose_the_record(&world).await;
    world.repository.remove("components/web/one.yaml");
    world.publish("Drop one").await;
    let source = world.until_reason("PartiallyApplied").await;
    nothing_is_lost(&world, &wanted, "record lost").await;
    assert!(
        ready(&source).2.contains("fairway adopt"),
        "{:?}",
        ready(&source)
    );
    adopt(&world);
    only_this_goes(&world, &wanted, "one", "adopted").await;
}
