//! A mirror over ssh, against a real ssh server that runs git.

use std::path::Path;
use std::time::{Duration, Instant};

use fairway::source::{
    Credentials, Fetched, Mirror, MirrorLimits, SourceError, SourceUrl, initialize,
};
use rstest::rstest;
use ssh_key::{HashAlg, PublicKey};
use tempfile::TempDir;

use super::{main, read};
use crate::support::git_server::GitServer;
use crate::support::repository::Repository;

/// The passphrase of the fixture `protected`.
const PASSPHRASE: &str = "correct horse";

/// How long the server may take to notice; two cores may be busy.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/source/fixtures/ssh");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// A server with one commit, that the fixture's keys may read from.
struct Scene {
    server: GitServer,
    directory: TempDir,
}

impl Scene {
    fn new(host_keys: &str) -> Self {
        initialize().unwrap();
        let names = ["ed25519", "ecdsa", "rsa", "pem", "protected"];
        let keys: String = names.map(|name| fixture(&format!("{name}.pub"))).concat();
        let server = GitServer::start_ssh(&keys, host_keys);
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::create(&directory.path().join("repository"));
        repository.remote(server.repository().to_str().unwrap(), None);
        repository.write("a.yaml", "one");
        repository.publish("one");
        Self { server, directory }
    }

    fn host(&self) -> String {
        let address = self.server.ssh_address();
        let (host, port) = address.rsplit_once(':').unwrap();
        format!("[{host}]:{port}")
    }

    /// The lines that vouch for the host.
    fn known_hosts(&self) -> String {
        let keys = self.server.ssh_host_keys();
        let lines = keys.iter().map(|key| format!("{} {key}\n", self.host()));
        lines.collect()
    }

    fn with(key: &str, passphrase: Option<&str>, known_hosts: &str) -> Credentials {
        let passphrase = passphrase.map(str::to_owned);
        Credentials::ssh(fixture(key), None, passphrase, known_hosts).unwrap()
    }

    fn good(&self) -> Credentials {
        Self::with("ed25519", None, &self.known_hosts())
    }

