//! What drawn diagnostics look like.

use std::sync::{Arc, Mutex};

use super::*;
use crate::cli::ClusterArguments;
use crate::cli::terminal::acts_on_terminal;

const FILE: &str = "modules/telemetry/module-release-meta.yaml";
const SOURCE: &str = "\
spec:
  channels:
    - channel: regular
      version: \"1.43.0\"
\t- tab: here
    # \u{1b}]0;owned\u{7} \u{9b}31m \u{202e}
  note: {é: ünïcode, emoji: 👍🏽 ok}
";

fn drawn(found: &Diagnostic) -> String {
    anstream::adapter::strip_str(&draw(found, Some(SOURCE.as_bytes()))).to_string()
}

fn at(line: u32, column: u32) -> Diagnostic {
    let place = Place::new(FILE, line, column);
    Diagnostic::error(Code::ChannelVersionMissing, place, "no such version")
}

#[test]
fn a_value_is_marked_and_the_way_out_follows() {
    let found = at(4, 16)
        .help("add `modules/telemetry/1.43.0`, or point the channel at one of:\n1.41.2\n1.42.0");
    insta::assert_snapshot!(drawn(&found));
}

#[test]
fn a_tab_moves_the_caret_with_the_text() {
    insta::assert_snapshot!(drawn(&at(5, 4)));
}

#[test]
fn wide_characters_do_not_move_the_caret() {
    insta::assert_snapshot!(drawn(&at(7, 29)));
}

#[test]
fn a_line_without_column_is_marked_as_a_whole() {
    insta::assert_snapshot!(drawn(&at(3, 0)));
}

#[test]
fn a_file_needs_no_source() {
    insta::assert_snapshot!(drawn(&at(0, 0)));
}

#[test]
fn a_place_behind_the_end_is_still_named() {
    insta::assert_snapshot!(drawn(&at(99, 7)));
    insta::assert_snapshot!(drawn(&at(2, 80)));
}

#[test]
fn a_hostile_repository_cannot_drive_the_terminal() {
    let mut found = at(6, 5);
    found.place.file = "modules/\u{1b}[2J.yaml".to_owned();
    found.message = "unknown field `\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}`".to_owned();
    found = found.help("remove `\u{1b}[1A`");
    let text = anstream::adapter::strip_str(&draw(&found, Some(SOURCE.as_bytes()))).to_string();
    assert!(!text.contains(|found| found != '\n' && acts_on_terminal(found)));
    insta::assert_snapshot!(text);
}

#[rstest::rstest]
#[case("kind: Secret\nstringData: {password: hunter2}\n")]
#[case("  \"kind\" : \"Secret\"\r\npassword: hunter2\n")]
#[case("- {apiVersion: v1, kind: Secret}\npassword: hunter2")]
fn the_lines_of_a_secret_are_not_shown(#[case] source: &str) {
    let text = draw(&at(2, 1), Some(source.as_bytes()));
    assert!(!text.contains("hunter2"));
    assert!(text.contains(":2:1"));
}

#[test]
fn a_very_long_line_is_cut() {
    let source = format!(
        "a: {}\"here\" {}\n",
        "x".repeat(100_000),
        "y".repeat(100_000)
    );
    let text = draw(&at(1, 100_004), Some(source.as_bytes()));
    assert!(text.len() < 2_000, "{} bytes", text.len());
    assert!(text.contains("here"));
}

/// A stream that can be looked at afterwards.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0
            .lock()
            .expect("nobody panics while writing")
            .write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Written {
    fn text(&self) -> String {
        let bytes = self.0.lock().expect("nobody panics while writing");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn listed(diagnostics: &[Diagnostic], output: OutputFormat) -> (String, String) {
    let (out, err) = (Written::default(), Written::default());
    let mut context = Context {
        out: Box::new(out.clone()),
        err: Box::new(err.clone()),
        output,
        cluster: ClusterArguments::default(),
        interactive: false,
    };
    draw_diagnostics(&mut context, diagnostics, 0, &|_| Some(SOURCE.into()))
        .expect("memory takes all");
    (
        anstream::adapter::strip_str(&out.text()).to_string(),
        err.text(),
    )
}

fn several() -> Vec<Diagnostic> {
    let warning = Diagnostic::warning(
        Code::SecretInClear,
        Place::whole_file("components/x/secret.yaml"),
        "a Secret in clear text",
    );
    vec![warning, at(3, 7), at(4, 16).help("take another")]
}

#[test]
fn people_get_drawings_and_a_summary() {
    let (out, err) = listed(&several(), OutputFormat::Text);
    insta::assert_snapshot!(out);
    assert_eq!(err, "2 errors, 1 warning in 2 files\n");
}

#[test]
fn programs_get_one_value() {
    let (out, err) = listed(&several(), OutputFormat::Json);
    insta::assert_snapshot!(out);
    assert_eq!(err, "");
    let (yaml, _) = listed(&several(), OutputFormat::Yaml);
    let read: serde_json::Value = serde_yaml::from_str(&yaml).expect("YAML");
    assert_eq!(
        read,
        serde_json::from_str::<serde_json::Value>(&out).expect("JSON")
    );
}

#[test]
fn what_is_not_listed_is_counted() {
    let summary = Summary::of(&several()[1..2], 7).to_string();
    assert_eq!(summary, "1 error in 1 file; 7 more are not shown");
}

#[test]
fn a_valid_repository_is_silent() {
    assert_eq!(
        listed(&[], OutputFormat::Text),
        (String::new(), String::new())
    );
    assert_eq!(
        listed(&[], OutputFormat::Json).0,
        "{\n  \"diagnostics\": []\n}\n"
    );
}

proptest::proptest! {
    #[test]
    fn no_place_makes_it_panic(
        source in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        line in 0_u32..6,
        column in 0_u32..60,
        message in ".{0,40}",
    ) {
        let mut found = at(line, column);
        found.message = message;
        draw(&found, Some(&source));
    }
}
