//! A mirror against a real git server over https: signing in, trust, and every way in which a server can fail.

use std::time::Duration;

use fairway::source::{
    CertificateAuthorities, CommitId, Credentials, Fetched, Mirror, MirrorLimits, SourceError,
    SourceUrl, initialize,
};
use rstest::rstest;
use tempfile::TempDir;

use super::{main, packs, read};
use crate::support::git_server::{GitServer, SignIn};
use crate::support::repository::Repository;

/// A server with one commit in its repository, and a mirror of it.
pub(super) struct Scene {
    pub(super) server: GitServer,
    pub(super) directory: TempDir,
    pub(super) repository: Repository,
    pub(super) mirror: Mirror,
    pub(super) commit: CommitId,
}

impl Scene {
    pub(super) fn new(sign_in: SignIn) -> Self {
        Self::with_limits(sign_in, MirrorLimits::default())
    }

    pub(super) fn with_limits(sign_in: SignIn, limits: MirrorLimits) -> Self {
        initialize().unwrap();
        let server = GitServer::start(sign_in);
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::create(&directory.path().join("repository"));
        // Pushed past the server, so that its log holds our requests alone.
        repository.remote(server.repository().to_str().unwrap(), None);
        repository.write("a.yaml", "one");
        let commit = repository.publish("one").parse().unwrap();
        let url = SourceUrl::parse(&server.url()).unwrap();
        let mirror = Mirror::new(directory.path().join("mirror"), url, limits);
        Self {
            server,
            directory,
            repository,
            mirror,
            commit,
        }
    }

    pub(super) fn trusted(&self, credentials: Credentials) -> Credentials {
        let authority = self.server.certificate_authority();
        credentials.trusting(CertificateAuthorities::from_pem(&authority).unwrap())
    }

    pub(super) fn fetch(&self, credentials: Credentials) -> Result<Fetched, SourceError> {
        self.mirror.fetch_blocking(main(None), credentials)
    }

    fn packs(&self) -> Vec<String> {
        packs(&self.directory.path().join("mirror"))
    }
}

#[test]
fn an_idle_poll_costs_one_listing() {
    let scene = Scene::new(SignIn::Nobody);
    let credentials = scene.trusted(Credentials::default());
    let first = scene.fetch(credentials.clone()).unwrap();
    assert_eq!(read(first.snapshot(), "a.yaml"), "one");
    assert_eq!(scene.server.requests(), ["advertise 200", "fetch 200"]);
    let again = scene
        .mirror
        .fetch_blocking(main(Some(scene.commit)), credentials)
        .unwrap();
    assert!(matches!(again, Fetched::Unmoved(_)));
    assert_eq!(scene.server.requests()[2..], ["advertise 200"]);
}

#[test]
fn only_the_branch_that_was_asked_for_is_fetched() {
    let scene = Scene::new(SignIn::Nobody);
    scene
        .repository
        .git(&["checkout", "--quiet", "-b", "other"]);
    scene.repository.write("b.yaml", "not asked for");
    let other = scene.repository.commit("other");
    scene.repository.git(&["tag", "v1"]);
    scene
        .repository
        .git(&["push", "--quiet", "--all", "origin"]);
    scene
        .repository
        .git(&["push", "--quiet", "--tags", "origin"]);
    scene.fetch(scene.trusted(Credentials::default())).unwrap();
    let mirror = git2::Repository::open_bare(scene.directory.path().join("mirror")).unwrap();
    assert!(
        !mirror
            .odb()
            .unwrap()
            .exists(git2::Oid::from_str(&other).unwrap())
    );
}

#[rstest]
#[case::basic(SignIn::Password("hunter2"), Credentials::basic("ci", "hunter2").unwrap())]
#[case::bearer(SignIn::Token("hunter2"), Credentials::bearer("hunter2").unwrap())]
#[case::token_as_password(SignIn::Token("hunter2"), Credentials::basic("x", "hunter2").unwrap())]
fn credentials_open_a_private_repository(
    #[case] sign_in: SignIn,
    #[case] credentials: Credentials,
) {
    let scene = Scene::new(sign_in);
    let found = scene.fetch(scene.trusted(credentials)).unwrap();
    assert_eq!(read(found.snapshot(), "a.yaml"), "one");
}

#[rstest]
#[case::wrong_password(Credentials::basic("ci", "wrong-hunter2").unwrap())]
#[case::wrong_token(Credentials::bearer("wrong-hunter2").unwrap())]
#[case::none(Credentials::default())]
fn refused_credentials_are_shown_once_and_never_repeated(#[case] credentials: Credentials) {
    let scene = Scene::new(SignIn::Password("hunter2"));
    let error = scene.fetch(scene.trusted(credentials)).unwrap_err();
    assert!(
        matches!(error, SourceError::Unauthorized { .. }),
        "{error:?}"
    );
    assert!(!format!("{error:?} {error} {}", error.help()).contains("hunter2"));
    assert_eq!(scene.server.requests(), ["advertise 401"]);
}

#[rstest]
#[case("deny", "does not let these credentials read")]
#[case("unauthorized", "refused the credentials")]
#[case("error", "answered with HTTP status 500")]
fn what_the_server_answers_is_told_apart(#[case] fault: &str, #[case] message: &str) {
    let scene = Scene::new(SignIn::Password("hunter2"));
    let credentials = scene.trusted(Credentials::basic("ci", "hunter2").unwrap());
    let before = scene.fetch(credentials.clone()).unwrap();
    scene.server.fault(fault);
    let error = scene.fetch(credentials.clone()).unwrap_err();
    assert!(error.to_string().contains(message), "{error:?}");
    assert_eq!(read(before.snapshot(), "a.yaml"), "one");
    scene.server.fault("");
    scene.fetch(credentials).unwrap();
}

