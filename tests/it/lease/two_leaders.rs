//! Two leaders at once, which leases are there to prevent: they do no harm either.

use super::replicas::{Replica, SHORT, until_holder};
use crate::crash::history::Historian;
use crate::crash::stage;
use crate::support::world::World;

/// Lets the shipped account keep another lease, so that nobody stands by.
async fn allow(world: &World) {
    let name = &world.name;
    world
        .plane
        .apply_yaml(&format!(
            "{{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {{name: other-lease, namespace: {name}}},\n\
               rules: [{{apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [other], verbs: [get, list, watch, update]}}]}}\n---\n\
             {{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {{name: other-lease, namespace: {name}}},\n\
               roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: other-lease}},\n\
               subjects: [{{kind: ServiceAccount, name: fairway, namespace: {name}}}]}}\n"
        ))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_leaders_create_and_delete_each_object_once_and_come_to_rest() {
    let world = World::new().await;
    allow(&world).await;
    stage::set(&world).await;
    let commit = stage::act(&world);
    let historian = Historian::start(&world).await;
    let one = Replica::start(&world, "one", SHORT).await;
    let other = [
        "--identity",
        "two",
        "--lease-duration",
        SHORT,
        "--lease-name",
        "other",
    ];
    let two = Replica::start_with(&world, &other).await;
    stage::settled(&world, &commit).await;
    until_holder(&world, "one").await;
    two.until_logged("following a source", 1).await;

    // Both look again, and neither finds anything to do.
    for _ in 0..2 {
        world.reconcile().await;
    }
    one.proxy.forget();
    two.proxy.forget();
    for _ in 0..3 {
        world.reconcile().await;
    }
    for replica in [&one, &two] {
        let writes = replica.writes();
        assert!(
            writes
                .iter()
                .all(|write| write.contains("/status") || write.contains("/events")),
            "{writes:?}"
        );
    }
    let history = historian.end().await;
    let deleted: Vec<(&str, usize)> = history
        .deleted
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    assert_eq!(deleted, [("dropped", 1), ("dropped-too", 1)]);
    let often: Vec<String> = history
        .created()
        .into_iter()
        .filter(|(_, count)| *count != 1)
        .map(|(name, count)| format!("{name}: {count}"))
        .collect();
    assert_eq!(often, Vec::<String>::new(), "each was created once");
    assert_eq!(world.value("created").await.as_deref(), Some("after"));
    assert_eq!(world.value("kept").await.as_deref(), Some("before"));
}
