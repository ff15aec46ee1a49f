//! What one definition must keep by itself.

use rstest::rstest;

use super::*;

use Code::{
    MigrationBinding as Binding, MigrationExpression as Expression, MigrationFixture as Fixture,
    MigrationLifecycle as Lifecycle, MigrationLookup as Lookup, MigrationStep as Step,
    SchemaViolation as Schema, UnknownField,
};

#[rustfmt::skip]
#[rstest]
#[case::unknown_component("    phase: pre", "    phase: pre\n    components: [shopp]", Binding, "9:18", "no component `shopp`", "did you mean `shop`?")]
#[case::global_as_component("    phase: pre", "    phase: pre\n    components: [global]", Binding, "9:18", "no component `global`", "scope: global")]
#[case::global_with_components("    phase: pre", "    phase: pre\n    scope: global\n    components: [shop]", Binding, "10:5", "belongs to no component", "remove `components`")]
#[case::uninstall("[install, upgrade]", "[install, uninstall]", Schema, "9:19", "`uninstall` is not", "`undo`")]
#[case::never_on("[install, upgrade]", "[]", Binding, "9:5", "never run", "on: [install, upgrade]")]
#[case::step_id_twice("id: tell", "id: grow", Step, "35:11", "two steps have the id `grow`", "rename one")]
#[case::no_cel("needed: objects", "needed: ((objects", Expression, "27:78", "no expression", "objects.claim != null")]
#[case::member("objects.claim != null", "objects.claimm != null", Expression, "27:13", "no lookup has the name `claimm`", "did you mean `claim`?")]
#[case::param("\"${params.size}\"", "\"${params.sise}\"", Expression, "32:32", "no param has the name `sise`", "did you mean `size`?")]
#[case::root("needed: objects.claim", "needed: object.claim", Expression, "27:13", "`object` is not known", "did you mean `objects`?")]
#[case::root_of_a_lookup("needed: objects.claim", "needed: claim", Expression, "27:13", "`claim` is not known", "objects.claim")]
#[case::desired("needed: objects.claim", "needed: desired.claimm", Expression, "27:13", "no lookup has the name `claimm`", "did you mean `claim`?")]
#[case::deploy("needed: objects.claim", "needed: deploy.component == objects.claim", Expression, "27:13", "`deploy` has no `component`", "components")]
#[case::hop("needed: objects.claim", "needed: hop.version == objects.claim", Expression, "27:13", "`hop` has no `version`", "from, to")]
#[case::steps_in_guard("needed: objects.claim", "needed: steps[\"grow\"].outputs.before == objects.claim", Expression, "27:13", "before the first step", "lookup")]
#[case::later_step("- id: grow\n", "- id: grow\n      when: steps[\"tell\"].outputs.x == 1\n", Expression, "30:13", "no step that is over", "before this one")]
#[case::output("outputs.before != ", "outputs.befor != ", Expression, "36:13", "no output has the name `befor`", "did you mean `before`?")]
#[case::loops("needed: objects", "needed: objects.pods.all(a, objects.pods.all(b, objects.pods.all(c, c == b))) && objects", Expression, "27:25", "loops", "take one loop out")]
#[case::folded("needed: objects.claim != null", "needed: >-\n      objects.claim != null\n      && size(objects.pods) > 0\n      || objects.pod != null", Expression, "30:10", "no lookup has the name `pod`", "did you mean `pods`?")]
#[case::literal("needed: objects.claim != null", "needed: |\n      objects.claim != null\n\n      && siz(objects.pods) > 0", Expression, "30:10", "no function `siz`", "did you mean `size`?")]
#[case::no_function("needed: objects.claim", "needed: telephone(objects.claim) && objects.claim", Expression, "27:13", "no function `telephone`", "expressions.md")]
#[case::a_number("objects.claim != null && objects.claim.spec.size != params.size", "size(objects.pods)", Expression, "27:13", "this comes to a number", "size(objects.pods) > 0")]
#[case::a_list("objects.claim != null && objects.claim.spec.size != params.size", "objects.pods.filter(p, p.spec.ready)", Expression, "27:13", "this comes to a list", "size(objects.pods.filter(p, p.spec.ready)) > 0")]
#[case::a_text("  guard:", "  guard:\n    doneWhen: \"'a' + params.size\"", Expression, "27:15", "this comes to a text", "'a' + params.size != \"\"")]
#[case::a_precondition("  guard:", "  guard:\n    requires: [{cel: \"3\", message: three}]", Expression, "27:22", "this comes to a number", "3 > 0")]
#[case::no_such_lookup_yet("objects.claim != null", "objects.volume != null", Expression, "27:13", "no lookup has the name `volume`", "below `lookups`:\nvolume: {apiVersion")]
#[case::a_word_for_a_lifecycle("  lifecycle:\n    introducedIn: 1.2.0\n    removeIn: 1.5.0\n", "  lifecycle: never\n", Lifecycle, "10:14", "this is a text", "  introducedIn: 1.2.0")]
#[case::a_version_without_a_part("removeIn: 1.5.0", "removeIn: 1.5", Schema, "12:15", "this is a number", "did you mean `1.5.0`?")]
#[case::a_version_with_a_letter("removeIn: 1.5.0", "removeIn: v1.5", Schema, "12:15", "`v1.5` is not", "did you mean `1.5.0`?")]
#[case::a_list_that_says_no_list("      list: true\n", "      selector: app=web\n", Lookup, "21:5", "does not say that it is a list", "list: true")]
#[case::a_list_with_a_name("      list: true\n", "      name: web\n      limit: 3\n", Lookup, "21:5", "has a name", "in place of `name`")]
#[case::a_selector_as_a_mapping("      list: true\n", "      list: true\n      selector: {matchLabels: {app: web, tier: db}}\n", Schema, "26:17", "this is a mapping", "did you mean `app=web,tier=db`?")]
#[case::no_lifecycle("  lifecycle:\n    introducedIn: 1.2.0\n    removeIn: 1.5.0\n", "", Lifecycle, "5:1", "does not say when it goes", "removeIn: 1.5.0")]
#[case::no_end("    removeIn: 1.5.0\n", "", Lifecycle, "10:3", "does not say when it goes", "never: WHY")]
#[case::both_ends("    removeIn: 1.5.0", "    removeIn: 1.5.0\n    never: it stays", Lifecycle, "13:5", "`never`", "remove one")]
#[case::no_beginning("    introducedIn: 1.2.0\n", "", Lifecycle, "10:3", "`introducedIn`", "introducedIn: 1.2.0")]
#[case::backwards("removeIn: 1.5.0", "removeIn: 1.2.0", Lifecycle, "12:15", "comes in 1.2.0", "above introducedIn")]
#[case::late("removeIn: 1.5.0", "removeIn: 1.3.0", Lifecycle, "12:15", "components/shop is at 1.3.0", "fairway migration retire components/shop/migrations/grow.yaml")]
#[case::lookup_without_target("      name: data\n", "", Lookup, "16:5", "neither which object nor", "list: true")]
#[case::lookup_with_both("      list: true\n", "      list: true\n      name: one\n", Lookup, "21:5", "a name, and asks for a list", "remove")]
#[case::lookup_limit("list: true", "list: true\n      limit: 5000", Lookup, "26:14", "1 to 500", "narrow it")]
#[case::lookup_kind("      kind: Pod\n", "      kind: Podd\n", Lookup, "23:13", "has no kind `Podd`", "did you mean `Pod`?")]
#[case::lookup_selector("list: true", "list: true\n      selector: app near (a)", Lookup, "26:17", "selects no label", "env in (a,b)")]
#[case::lookup_namespace("      namespace: shop\n      name: data", "      name: data", Lookup, "16:5", "lives in a namespace", "namespace: NAMESPACE")]
#[case::lookup_expression("name: data", "name: \"${params.size}\"", Lookup, "16:5", "must be known from git", "look up a list")]
#[case::undeclared_ref("ref: claim", "ref: claims", Lookup, "31:14", "no lookup `claims`", "did you mean `claim`?")]
#[case::ref_to_a_list("ref: claim", "ref: pods", Lookup, "31:14", "is a list", "forEach")]
#[case::two_kinds("      http:", "      rewrite: {apiVersion: v1, kind: Secret}\n      http:", Step, "35:7", "several things: http, rewrite", "one of")]
#[case::no_kind("      patch:\n        ref: claim\n        body: {spec: {size: \"${params.size}\"}}\n", "", Step, "29:7", "does nothing", "one of")]
#[case::no_key("  tests:", "  policy: {run: OncePerCluster}\n  tests:", Step, "41:17", "the record alone", "idempotencyKey")]
#[case::no_key_per_hop("  tests:", "  policy: {run: OncePerHop}\n  tests:", Step, "41:17", "the record alone", "idempotencyKey")]
#[case::host("https://api.example.com/grown", "https://example.org/grown", Step, "39:14", "`example.org` is no host", "httpHosts: [example.org]")]
#[case::no_address("https://api.example.com/grown", "api.example.com", Step, "39:14", "is no address", "https://HOST/PATH")]
#[case::fixture_lookup("{claim: null, pods: []}", "{claimm: null}", Fixture, "43:15", "no lookup `claimm`", "did you mean `claim`?")]
#[case::fixture_form("{claim: null, pods: []}", "{pods: null}", Fixture, "43:21", "finds a list", "pods: []")]
#[case::fixture_step("steps: []}", "steps: [groww]}", Fixture, "44:45", "no step `groww`", "did you mean `grow`?")]
#[case::fixture_param("given: {claim: null, pods: []}", "params: {sise: 1}", Fixture, "43:16", "no param `sise`", "did you mean `size`?")]
#[case::fixture_outcome("given: {claim: null, pods: []}", "outcomes: {tel: {status: 200}}", Fixture, "43:18", "no step `tel`", "did you mean `tell`?")]
#[case::after_nothing("  params:", "  after: [other]\n  params:", Binding, "13:11", "no migration `other`", "no other migration")]
#[case::after_itself("  params:", "  after: [grow]\n  params:", Binding, "13:11", "after itself", "remove it")]
#[case::no_owner("  owner: team\n", "", Schema, "5:1", "`owner` is missing", "who is asked")]
#[case::unknown_field("  owner: team", "  owner: team\n  ownr: team", UnknownField, "7:3", "no field `ownr`", "did you mean `owner`?")]
#[case::attempts("        idempotencyKey", "        idempotencyKey: x\n      retry: {maxAttempts: 0}\n      #", Step, "41:28", "0 attempts", "wait")]
#[case::no_time("  tests:", "  policy: {timeout: 0s}\n  tests:", Step, "41:21", "no time at all", "")]
#[case::attempt_beyond_the_run("  tests:", "  policy: {timeout: 1m, attemptTimeout: 5m}\n  tests:", Step, "41:41", "one attempt may take 5m", "timeout: ")]
fn what_no_cluster_could_make_sense_of_is_refused(
    #[case] from: &str,
    #[case] to: &str,
    #[case] code: Code,
    #[case] place: &str,
    #[case] message: &str,
    #[case] help: &str,
) {
    assert!(GOOD.contains(from), "the case breaks nothing: {from}");
    let desired = repository(&GOOD.replacen(from, to, 1));
    let place = format!("{GROW}:{place}");
    assert_found(&desired.diagnostics, code, &place, message, help);
    // A migration that is merely late goes on as it is: its guard knows.
    let left = usize::from(message.contains("is at"));
    assert_eq!(desired.migrations.len(), left);
    assert_eq!(desired.held_migrations.len(), 1 - left);
    assert!(desired.unread.is_empty(), "nothing is kept from being deleted");
    assert_eq!(desired.objects().count(), 1, "the component's objects stay");
}
