//! The parity table with kubectl, and what must be refused.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Part, PointerPart, Problem, locate, locate_inside, parse};
use crate::model::Code;
use crate::model::limits::DEPTH_MAX;

fn one(text: &str) -> Value {
    let file = parse(text.as_bytes());
    assert_eq!(file.problems, [], "{text}");
    assert_eq!(file.documents.len(), 1, "{text}");
    file.documents
        .into_iter()
        .next()
        .expect("one document")
        .value
}

fn problem(text: &str) -> Problem {
    let file = parse(text.as_bytes());
    assert_eq!(file.problems.len(), 1, "{text}: {file:?}");
    file.problems.into_iter().next().expect("one problem")
}

#[rstest]
#[case("yes", json!(true))]
#[case("on", json!(true))]
#[case("y", json!(true))]
#[case("No", json!(false))]
#[case("'yes'", json!("yes"))]
#[case("0644", json!(420))]
#[case("'0644'", json!("0644"))]
#[case("0o644", json!(420))]
#[case("0x1F", json!(31))]
#[case("0b11", json!(3))]
#[case("-0x10", json!(-16))]
#[case("1_000", json!(1000))]
#[case("1e3", json!(1000))]
#[case("1.0", json!(1))]
#[case("-0.0", json!(0))]
#[case("1.", json!(1))]
#[case("08", json!(8))]
#[case("1.5", json!(1.5))]
#[case(".5", json!(0.5))]
#[case("0777.5", json!(777.5))]
#[case("+0x1F", json!(31))]
#[case("0_7", json!(7))]
#[case("_1", json!("_1"))]
#[case("0x", json!("0x"))]
#[case("=", json!("="))]
#[case("9223372036854775807", json!(i64::MAX))]
#[case("9223372036854775808", json!(9_223_372_036_854_775_808.0))]
#[case("1234567890123456789012", json!(1_234_567_890_123_456_789_012.0))]
#[case("!foo bar", json!("bar"))]
#[case("!!binary aGk=", json!("hi"))]
#[case("!!str 5", json!("5"))]
#[case("2026-11-20", json!("2026-11-20"))]
#[case("1:30", json!("1:30"))]
#[case("1.42.0", json!("1.42.0"))]
#[case("~", json!(null))]
#[case("", json!(null))]
#[case("null", json!(null))]
#[case("'null'", json!("null"))]
#[case("inf", json!("inf"))]
#[case("nan", json!("nan"))]
#[case("|\n  line\n  two\n", json!("line\ntwo\n"))]
#[case(">-\n  line\n  two\n", json!("line two"))]
#[case("\"\\u00e9\\ud83d\\ude00\\/\"", json!("é😀/"))]
fn scalars_are_read_as_kubectl_reads_them(#[case] scalar: &str, #[case] expected: Value) {
    assert_eq!(one(&format!("a: {scalar}")), json!({"a": expected}));
}

/// What kubectl reads differently, known and left: nobody writes these by hand, and no generator does.
#[rstest]
#[case("nULL", json!(null), "a string")]
#[case("yEs", json!(true), "a string")]
#[case("1__000", json!("1__000"), "1000")]
#[case("1_000.5", json!("1_000.5"), "1000.5")]
fn these_scalars_differ_from_kubectl(
    #[case] scalar: &str,
    #[case] ours: Value,
    #[case] theirs: &str,
) {
    assert_eq!(
        one(&format!("a: {scalar}")),
        json!({"a": ours}),
        "kubectl: {theirs}"
    );
}

#[rstest]
#[case("1: a", "1")]
#[case("off: a", "false")]
#[case("2026-11-20: a", "2026-11-20")]
#[case("0644: a", "420")]
#[case("yes: a", "true")]
#[case("'yes': a", "yes")]
#[case("1.0: a", "1")]
#[case("1.5: a", "1.5")]
fn keys_are_written_out_as_kubectl_writes_them(#[case] text: &str, #[case] key: &str) {
    assert_eq!(one(text), json!({key: "a"}));
}

