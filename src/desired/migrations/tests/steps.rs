//! What steps must keep.

use rstest::rstest;

use super::*;

use Code::{
    MigrationExpression as Expression, MigrationLookup as Lookup, MigrationStep as Step,
    SchemaViolation as Schema, UnknownField,
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
#[case::builtin_with_nothing("      builtin: {name: generate-secret}", Step, "generate-secret is not given `namespace`, `name`", "with:\n  namespace: NAMESPACE\n  name: NAME")]
#[case::builtin_without_a_name("      builtin: {name: ensure-credentials, with: {namespace: shop, username: a}}", Step, "is not given `name`", "name: NAME")]
#[case::builtin_with_a_slip("      builtin: {name: generate-secret, with: {namespace: shop, name: a, lenght: 20}}", UnknownField, "generate-secret takes no `lenght`", "did you mean `length`?")]
#[case::builtin_with_a_slip_for_what_it_needs("      builtin: {name: generate-secret, with: {namespace: shop, nam: a}}", UnknownField, "generate-secret takes no `nam`", "did you mean `name`?")]
#[case::builtin_with_more("      builtin: {name: find-node-port, with: {preferred: 30080, zone: a}}", UnknownField, "takes no `zone`", "it takes preferred, service, first, last")]
#[case::builtin_with_a_text("      builtin: {name: find-node-port, with: {preferred: high}}", Step, "`preferred` is `high`", "preferred: 30080")]
#[case::builtin_beyond("      builtin: {name: generate-secret, with: {namespace: shop, name: a, length: 4}}", Step, "a whole number from 16 to 512", "length: 32")]
#[case::builtin_for_no_service("      builtin: {name: find-node-port, with: {preferred: 30080, service: web}}", Step, "should be NAMESPACE/NAME", "service: NAMESPACE/NAME")]
#[case::when_a_number("      when: size(objects.pods)\n      delete: {ref: pods}", Expression, "this comes to a number", "size(objects.pods) > 0")]
#[case::until_a_list("      wait: {until: objects.pods + objects.pods}", Expression, "this comes to a sum", "compare it")]
#[case::fail_when_null("      wait: {until: objects.claim != null, failWhen: \"null\"}", Expression, "this comes to null", "compare it")]
#[case::result_of_a_patch("      patch: {ref: claim, body: {a: 1}}\n      outputs: {size: result.size}", Expression, "`result` is null: patch", "objects.claim")]
#[case::result_of_an_apply("      apply: {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}}\n      outputs: {size: result}", Expression, "`result` is null: apply", "objects.claim")]
#[case::digest("      job: {namespace: shop, image: \"tool:1@sha256:DIGEST\"}", Step, "`sha256:DIGEST` is no digest", "imagetools inspect tool:1")]
#[case::seconds("      attemptTimeout: 300\n      wait: {until: objects.claim != null}", Schema, "this is a number", "did you mean `300s`?")]
#[case::selector_of_a_deletion("      delete: {select: {apiVersion: v1, kind: Pod, namespace: shop, selector: {matchLabels: {app: web}}}}", Schema, "this is a mapping", "did you mean `app=web`?")]
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
#[case("      builtin: {name: find-node-port, with: {preferred: \"${params.size}\", service: shop/web}}")]
#[case("      builtin: {name: generate-secret, with: {namespace: shop, name: \"a-${params.size}\"}}\n      outputs: {name: result.name}")]
#[case("      rewrite: {apiVersion: v1, kind: ConfigMap}\n      outputs: {written: result.written}")]
#[case("      when: objects.claim.spec.enabled\n      delete: {ref: pods}")]
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

#[rstest]
#[case::lookup("ref: settings", "", Some("ref"))]
#[case::lookup_of_a_list("ref: all", "", Some("ref"))]
#[case::names(
    "select: {apiVersion: v1, kind: ConfigMap, namespace: shop, names: [old, \"${params.name}\"]}",
    "",
    Some("select")
)]
#[case::labels(
    "select: {apiVersion: v1, kind: ConfigMap, namespace: shop, selector: tier=front}",
    "",
    Some("select")
)]
#[case::labels_everywhere(
    "select: {apiVersion: v1, kind: ConfigMap, allNamespaces: true, selector: \"tier in (front,back)\"}",
    "",
    Some("select")
)]
#[case::other_labels(
    "select: {apiVersion: v1, kind: ConfigMap, namespace: shop, selector: tier=back}",
    "",
    None
)]
#[case::other_names(
    "select: {apiVersion: v1, kind: ConfigMap, namespace: shop, names: [old]}",
    "",
    None
)]
#[case::another_namespace(
    "select: {apiVersion: v1, kind: ConfigMap, namespace: other, names: [settings]}",
    "",
    None
)]
#[case::another_kind(
    "select: {apiVersion: v1, kind: Secret, namespace: shop, names: [settings]}",
    "",
    None
)]
#[case::only_the_cluster_knows(
    "select: {apiVersion: v1, kind: ConfigMap, namespace: shop, names: [\"${objects.claim.spec.old}\"]}",
    "",
    None
)]
#[case::an_element(
    "ref: one",
    "forEach: {as: one, in: \"objects.all.filter(s, s.metadata.name == 'old')\"}",
    None
)]
fn a_post_step_that_deletes_what_the_manifest_makes_is_refused(
    #[case] target: &str,
    #[case] each: &str,
    #[case] field: Option<&str>,
) {
    let settings = "    settings: {apiVersion: v1, kind: ConfigMap, namespace: shop, name: settings}\n    all: {apiVersion: v1, kind: ConfigMap, namespace: shop, list: true, selector: tier}\n";
    let pre = with_step(&format!("      {each}\n      delete: {{{target}}}"))
        .replace("  params:\n", "  params:\n    name: settings\n")
        .replace("  lookups:\n", &format!("  lookups:\n{settings}"));
    let component = COMPONENT.replace("{name: settings", "{labels: {tier: front}, name: settings");
    let evaluate = |migration: &str| {
        let files = [
            ("fairway.yaml", SETTINGS),
            ("components/shop/all.yaml", component.as_str()),
            (GROW, migration),
        ];
        read(&files).diagnostics
    };
    assert_eq!(evaluate(&pre), [], "a pre step may");
    let found = evaluate(&pre.replace("phase: pre", "phase: post"));
    let Some(field) = field else {
        assert_eq!(found, []);
        return;
    };
    let line = 1 + pre.lines().position(|it| it.contains("delete:")).unwrap();
    let column = pre.lines().nth(line - 1).unwrap().find(field).unwrap() + field.len() + 3;
    assert_found(
        &found,
        Step,
        &format!("{GROW}:{line}:{column}"),
        "ConfigMap shop/settings belongs to the manifest at components/shop/all.yaml:5:1",
        "take it out of git",
    );
}
