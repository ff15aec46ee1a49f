//! `fairway migration test` and `rbac`: without a cluster, over folders.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;

const DEFINITION: &str = r#"apiVersion: fairway.dev/v1alpha1
kind: Migration
metadata: {name: grow-logs}
spec:
  description: Grow the volume of the logs before the manifests ask for the larger one.
  owner: logging
  bind: {phase: pre}
  lifecycle: {never: clusters of any age are upgraded}
  params: {size: 30Gi}
  lookups:
    claim: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: logs, name: storage}
    set: {apiVersion: apps/v1, kind: StatefulSet, namespace: logs, name: loki}
  guard:
    needed: >-
      (objects.claim != null && quantity(objects.claim.spec.resources.requests.storage) < quantity(params.size))
      || (objects.set != null && quantity(objects.set.spec.size) < quantity(params.size))
  steps:
    - id: grow-claim
      when: objects.claim != null && quantity(objects.claim.spec.resources.requests.storage) < quantity(params.size)
      patch:
        ref: claim
        body: {spec: {resources: {requests: {storage: "${params.size}"}}}}
    - id: release-set
      when: objects.set != null && quantity(objects.set.spec.size) < quantity(params.size)
      delete: {ref: set, propagation: Orphan, waitGone: true}
  tests:
    - name: a fresh install is a cheap no-op
      given: {claim: null, set: null}
      expect: {decision: NotNeeded}
    - name: both are too small
      given:
        claim: {spec: {resources: {requests: {storage: 10Gi}}}}
        set: {spec: {size: 10Gi}}
      expect:
        decision: Run
        steps: [grow-claim, release-set]
        then: {claim: {spec: {resources: {requests: {storage: 30Gi}}}}, set: null}
    - name: a crash after the claim grew still releases the set
      given:
        claim: {spec: {resources: {requests: {storage: 30Gi}}}}
        set: {spec: {size: 10Gi}}
      expect: {decision: Run, steps: [release-set]}
"#;

fn repository(definition: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let component = folder.path().join("components/logging");
    fs::create_dir_all(component.join("migrations")).unwrap();
    fs::write(
        component.join("settings.yaml"),
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: logs}\n",
    )
    .unwrap();
    fs::write(component.join("migrations/grow.yaml"), definition).unwrap();
    folder
}

/// Runs a command, and returns its code, stdout and stderr.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("fairway")
        .unwrap()
        .current_dir(folder)
        .env_remove("KUBECONFIG")
        .args(["migration"])
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn cases_that_hold_are_a_line_each() {
    let folder = repository(DEFINITION);
    let (code, out, err) = run(folder.path(), &["test"]);
    insta::assert_snapshot!("passed", format!("{out}{err}"));
    assert_eq!(code, 0);
}

#[test]
fn cases_that_do_not_hold_tell_what_was_expected_and_found() {
    let wrong = DEFINITION
        .replace("steps: [release-set]", "steps: [grow-claim]")
        .replace("storage: 30Gi}}}}, set: null", "storage: 40Gi}}}}")
        .replace("decision: NotNeeded", "decision: Block");
    let folder = repository(&wrong);
    let (code, out, err) = run(folder.path(), &["test", ".", "grow-logs"]);
    insta::assert_snapshot!("failed", format!("{out}{err}"));
    assert_eq!(code, 1);
}

#[test]
fn a_guard_that_does_not_cover_the_last_effect_fails() {
    let half = DEFINITION.replace(
        "      || (objects.set != null && quantity(objects.set.spec.size) < quantity(params.size))\n",
        "",
    );
    let folder = repository(&half);
    let (code, out, _) = run(folder.path(), &["test"]);
    assert_eq!(code, 1);
    assert!(
        out.contains("`needed` must be true until the last effect"),
        "{out}"
    );
}

#[test]
fn programs_get_every_case_with_its_result() {
    let folder = repository(DEFINITION);
    let (code, out, _) = run(folder.path(), &["test", "--output", "json"]);
    assert_eq!(code, 0);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["passed"], 3);
    assert_eq!(report["cases"][1]["result"], "passed");
    assert_eq!(
        report["cases"][1]["steps"],
        serde_json::json!(["grow-claim", "release-set"])
    );
    assert!(report["cases"][1]["kills"].as_u64().unwrap() > 10);
}

#[test]
fn a_migration_that_is_not_there_or_not_valid_is_no_success() {
    let folder = repository(DEFINITION);
    let (code, _, err) = run(folder.path(), &["test", ".", "grow-log"]);
    assert_eq!(code, 2);
    assert!(err.contains("there are grow-logs"), "{err}");

    let broken = repository(&DEFINITION.replace("objects.claim != null &&", "objects.claim &&&"));
    let (code, _, err) = run(broken.path(), &["test"]);
    assert_eq!(code, 1);
    assert!(err.contains("grow-logs was not tested"), "{err}");
}

