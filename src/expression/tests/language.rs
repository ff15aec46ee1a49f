use rstest::rstest;
use serde_json::{Value, json};

use super::{bindings, evaluate};
use crate::expression::{Bindings, Expression, Template, evidence};

#[rstest]
#[case("objects.gone == null")]
#[case("objects.claim != null")]
#[case("objects.set.spec.replicas == 3")]
#[case("objects.set.spec.replicas > 2.5")]
#[case("objects.set.spec.replicas == 3u")]
#[case("objects.set.spec.whole == 3")]
#[case("objects.set.spec.ratio >= 2.5")]
#[case("9007199254740993 != 9007199254740992")]
#[case("objects.set.spec.replicas * 2 == 6")]
#[case("3 != '3'")]
#[case("quantity(objects.claim.spec.resources.requests.storage) < quantity(params.size)")]
#[case("quantity(2) == quantity('2') && quantity(0.5) == quantity('500m')")]
#[case("has(objects.claim.spec) && !has(objects.claim.status)")]
#[case("objects.claim.?status.?phase.orValue('none') == 'none'")]
#[case("objects.gone.?spec.?x.orValue(1) == 1")]
#[case("objects.claim.metadata.labels['app.kubernetes.io/name'] == 'loki'")]
#[case("objects.claim.metadata.labels[?'x'].orValue('') == ''")]
#[case("objects.claim.metadata.labels.`app.kubernetes.io/name` == 'loki'")]
#[case("'name' in objects.claim.metadata && !('x' in objects.claim.metadata)")]
#[case("objects.classes[0].metadata.name == 'std' && objects.classes[?9] == optional.none()")]
#[case("objects.classes.exists(c, has(c.allowVolumeExpansion) && c.allowVolumeExpansion)")]
#[case("objects.classes.all(c, c.metadata.name != '')")]
#[case("objects.classes.exists_one(c, c.metadata.name == 'std')")]
#[case("objects.classes.filter(c, has(c.allowVolumeExpansion)).size() == 1")]
#[case("objects.classes.map(c, c.metadata.name) == ['std', 'old']")]
#[case("objects.classes.map(c, has(c.allowVolumeExpansion), c.metadata.name) == ['std']")]
#[case("objects.claim.metadata.labels.exists(name, name.startsWith('app'))")]
#[case("{'a': 1, ?'b': optional.none()} == {'a': 1}")]
#[case("[1, ?optional.none(), 2] == [1, 2]")]
#[case("true ? (false ? false : true) : false ? true : false")]
#[case("1 + 2 * 3 - 4 / 2 % 3 == 5")]
#[case("-2 - -3 == 1 && !!true")]
#[case("-9223372036854775808 < 0")]
#[case("0x1F == 31 && 1e3 == 1000.0 && .5 == 0.5")]
#[case(r"'\u00e9' == 'é' && r'\n'.size() == 2 && '''a'b''' == 'a\'b'")]
#[case("'a' + 'b' == 'ab' && [1] + [2] == [1, 2]")]
#[case("[1, 2] != [1, 3] && {'a': [1]} == {'a': [1.0]}")]
#[case("semver('1.10.0') > semver('1.9.3')")]
#[case("'a' < 'b' && false < true")]
#[case("objects.set // a comment\n .spec.replicas == 3")]
// One side that decides makes up for one that has no value, as CEL has it.
#[case("objects.gone.spec.x == 1 || true")]
#[case("!(objects.gone.spec.x == 1 && false)")]
#[case("[0, 1].exists(x, 1 / x == 1)")]
#[case("![0, 2].all(x, 1 / x == 1)")]
// The element of an inner loop hides the one outside.
#[case("[1].exists(x, [2].exists(x, x == 2) && x == 1)")]
fn it_is_true(#[case] text: &str) {
    assert_eq!(evaluate(text), Ok(Value::Bool(true)), "{text}");
}

