//! Faults of the API: what is on the cluster cannot be listed, the record is gone, or a request fails.

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::witness::{in_step, nothing_is_lost, only_this_goes};
use crate::support::proxy::{Fault, Rule};
use crate::support::world::ready;

const CONFIG_MAPS: &str = "/configmaps";

#[tokio::test]
async fn what_cannot_be_listed_is_not_pruned() {
    let (world, mut agent, wanted) = in_step().await;
    world.repository.remove("components/web/one.yaml");
    world.repository.publish("Drop one");
    for (name, fault) in [
        ("403", Fault::Status(403)),
        ("401", Fault::Status(401)),
        ("404", Fault::Status(404)),
        ("500", Fault::Status(500)),
        ("429", Fault::RetryAfter(1)),
        ("garbage", Fault::Answer("{\"items\": 7")),
        ("an empty object", Fault::Answer("{}")),
        ("endless", Fault::Endless),
        ("reset", Fault::ResetBefore),
        ("answer lost", Fault::ResetAfter),
        ("truncated", Fault::Truncated),
    ] {
        agent.kill();
        world
            .proxy
            .inject(Rule::always("GET", "/api/v1/configmaps", fault));
        agent = world.agent();
        let source = world.reconcile().await;
        let (_, reason, message) = ready(&source);
        assert_ne!(reason, "Synced", "{name}: {message}");
        nothing_is_lost(&world, &wanted, name).await;
        world.proxy.heal();
    }
    agent.kill();
    let _agent = world.agent();
    only_this_goes(&world, &wanted, "one", "all of these").await;
}

#[tokio::test]
async fn without_discovery_nothing_is_pruned() {
    let (world, mut agent, wanted) = in_step().await;
    world.repository.remove("components/web/one.yaml");
    world.repository.publish("Drop one");
    for (name, fault) in [
        ("503", Fault::Status(503)),
        ("403", Fault::Status(403)),
        ("an empty object", Fault::Answer("{}")),
        ("garbage", Fault::Answer("{\"kind\": 7")),
        (
            "another list",
            Fault::Answer("{\"kind\": \"APIGroupList\", \"items\": []}"),
        ),
    ] {
        agent.kill();
        world.proxy.heal();
        for path in ["/api", "/apis"] {
            world
                .proxy
                .inject(Rule::exactly("GET", path, fault.clone()));
        }
        agent = world.agent();
        let source = world.reconcile().await;
        assert_ne!(ready(&source).1, "Synced", "{name}: {:?}", ready(&source));
        nothing_is_lost(&world, &wanted, name).await;
    }
    agent.kill();
    world.proxy.heal();
    let _agent = world.agent();
    only_this_goes(&world, &wanted, "one", "discovery").await;
}

#[tokio::test]
async fn a_cut_watch_deletes_nothing_and_catches_up() {
    let (world, _agent, wanted) = in_step().await;
    world
        .proxy
        .inject(Rule::first(2, "WATCH", CONFIG_MAPS, Fault::Status(410)));
    world.proxy.disconnect();
    world.repository.write("README.md", "unrelated");
    world.publish("Unrelated").await;
    nothing_is_lost(&world, &wanted, "watch cut").await;
    world
        .config_maps()
        .delete("two", &DeleteParams::default())
        .await
        .unwrap();
    world.until_value("two", Some("x")).await;
}

#[tokio::test]
async fn without_its_record_nothing_is_pruned_before_somebody_adopts() {
    let (world, mut agent, wanted) = in_step().await;
    agent.kill();
    let name = format!("{}.home", world.name);
    world
        .targets()
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    world.repository.remove("components/web/one.yaml");
    world.config_map("web", "two", "changed");
    world.repository.publish("Drop one, change another");
    let mut agent = world.agent();
    world.until_value("two", Some("changed")).await;
    let source = world.reconcile().await;
    assert_eq!(ready(&source).1, "PartiallyApplied", "{:?}", ready(&source));
    nothing_is_lost(&world, &wanted, "record lost").await;
    // A restart is no adoption.
    agent.kill();
    let _agent = world.agent();
    world.reconcile().await;
    nothing_is_lost(&world, &wanted, "record lost, restarted").await;
    let (code, _, err) = world.fairway(&["adopt", &world.name, "--reason", "tested"]);
    assert_eq!(code, 0, "{err}");
    only_this_goes(&world, &wanted, "one", "adopted").await;
}

#[tokio::test]
async fn with_the_record_of_another_cluster_nothing_is_pruned() {
    let (world, mut agent, wanted) = in_step().await;
    agent.kill();
    let name = format!("{}.home", world.name);
    let status = json!({"status": {"clusterUid": "00000000-0000-0000-0000-000000000000"}});
    let parameters = PatchParams::default();
    world
        .targets()
        .patch_status(&name, &parameters, &Patch::Merge(&status))
        .await
        .unwrap();
    world.repository.remove("components/web/one.yaml");
    world.repository.publish("Drop one");
    let _agent = world.agent();
    let source = world.reconcile().await;
    assert_eq!(ready(&source).1, "PartiallyApplied", "{:?}", ready(&source));
    nothing_is_lost(&world, &wanted, "another cluster").await;
}

#[tokio::test]
async fn a_deletion_that_fails_deletes_nothing_else_and_is_tried_again() {
    for (name, fault) in [
        ("409", Fault::Status(409)),
        ("500", Fault::Status(500)),
        ("403", Fault::Status(403)),
        ("answer lost", Fault::ResetAfter),
    ] {
        let (world, _agent, wanted) = in_step().await;
        world
            .proxy
            .inject(Rule::first(1, "DELETE", CONFIG_MAPS, fault));
        world.repository.remove("components/web/one.yaml");
        world.publish("Drop one").await;
        only_this_goes(&world, &wanted, "one", name).await;
    }
}

#[tokio::test]
async fn nothing_is_deleted_before_what_replaces_it_is_there() {
    let (world, _agent, wanted) = in_step().await;
    world.proxy.inject(Rule::always(
        "PATCH",
        "/configmaps/replacement",
        Fault::Status(500),
    ));
    world.repository.remove("components/web/one.yaml");
    world.config_map("web", "replacement", "x");
    let source = world.publish("Replace one").await;
    assert_ne!(ready(&source).1, "Synced", "{:?}", ready(&source));
    nothing_is_lost(&world, &wanted, "replacement fails").await;
    world.proxy.heal();
    world.until_value("replacement", Some("x")).await;
    only_this_goes(&world, &wanted, "one", "replacement fails").await;
}
