//! Holds the house to its plan: which stage may import which, which stages stay pure, how long a file may be, and that every
//! test file is listed.

use std::fs;
use std::path::{Path, PathBuf};

/// The stages in the data's order. A stage may import itself and what stands before it.
const STAGES: &[&str] = &[
    "model",
    "expression",
    "cluster",
    "source",
    "desired",
    "observe",
    "plan",
    "runs",
    "execute",
    "fleet",
    "report",
    "server",
    "agent",
    "cli",
];

/// Stages without effects, with what their files may not name.
const PURE: &[&str] = &["model", "expression", "desired", "plan"];
const EFFECTS: &[&str] = &[
    "kube::Client",
    "kube::client",
    "kube::Api",
    "kube::api::Api",
    "tokio::",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "git2::",
];

const FILE_LINES_MAX: usize = 500;

#[test]
fn a_stage_imports_only_earlier_stages() {
    let mut wrong = Vec::new();
    for (path, stage, text) in source_files() {
        let position = position(&stage);
        for (number, line) in text.lines().enumerate() {
            for imported in stages_named(line) {
                let later = STAGES.iter().position(|name| *name == imported) > Some(position);
                if later {
                    wrong.push(format!(
                        "{}:{}: {stage} imports {imported}",
                        path.display(),
                        number + 1
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "stages import later stages:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn pure_stages_have_no_effects() {
    let mut wrong = Vec::new();
    for (path, stage, text) in source_files() {
        if !PURE.contains(&stage.as_str()) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for effect in EFFECTS.iter().filter(|effect| code.contains(**effect)) {
                wrong.push(format!("{}:{}: {effect}", path.display(), number + 1));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "pure stages use effects:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn every_folder_of_src_is_a_stage() {
    for entry in fs::read_dir(root().join("src")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            let name = entry.file_name().into_string().unwrap();
            assert!(
                STAGES.contains(&name.as_str()),
                "src/{name} is no stage of design"
            );
        }
    }
}

#[test]
fn files_are_rooms() {
    let mut wrong = Vec::new();
    for folder in ["src", "tests/it", "benches"] {
        for path in rust_files(&root().join(folder)) {
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            if lines > FILE_LINES_MAX {
                wrong.push(format!("{}: {lines} lines", path.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "more than {FILE_LINES_MAX} lines:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn every_test_file_is_listed() {
    let folder = root().join("tests/it");
    for path in rust_files(&folder) {
        let relative = path.strip_prefix(&folder).unwrap();
        let stem = relative.file_stem().unwrap().to_str().unwrap();
        if relative == Path::new("main.rs") || stem == "mod" {
            continue;
        }
        let parent = path.parent().unwrap();
        let list = if parent == folder {
            folder.join("main.rs")
        } else {
            parent.join("mod.rs")
        };
        let listed = fs::read_to_string(&list).unwrap_or_default();
        assert!(
            listed.contains(&format!("mod {stem};")),
            "{} is not listed in {}",
            relative.display(),
            list.display()
        );
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn position(stage: &str) -> usize {
    STAGES
        .iter()
        .position(|name| *name == stage)
        .expect("every folder of src is a stage")
}

/// Returns path, stage and text of every file of a stage.
fn source_files() -> Vec<(PathBuf, String, String)> {
    let src = root().join("src");
    rust_files(&src)
        .into_iter()
        .filter_map(|path| {
            let relative = path.strip_prefix(&src).unwrap().to_owned();
            let stage = relative
                .components()
                .next()?
                .as_os_str()
                .to_str()?
                .to_owned();
            (relative.components().count() > 1)
                .then(|| (path.clone(), stage, fs::read_to_string(&path).unwrap()))
        })
        .collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Returns the stages that a line of code names after `crate::`.
fn stages_named(line: &str) -> Vec<&'static str> {
    let code = line.trim_start();
    if code.starts_with("//") {
        return Vec::new();
    }
    STAGES
        .iter()
        .copied()
        .filter(|stage| {
            code.match_indices(&format!("crate::{stage}"))
                .any(|(at, text)| {
                    !code[at + text.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
                })
        })
        .collect()
}
