//! `fairway explain`.

use fairway::model::Code;

use super::{fairway, transcript};

#[test]
fn a_code_is_explained() {
    insta::assert_snapshot!(transcript(&["explain", "yaml-duplicate-key"]));
    insta::assert_snapshot!(transcript(&["explain", "yaml-duplicate-key", "-o", "json"]));
}

#[test]
fn an_unknown_code_suggests_the_nearest() {
    let output = fairway(&["explain", "channel-downgrad"])
        .assert()
        .code(2)
        .get_output()
        .clone();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("a similar value exists: 'channel-downgrade'"),
        "{said}"
    );
}

#[test]
fn every_code_is_listed_with_a_sentence() {
    let output = fairway(&["explain", "--list"])
        .assert()
        .code(0)
        .get_output()
        .clone();
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(listed.lines().count(), Code::ALL.len());
    for (code, line) in Code::ALL.iter().zip(listed.lines()) {
        let (listed, sentence) = line.split_once("  ").expect("two columns");
        assert_eq!(listed.trim_end(), code.as_str());
        assert!(sentence.trim().len() > 20, "{line}");
    }
}
