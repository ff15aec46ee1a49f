//! Definitions in git by the command line: what is refused, what is past its time, and the example repository.

use std::fs;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use tempfile::TempDir;

use crate::support::repository::Repository;

const MIGRATION: &str = "components/shop/migrations/grow.yaml";

const DEFINITION: &str = "\
# Why this exists.
apiVersion: fairway.dev/v1alpha1
kind: Migration
metadata:
  name: grow
spec:
  owner: team-shop
  bind:
    phase: pre
    on: [upgrade]
  lifecycle:
    introducedIn: 1.2.0
    removeIn: 1.5.0   # when the last cluster is past it
  lookups:
    settings: {apiVersion: v1, kind: ConfigMap, namespace: shop, name: settings}
  guard:
    # The proof.
    needed: objects.settings != null && !has(objects.settings.data.size)
    requires:
      - cel: has(objects.settings.data)
        message: there must be data
  # What it does.
  steps:
    - id: grow
      patch:
        ref: settings
        body: {data: {size: large}}
  policy:
    timeout: 5m
  tests:
    - name: nothing there
      expect: {decision: NotNeeded}
";

/// A repository with one component in a version, and its migration.
fn repository(version: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(
        folder.path(),
        "components/shop/component.yaml",
        &component(version),
    );
    write(
        folder.path(),
        "components/shop/config.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {level: info}\n",
    );
    write(folder.path(), MIGRATION, DEFINITION);
    folder
}

fn component(version: &str) -> String {
    format!("apiVersion: fairway.dev/v1alpha1\nkind: Component\nversion: {version}\n")
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
    fs::write(path, text).expect("the file is written");
}

fn fairway(root: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairway"))
        .args(arguments)
        .current_dir(root)
        .env_clear()
        .env("COLUMNS", "100")
        .output()
        .expect("the command starts")
}

/// Runs the command in a repository and writes down what it did.
fn transcript(root: &Path, arguments: &[&str]) -> String {
    let output = fairway(root, arguments);
    format!(
        "$ fairway {}\n{}[stderr]\n{}[exit code {}]\n",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        output.status.code().expect("an exit code"),
    )
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_the_way_out() {
    let folder = repository("1.3.0");
    let broken = DEFINITION
        .replace("[upgrade]", "[upgrade, uninstall]")
        .replace("has(objects.settings.data)", "has(objects.setings.data)");
    write(folder.path(), MIGRATION, &broken);
    write(
        folder.path(),
        "migrations/shell.yaml",
        "apiVersion: fairway.dev/v1alpha1\nkind: Migration\nmetadata: {name: shell}\nspec:\n  owner: nobody\n  \
         bind: {phase: post, components: [shpo]}\n  guard: {needed: \"true\"}\n  steps:\n    - id: script\n      \
         job: {namespace: shop, image: \"tool:latest\", command: [/bin/sh, -c, ls]}\n",
    );
    insta::assert_snapshot!(transcript(folder.path(), &["validate"]));
    // What can be said about steps comes once the rest can be read.
    write(
        folder.path(),
        MIGRATION,
        &broken.replace("[upgrade, uninstall]", "[upgrade]"),
    );
    fs::remove_file(folder.path().join("migrations/shell.yaml")).expect("the file is removed");
    insta::assert_snapshot!(transcript(folder.path(), &["validate"]));
}

#[test]
fn j18_a_name_twice_a_component_that_is_not_there_and_global_are_refused() {
    let folder = repository("1.3.0");
    write(
        folder.path(),
        "components/other/component.yaml",
        &component("1.3.0"),
    );
    // The same name in another component, which is no excuse.
    write(
        folder.path(),
        "components/other/migrations/grow.yaml",
        DEFINITION,
    );
    let named = DEFINITION.replace("name: grow", "name: elsewhere");
    let elsewhere = named.replace("phase: pre", "phase: pre\n    components: [shpo]");
    write(folder.path(), "migrations/elsewhere.yaml", &elsewhere);
    write(
        folder.path(),
        "components/global/component.yaml",
        &component("1.3.0"),
    );
    insta::assert_snapshot!(transcript(folder.path(), &["validate"]));
}

#[test]
fn a_migration_past_its_time_is_retired_and_then_deleted() {
    let folder = repository("1.5.0");
    let git = Repository::create(folder.path());
    git.commit("Grow the shop");
    insta::assert_snapshot!(transcript(folder.path(), &["validate"]));
    insta::assert_snapshot!(transcript(
        folder.path(),
        &["migration", "retire", MIGRATION]
    ));
    let retired = fs::read_to_string(folder.path().join(MIGRATION)).expect("the file is there");
    insta::assert_snapshot!(retired);
    let silent = "$ fairway validate --base HEAD\n[stderr]\n[exit code 0]\n";
    let validate = ["validate", "--base", "HEAD"];
    assert_eq!(transcript(folder.path(), &validate), silent);
    git.commit("Retire the growth");
    fs::remove_file(folder.path().join(MIGRATION)).expect("the file is removed");
    assert_eq!(transcript(folder.path(), &validate), silent);
}

#[test]
fn what_a_version_on_offer_needs_is_neither_retired_nor_deleted() {
    let folder = repository("1.3.0");
    let git = Repository::create(folder.path());
    git.commit("Grow the shop");
    let retire = ["migration", "retire", MIGRATION];
    insta::assert_snapshot!(transcript(folder.path(), &retire));
    let text = fs::read_to_string(folder.path().join(MIGRATION)).expect("the file is there");
    assert_eq!(text, DEFINITION, "nothing was written");
    fs::remove_file(folder.path().join(MIGRATION)).expect("the file is removed");
    insta::assert_snapshot!(transcript(folder.path(), &["validate", "--base", "HEAD"]));
}

#[test]
fn one_that_goes_early_goes_in_the_version_on_offer() {
    let folder = repository("1.3.0");
    let git = Repository::create(folder.path());
    git.commit("Grow the shop");
    let retire = ["migration", "retire", "--early", MIGRATION];
    insta::assert_snapshot!(transcript(folder.path(), &retire));
    let retired = fs::read_to_string(folder.path().join(MIGRATION)).expect("the file is there");
    assert!(
        retired.contains("    removeIn: 1.3.0   # when the last cluster is past it\n"),
        "{retired}"
    );
    let silent = "$ fairway validate --base HEAD\n[stderr]\n[exit code 0]\n";
    let validate = ["validate", "--base", "HEAD"];
    assert_eq!(transcript(folder.path(), &validate), silent);
}

#[test]
fn what_cannot_go_early_is_left_as_it_is_with_the_reason() {
    let folder = repository("1.2.0");
    let retire = ["migration", "retire", "--early", MIGRATION];
    let comes_now = transcript(folder.path(), &retire);
    let text = fs::read_to_string(folder.path().join(MIGRATION)).expect("the file is there");
    assert_eq!(text, DEFINITION, "nothing was written");
    let never = DEFINITION.replace(
        "    introducedIn: 1.2.0\n    removeIn: 1.5.0   # when the last cluster is past it\n",
        "    never: it repairs what users do\n",
    );
    write(folder.path(), MIGRATION, &never);
    let stays = transcript(folder.path(), &retire);
    insta::assert_snapshot!(format!("{comes_now}{stays}"));
}

#[test]
fn the_example_repository_is_silent() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(
        transcript(root, &["validate", "examples-repo"]),
        "$ fairway validate examples-repo\n[stderr]\n[exit code 0]\n"
    );
}
