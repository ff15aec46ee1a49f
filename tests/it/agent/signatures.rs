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

#[tokio::test]
async fn the_schema_says_what_can_be_verified_and_where_a_repository_may_be() {
    let world = World::new().await;
    let declare = async |spec: serde_json::Value| {
        let body = json!({
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": "ReleaseSource",
            "metadata": {"name": "tried"},
            "spec": spec,
        });
        let parameters = kube::api::PatchParams::apply("test").dry_run();
        let patch = kube::api::Patch::Apply(&body);
        let sources = world.sources();
        sources.patch("tried", &parameters, &patch).await
    };
    let branch = json!({"branch": "main"});
    for url in [
        "git@git.example.com:team/modules.git",
        "git@[::1]:modules.git",
        "ssh://git@git.example.com:2222/team/modules.git",
        "ssh://[::1]:2222/modules.git",
        "https://git.example.com/modules.git",
    ] {
        let spec = json!({"url": url, "ref": branch, "verify": {"secretRef": {"name": "x"}}});
        let source = declare(spec).await.unwrap();
        let mode = source.spec.verify.unwrap().mode;
        assert_eq!(mode, fairway::model::api::VerifyMode::Head, "{url}");
    }
    let verify = json!({"secretRef": {"name": "x"}});
    let odd = json!({"mode": "Sometimes", "secretRef": {"name": "x"}});
    for (spec, message) in [
        (
            json!({"url": "ssh://git:pw@git.example.com/m", "ref": branch}),
            "spec.url",
        ),
        (
            json!({"url": "git@-oProxyCommand=x:m", "ref": branch}),
            "spec.url",
        ),
        (
            json!({"url": "ssh://git.example.com/m'x", "ref": branch}),
            "spec.url",
        ),
        (
            json!({"url": "/srv/m", "ref": {}, "verify": verify}),
            "verify needs one of",
        ),
        (
            json!({"url": "/srv/m", "ref": branch, "verify": odd}),
            "Unsupported value",
        ),
        (
            json!({"url": "/srv/m", "ref": {"tag": "v1", "semver": "^1"}}),
            "at most one of branch, tag, semver and commit",
        ),
    ] {
        let refused = declare(spec).await.unwrap_err().to_string();
        assert!(refused.contains(message), "{refused}");
    }
}