#[rstest]
#[case("b: &b {p: 1, q: 1}\nc: {<<: *b, p: 2}", json!({"p": 2, "q": 1}))]
#[case("b: &b {p: 1}\nd: &d {p: 3, q: 2}\nc: {<<: [*b, *d]}", json!({"p": 1, "q": 2}))]
#[case("b: &b [1]\nc: *b", json!([1]))]
fn aliases_and_merge_keys_are_resolved(#[case] text: &str, #[case] expected: Value) {
    assert_eq!(one(text)["c"], expected);
}

#[rstest]
#[case("a: 1\na: 2\n", Code::YamlDuplicateKey, (2, 1))]
#[case("a: {yes: 1, on: 2}\n", Code::YamlDuplicateKey, (1, 13))]
#[case("{\"a\": 1,\n \"a\": 2}", Code::YamlDuplicateKey, (2, 2))]
#[case("~: 1\n", Code::YamlSyntax, (1, 1))]
#[case("a: .inf\n", Code::YamlSyntax, (1, 4))]
#[case("a: 1e999\n", Code::YamlSyntax, (1, 4))]
#[case("# text\n  just words\n", Code::YamlSyntax, (2, 3))]
#[case("---\n- a\n- b\n", Code::YamlSyntax, (2, 1))]
#[case("a: *b\n", Code::YamlSyntax, (1, 4))]
#[case("a: &a [*a]\n", Code::YamlSyntax, (1, 8))]
#[case("a: 'b\n", Code::YamlSyntax, (1, 5))]
#[case("a: {{ .Values.a }}\n", Code::YamlSyntax, (1, 5))]
#[case("a:\n{{- if .Values.a }}\n  b: 1\n{{- end }}\n", Code::YamlSyntax, (2, 3))]
#[case("a:\n\tb: 1\n", Code::YamlSyntax, (2, 2))]
#[case("a: 1\n b: 2\n", Code::YamlSyntax, (2, 3))]
fn what_cannot_be_read_is_refused_at_its_place(
    #[case] text: &str,
    #[case] code: Code,
    #[case] place: (u32, u32),
) {
    let found = problem(text);
    assert_eq!(
        (found.code, (found.line, found.column)),
        (code, place),
        "{found:?}"
    );
}

/// Each message as a person reads it; a change of the parser's words shows here.
#[test]
fn messages_read_well() {
    let mut lines = Vec::new();
    for text in [
        "a: 1\na: 2\n",
        "a: {yes: 1, on: 2}\n",
        "~: 1\n",
        "[a]: 1\n",
        "a: .inf\n",
        "just words\n",
        "- a\n",
        "a: *b\n",
        "a: &a [*a]\n",
        "a: 'b\n",
        "a: [b\n",
        "a: b: c\n",
        "a: {{ .Values.a }}\n",
        "a:\n\tb: 1\n",
        "a: 1\n b: 2\n",
        "a: 1\nb\n",
        "a: !!int x\n",
        "a: !!binary '*'\n",
        "<<: 1\n",
        "a: \"\\q\"\n",
        "a: @b\n",
        "a: \u{1}\n",
    ] {
        let Problem {
            code,
            line,
            column,
            message,
            help,
            ..
        } = problem(text);
        let help = help.map(|help| format!(" ({help})")).unwrap_or_default();
        lines.push(format!(
            "{text:?}\n    {line}:{column} {code}: {message}{help}\n"
        ));
    }
    insta::assert_snapshot!(lines.concat());
}

#[test]
fn a_bad_document_hides_no_other() {
    let file = parse(b"a: 1\n---\nb: 'open\n---\nc: 3\n---\n- d\n---\ne: 5\n");
    let read: Vec<_> = file
        .documents
        .iter()
        .map(|found| (found.index, found.line, &found.value))
        .collect();
    assert_eq!(
        read,
        [
            (0, 1, &json!({"a": 1})),
            (2, 5, &json!({"c": 3})),
            (4, 9, &json!({"e": 5}))
        ]
    );
    assert_eq!(
        file.problems
            .iter()
            .map(|found| found.line)
            .collect::<Vec<_>>(),
        [3, 7]
    );
}

#[rstest]
#[case(b"")]
#[case(b"\xef\xbb\xbf")]
#[case(b"# only a comment")]
#[case(b"---\n---\n...\n")]
#[case(b"null\n")]
fn a_file_may_hold_nothing(#[case] bytes: &[u8]) {
    assert_eq!(parse(bytes), super::ParsedFile::default());
}

