//! Following a range of versions with the whole agent.

use serde_json::json;

use crate::support::world::{World, ready};

#[tokio::test(flavor = "multi_thread")]
async fn a_range_is_followed_and_a_moved_tag_waits_for_a_person() {
    let world = World::new().await;
    let release = |tag: &str, force: &[&str]| {
        world.config_map("web", "settings", tag);
        world.repository.publish(tag);
        let annotated = ["tag", "--annotate", "--message", tag];
        world
            .repository
            .git(&[&annotated[..], force, &[tag]].concat());
        let push = ["push", "--quiet", "--force", "--tags", "origin"];
        world.repository.git(&push);
        world.repository.git(&["rev-parse", "HEAD"])
    };
    release("v1.9.0", &[]);
    let _agent = world.agent();
    world.declare(json!({"ref": {"semver": "~1.10"}})).await;
    let source = world.until_reason("FetchFailed").await;
    let message = ready(&source).2;
    assert!(
        message.contains("is in the range `~1.10`: the nearest is v1.9.0"),
        "{message}"
    );

    let first = release("v1.10.0", &[]);
    world.reconcile().await;
    let status = world.until_reason("Synced").await.status.unwrap();
    assert_eq!(
        status.last_applied_revision,
        Some(format!("v1.10.0@sha1:{first}"))
    );
    release("v1.10.1", &[]);
    world.reconcile().await;
    assert_eq!(world.value("settings").await.as_deref(), Some("v1.10.1"));

    world.config_map("web", "other", "moved");
    let moved = release("v1.10.1", &["--force"]);
    let source = world.reconcile().await;
    let (_, reason, message) = ready(&source);
    assert_eq!(reason, "Rewound");
    assert!(
        message.contains(&format!("the tag v1.10.1 was moved to {moved}")),
        "{message}"
    );
    assert_eq!(world.value("other").await, None);
    let approve = ["approve", "rewind", &world.name, "--reason", "tested"];
    let (code, _, err) = world.fairway(&approve);
    assert_eq!(code, 0, "{err}");
    world.until_value("other", Some("moved")).await;
}
