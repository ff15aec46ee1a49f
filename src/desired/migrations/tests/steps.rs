//! What steps must keep.

use rstest::rstest;

use super::*;

use Code::{
    MigrationExpression as Expression, MigrationLookup as Lookup, MigrationStep as Step,
    SchemaViolation as Schema,
};

/// A step in place of both, below `steps:` at line 29.
fn with_step(step: &str) -> String {
    let (head, rest) = GOOD.split_once("    - id: grow").unwrap();
    let (_, tests) = rest.split_once("  tests:").unwrap();
    format!("{head}    - id: one\n{step}\n  tests:{tests}")
}
const IMAGE: &str = "registry.example.com/tool@sha256:0123456789012345678901234567890123456789012345678901234567890123";
#[rustfmt::skip]
#[rstest]
#[case::shell("      job: {namespace: shop, image: IMAGE, command: [/bin/bash, -c, ls]}", Step, "is a shell", "program")]
#[case::shell_behind_env("      job: {namespace: shop, image: IMAGE, command: [env, sh]}", Step, "is a shell", "program")]
#[case::shell_as_argument("      job: {namespace: shop, image: IMAGE, args: [sh, -c, ls]}", Step, "is a shell", "program")]
#[case::image_without_digest("      job: {namespace: shop, image: \"tool:1\"}", Step, "has no digest", "tool:1@sha256:DIGEST")]
#[case::image_by_expression("      job: {namespace: shop, image: \"${objects.claim.image}\"}", Step, "known from git", "image: ")]
#[case::secret_of_elsewhere("      job: {namespace: shop, image: IMAGE, envFromSecrets: {A: {namespace: b, name: c, key: d}}}", Step, "its own namespace", "")]
#[case::both_targets("      delete: {ref: claim, select: {apiVersion: v1, kind: Pod, namespace: shop, names: [a]}}", Step, "either `ref` or `select`", "ref: ")]
#[case::everything("      delete: {select: {apiVersion: v1, kind: Pod, namespace: shop}}", Step, "every object", "names: ")]
#[case::everything_by_an_empty_selector("      delete: {select: {apiVersion: v1, kind: Pod, namespace: shop, selector: \" \"}}", Step, "every object", "selector: ")]
#[case::bad_selector("      delete: {select: {apiVersion: v1, kind: Pod, namespace: shop, selector: app near (a)}}", Step, "selects no label", "env in (a,b)")]
#[case::no_namespace("      delete: {select: {apiVersion: v1, kind: Pod, names: [a]}}", Step, "lives in a namespace", "namespace: ")]
#[case::json_without_list("      patch: {ref: claim, type: json, body: {a: 1}}", Step, "list of operations", "op: ")]
#[case::list_without_json("      patch: {ref: claim, body: [{op: remove, path: /a}]}", Step, "type json", "type: json")]
#[case::no_target("      patch: {body: {a: 1}}", Step, "either `ref` or `object`", "ref: ")]
#[case::strategic("      patch: {object: {apiVersion: example.com/v1, kind: Shop, name: a}, type: strategic, body: {a: 1}}", Step, "Kubernetes' own kinds", "merge")]
#[case::secret_values("      apply: {manifest: {apiVersion: v1, kind: Secret, metadata: {name: a, namespace: b}, stringData: {a: b}}}", Step, "values of a Secret", "generate-secret")]
#[case::no_identity("      apply: {manifest: {apiVersion: v1, kind: Secret}}", Step, "metadata.name", "")]
#[case::builtin("      builtin: {name: generate-secrets}", Schema, "none of", "did you mean `generate-secret`?")]
#[case::token_in_a_header("      http: {method: GET, url: \"https://api.example.com\", headers: {Authorization: x}}", Step, "not for a definition", "bearerToken")]
#[case::method("      http: {method: get, url: \"https://api.example.com\"}", Schema, "not a method", "GET")]
#[case::element("      forEach: {as: pod, in: objects.pods}\n      delete: {ref: podd}", Lookup, "no lookup `podd`", "did you mean `pod")]
#[case::element_takes_a_name("      forEach: {as: objects, in: objects.pods}\n      delete: {ref: objects}", Step, "a meaning of its own", "claim")]
#[case::element_is_a_lookup("      forEach: {as: claim, in: objects.pods}\n      delete: {ref: claim}", Step, "is a lookup already", "another name")]
#[case::wait_lookup("      wait: {lookups: {job: {apiVersion: batch/v1, kind: Job, namespace: shop}}, until: objects.job != null}", Lookup, "neither which object", "name: NAME")]
#[case::wait_member("      wait: {until: objects.jobs != null}", Expression, "no lookup has the name `jobs`", "declare it")]
#[case::page("      rewrite: {apiVersion: v1, kind: ConfigMap, pageSize: 9000}", Step, "1 to 500", "")]
#[case::compiled_with("      compiled: {name: hand-over, with: {from: {apiVersion: v1}}}", Step, "missing field `kind`", "")]
#[case::unknown_unit("      attemptTimeout: 1d\n      wait: {until: \"true\"}", Schema, "not a length of time", "1h30m")]
fn steps_that_break_a_rule_are_refused(
    #[case] step: &str,
    #[case] code: Code,
    #[case] message: &str,
    #[case] help: &str,
) {
    let desired = repository(&with_step(&step.replace("IMAGE", IMAGE)));
    let [found] = desired.diagnostics.as_slice() else {
        panic!("one finding: {:#?}", desired.diagnostics);
    };
    assert_eq!(found.code, code, "{found:#?}");
    assert!((29..35).contains(&found.place.line), "{found:#?}");
    assert!(found.message.contains(message), "{found:#?}");
    let given = found.help.as_deref().unwrap_or_default();
    assert!(given.contains(help), "{found:#?}");
    assert_eq!(desired.held_migrations.len(), 1);
    assert_eq!(desired.held_migrations[0].name, "grow");
    assert!(!desired.held_migrations[0].is_global);
}

