//! Every reason of a condition is written by some code, in some test, and shown with a message in the reference.

use std::path::Path;

use fairway::model::api::{ConditionReason, ConditionType};

use crate::support::environment;
use crate::support::messages::{Written, page, rendered};

#[test]
fn every_reason_is_written_and_shown_with_a_message() {
    if let Some(recorded) = environment("FAIRWAY_RENDER_MESSAGES") {
        let text = std::fs::read_to_string(recorded).unwrap();
        let all: Vec<Written> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        std::fs::write(page(), rendered(all)).unwrap();
    }
    let page = std::fs::read_to_string(page()).unwrap();
    let code = code(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    for reason in ConditionReason::ALL {
        assert!(
            code.contains(&format!("Reason::{reason}")),
            "no code writes {reason}: write it, or remove it from src/model/api/conditions.rs"
        );
        assert!(
            page.contains(&format!("| `{reason}` |")),
            "no test has brought about {reason}; write one, then `make messages`"
        );
    }
    for condition in ConditionType::ALL {
        assert!(
            page.contains(&format!("| `{condition}` |")),
            "no test has written {condition}"
        );
    }
}

/// Returns all code, without tests.
fn code(folder: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            all += &code(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !name.contains("tests")
        {
            let text = std::fs::read_to_string(&path).unwrap();
            all += text.split("#[cfg(test)]").next().unwrap();
        }
    }
    all
}
