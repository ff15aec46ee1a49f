//! What a mirror finds: branches, tags, commits, what has moved and what was rewound.

use std::sync::Arc;

use fairway::model::Revision;
use fairway::source::{Credentials, FetchRequest, Fetched, Reference, SourceError};
use rstest::rstest;

use super::{Scene, main, paths, read};

#[test]
fn the_first_fetch_clones_and_an_idle_poll_downloads_nothing() {
    let scene = Scene::new();
    let commit = scene.commit("modules/telemetry/module-release-meta.yaml", "kind: X\n");

    let Fetched::Moved(first) = scene.fetch(None).unwrap() else {
        panic!("the first fetch is a move")
    };
    assert_eq!(
        first.revision,
        Revision::commit("main", &commit.to_string())
    );
    assert_eq!(first.commit.author, "Ada Example");
    assert_eq!(
        first.commit.subject,
        "Write modules/telemetry/module-release-meta.yaml"
    );
    assert_eq!(
        paths(&first),
        ["modules/telemetry/module-release-meta.yaml"]
    );
    assert_eq!(
        read(&first, "modules/telemetry/module-release-meta.yaml"),
        "kind: X\n"
    );

    let before = scene.packs();
    let Fetched::Unmoved(second) = scene.fetch(Some(commit)).unwrap() else {
        panic!("nothing has moved")
    };
    assert_eq!(scene.packs(), before);
    assert!(
        Arc::ptr_eq(&first.files, &second.files),
        "an unchanged tree is not listed again"
    );
}

#[tokio::test]
async fn a_moved_branch_is_fetched_and_the_old_snapshot_stays_readable() {
    let scene = Scene::new();
    let first = scene.commit("a.yaml", "one");
    let old = scene
        .mirror
        .fetch(main(None), Credentials::default())
        .await
        .unwrap();
    scene.commit("a.yaml", "two");
    let new = scene
        .mirror
        .fetch(main(Some(first)), Credentials::default())
        .await
        .unwrap();
    assert!(matches!(new, Fetched::Moved(_)));
    assert_eq!(read(old.snapshot(), "a.yaml"), "one");
    assert_eq!(read(new.snapshot(), "a.yaml"), "two");
}

#[rstest]
#[case::lightweight(&["tag", "v1"])]
#[case::annotated(&["tag", "--annotate", "--message", "release", "v1"])]
fn a_tag_is_followed_to_its_commit(#[case] tag: &[&str]) {
    let scene = Scene::new();
    let commit = scene.commit("a.yaml", "one");
    scene.repository.git(tag);
    scene.commit("a.yaml", "two");
    let request = FetchRequest {
        reference: Reference::Tag("v1".to_owned()),
        ..main(None)
    };
    let found = scene
        .mirror
        .fetch_blocking(request, Credentials::default())
        .unwrap();
    assert_eq!(
        found.snapshot().revision,
        Revision::commit("v1", &commit.to_string())
    );
    assert_eq!(read(found.snapshot(), "a.yaml"), "one");
}

#[test]
fn a_tag_of_a_file_is_not_a_commit() {
    let scene = Scene::new();
    scene.commit("a.yaml", "one");
    let blob = scene.repository.git(&["rev-parse", "HEAD:a.yaml"]);
    scene
        .repository
        .git(&["tag", "--annotate", "--message", "odd", "v1", &blob]);
    let request = FetchRequest {
        reference: Reference::Tag("v1".to_owned()),
        ..main(None)
    };
    let error = scene
        .mirror
        .fetch_blocking(request, Credentials::default())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "tag `v1` points at a blob, not at a commit"
    );
}

#[test]
fn a_commit_is_found_behind_the_tip_and_then_needs_no_server() {
    let scene = Scene::new();
    let commit = scene.commit("a.yaml", "one");
    let later = scene.commit("a.yaml", "two");
    let request = FetchRequest {
        reference: Reference::Commit(commit),
        ..main(Some(later))
    };
    let fetch = || {
        scene
            .mirror
            .fetch_blocking(request.clone(), Credentials::default())
    };
    let found = fetch().unwrap();
    assert!(
        matches!(found, Fetched::Moved(_)),
        "what a person has named is no rewind"
    );
    assert_eq!(read(found.snapshot(), "a.yaml"), "one");
    std::fs::remove_dir_all(scene.repository.path()).unwrap();
    assert_eq!(
        fetch().unwrap().snapshot().revision,
        found.snapshot().revision
    );
}

#[rstest]
#[case::amended(&["commit", "--quiet", "--amend", "--message", "rewritten"])]
#[case::reset(&["reset", "--quiet", "--hard", "HEAD~1"])]
fn a_rewritten_branch_is_handed_out_as_rewound(#[case] rewrite: &[&str]) {
    let scene = Scene::new();
    scene.commit("a.yaml", "one");
    let last = scene.commit("a.yaml", "two");
    scene.fetch(None).unwrap();
    scene.repository.git(rewrite);
    let tip = scene.repository.git(&["rev-parse", "HEAD"]);
    let Fetched::Rewound { from, to, snapshot } = scene.fetch(Some(last)).unwrap() else {
        panic!("the last commit is not part of the branch any more")
    };
    assert_eq!((from, to.to_string()), (last, tip.clone()));
    assert_eq!(snapshot.revision.hash(), tip);
}

