//! From bytes to documents.

use serde::de::DeserializeSeed;
use serde_json::Value;

use super::problem::Problem;
use super::split::{Segment, segments};
use super::value::{Budget, ValueSeed};
use crate::model::Code;
use crate::model::limits::{ALIAS_EVENTS_MAX, DEPTH_MAX, DOCUMENTS_MAX, NODES_MAX};

/// A file, parsed as far as it could be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedFile {
    /// The documents that could be read, in their order.
    pub documents: Vec<Document>,
    /// What could not be read, and why.
    pub problems: Vec<Problem>,
}

/// One document of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Its value, always an object.
    pub value: Value,
    /// Which document of the file it is, from zero; documents without content do not count, unreadable ones do.
    pub index: usize,
    /// The line, from one, on which its content starts.
    pub line: u32,
}

/// Parses a YAML or JSON file. Never fails as a whole: what is wrong is in [`ParsedFile::problems`].
pub fn parse(bytes: &[u8]) -> ParsedFile {
    let mut file = ParsedFile::default();
    let text = match text_of(bytes) {
        Ok(text) => text,
        Err(problem) => {
            file.problems.push(problem);
            return file;
        }
    };
    let budget = Budget::new(NODES_MAX);
    for (index, segment) in segments(text).enumerate() {
        if index == DOCUMENTS_MAX {
            let message = format!("the file has more than {DOCUMENTS_MAX} documents");
            let place = (segment.first_line, 1);
            file.problems
                .push(Problem::new(Code::YamlLimit, place, message));
            break;
        }
        match parse_document(&segment, &budget) {
            Ok(None) => {}
            Ok(Some(value)) => file.documents.push(Document {
                value,
                index,
                line: segment.first_line,
            }),
            Err(problem) => {
                let exhausted = problem.code == Code::YamlLimit;
                file.problems.push(problem);
                if exhausted {
                    break;
                }
            }
        }
    }
    file
}

/// Returns the file's text without a byte order mark.
pub(super) fn text_of(bytes: &[u8]) -> Result<&str, Problem> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let start_of_line = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |newline| newline + 1);
        let characters = String::from_utf8_lossy(&before[start_of_line..])
            .chars()
            .count();
        let lines = before.split(|byte| *byte == b'\n').count() - 1;
        let count = |number: usize| u32::try_from(number + 1).unwrap_or(u32::MAX);
        let mut problem = Problem::new(
            Code::YamlSyntax,
            (count(lines), count(characters)),
            "the file is not UTF-8 text",
        );
        problem.help = Some("save the file as UTF-8".to_owned());
        problem
    })
}

/// Parses one document; none when it says `null`, which kubectl skips too.
fn parse_document(segment: &Segment<'_>, budget: &Budget) -> Result<Option<Value>, Problem> {
    if let Some(value) = parse_json(segment.text, budget) {
        return Ok(Some(value));
    }
    let value = serde_yaml::with_deserializer_from_str_with_options(
        segment.text,
        options(),
        |deserializer| ValueSeed::document(budget).deserialize(deserializer),
    )
    .map_err(|error| Problem::from_parser(&error, budget.take_refused(), segment))?;
    match value {
        Value::Object(_) => Ok(Some(value)),
        Value::Null => Ok(None),
        other => {
            let what = if other.is_array() {
                "a list"
            } else {
                "a scalar"
            };
            let place = super::locate::start_of(segment).unwrap_or((segment.first_line, 1));
            Err(Problem::new(
                Code::YamlSyntax,
                place,
                format!("the document is {what}, not a mapping"),
            ))
        }
    }
}

/// Parses a JSON object; none when the text is something else, or there is anything wrong with it. The YAML parser then
/// has the last word, since `{` starts a mapping there too, and it knows the place of what is wrong.
fn parse_json(text: &str, budget: &Budget) -> Option<Value> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let nodes_before = budget.nodes_left();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = ValueSeed::document(budget)
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    if value.is_err() {
        budget.rewind(nodes_before);
    }
    value.ok()
}

fn options() -> serde_yaml::Options {
    serde_yaml::options! {
        legacy_octal_numbers: true,
        emit_comments: false,
        with_snippet: false,
        duplicate_keys: serde_yaml::DuplicateKeyPolicy::Error,
        merge_keys: serde_yaml::MergeKeyPolicy::Merge,
        non_finite_float_policy: serde_yaml::NonFiniteFloatPolicy::Reject,
        alias_limits: serde_yaml::alias_limits! {
            max_total_replayed_events: ALIAS_EVENTS_MAX,
        },
        budget: serde_yaml::budget! {
            flow_nesting_limit: DEPTH_MAX,
            max_depth: DEPTH_MAX,
            max_nodes: NODES_MAX,
            // A node has a start and an end, and the stream and its document have theirs.
            max_events: 2 * NODES_MAX + 4,
            max_recorded_anchor_events: 2 * NODES_MAX,
        },
    }
}
