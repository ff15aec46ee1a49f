//! What somebody sees who does not know the command yet.

use std::io::Read;
use std::process::Stdio;

use super::{fairway, transcript};

#[test]
fn the_name_alone_prints_what_there_is() {
    fairway(&[]).assert().code(0).stderr("");
    let text = transcript(&[]);
    assert!(
        text.contains("Commands:") && text.contains("Start here:"),
        "{text}"
    );
}

#[test]
fn misuse_is_told_on_stderr() {
    insta::assert_snapshot!(transcript(&["explian"]));
    insta::assert_snapshot!(transcript(&["explain", "--list", "--output", "xml"]));
}

#[test]
fn version_names_the_command() {
    fairway(&["--version"]).assert().code(0).stdout(concat!(
        "fairway ",
        env!("CARGO_PKG_VERSION"),
        "\n"
    ));
}

#[test]
fn colours_are_kept_where_they_are_asked_for() {
    let colours = |arguments| {
        let output = fairway(arguments).output().expect("the command starts");
        output.stderr.contains(&0x1b)
    };
    assert!(colours(&[
        "generate",
        "all",
        "--root",
        "/dev/null",
        "--color",
        "always"
    ]));
    assert!(!colours(&["generate", "all", "--root", "/dev/null"]));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test starts the command under test"
    )]
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_fairway"))
        .args(["explain", "--list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    let status = child.wait().expect("the command ends");
    let mut said = String::new();
    child
        .stderr
        .take()
        .expect("it is piped")
        .read_to_string(&mut said)
        .expect("text");
    assert_eq!((status.code(), said.as_str()), (Some(0), ""));
}
