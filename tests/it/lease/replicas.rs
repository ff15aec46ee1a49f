//! Replicas of one agent, each with a name, a proxy and folders of its own.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use kube::runtime::wait::await_condition;
use tempfile::TempDir;

use crate::support::agent::{Agent, FAIRWAY, signal};
use crate::support::proxy::{Proxy, Seen};
use crate::support::world::World;

/// A life of the lease that is over soon, and still long for two busy cores.
pub(super) const SHORT: &str = "5s";
/// A life of the lease that no test waits for.
pub(super) const LONG: &str = "300s";
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(90);

/// One replica.
pub(super) struct Replica {
    pub(super) agent: Agent,
    pub(super) proxy: Proxy,
    _directory: TempDir,
}

impl Replica {
    /// Starts a replica whose lease lasts so long.
    pub(super) async fn start(world: &World, name: &str, lease: &str) -> Self {
        Self::start_with(world, &["--identity", name, "--lease-duration", lease]).await
    }

    /// Starts a replica.
    pub(super) async fn start_with(world: &World, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let proxy = Proxy::start_as(world.plane, &world.name, "fairway").await;
        let kubeconfig = directory.path().join("kubeconfig");
        std::fs::write(&kubeconfig, proxy.kubeconfig()).unwrap();
        Self {
            agent: Agent::start(
                FAIRWAY,
                &kubeconfig,
                &world.name,
                directory.path(),
                arguments,
            ),
            proxy,
            _directory: directory,
        }
    }

    /// Returns everything that it has written, its lease aside.
    pub(super) fn writes(&self) -> Vec<String> {
        let seen = self.proxy.seen().into_iter();
        seen.filter(|seen| is_write(seen) && !is_lease(seen))
            .map(|seen| format!("{} {}", seen.verb, seen.path))
            .collect()
    }

    /// Fails when it has written anything before it has written the lease.
    pub(super) fn asks_first(&self) {
        let seen = self.proxy.seen();
        let mut writes = seen.iter().filter(|seen| is_write(seen));
        let first = writes.next();
        assert!(first.is_some_and(is_lease), "{first:?} came first");
    }

    /// Waits until its log has this text for so many times.
    pub(super) async fn until_logged(&self, text: &str, times: usize) {
        let logged = async {
            while self.agent.log().matches(text).count() < times {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let ended = tokio::time::timeout(PATIENCE, logged).await;
        assert!(ended.is_ok(), "never logged: {text}; {}", self.agent.log());
    }

    /// Sends it a signal.
    pub(super) fn signal(&self, name: &str) {
        assert!(signal(self.agent.id(), name));
    }
}

fn is_write(seen: &Seen) -> bool {
    matches!(seen.verb.as_str(), "PATCH" | "POST" | "PUT" | "DELETE")
}

/// Returns whether a request is on a lease.
pub(super) fn is_lease(seen: &Seen) -> bool {
    seen.path.contains("/leases")
}

/// The leases of a world.
pub(super) fn leases(world: &World) -> Api<Lease> {
    Api::namespaced(world.client.clone(), &world.name)
}

/// Waits until the lease of home is as a test expects, and returns it.
pub(super) async fn until_lease(
    world: &World,
    what: &str,
    wanted: impl Fn(&LeaseSpec) -> bool,
) -> Lease {
    let condition = |lease: Option<&Lease>| {
        let spec = lease.and_then(|lease| lease.spec.as_ref());
        spec.is_some_and(&wanted)
    };
    let waiting = await_condition(leases(world), "fairway-home", condition);
    match tokio::time::timeout(PATIENCE, waiting).await {
        Ok(lease) => lease.unwrap().unwrap(),
        Err(tokio::time::error::Elapsed { .. }) => panic!(
            "the lease is not so: {what}; {:?}",
            leases(world).get_opt("fairway-home").await
        ),
    }
}

/// Waits until somebody holds the lease of home.
pub(super) async fn until_holder(world: &World, name: &str) -> Lease {
    until_lease(world, name, |spec| {
        spec.holder_identity.as_deref() == Some(name)
    })
    .await
}
