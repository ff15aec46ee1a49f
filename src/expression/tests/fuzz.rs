//! No text and no value takes the process down; what compiles is evaluated the same way twice.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::expression::{Bindings, Expression, GROUPS, Template};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|it| json!(it)),
        (-3_i64..4).prop_map(Value::from),
        prop_oneof![
            "[a-zé0-9.]{0,6}",
            "[0-9]{1,3}(Gi|m|k)?",
            "v?[0-9]\\.[0-9]\\.[0-9]",
            "\\PC{0,4}"
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|it| json!(it)),
        ]
    })
}

/// Expressions that mostly compile: every operator, loop and function over the names `a`, `b`, `c` and `x`.
fn expression() -> impl Strategy<Value = String> {
    let functions: Vec<&'static str> = GROUPS
        .iter()
        .flat_map(|group| group.functions)
        .map(|function| function.name)
        .collect();
    let leaf = prop_oneof![
        Just("a".to_owned()),
        Just("b.c".to_owned()),
        Just("x".to_owned()),
        Just("null".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        any::<i64>().prop_map(|it| it.to_string()),
        (-4_i64..5).prop_map(|it| it.to_string()),
        any::<u64>().prop_map(|it| format!("{it}u")),
        any::<bool>().prop_map(|it| it.to_string()),
        (0_u32..100).prop_map(|it| format!("{it}.5")),
        "'[a-zé0-9.*(+]{0,5}'",
    ];
    leaf.prop_recursive(5, 60, 3, move |inner| {
        let several = prop::collection::vec(inner.clone(), 0..4);
        let pair = (inner.clone(), inner.clone());
        let operator = prop::sample::select(vec![
            "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||",
        ]);
        let turns = prop::sample::select(vec!["all", "exists", "exists_one", "map", "filter"]);
        let name = prop::sample::select(functions.clone());
        prop_oneof![
            (pair.clone(), operator).prop_map(|((a, b), it)| format!("({a}) {it} ({b})")),
            (pair.clone(), turns).prop_map(|((a, b), it)| format!("({a}).{it}(x, {b})")),
            (name.clone(), several.clone())
                .prop_map(|(name, it)| format!("{name}({})", it.join(", "))),
            (inner.clone(), name, several.clone())
                .prop_map(|(a, name, it)| format!("({a}).{name}({})", it.join(", "))),
            (inner.clone(), pair.clone()).prop_map(|(a, (b, c))| format!("({a}) ? ({b}) : ({c})")),
            inner.clone().prop_map(|a| format!("!({a})")),
            inner.clone().prop_map(|a| format!("-({a})")),
            inner.clone().prop_map(|a| format!("({a}).b")),
            inner.clone().prop_map(|a| format!("({a}).?c")),
            inner.clone().prop_map(|a| format!("has(({a}).a)")),
            pair.clone().prop_map(|(a, b)| format!("({a})[{b}]")),
            pair.clone().prop_map(|(a, b)| format!("({a})[?{b}]")),
            several.prop_map(|it| format!("[{}]", it.join(", "))),
            pair.prop_map(|(a, b)| format!("{{'a': {a}, ?'b': {b}}}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn expressions_end_with_a_value_or_a_reason(text in expression(), a in value(), b in value()) {
        let mut bindings = Bindings::default();
        bindings.set("a", a);
        bindings.set("b", b);
        if let Ok(expression) = Expression::compile(&text) {
            let result = expression.evaluate(&bindings);
            prop_assert_eq!(&result, &expression.evaluate(&bindings));
            if let (Some(what), Ok(value)) = (expression.never_true_or_false(), &result) {
                prop_assert!(!value.is_boolean(), "{} said {}", text, what);
            }
            if let Err(error) = result {
                prop_assert!(!error.message.contains('\n'));
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused_in_one_line(text in "\\PC{0,80}") {
        if let Err(error) = Expression::compile(&text) {
            prop_assert!(!error.message.contains('\n'), "{}", error.message);
            prop_assert!(error.offset.is_some_and(|offset| text.is_char_boundary(offset)));
        }
        let _ = Template::compile(&json!(text));
    }

    #[test]
    fn words_of_the_language_in_any_order_are_read_or_refused(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "a", "1", "'x'", "(", ")", "[", "]", "{", "}", ".", ",", "?", ":", "!", "-", "+", "&&", "||",
                "in", "has", "map", "x", "==", "<", "null", "r'", "\"", "0x", "1.", "`", "//", "\n",
            ]),
            0..40,
        ),
    ) {
        if let Err(error) = Expression::compile(&words.concat()) {
            prop_assert!(error.offset.is_some());
        }
    }
}
