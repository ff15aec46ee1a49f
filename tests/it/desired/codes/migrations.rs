//! The codes of migrations.

use super::*;

/// A definition without findings, for component `ingress`, that has no version.
const MIGRATION: &str = "\
apiVersion: fairway.dev/v1alpha1
kind: Migration
metadata: {name: relabel}
spec:
  owner: team
  bind: {phase: pre}
  lifecycle: {never: it must stay}
  lookups:
    settings: {apiVersion: v1, kind: ConfigMap, namespace: ingress, name: settings}
  guard:
    needed: objects.settings != null
  steps:
    - id: relabel
      patch: {ref: settings, body: {metadata: {labels: {a: b}}}}
  tests:
    - name: nothing there
      given: {settings: null}
      expect: {decision: NotNeeded}
";

/// The good repository with the definition, changed in one place.
fn migration(from: &str, to: &str) -> Tree {
    assert!(MIGRATION.contains(from), "{from}");
    let text = MIGRATION.replacen(from, to, 1);
    good().file("components/ingress/migrations/relabel.yaml", &text)
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        alone(
            Code::MigrationBinding,
            "a component that is not there",
            migration("{phase: pre}", "{phase: pre, components: [ingres]}"),
        ),
        alone(
            Code::MigrationExpression,
            "a member that no lookup declares",
            migration("objects.settings !=", "objects.setings !="),
        ),
        alone(
            Code::MigrationLookup,
            "a step that refers to no lookup",
            migration("ref: settings", "ref: setting"),
        ),
        alone(
            Code::MigrationLifecycle,
            "no version to measure it on",
            migration("{never: it must stay}", "{introducedIn: 1.0.0, removeIn: 2.0.0}"),
        ),
        alone(
            Code::MigrationStep,
            "a step after the apply that fights it",
            migration("phase: pre", "phase: post").file(
                "components/ingress/labelled.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: ingress, labels: {a: c}}\n",
            ).file(
                "components/ingress/migrations/relabel.yaml",
                &MIGRATION.replace("phase: pre", "phase: post").replace("name: settings", "name: other"),
            ),
        ),
        alone(
            Code::MigrationFixture,
            "a test of a lookup that is not there",
            migration("{settings: null}", "{setting: null}"),
        ),
        change(
            Code::MigrationRemovedEarly,
            "a migration that can never go",
            migration("phase: pre", "phase: pre"),
            good(),
        ),
    ]
}
