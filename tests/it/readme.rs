//! What the README promises: its demo prints what stands there, and `make try` runs.
//!
//! Times, commits, ports and ages differ from run to run; they are compared as placeholders, and white space as one space.

use std::path::Path;
use std::process::Command;

const BEGIN: &str = "<!-- demo: begin -->";
const END: &str = "<!-- demo: end -->";

#[test]
fn the_demo_prints_what_the_readme_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let (_, rest) = readme.split_once(BEGIN).expect("the README shows the demo");
    let (shown, _) = rest.split_once(END).expect("the demo has an end");
    let shown: Vec<String> = shown
        .lines()
        .filter(|line| !line.starts_with("```") && !line.trim().is_empty())
        .map(placeholders)
        .collect();
    let state = tempfile::tempdir().unwrap();
    let state = state.path().join("demo");
    let printed = run(root, "demo/run", &state);
    // The README begins where the cluster is up and everything is built.
    let printed: Vec<String> = printed
        .replace(state.to_str().unwrap(), "target/demo")
        .lines()
        .skip_while(|line| !line.starts_with("── Declaring the source"))
        .filter(|line| !line.trim().is_empty())
        .map(placeholders)
        .collect();
    assert!(!shown.is_empty());
    for (printed, shown) in printed.iter().zip(&shown) {
        assert_eq!(
            printed, shown,
            "the demo prints something else; copy its output into the README"
        );
    }
    assert_eq!(
        printed.len(),
        shown.len(),
        "the demo prints more or less than the README shows"
    );
}

#[test]
fn what_needs_no_cluster_can_be_tried() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let state = tempfile::tempdir().unwrap();
    let printed = run(root, "demo/try", state.path());
    assert!(
        printed.contains("error[channel-version-missing]"),
        "{printed}"
    );
    assert!(printed.contains("error[channel-downgrade]"), "{printed}");
    assert!(
        printed.contains("2 to configure, 33 unchanged"),
        "{printed}"
    );
}

#[expect(clippy::disallowed_methods, reason = "the demo is a script")]
fn run(root: &Path, script: &str, state: &Path) -> String {
    let output = Command::new(root.join(script))
        .current_dir(root)
        .env("FAIRWAY_DEMO_STATE", state)
        .env("FAIRWAY_BINARY", env!("CARGO_BIN_EXE_fairway"))
        .env("NO_COLOR", "1")
        .arg(if script.ends_with("try") {
            env!("CARGO_BIN_EXE_fairway")
        } else {
            ""
        })
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// Replaces what differs from run to run.
pub(crate) fn placeholders(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let hash = word.split(['@', ':', '.', '"', '-']).any(is_hash);
        let number = word.chars().any(|c| c.is_ascii_digit()) && is_volatile(word);
        if hash || number { "…" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn is_hash(part: &str) -> bool {
    let part = part.trim_end_matches(|c: char| !c.is_ascii_hexdigit());
    part.len() >= 7 && part.chars().all(|c| c.is_ascii_hexdigit())
}

/// Times, ages, addresses, and audit lines with their time and digest.
fn is_volatile(word: &str) -> bool {
    let word = word.trim_end_matches([',', ';', ')', '"']);
    let age = word.trim_end_matches(['s', 'm']);
    let time = word.contains('T') && word.ends_with('Z');
    age.chars().all(|c| c.is_ascii_digit())
        || time
        || word.contains("127.0.0.1")
        || word.starts_with('{')
}
