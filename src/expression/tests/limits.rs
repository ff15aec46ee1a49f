use serde_json::{Value, json};

use super::bindings;
use crate::expression::{Bindings, Expression};
use crate::model::limits;

#[test]
fn no_text_crashes_the_parser_or_holds_it() {
    let half = limits::EXPRESSION_SIZE_MAX / 2;
    let texts = [
        "(".repeat(2 * half),
        "[".repeat(2 * half),
        "{".repeat(2 * half),
        "!".repeat(2 * half),
        "-".repeat(2 * half),
        "a?".repeat(half),
        "{'a':".repeat(half / 3),
        "f(".repeat(half),
        "has(".repeat(half / 2),
        "[1].map(x,".repeat(half / 5),
        format!("a{}", ".b".repeat(half - 1)),
        format!("a{}", "[0]".repeat(half / 2)),
        format!("a{}", ".size()".repeat(half / 4)),
        format!("{}1", "1+".repeat(half - 1)),
        format!("{}a", "a<".repeat(half - 1)),
        format!("{}1", "a?b:".repeat(half / 2 - 1)),
        format!("{}1{}", "(".repeat(half - 1), ")".repeat(half - 1)),
        "\"".repeat(2 * half),
        "'\\".repeat(half),
        "`".repeat(2 * half),
        "//".repeat(half),
        ".".repeat(2 * half),
        "1e".repeat(half),
        "é".repeat(half),
        "\u{0}".repeat(2 * half),
    ];
    for text in texts {
        let result = Expression::compile(&text);
        if let Err(error) = result {
            assert!(!error.message.contains('\n') && error.message.len() < 200);
            assert!(error.offset.is_some_and(|offset| offset <= text.len()));
        }
    }
}

#[test]
fn what_is_wide_is_fine_and_what_is_deep_is_refused() {
    let wide = vec!["true"; 400].join(" && ");
    assert_eq!(
        Expression::compile(&wide).unwrap().holds(&bindings()),
        Ok(true)
    );
    let deep = format!("{}1{}", "[".repeat(64), "]".repeat(64));
    let error = Expression::compile(&deep).unwrap_err();
    assert_eq!(error.message, "more than 64 parts are inside of each other");
    let long = " ".repeat(limits::EXPRESSION_SIZE_MAX + 1);
    assert!(Expression::compile(&long).is_err());
}

fn many() -> Bindings {
    let mut bindings = Bindings::default();
    let numbers: Vec<u32> = (0..20_000).collect();
    bindings.set("n", json!(numbers));
    bindings.set("text", json!("a".repeat(1024 * 1024)));
    let objects: Vec<Value> = (0..500)
        .map(|number| json!({"metadata": {"name": format!("object-{number}"), "labels": {"a": "b"}}, "spec": {"x": vec![number; 50]}}))
        .collect();
    bindings.set("objects", json!({"all": objects}));
    bindings
}

/// Each of these would take minutes, or gigabytes.
#[test]
fn no_expression_holds_the_process_longer_than_its_deadline() {
    let bindings = many();
    for text in [
        "n.all(a, n.all(b, true))",
        "n.map(a, n.map(b, a * b))",
        "n.map(a, text + text).size() > 0",
        "n.map(a, text.replace('a', text))",
        "text.replace('a', text).size() > 0",
        "text.split('').map(a, text.split('')).size() > 0",
        "n.map(a, n).flatten().map(b, n).flatten().size() > 0",
        "lists.range(9223372036854775807).size() > 0",
        "lists.range(1000000).map(a, lists.range(1000000))",
        "n.distinct().size() > 0",
        "sets.contains(n, n.reverse())",
        "sets.equivalent(n, n.reverse())",
        "n.map(a, text).join(text)",
        "n.all(a, n + n != [a])",
        "n.exists(a, text.matches('(a*)*b'))",
        "n.exists(a, text.matches('(a|a?)+' + string(a)))",
        "n.exists(a, 'X'.matches('[a-z]{1,50}' + string(a)))",
        "n.map(a, text.findAll('(?:a?){50}a{50}'))",
        "text.matches('(a{1,1000}){1,1000}b')",
        r"text.matches('\\w{500}\\d{500}')",
        "n.sort().map(a, n.sort())",
        "n.all(a, text.contains(text))",
        "n.all(a, text == text.reverse().reverse())",
        "objects.all.map(a, objects.all).map(b, b)",
        "objects.all.all(a, objects.all.all(b, objects.all == objects.all))",
        "objects.all.map(a, objects.all)",
    ] {
        let expression = Expression::compile(text).unwrap();
        let result = expression.evaluate(&bindings);
        let error = result.expect_err(text);
        assert!(
            error.message.contains("more work") || error.message.contains("too large"),
            "{text}: {error}"
        );
    }
}

#[test]
fn what_guards_do_with_full_lists_is_within_the_budget() {
    let bindings = many();
    for text in [
        "objects.all.all(a, objects.all.exists(b, b.metadata.name == a.metadata.name)) || true",
        "objects.all.filter(a, a.metadata.labels.a == 'b' && a.metadata.name.matches('^object-[0-9]+$')).size() == 500",
        "objects.all.map(a, a.metadata.name).sort().size() == 500",
        "objects.all.all(a, a.spec.x.all(x, x >= 0))",
    ] {
        let result = Expression::compile(text).unwrap().holds(&bindings);
        assert_eq!(result, Ok(true), "{text}");
    }
}

#[test]
fn a_budget_that_is_used_up_is_unknown_even_beside_true() {
    let result = Expression::compile("n.all(a, n.all(b, true)) || true")
        .unwrap()
        .holds(&many());
    assert!(result.is_err());
}

#[test]
fn too_much_to_look_at_is_unknown() {
    let mut bindings = Bindings::default();
    bindings.set("big", json!("a".repeat(limits::BINDINGS_SIZE_MAX)));
    let error = Expression::compile("true").unwrap().holds(&bindings);
    assert!(error.unwrap_err().message.contains("narrow the lookups"));
    bindings.set("big", json!(null));
    assert_eq!(
        Expression::compile("true").unwrap().holds(&bindings),
        Ok(true)
    );
}
