use rstest::rstest;
use serde_json::{Value, json};

use super::{About, Trial, try_case};
use crate::model::migration::{Fixture, Migration, MigrationSpec};
use crate::model::{Digest, Place};

/// The first migration of the reference, with its two effects.
fn logging() -> Value {
    json!({
        "owner": "logging",
        "bind": {"phase": "pre"},
        "lifecycle": {"never": "it is a test"},
        "params": {"size": "30Gi"},
        "lookups": {
            "claim": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "kyma-system", "name": "storage-logging-loki-0"},
            "set": {"apiVersion": "apps/v1", "kind": "StatefulSet", "namespace": "kyma-system", "name": "logging-loki"},
            "classes": {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "list": true, "limit": 200},
        },
        "guard": {
            "needed": "(objects.claim != null && quantity(objects.claim.spec.resources.requests.storage) < quantity(params.size)) || (objects.set != null && objects.set.spec.volumeClaimTemplates.exists(t, quantity(t.spec.resources.requests.storage) < quantity(params.size)))",
            "requires": [{
                "cel": "objects.claim == null || objects.classes.exists(c, c.metadata.name == objects.claim.spec.storageClassName && has(c.allowVolumeExpansion) && c.allowVolumeExpansion)",
                "message": "The storage class of the Loki claim must allow volume expansion.",
            }],
        },
        "steps": [
            {
                "id": "grow-claim",
                "when": "objects.claim != null && quantity(objects.claim.spec.resources.requests.storage) < quantity(params.size)",
                "patch": {"ref": "claim", "body": {"spec": {"resources": {"requests": {"storage": "${params.size}"}}}}},
            },
            {
                "id": "release-set",
                "when": "objects.set != null && objects.set.spec.volumeClaimTemplates.exists(t, quantity(t.spec.resources.requests.storage) < quantity(params.size))",
                "delete": {"ref": "set", "propagation": "Orphan", "waitGone": true},
            },
        ],
    })
}

fn claim(size: &str) -> Value {
    json!({"spec": {"storageClassName": "std", "resources": {"requests": {"storage": size}}}})
}

fn set(size: &str) -> Value {
    json!({"spec": {"volumeClaimTemplates": [{"spec": {"resources": {"requests": {"storage": size}}}}]}})
}

fn classes() -> Value {
    json!([{"metadata": {"name": "std"}, "allowVolumeExpansion": true}])
}

fn trial(definition: Value, case: Value) -> Trial {
    let spec: MigrationSpec = serde_json::from_value(definition).unwrap();
    let migration = Migration {
        name: "logging-loki-volume".to_owned(),
        components: Vec::new(),
        spec,
        digest: Digest::of(&json!("definition")),
        place: Place::new("migrations/logging.yaml", 1, 1),
    };
    let fixture: Fixture = serde_json::from_value(case).unwrap();
    let place = |_: &About| Place::new("migrations/logging.yaml", 1, 1);
    try_case(&migration, &fixture, &[], &place)
}

#[rstest]
#[case::fresh(json!({"claim": null, "set": null, "classes": []}), json!({"decision": "NotNeeded"}), 0)]
#[case::both(
    json!({"claim": claim("10Gi"), "set": set("10Gi"), "classes": classes()}),
    json!({
        "decision": "Run", "steps": ["grow-claim", "release-set"],
        "then": {"claim": {"spec": {"resources": {"requests": {"storage": "30Gi"}}}}, "set": null},
    }),
    2,
)]
#[case::after_the_first_effect(
    json!({"claim": claim("30Gi"), "set": set("10Gi"), "classes": classes()}),
    json!({"decision": "Run", "steps": ["release-set"]}),
    1,
)]
#[case::no_class(
    json!({"claim": claim("10Gi"), "classes": []}),
    json!({"decision": "Block"}),
    0,
)]
#[case::nonsense(
    json!({"claim": claim("large"), "classes": classes()}),
    json!({"decision": "Unknown"}),
    0,
)]
fn the_cases_of_the_reference_pass(
    #[case] given: Value,
    #[case] expect: Value,
    #[case] effects: usize,
) {
    let trial = trial(
        logging(),
        json!({"name": "x", "given": given, "expect": expect}),
    );
    assert_eq!(trial.differences, []);
    assert_eq!(trial.steps.len(), effects);
    // An attempt, an effect and a result for each, and the record's beginning and end at least.
    assert!(trial.kills >= effects * 7, "{}", trial.kills);
}