#[test]
fn a_server_that_is_gone_and_a_repository_that_is_not_there() {
    let mut scene = Scene::new(SignIn::Nobody);
    let credentials = scene.trusted(Credentials::default());
    let url = SourceUrl::parse(&scene.server.url().replace("modules", "none")).unwrap();
    let none = Mirror::new(
        scene.directory.path().join("none"),
        url,
        MirrorLimits::default(),
    );
    let error = none
        .fetch_blocking(main(None), credentials.clone())
        .unwrap_err();
    assert!(
        matches!(error, SourceError::RepositoryNotFound { .. }),
        "{error:?}"
    );
    scene.server.stop();
    let error = scene.fetch(credentials).unwrap_err();
    assert!(matches!(error, SourceError::Network { .. }), "{error:?}");
}

#[test]
fn an_own_authority_is_trusted_by_its_source_alone() {
    let scene = Scene::new(SignIn::Nobody);
    scene.fetch(scene.trusted(Credentials::default())).unwrap();
    // The same process has just trusted it for another source; this one does not.
    let error = scene.fetch(Credentials::default()).unwrap_err();
    assert!(matches!(error, SourceError::Untrusted { .. }), "{error:?}");
    assert!(error.help().contains("ca.crt"));
    let other = GitServer::start(SignIn::Nobody).certificate_authority();
    let other = CertificateAuthorities::from_pem(&other).unwrap();
    let error = scene
        .fetch(Credentials::default().trusting(other))
        .unwrap_err();
    assert!(matches!(error, SourceError::Untrusted { .. }), "{error:?}");
}

#[test]
fn a_certificate_for_another_name_is_not_trusted() {
    initialize().unwrap();
    let server = GitServer::start_on("127.0.0.2", SignIn::Nobody);
    let directory = tempfile::tempdir().unwrap();
    let url = SourceUrl::parse(&server.url()).unwrap();
    let mirror = Mirror::new(
        directory.path().join("mirror"),
        url,
        MirrorLimits::default(),
    );
    let authority = CertificateAuthorities::from_pem(&server.certificate_authority()).unwrap();
    let credentials = Credentials::default().trusting(authority);
    let error = mirror.fetch_blocking(main(None), credentials).unwrap_err();
    assert!(matches!(error, SourceError::Untrusted { .. }), "{error:?}");
}

#[rstest]
#[case("")]
#[case("no certificate")]
#[case("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")]
fn an_unusable_bundle_is_refused(#[case] pem: &str) {
    let error = CertificateAuthorities::from_pem(pem.as_bytes())
        .err()
        .unwrap();
    assert!(
        matches!(error, SourceError::Authorities { .. }),
        "{error:?}"
    );
}

#[test]
fn a_truncated_pack_leaves_the_mirror_as_it_was() {
    let scene = Scene::new(SignIn::Nobody);
    let credentials = scene.trusted(Credentials::default());
    let before = scene.fetch(credentials.clone()).unwrap();
    let packs = scene.packs();
    for number in 0..200 {
        scene
            .repository
            .write(&format!("{number}.yaml"), format!("number: {number}\n"));
    }
    let commit = scene.repository.publish("Add many files");
    // Long enough for the listing, too short for the pack.
    scene.server.fault("truncate 2000");
    let error = scene.fetch(credentials.clone()).unwrap_err();
    assert!(
        matches!(
            error,
            SourceError::PackBroken { .. } | SourceError::Network { .. }
        ),
        "{error:?}"
    );
    assert_eq!(scene.packs(), packs);
    assert_eq!(read(before.snapshot(), "a.yaml"), "one");
    scene.server.fault("");
    let found = scene
        .mirror
        .fetch_blocking(main(Some(scene.commit)), credentials)
        .unwrap();
    assert!(matches!(found, Fetched::Moved(_)));
    assert_eq!(found.snapshot().revision.hash(), commit);
}

#[tokio::test]
async fn a_silent_server_holds_nobody_up() {
    let deadline = Duration::from_millis(500);
    let scene = Scene::with_limits(
        SignIn::Nobody,
        MirrorLimits {
            deadline,
            ..MirrorLimits::default()
        },
    );
    let credentials = scene.trusted(Credentials::default());
    scene.server.fault("hang");
    // Nothing of the first one is left when it has given up.
    for _ in 0..2 {
        let error = scene
            .mirror
            .fetch(main(None), credentials.clone())
            .await
            .unwrap_err();
        assert!(
            matches!(error, SourceError::Timeout { after, .. } if after == deadline),
            "{error:?}"
        );
        assert!(error.is_retryable());
    }
}

#[tokio::test]
async fn a_second_fetch_does_not_pile_up_behind_a_first() {
    let deadline = Duration::from_secs(3);
    let limits = MirrorLimits {
        deadline,
        ..MirrorLimits::default()
    };
    let scene = Scene::with_limits(SignIn::Nobody, limits);
    let credentials = scene.trusted(Credentials::default());
    scene.server.fault("hang");
    let fetch = || scene.mirror.fetch(main(None), credentials.clone());
    let (one, other) = tokio::join!(fetch(), fetch());
    let errors = [one.unwrap_err(), other.unwrap_err()];
    let count = |wanted: fn(&SourceError) -> bool| errors.iter().filter(|e| wanted(e)).count();
    assert_eq!(count(|e| matches!(e, SourceError::Busy { .. })), 1);
    assert_eq!(count(|e| matches!(e, SourceError::Timeout { .. })), 1);
}
