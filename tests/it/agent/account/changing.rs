//! Another account counts from the next pass on, and sources with different accounts see and do nothing for each other.

use serde_json::json;

use super::stage::{ALL, account, agent_may_nothing, may_act_as};
use crate::agent::turns::until_reason;
use crate::support::world::{World, ready};

#[tokio::test]
async fn another_account_counts_from_the_next_pass_on() {
    let world = World::new().await;
    account(&world, "weak", &[("configmaps", &["get", "list", "watch"])]).await;
    account(&world, "strong", &[("configmaps", ALL)]).await;
    may_act_as(&world, &["weak", "strong"]).await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let agent = world.agent();
    world.declare(json!({"serviceAccountName": "weak"})).await;
    world.until_reason("ApplyFailed").await;
    assert_eq!(world.value("settings").await, None);

    world.declare(json!({"serviceAccountName": "strong"})).await;
    world.until_value("settings", Some("one")).await;
    world.until_reason("Synced").await;

    // And back: what the other one may does not count any more, nor does what it has seen.
    world.declare(json!({"serviceAccountName": "weak"})).await;
    world.config_map("web", "settings", "two");
    world.repository.publish("Change settings");
    world.ring().await;
    let source = world.until_reason("ApplyFailed").await;
    let user = format!("system:serviceaccount:{}:weak", world.name);
    assert!(ready(&source).2.contains(&user), "{source:?}");
    assert_eq!(world.value("settings").await.as_deref(), Some("one"));

    // Without a name it is the agent, as somebody has decided.
    world.declare(json!({})).await;
    world.until_value("settings", Some("two")).await;
    world.until_reason("Synced").await;
    drop(agent);
}

#[tokio::test]
async fn two_accounts_on_one_cluster_share_no_rights() {
    let world = World::new().await;
    account(&world, "sees", &[("configmaps", ALL)]).await;
    account(
        &world,
        "blind",
        &[("configmaps", &["create", "patch", "delete"])],
    )
    .await;
    may_act_as(&world, &["sees", "blind"]).await;
    agent_may_nothing(&world).await;
    for name in ["first", "second"] {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {}}}\n",
            world.apps
        );
        let path = format!("{name}/components/web/{name}.yaml");
        world.repository.write(&path, text);
    }
    world.repository.publish("Two folders");
    let _agent = world.agent();
    let second = format!("{}-b", world.name);
    world
        .declare_as(
            &second,
            json!({"serviceAccountName": "blind", "path": "second"}),
        )
        .await;
    world
        .declare(json!({"serviceAccountName": "sees", "path": "first"}))
        .await;
    world.until_reason("Synced").await;
    // The one that may list is in step; the other one has no use of its watches.
    until_reason(&world, &second, "PartiallyApplied").await;
    let (_, _, message) = ready(&world.sources().get(&second).await.unwrap());
    let user = format!("system:serviceaccount:{}:blind", world.name);
    assert!(message.contains(&user), "{message}");
    assert_eq!(world.config_maps().get_opt("second").await.unwrap(), None);

    // Told to list, it has what it needs, by its own right.
    account(&world, "blind", &[("configmaps", ALL)]).await;
    until_reason(&world, &second, "Synced").await;
    let applied = world.config_maps().get_opt("second").await.unwrap();
    assert!(applied.is_some());
}
