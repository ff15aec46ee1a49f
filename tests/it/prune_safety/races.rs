//! What an answer says and what is there come apart: lies, delays, objects that were made anew in between.

use std::sync::Arc;

use kube::ResourceExt as _;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use tokio::sync::Notify;

use super::witness::{Wanted, in_step, nothing_is_lost, only_this_goes, present};
use crate::support::proxy::{Fault, Rule};
use crate::support::world::{World, ready};

const CONFIG_MAPS: &str = "/configmaps";

fn drop_one(world: &World) {
    world.repository.remove("components/web/one.yaml");
}

/// Fails when any other object than `one` is not as before.
async fn all_others_are_there(world: &World, wanted: &Wanted, fault: &str) {
    let there = present(world).await;
    for (name, uid) in wanted.iter().filter(|(name, _)| *name != "one") {
        assert_eq!(there.get(name), Some(uid), "{fault}: {name}");
    }
}

#[tokio::test]
async fn an_object_that_was_made_anew_by_somebody_else_is_not_deleted_in_the_place_of_ours() {
    let (world, _agent, wanted) = in_step().await;
    let asked = Arc::new(Notify::new());
    let (sent, made) = (asked.clone(), Arc::new(Notify::new()));
    world.proxy.before(Arc::new(move |_, seen| {
        if seen.verb == "DELETE" {
            sent.notify_one();
        }
        true
    }));
    let delay = Fault::Delay(std::time::Duration::from_secs(1));
    world
        .proxy
        .inject(Rule::first(1, "DELETE", CONFIG_MAPS, delay));
    drop_one(&world);
    world.repository.publish("Drop one");
    let pass = async {
        let source = world.reconcile().await;
        made.notified().await;
        source
    };
    let somebody = async {
        asked.notified().await;
        let (maps, all) = (world.config_maps(), DeleteParams::default());
        maps.delete("one", &all).await.unwrap();
        let theirs = json!({"metadata": {"name": "one"}, "data": {"value": "theirs"}});
        let theirs = serde_json::from_value(theirs).unwrap();
        let theirs = maps.create(&PostParams::default(), &theirs).await.unwrap();
        made.notify_one();
        theirs
    };
    let (_, theirs) = tokio::join!(pass, somebody);
    let source = world.reconcile().await;
    assert_eq!(ready(&source).1, "Synced", "{:?}", ready(&source));
    let now = world.config_maps().get("one").await.unwrap();
    assert_eq!(now.uid(), theirs.uid());
    all_others_are_there(&world, &wanted, "made anew").await;
}

#[tokio::test]
async fn a_deletion_that_is_put_off_or_denied_is_only_ever_that_one() {
    let (world, mut agent, wanted) = in_step().await;
    drop_one(&world);
    world.repository.publish("Drop one");
    for (name, fault) in [
        ("429", Fault::RetryAfter(1)),
        ("429 for long", Fault::RetryAfter(600)),
        ("401", Fault::Status(401)),
        ("503", Fault::Status(503)),
        ("reset", Fault::ResetBefore),
        ("garbage", Fault::Answer("{\"kind\": 7")),
        ("404, though it is there", Fault::Status(404)),
    ] {
        agent.kill();
        world.proxy.heal();
        world
            .proxy
            .inject(Rule::always("DELETE", CONFIG_MAPS, fault));
        agent = world.agent();
        world.reconcile().await;
        // On a busy machine the first lists take longer than the first pass waits; the pass after them deletes.
        let tried = async {
            while world.proxy.count("DELETE", CONFIG_MAPS) == 0 {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let patience = std::time::Duration::from_secs(60);
        let _ = tokio::time::timeout(patience, tried).await;
        let asked: Vec<_> = world
            .proxy
            .seen()
            .into_iter()
            .filter(|seen| seen.verb == "DELETE")
            .collect();
        assert!(!asked.is_empty(), "{name}: it was tried");
        assert!(
            asked
                .iter()
                .all(|seen| seen.path.ends_with("/configmaps/one")),
            "{name}: {asked:?}"
        );
        all_others_are_there(&world, &wanted, name).await;
        world.proxy.forget();
    }
    agent.kill();
    world.proxy.heal();
    let _agent = world.agent();
    only_this_goes(&world, &wanted, "one", "all of these").await;
}

#[tokio::test]
async fn a_list_that_never_comes_holds_up_pruning_and_nothing_else() {
    let (world, mut agent, wanted) = in_step().await;
    agent.kill();
    drop_one(&world);
    world.repository.write(
        "components/web/account.yaml",
        format!(
            "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: account, namespace: {}}}\n",
            world.apps
        ),
    );
    world.repository.publish("Drop one, add an account");
    world
        .proxy
        .inject(Rule::always("GET", "/api/v1/configmaps", Fault::Hang));
    let mut agent = world.agent();
    let source = world.reconcile().await;
    assert_ne!(ready(&source).1, "Synced", "{:?}", ready(&source));
    let accounts: kube::Api<k8s_openapi::api::core::v1::ServiceAccount> =
        kube::Api::namespaced(world.client.clone(), &world.apps);
    assert!(accounts.get_opt("account").await.unwrap().is_some());
    nothing_is_lost(&world, &wanted, "no list").await;
    agent.kill();
    world.proxy.heal();
    let _agent = world.agent();
    only_this_goes(&world, &wanted, "one", "no list").await;
}

#[tokio::test]
async fn a_deletion_that_is_never_answered_is_given_up_in_time_and_tried_again() {
    let (world, _agent, wanted) = in_step().await;
    world
        .proxy
        .inject(Rule::first(1, "DELETE", CONFIG_MAPS, Fault::Hang));
    drop_one(&world);
    world.repository.publish("Drop one");
    world.ring().await;
    let source = world.until_reason("ApplyFailed").await;
    assert!(ready(&source).2.contains("deletion of"), "{source:?}");
    only_this_goes(&world, &wanted, "one", "never answered").await;
    world.until_reason("Synced").await;
    assert_eq!(world.proxy.count("DELETE", CONFIG_MAPS), 2);
}