/// Whatever is missing or mixed is unknown, and never false.
#[rstest]
#[case("size(objects.pods)", Some("a number"))]
#[case("objects.a.size() - 1", Some("a number"))]
#[case("'a' + objects.a", Some("a text"))]
#[case("objects.a + objects.b", Some("a sum"))]
#[case("[objects.a]", Some("a list"))]
#[case("objects.pods.filter(p, p.ready)", Some("a list"))]
#[case("{'a': true}", Some("an object"))]
#[case("null", Some("null"))]
#[case("quantity('1Gi')", Some("a quantity"))]
#[case("objects.a ? 1 : 2", Some("a number"))]
#[case("objects.a ? 1 : 'b'", Some("one of two values"))]
#[case("objects.a ? 1 : objects.b", None)]
#[case("objects.a.?b.orValue(1)", None)]
#[case("objects.pods.map(p, p.ready).min()", None)]
#[case("objects.a", None)]
#[case("params.size", None)]
#[case("objects.a && 1", None)]
#[case("size(objects.pods) > 0", None)]
fn what_can_never_be_true_or_false_is_known_by_its_form(
    #[case] text: &str,
    #[case] what: Option<&str>,
) {
    let expression = Expression::compile(text).unwrap();
    assert_eq!(expression.never_true_or_false(), what, "{text}");
}

#[test]
fn paths_know_where_they_begin() {
    let expression =
        Expression::compile("size(a.b) > 0 && has(c.d[0].e) && a.b.all(x, x.y)").unwrap();
    let places = expression.places();
    let found: Vec<_> = places
        .iter()
        .map(|(path, at)| (path.join("."), *at))
        .collect();
    assert_eq!(found, [("a.b".to_owned(), 5), ("c.d".to_owned(), 21)]);
    let template = Template::compile(&json!("é ${ a.b } ${c}")).unwrap();
    let places: Vec<_> = template
        .expressions()
        .iter()
        .flat_map(|it| it.places())
        .collect();
    assert_eq!(places[0].1, 6);
    assert_eq!(places[1].1, 14);
}

#[rstest]
#[case(
    "objects.gone.spec.enabled",
    "`objects.gone` is null and has no field `spec`"
)]
#[case(
    "objects.claim.status.phase == 'Bound'",
    "`objects.claim` has no `status`; ask with `has(…)` or `.?status` first"
)]
#[case(
    "objects.claim.metadata.name.x",
    "`objects.claim.metadata.name` is a text and has no field `x`"
)]
#[case("has(objects.gone.spec)", "`objects.gone` is null and has no fields")]
#[case(
    "objects.other == null",
    "`objects` has no `other`; ask with `has(…)` or `.?other` first"
)]
#[case("other == 1", "there is no `other`")]
#[case("objects.classes[7] == 1", "a list has no element at this index")]
#[case(
    "objects.classes.exists(c, c.allowVolumeExpansion == false)",
    "`c` has no `allowVolumeExpansion`; ask with `has(…)` or `.?allowVolumeExpansion` first"
)]
#[case("'3' > 2", "a text and a number have no order")]
#[case("objects.gone > 2", "null and a number have no order")]
#[case(
    "1 + 1.5 == 2.5",
    "`+` takes numbers of one type; make them alike with `int(…)`, `uint(…)` or `double(…)`"
)]
#[case("'a' + 1 == 'a1'", "`+` is not for a text and a number")]
#[case("1 / 0 == 1", "a number is divided by zero")]
#[case("9223372036854775807 + 1 > 0", "the result of `+` is too large")]
#[case("-9223372036854775808 / -1 > 0", "the result of `/` is too large")]
#[case("!objects.claim", "`!` needs true or false, and there is an object")]
#[case("1 && true", "`&&` needs true or false, and there is a number")]
#[case(
    "objects.claim ? 1 : 2",
    "`?` needs true or false, and there is an object"
)]
#[case(
    "objects.gone.exists(x, true)",
    "`objects.gone` is null and cannot be looped over"
)]
#[case(
    "[1].exists(x, x)",
    "the condition of a loop is a number, neither true nor false"
)]
#[case(
    "quantity('big') > quantity('1')",
    "`quantity`: the text is no quantity"
)]
#[case(
    "semver('v1') > semver('1.0.0')",
    "`semver`: the text is no version, MAJOR.MINOR.PATCH"
)]
#[case(
    "'a'.matches('(')",
    "`matches`: the pattern is no regular expression (RE2)"
)]
#[case("1.contains('a')", "`contains`: needs a text, and there is a number")]
#[case("{'a': 1, 'a': 2}", "an object has the same key twice")]
#[case("{1: 2}", "a key of an object is no text")]
fn it_is_unknown(#[case] text: &str, #[case] reason: &str) {
    assert_eq!(evaluate(text), Err(reason.to_owned()), "{text}");
}

