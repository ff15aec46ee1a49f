//! Signatures of commits and tags that git, ssh-keygen and gpg have made: `fixtures/signatures/make` says how, and what git says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairway::source::{
    CommitId, Credentials, FetchRequest, Reference, Refusal, Signers, SourceError, Verification,
    VerifyMode,
};
use rstest::rstest;

use super::{Scene, main};

/// September 2026: after everything in the fixtures.
const NOW: i64 = 1_790_000_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/source/fixtures/signatures")
}

fn signers() -> Signers {
    let files: Vec<_> = std::fs::read_dir(folder().join("signers"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap()))
        .collect();
    let files = files
        .iter()
        .map(|(name, content)| (name.to_str().unwrap(), &content[..]));
    Signers::from_files(files).unwrap()
}

impl Scene {
    /// A repository with everything that the fixtures hold.
    fn with_signatures() -> Self {
        let scene = Self::new();
        let bundle = folder().join("signatures.bundle");
        scene.repository.git(&[
            "fetch",
            "--quiet",
            "--update-head-ok",
            bundle.to_str().unwrap(),
            "+refs/heads/*:refs/heads/*",
            "+refs/tags/*:refs/tags/*",
        ]);
        scene
    }

    fn resolve(&self, revision: &str) -> CommitId {
        let revision = format!("{revision}^{{commit}}");
        let commit = self.repository.git(&["rev-parse", &revision]);
        commit.parse().unwrap()
    }

    fn verify(
        &self,
        mode: VerifyMode,
        name: &str,
        from: Option<CommitId>,
    ) -> Result<(), SourceError> {
        let tag = name.starts_with('v').then(|| name.to_owned());
        let request = FetchRequest {
            reference: match &tag {
                Some(tag) => Reference::Tag(tag.clone()),
                None => Reference::Branch(name.to_owned()),
            },
            ..main(None)
        };
        self.mirror
            .fetch_blocking(request, Credentials::default())
            .unwrap();
        self.mirror.verify_blocking(&Verification {
            mode,
            signers: Arc::new(signers()),
            tag,
            from,
            to: self.resolve(name),
            now: NOW,
        })
    }

