//! `fairway migration plan`: what each migration would decide on a cluster now.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::deploy::stage::{self, WEB, gate, mark};
use crate::support::agent::{FAIRWAY, command};
use crate::support::control_plane::ControlPlane;
use crate::support::proxy::Proxy;
use crate::support::world::World;

/// Runs the command as somebody who may do everything, and returns what it prints.
fn plan(world: &World, kubeconfig: &std::path::Path, output: &str) -> String {
    let output = command(FAIRWAY)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(["--namespace", &world.name, "--output", output])
        .args(["migration", "plan"])
        .arg(world.repository.path())
        .args(["--source", &world.name])
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_migration_says_what_it_would_decide_and_why_and_nothing_is_written() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    let closed = json!([{
        "cel": "objects.gate != null", "message": "The gate has to be open.",
        "runbook": "https://runbooks.example.com/gate",
    }]);
    let blocks = json!({"guard": {"requires": closed}});
    for (name, more) in [
        ("blocks", gate(&world, blocks)),
        (
            "is-done",
            json!({"guard": {"needed": "objects.mark != null"}}),
        ),
        ("runs", json!({})),
        (
            "nobody-knows",
            gate(
                &world,
                json!({"guard": {"needed": "objects.gate.data.on == \"yes\""}}),
            ),
        ),
    ] {
        stage::marks(&world, &mark(name, WEB, "pre", more));
    }
    let proxy = Proxy::start(ControlPlane::minimal()).await;
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, proxy.kubeconfig()).unwrap();

    let rows: Vec<Value> = serde_json::from_str(&plan(&world, &kubeconfig, "json")).unwrap();
    let decisions: BTreeMap<&str, &str> = rows
        .iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap();
            (text("migration"), text("decision"))
        })
        .collect();
    let expected = [
        ("blocks", "Block"),
        ("is-done", "NotNeeded"),
        ("nobody-knows", "Unknown"),
        ("runs", "Run"),
    ];
    assert_eq!(decisions, BTreeMap::from(expected), "{rows:#?}");
    for row in &rows {
        assert_eq!(row["component"], WEB);
        assert!(!row["evidence"].as_array().unwrap().is_empty(), "{row}");
    }
    let seen = proxy.seen();
    let writes = seen
        .iter()
        .filter(|it| !matches!(it.verb.as_str(), "GET" | "WATCH"));
    // That it asks what it may do is no write.
    let writes: Vec<_> = writes
        .filter(|it| !it.path.contains("accessreviews"))
        .collect();
    assert!(writes.is_empty(), "{writes:#?}");
    let gates = proxy.count("GET", "/configmaps/gate");
    assert_eq!(gates, 1, "two guards look at it, and it is asked for once");

    let text = plan(&world, &kubeconfig, "text");
    for part in [
        "Block     blocks (pre of components/web, ",
        "          The gate has to be open.\n",
        "          see https://runbooks.example.com/gate\n",
        "NotNeeded is-done (pre of components/web, ",
        "Unknown   nobody-knows (pre of components/web, ",
        "Run       runs (pre of components/web, ",
        "            objects.gate = nothing\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}
