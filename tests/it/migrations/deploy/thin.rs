//! The thin path: a component with a pre and a post migration.

use fairway::model::api::RunPhase;
use serde_json::json;

use super::stage;
use crate::support::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrations_run_around_the_apply_exactly_once() {
    let world = World::new().await;
    stage::allow(&world).await;
    world.config_map("web", "settings", "one");
    // The pre migration would not find what the component brings; the post migration does.
    let sees = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": world.apps, "name": name});
    let manifest = |name: &str| {
        json!([{"id": "mark", "apply": {"manifest": {
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": world.apps},
            "data": {"value": "${objects.settings == null ? 'absent' : objects.settings.data.value}"},
        }}}])
    };
    for (name, phase) in [("before", "pre"), ("behind", "post")] {
        let more = json!({
            "lookups": {"settings": sees("settings")},
            "steps": manifest(name),
        });
        let of = "components/web";
        stage::marks(&world, &stage::mark(name, of, phase, more));
    }
    world.repository.publish("Settings with migrations");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    stage::until_committed(&world, "components/web", None).await;
    world.until_reason("Synced").await;
    assert_eq!(world.value("settings").await.as_deref(), Some("one"));
    assert_eq!(world.value("before").await.as_deref(), Some("absent"));
    assert_eq!(world.value("behind").await.as_deref(), Some("one"));
    assert_eq!(
        stage::outcomes(&world).await,
        ["before Succeeded", "behind Succeeded"]
    );
    for run in stage::all_runs(&world).await {
        let status = run.status.unwrap();
        assert_eq!(status.phase, RunPhase::Succeeded);
        assert!(!status.evidence.is_empty(), "{status:#?}");
        assert_eq!(status.steps[0].attempts, 1);
    }

    // A restart on an unchanged repository judges nothing and writes nothing.
    let (_, well) = agent.terminate();
    assert!(well, "{}", agent.log());
    world.proxy.forget();
    let _agent = world.agent();
    world.reconcile().await;
    let seen = world.proxy.seen();
    let touched: Vec<_> = seen.iter().filter(|it| stage::is_work(it)).collect();
    assert!(touched.is_empty(), "{touched:#?}");
}