#[rstest]
#[case(b"\xef\xbb\xbfa: 1\r\nb:\r\n  - c\r\n", json!({"a": 1, "b": ["c"]}))]
#[case(b"{\"a\": 1,\n\t\"b\": [\"c\"]\n}\n", json!({"a": 1, "b": ["c"]}))]
#[case(b"a: |\r\n  x\r\n  y\r\n", json!({"a": "x\ny\n"}))]
fn byte_order_marks_line_ends_and_json_are_read(#[case] bytes: &[u8], #[case] expected: Value) {
    let file = parse(bytes);
    assert_eq!(file.problems, []);
    assert_eq!(file.documents[0].value, expected);
}

#[test]
fn bytes_that_are_no_text_are_refused_at_their_place() {
    let file = parse(b"a: 1\nb: \xc3\xa9\xff\n");
    assert_eq!((file.problems[0].line, file.problems[0].column), (2, 5));
    assert!(!parse(b"a: \xff").problems.is_empty());
    assert!(!parse(b"\xff\xfea\0:\0b\0").problems.is_empty(), "UTF-16");
}

#[test]
fn the_deepest_document_fits_the_stack() {
    let nested = |open: &str, close: &str| {
        format!(
            "a: {}{}",
            open.repeat(DEPTH_MAX - 1),
            close.repeat(DEPTH_MAX - 1)
        )
    };
    for text in [
        nested("[", "]"),
        nested("{a: ", "}"),
        format!("{{\"a\": {}", nested("[", "]")),
    ] {
        let read = std::thread::Builder::new()
            .stack_size(2 * 1024 * 1024)
            .spawn(move || parse(text.as_bytes()))
            .and_then(|thread| thread.join().map_err(|_| std::io::ErrorKind::Other.into()));
        assert!(read.is_ok());
    }
}

#[test]
fn many_comments_are_no_limit() {
    let text = format!("a:\n{}  b: 1\n", "  # a comment\n".repeat(10_000));
    assert_eq!(one(&text), json!({"a": {"b": 1}}));
}

fn bomb(levels: usize) -> String {
    let level = |level: usize, below: &str| format!("a{level}: &a{level} [{}]\n", below.repeat(10));
    let first = std::iter::once(level(0, "x, "));
    let others = (1..levels).map(|number| level(number, &format!("*a{}, ", number - 1)));
    first.chain(others).collect::<Vec<_>>().concat()
}

#[rstest]
#[case::aliases(bomb(9))]
#[case::flow_depth("[".repeat(100_000))]
#[case::mapping_depth("{a: ".repeat(1_000))]
#[case::block_depth((0..200).map(|depth| " ".repeat(depth) + "a:\n").collect())]
#[case::list_depth("- ".repeat(10_000))]
#[case::documents("a: 1\n---\n".repeat(10_000))]
#[case::nodes(format!("a:\n{}---\n", "- a\n".repeat(260_000)).repeat(2))]
fn what_is_too_much_is_a_limit(#[case] text: String) {
    let found = parse(text.as_bytes()).problems;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].code, Code::YamlLimit, "{found:?}");
}