#[test]
fn a_wrong_decision_is_told_with_what_it_rests_on() {
    let case = json!({"name": "x", "given": {"claim": claim("30Mi"), "classes": classes()}, "expect": {"decision": "NotNeeded"}});
    let trial = trial(logging(), case);
    let [difference] = trial.differences.as_slice() else {
        panic!("{trial:?}")
    };
    assert_eq!(difference.expected, "NotNeeded");
    for part in [
        "Run",
        "needed is true",
        "objects.claim.spec.resources.requests.storage = \"30Mi\"",
    ] {
        assert!(difference.found.contains(part), "{}", difference.found);
    }
}

#[test]
fn what_differs_is_told_with_both_sides() {
    let case = json!({
        "name": "x",
        "given": {"claim": claim("10Gi"), "set": set("30Gi"), "classes": classes()},
        "expect": {
            "decision": "Run",
            "steps": ["release-set"],
            "then": {"claim": {"spec": {"resources": {"requests": {"storage": "40Gi"}}}}, "set": null},
        },
    });
    let trial = trial(logging(), case);
    let told: Vec<_> = trial
        .differences
        .iter()
        .map(|it| format!("{}: {} / {}", it.what, it.expected, it.found))
        .collect();
    assert_eq!(told[0], "steps with an effect: release-set / grow-claim");
    assert_eq!(
        told[1],
        "claim.spec.resources.requests.storage: \"40Gi\" / \"30Gi\""
    );
    assert!(told[2].starts_with("set: nothing / {"), "{}", told[2]);
}

/// A guard that looks at the first effect only would leave the second undone after a crash between the two.
#[test]
fn a_guard_that_does_not_cover_every_effect_is_found_by_a_kill() {
    let mut definition = logging();
    definition["guard"]["needed"] =
        "objects.claim != null && quantity(objects.claim.spec.resources.requests.storage) < quantity(params.size)".into();
    let case = json!({
        "name": "x",
        "given": {"claim": claim("10Gi"), "set": set("10Gi"), "classes": classes()},
        "expect": {"decision": "Run", "steps": ["grow-claim", "release-set"]},
    });
    let trial = trial(definition, case);
    let [difference] = trial.differences.as_slice() else {
        panic!("{trial:?}")
    };
    assert!(difference.what.contains("until the last effect"));
    assert!(
        difference.found.contains("StatefulSet") || difference.expected.contains("StatefulSet"),
        "{difference:?}"
    );
}

#[test]
fn a_guard_that_stays_needed_is_a_failure() {
    let mut definition = logging();
    definition["guard"]["needed"] = "true".into();
    definition["policy"] = json!({"retry": {"maxAttempts": 2}});
    let case = json!({"name": "x", "given": {"classes": classes()}, "expect": {"decision": "Run"}});
    let trial = trial(definition, case);
    assert_eq!(trial.differences[0].what, "the end");
    assert!(
        trial.differences[0].found.starts_with("Failed"),
        "{trial:?}"
    );
}

#[test]
fn a_wait_goes_on_when_others_have_done_their_part() {
    let mut definition = logging();
    definition["steps"].as_array_mut().unwrap().insert(1, json!({
        "id": "grown",
        "wait": {"until": "objects.claim == null || objects.claim.?status.?capacity.?storage.orValue('') == params.size"},
    }));
    let given = json!({"claim": claim("10Gi"), "set": set("10Gi"), "classes": classes()});
    let expect = json!({"decision": "Run", "steps": ["grow-claim", "release-set"]});
    let case = json!({
        "name": "x", "given": given, "expect": expect,
        "outcomes": {"grown": {"leaves": {"claim": {"status": {"capacity": {"storage": "30Gi"}}}}}},
    });
    assert_eq!(trial(definition.clone(), case).differences, []);
    let without = json!({"name": "x", "given": given, "expect": expect});
    let waited = trial(definition, without);
    assert_eq!(waited.differences[0].what, "the end", "{waited:?}");
}

#[test]
fn a_case_that_no_lookup_could_find_is_refused() {
    let case = json!({
        "name": "x",
        "given": {"claim": {"metadata": {"name": "another"}}},
        "expect": {"decision": "NotNeeded"},
    });
    let trial = trial(logging(), case);
    assert!(trial.differences[0].found.contains("does not find"));
}