#[rustfmt::skip]
#[rstest]
#[case("      job: {namespace: shop, image: IMAGE, command: [/tool, --fix], serviceAccountName: fixer}")]
#[case("      forEach: {as: pod, in: \"objects.pods.filter(p, p.metadata.name != 'a')\"}\n      delete: {ref: pod, waitGone: true}")]
#[case("      wait: {lookups: {job: {apiVersion: batch/v1, kind: Job, namespace: shop, name: a}}, until: objects.job != null}")]
#[case("      builtin: {name: find-node-port, with: {preferred: 32137}}\n      outputs: {port: result.port}")]
#[case("      compiled: {name: hand-over, with: {from: {apiVersion: v1, kind: A, id: /spec/id}, to: {apiVersion: v1, kind: B, id: \"${params.size}\"}}}")]
#[case("      delete: {select: {apiVersion: example.com/v1, kind: Shop, names: [a]}}")]
fn steps_that_keep_the_rules_are_taken(#[case] step: &str) {
    let desired = repository(&with_step(&step.replace("IMAGE", IMAGE)));
    assert_eq!(desired.diagnostics, []);
}

#[rustfmt::skip]
#[rstest]
#[case::merge("patch: {object: {apiVersion: v1, kind: ConfigMap, namespace: shop, name: settings}, body: {data: {level: debug}}}", Some("data.level"))]
#[case::another_field("patch: {object: {apiVersion: v1, kind: ConfigMap, namespace: shop, name: settings}, body: {data: {size: big}}}", None)]
#[case::another_object("patch: {object: {apiVersion: v1, kind: ConfigMap, namespace: shop, name: other}, body: {data: {level: debug}}}", None)]
#[case::json("patch: {object: {apiVersion: v1, kind: ConfigMap, namespace: shop, name: settings}, type: json, body: [{op: remove, path: /data/level}]}", Some("data.level"))]
#[case::whole("patch: {object: {apiVersion: v1, kind: ConfigMap, namespace: shop, name: settings}, body: {data: null}}", Some("data"))]
#[case::apply("apply: {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {level: debug}}}", Some("data.level"))]
fn a_post_step_that_fights_the_manifest_is_refused(#[case] step: &str, #[case] field: Option<&str>) {
    let pre = with_step(&format!("      {step}"));
    assert_eq!(repository(&pre).diagnostics, [], "a pre step may");
    let desired = repository(&pre.replace("phase: pre", "phase: post"));
    match field {
        None => assert_eq!(desired.diagnostics, []),
        Some(field) => {
            let [found] = desired.diagnostics.as_slice() else {
                panic!("one finding: {:#?}", desired.diagnostics);
            };
            assert_eq!(found.code, Step);
            let start = format!("`{field}` of");
            assert!(found.message.starts_with(&start), "{found:?}");
            let place = "components/shop/all.yaml:5:1";
            assert!(found.message.contains(place), "{found:?}");
        }
    }
}