#[test]
fn a_check_that_tries_nothing_is_no_success() {
    let untested = &DEFINITION[..DEFINITION.find("  tests:").unwrap()];
    let folder = repository(untested);
    let (code, out, err) = run(folder.path(), &["test"]);
    insta::assert_snapshot!("untested", format!("{out}{err}[{code}]"));

    // Beside one that has tests it is a warning, unless it is asked for.
    let second = DEFINITION.replace("name: grow-logs", "name: grow-more");
    let path = "components/logging/migrations/more.yaml";
    fs::write(folder.path().join(path), second).unwrap();
    let (code, out, err) = run(folder.path(), &["test"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        err.contains("warning: 1 migration has no tests: grow-logs\n"),
        "{err}"
    );
    assert!(
        err.ends_with("3 tests of 2 migrations: 3 passed, 0 failed\n"),
        "{err}"
    );
    for asked in [["test", ".", "grow-logs"], ["test", ".", "grow-more"]] {
        let (code, _, err) = run(folder.path(), &asked);
        let is_tested = asked[2] == "grow-more";
        assert_eq!(code, if is_tested { 0 } else { 2 }, "{err}");
        assert_eq!(err.contains("grow-logs has no tests"), !is_tested, "{err}");
    }

    let empty = tempfile::tempdir().unwrap();
    let (code, _, err) = run(empty.path(), &["test"]);
    assert_eq!(code, 2);
    assert!(err.contains("there is no migration in ."), "{err}");
    assert!(err.contains("components/NAME/migrations/"), "{err}");
}

#[test]
fn a_file_is_tested_by_its_path() {
    let folder = repository(DEFINITION);
    let path = "components/logging/migrations/more.yaml";
    let more = DEFINITION.replace("name: grow-logs", "name: grow-more");
    fs::write(folder.path().join(path), &more).unwrap();
    let (code, out, err) = run(folder.path(), &["test", path]);
    assert_eq!(code, 0, "{err}");
    assert!(!out.contains("grow-logs"), "{out}");
    assert_eq!(err, "3 tests of 1 migration: 3 passed, 0 failed\n");
    for part in ["components/logging", "components/logging/migrations"] {
        let (code, _, err) = run(folder.path(), &["test", part]);
        assert_eq!(code, 0, "{part}: {err}");
        assert_eq!(err, "6 tests of 2 migrations: 6 passed, 0 failed\n");
    }

    fs::write(
        folder.path().join(path),
        &more[..more.find("  tests:").unwrap()],
    )
    .unwrap();
    let (code, _, err) = run(folder.path(), &["test", path]);
    assert_eq!(code, 2);
    assert!(err.contains("grow-more has no tests"), "{err}");
}

#[test]
fn what_is_wrong_with_a_definition_is_said_as_validate_says_it() {
    let broken = DEFINITION.replace("(objects.set != null &&", "(objects.sett != null &&");
    let folder = repository(&broken);
    let (code, out, err) = run(folder.path(), &["test"]);
    insta::assert_snapshot!("held", format!("{out}{err}[{code}]"));
}

#[test]
fn a_retired_migration_has_nothing_to_test() {
    let steps = DEFINITION.find("  steps:").unwrap();
    let retired = DEFINITION[..steps].replace(
        "{never: clusters of any age are upgraded}",
        "{introducedIn: 1.0.0, removeIn: 1.1.0}",
    );
    let folder = repository(&retired);
    fs::write(
        folder.path().join("fairway.yaml"),
        "apiVersion: fairway.dev/v1alpha1\nkind: Repository\nrelease: 1.1.0\n",
    )
    .unwrap();
    let (code, out, err) = run(folder.path(), &["test"]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    assert_eq!(err, "nothing to test: 1 migration, retired\n");
}

#[test]
fn the_examples_pass_their_own_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (code, out, err) = run(root, &["test", "examples-repo"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        !out.contains("FAIL") && !err.contains("has no tests"),
        "{out}{err}"
    );
}

#[test]
fn roles_name_what_lookups_and_steps_need() {
    let folder = repository(DEFINITION);
    let (code, out, err) = run(folder.path(), &["rbac"]);
    assert_eq!(code, 0, "{err}");
    insta::assert_snapshot!("rbac", out);
}

#[test]
fn the_roles_of_the_examples_are_known() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (code, out, err) = run(root, &["rbac", "examples-repo"]);
    assert_eq!(code, 0, "{err}");
    insta::assert_snapshot!("rbac_of_examples", out);
}
