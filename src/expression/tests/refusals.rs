use rstest::rstest;

use crate::expression::Expression;

#[rstest]
#[case("hass(a.b)", Some("has"))]
#[case("siz(a)", Some("size"))]
#[case("a.exist(x, x.b)", Some("exists"))]
#[case("a.startwith('b')", Some("startsWith"))]
#[case("contains('a', 'b')", None)]
#[case("telephone(a)", None)]
fn a_function_that_does_not_exist_has_one_that_was_meant(
    #[case] text: &str,
    #[case] meant: Option<&str>,
) {
    assert_eq!(
        Expression::compile(text).unwrap_err().meant,
        meant,
        "{text}"
    );
}

#[rstest]
#[case("", 0, "expected a value, found the end")]
#[case("a.b.", 4, "expected the name of a field, found the end")]
#[case("a &&", 4, "expected a value, found the end")]
#[case("a & b", 2, "`&` means nothing here; `and` is written `&&`")]
#[case("a = b", 2, "`=` means nothing here; equality is written `==`")]
#[case("a b", 2, "`b` does not belong here")]
#[case("(a", 2, "expected `)`, found the end")]
#[case("[1, 2", 5, "expected `]`, found the end")]
#[case("{'a' 1}", 5, "expected `:`, found a number")]
#[case("a ? b", 5, "expected `:`, found the end")]
#[case("'abc", 0, "a text has no end")]
#[case("'a\nb'", 0, "a text has no end on its line")]
#[case(r"'\q'", 1, "`\\` escapes nothing here")]
#[case("1a", 0, "a number and a name stand together")]
#[case("99999999999999999999", 0, "the number is too large, or none")]
#[case("for == 1", 0, "CEL keeps the name `for` for itself")]
#[case("has(a)", 0, "`has` takes one field, as in `has(a.b)`")]
#[case("foo(1)", 0, "there is no function `foo`")]
#[case("a.foo(1)", 1, "there is no method `foo`")]
#[case(
    "contains('a', 'b')",
    0,
    "there is no function `contains`; it is called as `TEXT.contains(TEXT)`"
)]
#[case("'a'.contains()", 3, "`contains` is called as `TEXT.contains(TEXT)`")]
#[case(
    "[1].all(x.y, true)",
    9,
    "the first argument of `all` is no name of a variable"
)]
#[case(
    "[1].all(true)",
    3,
    "`all` takes the name of a variable and an expression"
)]
#[case("Type{a: 1}", 4, "`{` does not belong here")]
#[case("é", 0, "`é` means nothing here")]
#[case("'é' + é", 7, "`é` means nothing here")]
#[case(
    "[1].all(a, [1].all(b, [1].all(c, true)))",
    3,
    "more than 2 loops are inside of each other"
)]
fn a_text_is_refused_in_one_line_at_its_place(
    #[case] text: &str,
    #[case] offset: usize,
    #[case] message: &str,
) {
    let error = Expression::compile(text).unwrap_err();
    assert_eq!(
        (error.offset, error.message.as_str()),
        (Some(offset), message),
        "{text}"
    );
}

#[test]
fn loops_beside_each_other_and_in_ranges_are_not_nested() {
    let text =
        "[1].map(a, a).map(b, b).filter(c, true).all(d, [1].all(e, true)) && [1].all(f, true)";
    assert!(Expression::compile(text).is_ok());
}
