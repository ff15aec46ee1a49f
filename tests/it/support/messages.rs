//! The conditions that agents write in tests, as they really read. `docs/reference/condition-messages.md` is made of them, and whatever an
//! agent writes has to be shown there.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A condition as it was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Written {
    /// `ReleaseSource` or `Target`.
    pub(crate) resource: String,
    /// The type.
    pub(crate) condition: String,
    /// The status.
    pub(crate) status: String,
    /// The reason.
    pub(crate) reason: String,
    /// The message, without what differs from run to run.
    pub(crate) message: String,
}

/// The page.
pub(crate) fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/condition-messages.md")
}

/// Takes in the body of a request to a status. Returns a condition that the page does not show.
pub(crate) fn note(path: &str, body: &[u8]) -> Option<String> {
    static SHOWN: LazyLock<String> = LazyLock::new(|| std::fs::read_to_string(page()).unwrap());
    let resource = [
        ("/releasesources/", "ReleaseSource"),
        ("/targets/", "Target"),
    ]
    .into_iter()
    .find_map(|(part, kind)| path.contains(part).then_some(kind))?;
    let body: Value = serde_json::from_slice(body).ok()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = body["status"]["conditions"].as_array()?.iter();
    let written: Vec<Written> = conditions
        .map(|one| Written {
            resource: resource.to_owned(),
            condition: text(&one["type"]),
            status: text(&one["status"]),
            reason: text(&one["reason"]),
            message: settled(&text(&one["message"])),
        })
        .collect();
    if let Some(file) = super::environment("FAIRWAY_RECORD_MESSAGES") {
        record(Path::new(&file), &written);
        return None;
    }
    // Which of them come together is a matter of timing; a reason that nobody can look up is not.
    let unknown = |one: &&Written| !SHOWN.contains(&format!("| `{}` |", one.reason));
    written.iter().find(unknown).map(row)
}

/// Returns the beginning of the page's row of a condition.
fn row(one: &Written) -> String {
    format!(
        "| {} | `{}` | {} | `{}` |",
        one.resource, one.condition, one.status, one.reason
    )
}

/// Renders the page, with the shortest message of each.
pub(crate) fn rendered(all: Vec<Written>) -> String {
    let mut shortest: BTreeMap<String, String> = BTreeMap::new();
    for one in all {
        let message = shortest
            .entry(row(&one))
            .or_insert_with(|| one.message.clone());
        if (one.message.len(), &one.message) < (message.len(), &*message) {
            *message = one.message;
        }
    }
    let mut rows = String::new();
    for (row, message) in shortest {
        let message = message.replace('|', "\\|").replace('\n', "<br>");
        rows += &[row.as_str(), " ", &message, " |\n"].concat();
    }
    format!(
        "# What conditions say\n\n\
         <!-- Recorded from what agents write in the integration tests, by `make messages`; each of these tests compares. -->\n\n\
         Every condition that an agent writes, with one message as it really reads: the shortest of those that the tests have brought about. \
         Hosts, commits and\nnames are stand-ins. What the words mean: [conditions](conditions.md).\n\n\
         | resource | type | status | reason | a message |\n| --- | --- | --- | --- | --- |\n{rows}"
    )
}

fn record(file: &Path, written: &[Written]) {
    let lines: String = written
        .iter()
        .map(|one| serde_json::to_string(one).unwrap() + "\n")
        .collect();
    let open = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file);
    open.unwrap().write_all(lines.as_bytes()).unwrap();
}

/// Puts stand-ins in the place of what differs from run to run: ports, namespaces of tests, folders, commits and uids.
fn settled(message: &str) -> String {
    let mut settled = String::new();
    let mut rest = message;
    while let Some(start) = rest.find(|c: char| is_word(c)) {
        settled += &rest[..start];
        let end = rest[start..]
            .find(|c: char| !is_word(c))
            .map_or(rest.len(), |end| start + end);
        settled += &stand_in(&rest[start..end]);
        rest = &rest[end..];
    }
    settled + rest
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '/' | '_')
}

fn stand_in(word: &str) -> String {
    let bare = word.trim_end_matches([':', '.']);
    let parts: Vec<String> = bare.split('/').map(plain).collect();
    let word = parts.join("/") + &word[bare.len()..];
    match word.split_once("/tmp/") {
        Some((before, rest)) if rest.contains("/modules") => {
            format!("{before}/srv/git/modules.git")
        }
        _ => word,
    }
}

fn plain(part: &str) -> String {
    if let Some(numbers) = part.strip_prefix("test-") {
        let after = numbers.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
        let joint = if after.starts_with(char::is_alphabetic) {
            "-"
        } else {
            ""
        };
        return format!("modules{joint}{after}");
    }
    if let Some(after) = part.strip_prefix("127.0.0.1:") {
        let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        return format!("host.example.com{rest}");
    }
    let hexadecimal = part.len() >= 10 && part.chars().all(|c| c.is_ascii_hexdigit());
    if hexadecimal && part.chars().any(|c| c.is_ascii_digit()) {
        return "5240008a9fcd10e4bbf4c8f5f3c9f6d1f2a7e3b0"[..part.len().min(40)].to_owned();
    }
    let uid = part.len() == 36 && part.chars().filter(|c| *c == '-').count() == 4;
    if uid {
        return "0f7c1f6e-6f0b-4a43-9e0c-3d2f4b8a5c17".to_owned();
    }
    part.to_owned()
}

#[test]
fn what_differs_from_run_to_run_is_settled() {
    for (message, expected) in [
        (
            "https://127.0.0.1:4711/modules.git",
            "https://host.example.com/modules.git",
        ),
        (
            "applied main@8c6842da41: 2 objects",
            "applied main@5240008a9f: 2 objects",
        ),
        (
            "ConfigMap test-81-2/settings; test-81-2.one; test-81-2-second",
            "ConfigMap modules/settings; modules.one; modules-second",
        ),
        ("a decade, 12 objects (main)", "a decade, 12 objects (main)"),
    ] {
        assert_eq!(settled(message), expected);
    }
}
