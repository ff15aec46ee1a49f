//! Runs as the agent would have written them, and a hand that takes up what people want of them.

use fairway::model::api::{Run, RunCommand, RunPhase};
use jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::world::World;

/// Returns a moment some minutes ago, as it is stored.
#[expect(clippy::disallowed_methods, reason = "a test says what time it is")]
pub(crate) fn minutes_ago(minutes: i64) -> String {
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    (now - SignedDuration::from_mins(minutes)).to_string()
}

/// The runs of a world.
pub(crate) fn runs(world: &World) -> Api<Run> {
    Api::namespaced(world.client.clone(), &world.name)
}

/// Stores a run of a migration with its status; `spec` and `definition` are merged over a default.
pub(crate) async fn record(
    world: &World,
    (migration, hash): (&str, &str),
    spec: Value,
    definition: Value,
    status: Value,
) -> Run {
    let mut whole = json!({
        "source": world.name, "cluster": "home", "clusterUid": "0d9c4e5a-1f2b-4c3d-8e9f-001122334455",
        "migration": migration, "component": "components/logging", "phase": "pre", "action": "upgrade",
        "from": "1.23.0", "to": "1.24.0", "revision": "main@sha1:5240008a9f0c3b1d7e6a5f4b3c2d1e0f99887766",
        "author": "Jane Doe", "place": format!("components/logging/migrations/{migration}.yaml:1:1"),
        "deploy": "v1:00112233445566778899aabbccddeeff", "definitionDigest": "v1:ffeeddccbbaa99887766554433221100",
    });
    let mut defined = json!({
        "owner": "team-observability", "bind": {"phase": "pre"},
        "lifecycle": {"introducedIn": "1.24.0", "removeIn": "1.27.0"}, "guard": {"needed": "true"},
    });
    merge(&mut defined, definition);
    whole["definition"] = defined;
    merge(&mut whole, spec);
    let name = format!("{}.home.{migration}-{hash}", world.name);
    let body = json!({
        "apiVersion": "fairway.dev/v1alpha1", "kind": "Run", "spec": whole,
        "metadata": {"name": name, "labels": {
            "fairway.dev/source": world.name, "fairway.dev/migration": migration, "fairway.dev/cluster": "home",
        }},
    });
    let run: Run = serde_json::from_value(body).expect("it is a run");
    runs(world)
        .create(&PostParams::default(), &run)
        .await
        .expect("the schema takes it");
    let status = Patch::Merge(json!({"status": status}));
    runs(world)
        .patch_status(&name, &PatchParams::default(), &status)
        .await
        .expect("the schema takes it")
}

fn merge(onto: &mut Value, fields: Value) {
    let (Some(onto), Value::Object(fields)) = (onto.as_object_mut(), fields) else {
        return;
    };
    for (key, value) in fields {
        if value.is_null() {
            onto.remove(&key);
        } else {
            onto.insert(key, value);
        }
    }
}

/// Takes up each command that is written into a run and puts the run into a phase, until it is dropped.
pub(crate) fn hand(world: &World, phase: RunPhase) -> DropGuard {
    let (stop, api) = (CancellationToken::new(), runs(world));
    let taking = async move {
        use futures::StreamExt as _;
        let mut events = std::pin::pin!(
            watcher(api.clone(), watcher::Config::default())
                .default_backoff()
                .applied_objects()
        );
        while let Some(Ok(run)) = events.next().await {
            let Some(wish) = RunCommand::wished(&run).filter(|wish| !wish.is_taken(&run)) else {
                continue;
            };
            let mut status = run.status.clone().unwrap_or_default();
            status.commands.push(wish);
            let taken =
                json!({"status": {"commands": status.commands, "phase": phase, "message": ""}});
            api.patch_status(
                &run.name_any(),
                &PatchParams::default(),
                &Patch::Merge(taken),
            )
            .await
            .unwrap();
        }
    };
    tokio::spawn(stop.clone().run_until_cancelled_owned(taking));
    stop.drop_guard()
}