    /// What was asked over ssh, once the server has noticed that somebody did not sign in.
    fn refused_sessions(&self) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let sessions = self.server.ssh_sessions();
            if !sessions.is_empty() || begun.elapsed() > PATIENCE {
                return sessions;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    fn fetch(&self, credentials: Credentials) -> Result<Fetched, SourceError> {
        self.fetch_url(&self.server.ssh_url(), credentials, MirrorLimits::default())
    }

    fn fetch_url(
        &self,
        url: &str,
        credentials: Credentials,
        limits: MirrorLimits,
    ) -> Result<Fetched, SourceError> {
        let url = SourceUrl::parse(url).unwrap();
        let mirror = Mirror::new(self.directory.path().join("mirror"), url, limits);
        mirror.fetch_blocking(main(None), credentials)
    }
}

#[rstest]
#[case::ed25519("ed25519", None)]
#[case::ecdsa("ecdsa", None)]
#[case::rsa("rsa", None)]
#[case::older_form("pem", None)]
#[case::with_passphrase("protected", Some(PASSPHRASE))]
fn a_key_from_memory_opens_a_repository(#[case] key: &str, #[case] passphrase: Option<&str>) {
    let scene = Scene::new("ed25519");
    let credentials = Scene::with(key, passphrase, &scene.known_hosts());
    let found = scene.fetch(credentials.clone()).unwrap();
    assert_eq!(read(found.snapshot(), "a.yaml"), "one");
    scene.fetch(credentials).unwrap();
    let command = "git-upload-pack '/modules.git'";
    assert_eq!(scene.server.ssh_sessions(), [command, command]);
}

#[rstest]
#[case("ssh-ed25519")]
#[case("ecdsa-sha2-nistp256")]
#[case("ssh-rsa")]
fn a_host_with_several_keys_is_known_by_any_of_them(#[case] kind: &str) {
    let scene = Scene::new("ed25519,ecdsa,rsa");
    let known = scene.known_hosts();
    let line = known.lines().find(|line| line.contains(kind)).unwrap();
    scene.fetch(Scene::with("ed25519", None, line)).unwrap();
}

#[test]
fn an_unknown_host_is_refused_before_anybody_signs_in() {
    let scene = Scene::new("ed25519");
    let other = format!("git.example.com {}", fixture("ecdsa.pub"));
    let error = scene
        .fetch(Scene::with("ed25519", None, &other))
        .unwrap_err();
    let fingerprint = fingerprint(&scene.server.ssh_host_keys()[0]);
    assert_eq!(
        error.to_string(),
        format!(
            "the ssh host {} is not listed in `known_hosts`; it shows ssh-ed25519 {fingerprint}",
            scene.server.ssh_address()
        )
    );
    assert!(!error.is_retryable() && error.help().contains("ssh-keyscan"));
    assert_eq!(scene.refused_sessions(), ["sign-in refused"]);
}

#[test]
fn a_host_with_another_key_is_refused_with_both_fingerprints() {
    let scene = Scene::new("rsa");
    let known = format!("{} {}", scene.host(), fixture("ed25519.pub"));
    let error = scene
        .fetch(Scene::with("ed25519", None, &known))
        .unwrap_err();
    assert!(
        matches!(error, SourceError::HostKeyChanged { .. }),
        "{error:?}"
    );
    for key in [&scene.server.ssh_host_keys()[0], &fixture("ed25519.pub")] {
        assert!(error.to_string().contains(&fingerprint(key)), "{error}");
    }
    assert!(error.help().contains("replace its line"));
}

#[test]
fn a_revoked_host_key_is_refused() {
    let scene = Scene::new("ed25519");
    let known = scene.known_hosts();
    let revoked = format!("{known}@revoked * {}", scene.server.ssh_host_keys()[0]);
    let error = scene
        .fetch(Scene::with("ed25519", None, &revoked))
        .unwrap_err();
    assert!(
        matches!(error, SourceError::HostKeyRevoked { .. }),
        "{error:?}"
    );
}

#[test]
fn a_key_that_the_server_does_not_know_is_refused_and_stays_secret() {
    let scene = Scene::new("ed25519");
    let stranger = ssh_key::PrivateKey::new(
        ssh_key::private::Ed25519Keypair::from_seed(&[7; 32]).into(),
        "",
    )
    .unwrap();
    let pem = stranger.to_openssh(ssh_key::LineEnding::LF).unwrap();
    let credentials = Credentials::ssh(pem.as_str(), None, None, &scene.known_hosts()).unwrap();
    assert!(!format!("{credentials:?}").contains("PRIVATE"));
    let error = scene.fetch(credentials).unwrap_err();
    assert!(
        matches!(error, SourceError::Unauthorized { .. }),
        "{error:?}"
    );
    assert_eq!(scene.refused_sessions(), ["sign-in refused"]);
}

#[test]
fn a_wrong_passphrase_is_named_without_its_text() {
    let scene = Scene::new("ed25519");
    let error = scene
        .fetch(Scene::with(
            "protected",
            Some("hunter2"),
            &scene.known_hosts(),
        ))
        .unwrap_err();
    assert!(
        matches!(
            error,
            SourceError::SshKeys {
                key: "identity",
                ..
            }
        ),
        "{error:?}"
    );
    assert!(error.to_string().contains("passphrase"), "{error}");
    assert!(!format!("{error:?} {error} {}", error.help()).contains("hunter2"));
}

#[rstest]
#[case::protected("protected", "a passphrase protects it")]
#[case::public("ed25519.pub", "it is not a private key")]
fn a_key_that_cannot_work_is_refused_without_a_server(#[case] key: &str, #[case] reason: &str) {
    let error = Credentials::ssh(fixture(key), None, None, "a x").unwrap_err();
    assert!(error.to_string().contains(reason), "{error}");
}

#[test]
fn ssh_without_a_key_says_what_is_missing() {
    let scene = Scene::new("ed25519");
    let error = scene.fetch(Credentials::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the key `identity` of the credentials cannot be used for ssh: it is missing"
    );
}

#[test]
fn a_missing_repository_and_a_server_that_is_gone_are_told_apart() {
    let mut scene = Scene::new("ed25519");
    let url = scene.server.ssh_url().replace("modules", "none");
    let credentials = scene.good();
    let error = scene
        .fetch_url(&url, credentials.clone(), MirrorLimits::default())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("there is no repository at {url}")
    );
    scene.server.stop();
    let error = scene.fetch(credentials).unwrap_err();
    assert!(matches!(error, SourceError::Network { .. }), "{error:?}");
}

#[test]
fn a_silent_server_is_given_up() {
    let scene = Scene::new("ed25519");
    scene.server.fault("hang");
    let limits = MirrorLimits {
        deadline: Duration::from_secs(1),
        ..MirrorLimits::default()
    };
    let error = scene
        .fetch_url(&scene.server.ssh_url(), scene.good(), limits)
        .unwrap_err();
    assert!(matches!(error, SourceError::Timeout { .. }), "{error:?}");
}

fn fingerprint(key: &str) -> String {
    let key: PublicKey = key.parse().unwrap();
    key.fingerprint(HashAlg::Sha256).to_string()
}
