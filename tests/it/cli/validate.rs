//! `fairway validate`, over folders and over git.

use std::fs;
use std::path::Path;

use git2::{Repository, Signature};
use tempfile::TempDir;

use super::fairway;

const META: &str = "modules/telemetry/module-release-meta.yaml";

/// A working tree with one module in two versions, whose channel offers the given one.
fn working_tree(version: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for version in ["1.41.2", "1.42.0"] {
        let template = format!(
            "apiVersion: operator.kyma-project.io/v1beta2\n\
             kind: ModuleTemplate\n\
             metadata:\n  name: telemetry-{version}\n\
             spec:\n  moduleName: telemetry\n  version: {version}\n  descriptor: {{}}\n"
        );
        let path = format!("modules/telemetry/{version}/module-template.yaml");
        write(folder.path(), &path, &template);
    }
    point_channel(folder.path(), version);
    folder
}

fn point_channel(root: &Path, version: &str) {
    let meta = format!(
        "apiVersion: operator.kyma-project.io/v1beta2\n\
         kind: ModuleReleaseMeta\n\
         metadata:\n  name: telemetry\n\
         spec:\n  moduleName: telemetry\n  ocmComponentName: kyma-project.io/module/telemetry\n  channels:\n    - channel: regular\n      version: {version}\n"
    );
    write(root, META, &meta);
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
    fs::write(path, text).expect("the file is written");
}

/// Commits everything as the next commit of HEAD.
fn commit(repository: &Repository, message: &str) {
    let mut index = repository.index().expect("an index");
    index
        .add_all(["*"], git2::IndexAddOption::DEFAULT, None)
        .expect("files are added");
    index.write().expect("the index is written");
    let tree = index.write_tree().expect("a tree");
    let tree = repository.find_tree(tree).expect("the tree");
    let author = Signature::now("Ada", "ada@example.com").expect("a signature");
    let parent = repository
        .head()
        .ok()
        .and_then(|head| head.peel_to_commit().ok());
    let parents: Vec<_> = parent.iter().collect();
    repository
        .commit(Some("HEAD"), &author, &author, message, &tree, &parents)
        .expect("a commit");
}

/// Runs `fairway validate` on a folder and writes down what it did, without the folder's own path.
fn validate(root: &Path, arguments: &[&str]) -> String {
    let folder = root.to_str().expect("a path of UTF-8");
    let mut all = vec!["validate", folder];
    all.extend(arguments);
    super::transcript(&all).replace(folder, "DIR")
}

#[test]
fn a_valid_repository_is_silent() {
    let tree = working_tree("1.42.0");
    let folder = tree.path().to_str().expect("a path of UTF-8");
    fairway(&["validate", folder])
        .assert()
        .code(0)
        .stdout("")
        .stderr("");
    fairway(&["validate"])
        .current_dir(tree.path())
        .assert()
        .code(0)
        .stdout("")
        .stderr("");
}

#[test]
fn errors_are_drawn_counted_and_exit_with_1() {
    let tree = working_tree("1.43.0");
    write(
        tree.path(),
        "components/web/open.yaml",
        "a: 'open\n---\nb: 1\nb: 2\n",
    );
    write(
        tree.path(),
        "components/web/secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: web}\nstringData: {key: hunter2}\n",
    );
    let text = validate(tree.path(), &[]);
    assert!(!text.contains("hunter2"), "{text}");
    insta::assert_snapshot!(text);
    insta::assert_snapshot!(validate(tree.path(), &["--output", "json"]));
}

#[test]
fn a_base_is_the_commit_where_the_work_branched_off() {
    let tree = working_tree("1.41.2");
    let repository = Repository::init(tree.path()).expect("a repository");
    commit(&repository, "Offer 1.41.2");
    let branched_off = repository
        .head()
        .and_then(|head| head.peel_to_commit())
        .expect("a commit");
    repository
        .branch("work", &branched_off, false)
        .expect("a branch");
    let first = repository
        .head()
        .expect("HEAD")
        .name()
        .expect("a name")
        .to_owned();

    // The base branch goes on; what happens there is no change of ours.
    point_channel(tree.path(), "1.42.0");
    commit(&repository, "Offer 1.42.0");
    repository.set_head("refs/heads/work").expect("a checkout");
    point_channel(tree.path(), "1.41.2");
    assert_eq!(
        validate(tree.path(), &["--base", &first])
            .matches("error")
            .count(),
        0
    );

    // From its tip, the same working tree goes back.
    repository.set_head(&first).expect("a checkout");
    insta::assert_snapshot!(validate(tree.path(), &["--base", "HEAD"]));

    // A revision is read from git, whatever the working tree says.
    point_channel(tree.path(), "9.9.9");
    let folder = tree.path().to_str().expect("a path of UTF-8");
    fairway(&["validate", folder, "--revision", "HEAD"])
        .assert()
        .code(0)
        .stdout("");
}

#[test]
fn what_cannot_be_checked_exits_with_2() {
    let empty = tempfile::tempdir().expect("a temporary folder");
    insta::assert_snapshot!(validate(&empty.path().join("absent"), &[]));
    insta::assert_snapshot!(validate(empty.path(), &["--base", "main"]));
}