#[test]
fn a_value_that_json_does_not_have_is_refused_with_the_way_out() {
    for (text, way) in [
        ("quantity('1')", "string(…)"),
        ("objects.?claim", ".orValue(…)"),
    ] {
        let error = evaluate(text).unwrap_err();
        assert!(error.contains(way), "{error}");
    }
    assert!(evaluate("[0.0 / 0.0]").is_err());
}

#[test]
fn no_message_repeats_a_value() {
    let mut bindings = bindings();
    bindings.set(
        "secret",
        json!({"password": "hunter2", "port": 4711, "list": ["hunter2"]}),
    );
    for text in [
        "secret.password + 1",
        "secret.password > 1",
        "secret.password.x",
        "int(secret.password)",
        "quantity(secret.password)",
        "semver(secret.password)",
        "''.matches(secret.password + '(')",
        "secret[secret.password]",
        "secret.list[secret.port]",
        "secret.port / 0",
        "secret.password ? 1 : 2",
        "bool(secret.password)",
        "secret.list.sum()",
        "secret.password.substring(secret.port)",
        "{secret.password: 1, secret.password: 2}",
    ] {
        let error = Expression::compile(text)
            .unwrap()
            .evaluate(&bindings)
            .unwrap_err();
        assert!(
            !error.message.contains("hunter2") && !error.message.contains("4711"),
            "{text}: {error}"
        );
    }
}

#[test]
fn paths_are_those_of_bindings_and_in_their_longest_form() {
    let paths = |text: &str| -> Vec<String> {
        Expression::compile(text)
            .unwrap()
            .paths()
            .iter()
            .map(|path| path.join("."))
            .collect()
    };
    assert_eq!(
        paths(
            "objects.set.spec.templates.exists(t, t.size < params.size) && has(objects.claim.spec)"
        ),
        [
            "objects.claim.spec",
            "objects.set.spec.templates",
            "params.size"
        ]
    );
    assert_eq!(
        paths("steps['grow-claim'].outputs.x == objects.claim.?spec[0]"),
        ["objects.claim.spec", "steps.grow-claim.outputs.x"]
    );
}

#[test]
fn evidence_has_the_values_of_paths() {
    let text = "quantity(objects.claim.spec.resources.requests.storage) < quantity(params.size)";
    let expression = Expression::compile(text).unwrap();
    let result = expression.evaluate(&bindings());
    let evidence = evidence("needed", &expression, &bindings(), &result);
    assert_eq!(evidence.result, "true");
    assert_eq!(
        serde_json::to_value(evidence.values).unwrap(),
        json!({"objects.claim.spec.resources.requests.storage": "30Mi", "params.size": "30Gi"})
    );
}

/// Forty objects of 200 bytes; the last is the only one that is not ready.
fn crowd() -> Bindings {
    let pods: Vec<Value> = (0..40)
        .map(|number| {
            json!({
                "metadata": {"name": format!("web-{number}"), "namespace": "shop"},
                "spec": {"noise": "x".repeat(200)},
                "status": {"ready": number != 39, "node": {"zone": "a"}},
            })
        })
        .collect();
    let mut bindings = Bindings::default();
    bindings.set("objects", json!({"pods": pods, "few": [1, 2]}));
    bindings
}

