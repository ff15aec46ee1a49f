//! Following a repository over ssh with the whole agent.

use serde_json::json;

use crate::source::ssh::fixture;
use crate::support::git_server::GitServer;
use crate::support::world::{World, ready};

#[tokio::test]
async fn a_repository_over_ssh_is_followed_once_its_host_is_known() {
    let world = World::new().await;
    let server = GitServer::start_ssh(&fixture("protected.pub"), "ed25519");
    let path = server.repository();
    let remote = ["remote", "set-url", "origin", path.to_str().unwrap()];
    world.repository.git(&remote);
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let address = server.ssh_address();
    let (host, port) = address.rsplit_once(':').unwrap();
    let secret = async |key: &str| {
        let body = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "ssh", "namespace": world.name},
            "stringData": {
                "identity": fixture("protected"),
                "identity.pub": fixture("protected.pub"),
                "password": "correct horse",
                "known_hosts": format!("[{host}]:{port} {key}"),
            },
        });
        world.plane.apply_yaml(&body.to_string()).await;
    };

    secret(&fixture("ecdsa.pub")).await;
    let agent = world.agent();
    let spec = json!({"url": server.ssh_url(), "secretRef": {"name": "ssh"}});
    world.declare(spec).await;
    let source = world.until_reason("FetchRefused").await;
    let message = ready(&source).2;
    assert!(
        message.contains("but `known_hosts` lists ecdsa-sha2-nistp256 SHA256:"),
        "{message}"
    );

    secret(&server.ssh_host_keys()[0]).await;
    world.reconcile().await;
    world.until_reason("Synced").await;
    assert_eq!(world.value("settings").await.as_deref(), Some("one"));
    let told = format!("{} {}", agent.log(), world.events().await);
    assert!(!told.contains("correct horse") && !told.contains("PRIVATE KEY"));
}