    fn verdict(&self, name: &str) -> &'static str {
        match self.verify(VerifyMode::Head, name, None) {
            Ok(()) => "good",
            Err(SourceError::SignatureRefused { what, refusal }) => {
                let short = if name.starts_with('v') {
                    "tag"
                } else {
                    "commit"
                };
                assert!(what.starts_with(short), "{what}");
                match refusal {
                    Refusal::Missing => "missing",
                    Refusal::Unknown { .. } => "unknown",
                    Refusal::Expired { .. } => "expired",
                    Refusal::NotYetValid { .. } => "not yet valid",
                    Refusal::Revoked { .. } => "revoked",
                    Refusal::Bad { .. } => "bad",
                    Refusal::Unusable { .. } => "unusable",
                }
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

#[rstest]
#[case("ssh-ed25519", "good")]
#[case("ssh-ecdsa", "good")]
#[case("ssh-rsa", "good")]
#[case("ssh-window", "good")]
#[case("ssh-unknown", "unknown")]
#[case("ssh-expired", "expired")]
#[case("ssh-later", "not yet valid")]
#[case("ssh-revoked", "revoked")]
#[case("ssh-file", "unknown")]
#[case("ssh-tampered", "bad")]
#[case("ssh-other-namespace", "unusable")]
#[case("pgp-primary", "good")]
#[case("pgp-rsa", "good")]
#[case("pgp-sub", "good")]
#[case("pgp-stranger", "unknown")]
#[case("pgp-gone", "expired")]
#[case("pgp-withdrawn", "revoked")]
#[case("pgp-oldsub", "revoked")]
#[case("pgp-tampered", "bad")]
#[case::stricter_than_git("pgp-sha1", "unusable")]
#[case("unsigned", "missing")]
#[case("v1.0.0", "good")]
#[case("v1.1.0", "unknown")]
#[case::its_commit_is_signed("v1.2.0", "good")]
#[case("v1.3.0", "bad")]
#[case::the_tag_of_another_version("v1.4.0", "unusable")]
#[case("v2.0.0", "good")]
#[case("v2.1.0", "bad")]
fn a_signature_is_judged_as_git_does(#[case] name: &str, #[case] expected: &str) {
    assert_eq!(Scene::with_signatures().verdict(name), expected);
    let verdicts = std::fs::read_to_string(folder().join("verdicts")).unwrap();
    let git = verdicts
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .unwrap();
    // git accepts SHA-1 and the tag of one version under the name of another, and `git verify-tag` does not look at the commit of a
    // tag that is not signed.
    let differs = ["pgp-sha1", "v1.4.0", "v1.2.0"].contains(&name);
    assert_eq!((git == "good") == (expected == "good"), !differs);
}

#[test]
fn every_fixture_is_judged() {
    let verdicts = std::fs::read_to_string(folder().join("verdicts")).unwrap();
    assert_eq!(verdicts.lines().count(), 28);
}

#[test]
fn each_commit_since_the_last_one_has_to_be_signed() {
    let scene = Scene::with_signatures();
    let (base, signed) = (scene.resolve("main"), scene.resolve("ssh-ed25519"));
    let each = |name, from| scene.verify(VerifyMode::EachCommit, name, from);
    each("each", Some(base)).unwrap();
    let error = each("gap", Some(signed)).unwrap_err();
    let gap = scene.resolve("gap~1");
    assert_eq!(
        error.to_string(),
        format!("commit {gap} (\"the gap\" by Ada Example) is refused: it is not signed")
    );
    // What was accepted once is not asked again, and without a beginning there is only the head.
    each("gap", Some(gap)).unwrap();
    each("gap", None).unwrap();
    scene.verify(VerifyMode::Head, "gap", Some(base)).unwrap();
}

#[test]
fn the_head_is_verified_also_where_nothing_is_new() {
    let scene = Scene::with_signatures();
    let (unsigned, signed) = (scene.resolve("unsigned"), scene.resolve("each"));
    for mode in [VerifyMode::Head, VerifyMode::EachCommit] {
        assert!(scene.verify(mode, "unsigned", Some(unsigned)).is_err());
    }
    // A way back, which a person has approved.
    scene
        .verify(VerifyMode::EachCommit, "ssh-ed25519", Some(signed))
        .unwrap();
    let error = scene
        .verify(VerifyMode::EachCommit, "main", Some(signed))
        .unwrap_err();
    assert!(error.to_string().contains("is not signed"), "{error}");
}

#[test]
fn a_signed_tag_does_not_stand_for_each_commit() {
    let scene = Scene::with_signatures();
    let base = scene.resolve("main");
    let each = |name| scene.verify(VerifyMode::EachCommit, name, Some(base));
    each("v1.0.0").unwrap();
    each("v2.0.0").unwrap();
    let error = each("v1.3.0").unwrap_err();
    assert!(
        error.to_string().starts_with("tag `v1.3.0` is refused"),
        "{error}"
    );
}

#[test]
fn a_refusal_names_the_key_and_the_person_it_belongs_to() {
    let scene = Scene::with_signatures();
    let message = |name| {
        scene
            .verify(VerifyMode::Head, name, None)
            .unwrap_err()
            .to_string()
    };
    let unknown = message("ssh-unknown");
    assert!(unknown.contains("it is signed by SHA256:"), "{unknown}");
    let expired = message("ssh-expired");
    assert!(
        expired.contains("expired@example.com (SHA256:"),
        "{expired}"
    );
    let stranger = message("pgp-stranger");
    assert!(stranger.contains("the OpenPGP key "), "{stranger}");
    let gone = message("pgp-gone");
    assert!(gone.contains("gone <gone@example.com> ("), "{gone}");
}

#[rstest]
#[case::nobody(&[], "neither it nor a file `*.asc` or `*.pub` allows anybody")]
#[case::misspelt(&[("allowed-signers", "x")], "neither it nor a file")]
#[case::broken(&[("allowed_signers", "ada")], "line 1: it has no key")]
#[case::no_certificate(&[("ada.asc", "ssh-ed25519 AAAA")], "`ada.asc`")]
fn signers_that_cannot_be_read_are_named(#[case] files: &[(&str, &str)], #[case] reason: &str) {
    let files = files.iter().map(|(name, text)| (*name, text.as_bytes()));
    let error = Signers::from_files(files).unwrap_err();
    assert!(error.to_string().contains(reason), "{error}");
    assert!(!error.is_retryable());
}
