//! The commands for people, beside a living agent: what they print, and with which code they end.

use serde_json::{Value, json};

use crate::support::world::World;

/// Names in the place of the two namespaces and the two commits.
fn stable(world: &World, commits: [&str; 2], text: &str) -> String {
    let [first, second] = commits;
    text.replace(&world.apps, "APPS")
        .replace(&world.name, "SOURCE")
        .replace(first, "FIRST")
        .replace(second, "SECOND")
        .replace(&second[..10], "SECOND")
}

/// What else differs from run to run.
fn filters() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    for (pattern, name) in [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "UID"),
        (r"https://127\.0\.0\.1:[0-9]+", "https://git.example.com"),
        (r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+Z?", "TIME"),
        (r"since [0-9]+m?s", "since AGE"),
        (r"in [0-9.]+ ?m?s", "in DURATION"),
        (r"\b(v1:)?[0-9a-f]{16,}\b", "DIGEST"),
    ] {
        settings.add_filter(pattern, name);
    }
    settings
}

/// The proxy goes on while a command waits for the agent behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_with_something_to_decide_and_something_to_mend_is_described_in_full() {
    let world = World::new().await;
    for (component, name) in [("web", "settings"), ("web", "limits"), ("api", "routes")] {
        world.config_map(component, name, "one");
    }
    let first = world.repository.publish("Add three");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let (code, _, err) = world.fairway(&[
        "wait",
        &world.name,
        "--revision",
        &first[..7],
        "--timeout",
        "20s",
    ]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = world.fairway(&["reconcile", &world.name]);
    assert_eq!(code, 0, "{err}");

    world.repository.remove("components/api");
    let second = world.repository.publish("Drop a component");
    world.reconcile().await;
    let (code, out, err) = world.fairway(&["describe", "source", &world.name]);
    assert_eq!(code, 0, "{err}");
    let settings = filters();
    settings.bind(|| insta::assert_snapshot!("source", stable(&world, [&first, &second], &out)));
    let (code, out, err) = world.fairway(&["describe", "target", &world.name]);
    assert_eq!(code, 0, "{err}");
    settings.bind(|| insta::assert_snapshot!("target", stable(&world, [&first, &second], &out)));

    let (code, _, err) = world.fairway(&["reconcile", &world.name]);
    assert_eq!(code, 1, "something is held: {err}");
    for revision in [&[][..], &["--revision", &second[..10]][..]] {
        let stuck = [&["wait", &world.name, "--timeout", "60s"], revision].concat();
        let (code, _, err) = world.fairway(&stuck);
        assert_eq!(code, 1, "nothing goes on by itself: {err}");
        assert!(err.contains("ApprovalNeeded"), "{err}");
    }
    let directory = world.repository.path().to_str().unwrap();
    let repository = ["--source", &world.name, "--catalog-namespace", &world.apps];
    let plan = [&["plan", directory, "--exit-code"], &repository[..]].concat();
    let (code, out, err) = world.fairway(&plan);
    assert_eq!(code, 1, "what is held is a difference: {out}{err}");
    // The agent gives its lease back, so that somebody else may act.
    assert!(agent.terminate().1);
    let api = ["--component", "components/apl", "--yes"];
    let sync = [&["sync", directory], &repository[..], &api].concat();
    assert_eq!(world.fairway(&["suspend", &world.name]).0, 0);
    let (code, out, err) = world.fairway(&sync);
    assert_eq!(code, 2, "a mistyped name is no success: {out}{err}");
    assert!(err.contains("components/web"), "{err}");
    assert_eq!(world.fairway(&["resume", &world.name]).0, 0);
    let never = "0123456789";
    let (code, _, err) =
        world.fairway(&["wait", &world.name, "--revision", never, "--timeout", "1s"]);
    assert_ne!(code, 0);
    assert!(err.contains(never), "{err}");
    let (code, out, _) = world.fairway(&["get", "approvals", "--output", "json"]);
    assert_eq!(code, 0);
    let waiting: Value = serde_json::from_str(&out).unwrap();
    assert!(
        out.contains(&format!("fairway approve prune {}", world.name)),
        "{waiting}"
    );
    let (code, _, err) = world.fairway(&["describe", "source", "nobody"]);
    assert_eq!(code, 2, "{err}");
}
