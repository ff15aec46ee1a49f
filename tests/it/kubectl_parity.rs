//! kubectl is the judge: what our door makes of a file is what the real one makes of it.

use std::path::Path;
use std::process::Command;

use fairway::desired::yaml::parse;
use serde_json::Value;

/// Everything that YAML parsers disagree on, as the parts of a manifest that git might hold.
const MANIFEST: &str = r#"# a comment
apiVersion: example.com/v1
kind: Thing
metadata: {name: x}
spec:
  booleans: [yes, on, y, No, off, n, TRUE, "yes", 'no', !!str on]
  octals: [0644, 0o17, 08, 0_7, "0644", 0777.5]
  integers: [0x1F, +0x1F, -0x10, 0b11, 1_000, +1, -0, 9223372036854775807, 9223372036854775808]
  beyond: [18446744073709551616, -9223372036854775809, 1234567890123456789012]
  floats: [1.0, 1., .5, 1e3, 1E+2, 12e03, 1.5, -0.0, 0.1e1, 1e400text]
  strings: [0x, 1e, "~", =, _1, 1:30, 1.42.0, 2026-11-20, 2001-12-14t21:59:43.10-05:00, inf, nan]
  nulls: [null, ~, "null"]
  tags: [!foo bar, !!binary aGk=, !!str 5, !!int "5", !!float 1]
  keys: {1: a, 0644: b, off: c, 1.5: d, 1e3: e, 2026-11-20: f, "yes": g}
  base: &base {a: 1, b: 2}
  alias: *base
  merged: {<<: *base, b: 3}
  merged_list: {<<: [*base, {c: 4}], a: 0}
  literal: |
    one
      two

  folded: >-
    one
    two

    three
  kept: |+
    end

  plain: a plain scalar
    over two lines # and a comment
  escapes: "\u00e9\t\x41 \
    continued"
  single: 'it''s'
  flow: {a, b: , "c":1}
"#;

#[test]
fn a_manifest_means_what_it_means_to_kubectl() {
    same_as_kubectl(MANIFEST);
    same_as_kubectl(&MANIFEST.replace('\n', "\r\n"));
    same_as_kubectl(&format!("\u{feff}---\n{MANIFEST}---\n# nothing\n"));
}

#[test]
fn json_means_what_it_means_to_kubectl() {
    same_as_kubectl(
        "{\"apiVersion\": \"v1\", \"kind\": \"Thing\",\n\t\"metadata\": {\"name\": \"x\"},\n\
         \"spec\": [1.0, 1e3, -0.0, 9223372036854775808, 0.1, null, true, \"\\ud83d\\ude00\\/\", \"yes\", {}]}",
    );
}

fn same_as_kubectl(manifest: &str) {
    let file = parse(manifest.as_bytes());
    assert_eq!(file.problems, []);
    assert_eq!(file.documents.len(), 1);
    let theirs = kubectl(manifest);
    for (key, value) in theirs["spec"].as_object().into_iter().flatten() {
        assert_eq!(&file.documents[0].value["spec"][key], value, "spec.{key}");
    }
    assert_eq!(file.documents[0].value["spec"], theirs["spec"]);
}

/// Lets kubectl read a manifest and write it as JSON; it needs no cluster for that.
#[expect(clippy::disallowed_methods, reason = "tests ask kubectl as a process")]
fn kubectl(manifest: &str) -> Value {
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control-plane/build");
    let built = Command::new(build)
        .output()
        .expect("the build script starts");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let binary = String::from_utf8(built.stdout).expect("a path");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("manifest");
    std::fs::write(&path, manifest).expect("the manifest is written");
    let converted = Command::new(binary.trim())
        .env_remove("KUBECONFIG")
        .args([
            "kubectl",
            "label",
            "--local",
            "--output=json",
            "read=yes",
            "--filename",
        ])
        .arg(&path)
        .output()
        .expect("kubectl starts");
    assert!(
        converted.status.success(),
        "{}",
        String::from_utf8_lossy(&converted.stderr)
    );
    let json = parse(&converted.stdout);
    assert_eq!(json.problems, []);
    json.documents.into_iter().next().expect("an object").value
}
