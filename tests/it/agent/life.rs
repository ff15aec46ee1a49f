//! The agent's own life: suspended and resumed, refused and mended, told to stop, asked how it is, and silent about secrets.

use std::time::Duration;

use serde_json::json;

use crate::support::http::get;
use crate::support::world::{PASSWORD, World, ready};

/// The proxy goes on while a command waits for the agent behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_source_is_left_alone_until_it_is_resumed() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let _agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let (code, _, err) = world.fairway(&["suspend", &world.name]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = world.fairway(&["reconcile", &world.name]);
    assert_eq!(code, 2);
    assert!(err.contains("fairway resume"), "{err}");
    world.config_map("web", "settings", "two");
    world.repository.publish("Change settings");
    let (code, _, _) = world.fairway(&["resume", &world.name]);
    assert_eq!(code, 0);
    world.until_value("settings", Some("two")).await;
    let (code, _, err) = world.fairway(&["wait", &world.name, "--timeout", "20s"]);
    assert_eq!(code, 0, "{err}");
}

#[tokio::test]
async fn credentials_that_are_refused_say_so_and_are_mended_by_the_secret() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    world.secret("wrong-password").await;
    let _agent = world.agent();
    world.declare(json!({})).await;
    let source = world.until_reason("FetchFailed").await;
    let (_, _, message) = ready(&source);
    assert!(message.contains("refused the credentials"), "{message}");
    assert!(message.contains("secretRef"), "{message}");
    world.secret(PASSWORD).await;
    world.until_value("settings", Some("one")).await;
}

#[tokio::test]
async fn a_pass_that_is_told_to_stop_ends_in_time_and_is_finished_later() {
    let world = World::new().await;
    for number in 0..300 {
        world.config_map("web", &format!("settings-{number}"), "one");
    }
    world.repository.publish("Three hundred");
    // Straight at the API server, so that the pass runs at its full speed.
    let mut agent = world.agent_direct();
    world.declare(json!({})).await;
    world.until_value("settings-0", Some("one")).await;
    let (took, well) = agent.terminate();
    assert!(well, "{}", agent.log());
    assert!(took < Duration::from_secs(10), "{took:?}");
    let _agent = world.agent();
    world.until_reason("Synced").await;
    world.until_value("settings-299", Some("one")).await;
}

#[tokio::test]
async fn the_private_port_answers_and_no_secret_is_told_anywhere() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let agent = world.agent_with(&["--log", "trace"]);
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    world.server.fault("unauthorized");
    world.reconcile().await;
    world.server.fault("");
    world.reconcile().await;

    let address = agent.address();
    assert_eq!(get(&address, "/healthz"), "ok\n");
    assert_eq!(get(&address, "/readyz"), "ok\n");
    let metrics = get(&address, "/metrics");
    assert!(metrics.contains("fairway_"), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");

    let told = [
        ("log", agent.log()),
        ("audit lines", format!("{:?}", agent.audit())),
        ("metrics", metrics),
        ("source", format!("{:?}", world.source().await)),
        ("target", format!("{:?}", world.target().await)),
        ("events", world.events().await),
    ];
    for (where_, text) in told {
        assert!(!text.is_empty(), "{where_}");
        assert!(
            !text.contains(PASSWORD),
            "the password of the git server is in the {where_}"
        );
        assert!(
            !text.contains("Y2k6Y2FuYXJ5"),
            "the header of basic auth is in the {where_}"
        );
    }
}