#[test]
fn a_last_commit_that_a_fresh_mirror_never_saw_is_a_rewind() {
    let scene = Scene::new();
    let lost = scene.commit("a.yaml", "one");
    scene
        .repository
        .git(&["commit", "--quiet", "--amend", "--message", "rewritten"]);
    assert!(matches!(
        scene.fetch(Some(lost)).unwrap(),
        Fetched::Rewound { .. }
    ));
}

#[test]
fn a_deleted_branch_is_an_error_and_what_was_read_stays() {
    let scene = Scene::new();
    let commit = scene.commit("a.yaml", "one");
    let old = scene.fetch(None).unwrap();
    scene.repository.git(&["branch", "--move", "main", "trunk"]);
    let error = scene.fetch(Some(commit)).unwrap_err();
    assert!(
        matches!(&error, SourceError::ReferenceNotFound { reference, .. } if reference == "branch `main`")
    );
    assert!(error.is_retryable() && error.help().contains("What was applied last stays"));
    assert_eq!(read(old.snapshot(), "a.yaml"), "one");
}

#[rstest]
#[case::branch(Reference::Branch("none".to_owned()))]
#[case::tag(Reference::Tag("none".to_owned()))]
#[case::commit(Reference::Commit("0123456789012345678901234567890123456789".parse().unwrap()))]
fn what_is_not_there_is_named(#[case] reference: Reference) {
    let scene = Scene::new();
    scene.commit("a.yaml", "one");
    let request = FetchRequest {
        reference: reference.clone(),
        ..main(None)
    };
    let error = scene
        .mirror
        .fetch_blocking(request, Credentials::default())
        .unwrap_err();
    let url = scene.repository.path().display();
    assert_eq!(
        error.to_string(),
        format!("{reference} does not exist in {url}")
    );
}

#[rstest]
#[case("no such..name")]
#[case("-x y")]
#[case("*")]
#[case("")]
fn a_name_that_git_does_not_allow_is_refused_before_anything_happens(#[case] name: &str) {
    let scene = Scene::new();
    let request = FetchRequest {
        reference: Reference::Branch(name.to_owned()),
        ..main(None)
    };
    let error = scene
        .mirror
        .fetch_blocking(request, Credentials::default())
        .unwrap_err();
    assert!(
        matches!(error, SourceError::ReferenceInvalid { .. }),
        "{error}"
    );
    assert!(!scene.directory.path().join("mirror").exists());
}

#[test]
fn an_empty_and_a_missing_repository_are_told_apart() {
    let scene = Scene::new();
    assert!(matches!(
        scene.fetch(None),
        Err(SourceError::RepositoryEmpty { .. })
    ));
    std::fs::remove_dir_all(scene.repository.path()).unwrap();
    let error = scene.fetch(None).unwrap_err();
    assert!(
        matches!(error, SourceError::RepositoryNotFound { .. }),
        "{error:?}"
    );
}

#[rstest]
#[case(".", &["deploy/one/a.yaml", "readme.md"])]
#[case("", &["deploy/one/a.yaml", "readme.md"])]
#[case("deploy", &["one/a.yaml"])]
#[case("./deploy/one/", &["a.yaml"])]
fn a_path_narrows_the_source(#[case] path: &str, #[case] expected: &[&str]) {
    let scene = Scene::new();
    scene.repository.write("readme.md", "");
    scene.commit("deploy/one/a.yaml", "one");
    let request = FetchRequest {
        path: path.to_owned(),
        ..main(None)
    };
    let found = scene
        .mirror
        .fetch_blocking(request, Credentials::default())
        .unwrap();
    assert_eq!(paths(found.snapshot()), expected);
}

#[rstest]
#[case("none", "there is no folder `none` in main@sha1:")]
#[case("deploy/none", "there is no folder `deploy/none` in main@sha1:")]
#[case("../deploy", "there is no folder `../deploy` in main@sha1:")]
#[case("readme.md", "`readme.md` is not a folder in main@sha1:")]
#[case("readme.md/below", "`readme.md/below` is not a folder in main@sha1:")]
fn a_wrong_path_is_an_error_of_its_own(#[case] path: &str, #[case] message: &str) {
    let scene = Scene::new();
    scene.repository.write("readme.md", "");
    scene.commit("deploy/one/a.yaml", "one");
    let request = FetchRequest {
        path: path.to_owned(),
        ..main(None)
    };
    let error = scene
        .mirror
        .fetch_blocking(request, Credentials::default())
        .unwrap_err();
    assert!(error.to_string().starts_with(message), "{error}");
}