const PLACES: &str = "\
# a comment
metadata:
  name: x # here
  labels: {a: b, \"c\": d}
---
spec:
  base: &base
    inner: 1
  other: *base
  channels:
    - channel: fast
      version: 1.0.0
    - {channel: regular, version: 1.1.0}
  0644: octal
";

#[rstest]
#[case(0, &["metadata".into(), "name".into()], Part::Value, (3, 9))]
#[case(0, &["metadata".into(), "name".into()], Part::Key, (3, 3))]
#[case(0, &["metadata".into(), "labels".into(), "c".into()], Part::Key, (4, 18))]
#[case(0, &[], Part::Value, (2, 1))]
#[case(1, &["spec".into(), "channels".into(), 0.into(), "version".into()], Part::Value, (12, 16))]
#[case(1, &["spec".into(), "channels".into(), 1.into()], Part::Value, (13, 7))]
#[case(1, &["spec".into(), "channels".into(), 1.into(), "version".into()], Part::Key, (13, 26))]
#[case::missing(1, &["spec".into(), "channels".into(), 1.into(), "absent".into()], Part::Key, (13, 7))]
#[case::missing_item(1, &["spec".into(), "channels".into(), 7.into()], Part::Value, (11, 5))]
#[case::through_an_alias(1, &["spec".into(), "other".into(), "inner".into()], Part::Value, (9, 10))]
#[case::through_a_scalar(0, &["metadata".into(), "name".into(), "x".into()], Part::Value, (3, 9))]
fn places_are_found(
    #[case] document: usize,
    #[case] pointer: &[PointerPart],
    #[case] what: Part,
    #[case] expected: (u32, u32),
) {
    assert_eq!(
        locate(PLACES.as_bytes(), document, pointer, what),
        Some(expected)
    );
}

/// Each text means `first && second`; what is looked for is `second`, and the end.
#[rstest]
#[case::plain("a: first && second", (1, 13), (1, 19))]
#[case::plain_over_lines("a:\n  first &&\n    second # why", (3, 5), (3, 11))]
#[case::double("a: \"first && second\"", (1, 14), (1, 20))]
#[case::double_with_escapes("a: \"f\\x69rst\\t&& \\\n  second\"", (2, 3), (2, 9))]
#[case::single("a: 'first &&\n\n  second'", (3, 3), (3, 9))]
#[case::folded("a: >-\n  first &&\n  second\nb: 1", (3, 3), (3, 9))]
#[case::folded_further_in("a: >\n\n    first\n      &&\n\n    second\n", (6, 5), (6, 11))]
#[case::literal("a: |2- # why\n   first &&\n\n  second", (4, 3), (4, 9))]
#[case::second_document("b: 1\n---\na: |\n  first && second", (4, 12), (4, 18))]
fn parts_of_a_text_are_found_where_they_stand(
    #[case] text: &str,
    #[case] second: (u32, u32),
    #[case] end: (u32, u32),
) {
    let document = usize::from(text.contains("---"));
    let parsed = parse(text.as_bytes()).documents;
    let value = parsed[document].value["a"].as_str().unwrap();
    let find = |offset| locate_inside(text.as_bytes(), document, &["a".into()], offset);
    let offset = value.find("second").unwrap();
    assert_eq!(find(offset), Some(second), "{value:?}");
    assert_eq!(find(offset + 6), Some(end), "{value:?}");
    assert_eq!(find(value.len() + 1), None);
}

#[test]
fn quotes_in_quotes_are_one_sign_each() {
    let find = |text: &str, offset| locate_inside(text.as_bytes(), 0, &["a".into()], offset);
    assert_eq!(find("a: 'x == ''y'' && z'", 12), Some((1, 19)));
    assert_eq!(find("a: \"x == \\\"y\\\" && z\"", 12), Some((1, 19)));
    assert_eq!(
        find("b: &b x && z\na: *b", 5),
        None,
        "an alias stands elsewhere"
    );
    assert_eq!(find("a: [x]", 0), None, "no text");
}

#[test]
fn a_document_that_is_not_there_has_no_place() {
    assert_eq!(locate(PLACES.as_bytes(), 2, &[], Part::Value), None);
    assert_eq!(locate(b"\xff", 0, &[], Part::Value), None);
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
        let file = parse(&bytes);
        locate(&bytes, 0, &["a".into(), 0.into()], Part::Key);
        proptest::prop_assert!(file.documents.iter().all(|found| found.value.is_object()));
    }

    #[test]
    fn no_text_of_yaml_signs_makes_it_panic(text in "[-:{}\\[\\],&*!|>'\"%@` \n\tab01#?<.~]{0,120}") {
        let file = parse(text.as_bytes());
        locate(text.as_bytes(), 0, &["a".into(), 0.into()], Part::Value);
        for offset in 0..9 {
            locate_inside(text.as_bytes(), 0, &["a".into()], offset);
        }
        for found in file.problems {
            proptest::prop_assert!(found.line >= 1 && found.column >= 1);
            proptest::prop_assert!(found.line as usize <= text.lines().count() + 1);
        }
    }

    #[test]
    fn json_means_the_same_as_to_a_json_parser(map in proptest::collection::btree_map(".{0,12}", "\\PC{0,20}", 1..6)) {
        let value = json!(map);
        proptest::prop_assert_eq!(one(&value.to_string()), value);
    }
}
