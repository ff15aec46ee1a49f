//! Following signed commits with the whole agent.

use serde_json::json;
use ssh_key::private::Ed25519Keypair;
use ssh_key::{HashAlg, LineEnding, PrivateKey};

use crate::support::world::{World, ready};

/// Commits and pushes, signed by a key.
fn publish_signed(world: &World, message: &str, key: &PrivateKey) -> String {
    world.repository.commit(message);
    let repository = git2::Repository::open(world.repository.path()).unwrap();
    let head = repository.head().unwrap().target().unwrap();
    let content = repository
        .odb()
        .unwrap()
        .read(head)
        .unwrap()
        .data()
        .to_vec();
    let signature = key.sign("git", HashAlg::Sha512, &content).unwrap();
    let signature = signature.to_pem(LineEnding::LF).unwrap();
    let content = String::from_utf8(content).unwrap();
    let signed = repository
        .commit_signed(&content, signature.trim_end(), None)
        .unwrap()
        .to_string();
    world
        .repository
        .git(&["reset", "--quiet", "--hard", &signed]);
    world.repository.push();
    signed
}

async fn allow(world: &World, lines: &str) {
    let body = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "signers", "namespace": world.name},
        "stringData": {"allowed_signers": lines},
    });
    world.plane.apply_yaml(&body.to_string()).await;
}

#[tokio::test]
async fn only_what_an_allowed_signer_has_signed_is_applied() {
    let world = World::new().await;
    let key = |seed| PrivateKey::new(Ed25519Keypair::from_seed(&[seed; 32]).into(), "").unwrap();
    let (ada, stranger) = (key(1), key(2));
    let line = format!("ada@example.com {}", ada.public_key().to_openssh().unwrap());
    allow(&world, &line).await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Not signed");
    let _agent = world.agent();
    let verify = |mode| json!({"verify": {"mode": mode, "secretRef": {"name": "signers"}}});
    world.declare(verify("Head")).await;
    let source = world.until_reason("SignatureRefused").await;
    let message = ready(&source).2;
    assert!(
        message.contains("is refused: it is not signed"),
        "{message}"
    );
    assert_eq!(world.value("settings").await, None);

    let signed = publish_signed(&world, "Signed", &ada);
    world.reconcile().await;
    let status = world.until_reason("Synced").await.status.unwrap();
    let good = Some(format!("main@sha1:{signed}"));
    assert_eq!(status.last_applied_revision, good);

    world.config_map("web", "settings", "two");
    publish_signed(&world, "By a stranger", &stranger);
    let source = world.reconcile().await;
    let (_, reason, message) = ready(&source);
    assert_eq!(reason, "SignatureRefused");
    assert!(
        message.contains("which is not among the allowed signers"),
        "{message}"
    );
    assert_eq!(world.value("settings").await.as_deref(), Some("one"));
    assert_eq!(source.status.unwrap().last_applied_revision, good);

    world.declare(verify("EachCommit")).await;
    publish_signed(&world, "On top of it", &ada);
    let source = world.reconcile().await;
    let (_, reason, message) = ready(&source);
    assert_eq!(reason, "SignatureRefused");
    assert!(message.contains("\"By a stranger\""), "{message}");

    world.declare(verify("Head")).await;
    world.reconcile().await;
    world.until_reason("Synced").await;
    assert_eq!(world.value("settings").await.as_deref(), Some("two"));

    // A signer who may not sign any more is noticed without a commit; what is applied stays.
    allow(
        &world,
        &line.replace(" ssh-", " valid-before=\"20200101Z\" ssh-"),
    )
    .await;
    let source = world.reconcile().await;
    let (_, reason, message) = ready(&source);
    assert_eq!(reason, "SignatureRefused");
    assert!(
        message.contains("the permission of which has expired"),
        "{message}"
    );
    assert_eq!(world.value("settings").await.as_deref(), Some("two"));
}
