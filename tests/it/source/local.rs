//! Revisions of a local repository, as `--base` compares them.

use fairway::source::{LocalRepository, SourceError, initialize};
use tempfile::TempDir;

use super::{paths, read};
use crate::support::repository::Repository;

fn repository() -> (TempDir, Repository) {
    initialize().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let repository = Repository::create(directory.path());
    (directory, repository)
}

#[test]
fn a_revision_is_read_from_a_subfolder_whatever_the_working_tree_holds() {
    let (directory, repository) = repository();
    repository.write("readme.md", "");
    repository.write("deploy/modules/a.yaml", "one");
    let commit = repository.commit("Add a module");
    repository.write("deploy/modules/a.yaml", "two");
    let local = LocalRepository::discover(&directory.path().join("deploy/modules")).unwrap();
    let snapshot = local.snapshot("main").unwrap();
    assert_eq!(snapshot.revision.to_string(), format!("main@sha1:{commit}"));
    assert_eq!(paths(&snapshot), ["a.yaml"]);
    assert_eq!(read(&snapshot, "a.yaml"), "one");
}

#[test]
fn the_base_is_where_two_branches_part() {
    let (directory, repository) = repository();
    let base = repository.commit("base");
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    repository.commit("feature");
    repository.git(&["checkout", "--quiet", "main"]);
    repository.commit("main goes on");
    let local = LocalRepository::discover(directory.path()).unwrap();
    assert_eq!(
        local.merge_base("main", "feature").unwrap().to_string(),
        base
    );
}

#[test]
fn branches_without_a_common_past_have_no_base() {
    let (directory, repository) = repository();
    repository.commit("one");
    repository.git(&["checkout", "--quiet", "--orphan", "other"]);
    repository.commit("other");
    let local = LocalRepository::discover(directory.path()).unwrap();
    let error = local.merge_base("main", "other").unwrap_err();
    assert!(
        matches!(error, SourceError::NoMergeBase { .. }),
        "{error:?}"
    );
    assert!(error.help().contains("--unshallow"));
}

#[test]
fn what_is_missing_is_named() {
    let (directory, repository) = repository();
    repository.commit("one");
    repository.write("new/a.yaml", "not committed");
    let local = LocalRepository::discover(directory.path()).unwrap();
    let error = local.snapshot("origin/main").unwrap_err();
    assert_eq!(
        error,
        SourceError::RevisionNotFound {
            name: "origin/main".to_owned()
        }
    );
    let local = LocalRepository::discover(&directory.path().join("new")).unwrap();
    assert!(matches!(
        local.snapshot("main"),
        Err(SourceError::PathNotFound { .. })
    ));

    let plain = tempfile::tempdir().unwrap();
    let error = LocalRepository::discover(plain.path()).err().unwrap();
    assert!(
        matches!(error, SourceError::NotARepository { .. }),
        "{error:?}"
    );
}