#[rstest]
#[case("objects.pods.all(p, p.status.ready)", true)]
#[case("objects.pods.exists(p, !p.status.ready)", true)]
#[case("objects.pods.filter(p, p.status.ready == false).size() > 1", true)]
#[case(
    "objects.few.size() > 3 || objects.pods.exists_one(p, p.metadata.name == 'web-39')",
    true
)]
#[case("objects.pods.all(p, p.status.ready == true || p.gone)", true)]
#[case("objects.pods.size() > 50", false)]
fn of_a_long_list_those_that_decided_come_first(#[case] text: &str, #[case] is_decided: bool) {
    let bindings = crowd();
    let expression = Expression::compile(text).unwrap();
    let result = expression.evaluate(&bindings);
    let evidence = evidence("needed", &expression, &bindings, &result);
    let size = serde_json::to_vec(&evidence).unwrap().len();
    assert!(size <= crate::model::limits::EVIDENCE_SIZE_MAX, "{size}");
    let line = evidence.values["objects.pods"].as_str().unwrap();
    let keys = evidence.values.keys();
    let parts = keys.filter(|key| key.starts_with("objects.pods[")).count();
    let omitted = format!("; {} are left out here", 40 - parts);
    assert_eq!(line.contains("left out"), parts < 40, "{line}");
    assert!(parts == 40 || line.ends_with(&omitted), "{line}");
    assert!(line.starts_with("a list of 40"), "{line}");
    assert_eq!(line.contains(", of which 1 decided"), is_decided, "{line}");
    if is_decided {
        let culprit = &evidence.values["objects.pods[39]"];
        assert_eq!(culprit["metadata.name"], "web-39");
        assert!(culprit.get("spec").is_none(), "{culprit}");
    }
    let is_named = text.contains("few");
    assert_eq!(evidence.values.contains_key("objects.few"), is_named);
}

#[test]
fn what_took_too_much_to_find_out_is_not_said_to_have_decided() {
    let pods: Vec<Value> = (0..3_000)
        .map(|number| json!({"name": format!("web-{number}")}))
        .collect();
    let mut bindings = Bindings::default();
    bindings.set("objects", json!({"pods": pods}));
    let text = "objects.pods.all(p, objects.pods.exists(q, q.name == p.name))";
    let expression = Expression::compile(text).unwrap();
    let result = expression.evaluate(&bindings);
    assert!(result.is_err(), "{result:?}");
    let evidence = evidence("needed", &expression, &bindings, &result);
    let line = evidence.values["objects.pods"].as_str().unwrap();
    assert!(line.starts_with("a list of 3000; "), "{line}");
}

#[test]
fn a_template_takes_the_types_of_values_and_writes_texts() {
    let render = |value: Value| {
        Template::compile(&value)
            .unwrap()
            .render(&bindings())
            .map_err(|error| error.message)
    };
    assert_eq!(
        render(
            json!({"replicas": "${objects.set.spec.replicas}", "name": "x-${params.size}", "plain": "$${a}"})
        ),
        Ok(json!({"replicas": 3, "name": "x-30Gi", "plain": "${a}"}))
    );
    assert_eq!(
        render(json!(["${ {'a': '}'} }", "${'${'}"])),
        Ok(json!([{"a": "}"}, "${"]))
    );
    assert!(render(json!("x${objects.gone}")).is_err());
    let error = Template::compile(&json!({"a/b": ["${1 +}"]})).unwrap_err();
    assert_eq!(error.pointer, "/a~1b/0");
    assert_eq!(error.error.offset, Some(5), "within the whole text");
    assert!(Template::compile(&json!("${a")).is_err());
}
