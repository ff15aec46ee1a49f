//! Words for people: short, on one line, without control characters.

use crate::model::Revision;
use crate::model::limits::{MESSAGE_ITEMS_MAX, MESSAGE_PART_MAX};
use crate::model::snapshot::CommitInfo;

/// Digits of a commit that messages show, as `git log --oneline` does for large repositories.
const SHORT_HASH: usize = 10;

/// Returns the text on one line and within a number of bytes. Names and errors come from outside: control characters and
/// changes of direction would let them repaint a terminal.
pub fn bounded(text: &str, bytes_max: usize) -> String {
    let mut line = String::with_capacity(text.len().min(bytes_max));
    for word in text.split(|c: char| c.is_control() || c.is_whitespace() || turns_text(c)) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > bytes_max {
            let room = bytes_max.saturating_sub('…'.len_utf8());
            let boundaries = line.char_indices().map(|(start, _)| start);
            let end = boundaries.take_while(|start| *start <= room).last();
            line.truncate(end.unwrap_or(0));
            line.push('…');
            break;
        }
    }
    line
}

/// Returns a text whose lines stay lines, each as [`bounded`] has it but indented as it was, so that lines for a file can be
/// pasted. What is beyond the number of bytes is cut off at the end of a line, where there is more than one.
pub(super) fn bounded_lines(text: &str, bytes_max: usize) -> String {
    let mut kept = String::new();
    for line in text.lines() {
        let room = bytes_max.saturating_sub(kept.len() + 1);
        let indent = line.len() - line.trim_start_matches(' ').len();
        let words = bounded(line, room.saturating_sub(indent).max('…'.len_utf8()));
        if words.is_empty() {
            continue;
        }
        if kept.is_empty() {
            kept = words;
        } else if indent + words.len() <= room && !words.ends_with('…') {
            kept = format!("{kept}\n{:indent$}{words}", "");
        } else {
            break;
        }
    }
    kept
}

/// Returns the part of a message that stands on one line, for where there are no lines. A message may end with lines for a
/// file; joined into one they would be of no use.
pub(super) fn first_line(message: &str) -> String {
    match message.split_once('\n') {
        None => message.to_owned(),
        Some((first, _)) => format!(
            "{} (`fairway describe source` and `fairway plan` print the lines)",
            first.trim_end_matches(':')
        ),
    }
}

/// Returns whether a character changes the direction of what follows (Unicode's explicit formatting characters).
fn turns_text(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the revision as people write it: `main@1a2b3c4d5e`.
pub(super) fn short(revision: &Revision) -> String {
    let reference = bounded(&revision.reference, MESSAGE_PART_MAX);
    let hash: String = revision.hash().chars().take(SHORT_HASH).collect();
    format!("{reference}@{hash}")
}

/// Returns the revision with its author, where one is known.
pub(super) fn with_author(revision: &Revision, commit: &CommitInfo) -> String {
    if commit.author.is_empty() {
        short(revision)
    } else {
        format!("{} by {}", short(revision), bounded(&commit.author, 80))
    }
}

/// Returns the first few of some things, and how many more there are.
pub(super) fn some_of(count: usize, items: impl Iterator<Item = String>) -> String {
    let shown: Vec<String> = items
        .take(MESSAGE_ITEMS_MAX)
        .map(|item| bounded(&item, MESSAGE_PART_MAX))
        .collect();
    let more = count.saturating_sub(shown.len());
    let shown = shown.join("; ");
    if more == 0 {
        shown
    } else {
        format!("{shown}; and {more} more")
    }
}

/// Returns the number with its noun: `1 object`, `3 objects`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

/// Introduces what failed, unless it says so itself.
pub fn failed_to(what: &str) -> String {
    if what.starts_with("failed to ") {
        what.to_owned()
    } else {
        format!("failed to {what}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_for_a_file_stay_as_they_are_or_go_as_a_whole() {
        let text =
            "announce it:\nremovals:\n  - component: components/a\n  - component: components/b";
        assert_eq!(bounded_lines(text, 400), text);
        let short = "announce it:\nremovals:\n  - component: components/a";
        assert_eq!(bounded_lines(text, 60), short);
        assert!(first_line(text).starts_with("announce it (`fairway describe"));
    }

    proptest! {
        #[test]
        fn any_text_becomes_one_short_line(text in any::<String>(), bytes_max in 3..200_usize) {
            let line = bounded(&text, bytes_max);
            prop_assert!(line.len() <= bytes_max);
            prop_assert!(!line.chars().any(|c| c.is_control() || turns_text(c)));
        }

        #[test]
        fn any_lines_stay_within_their_bytes(text in any::<String>(), bytes_max in 3..200_usize) {
            let lines = bounded_lines(&text, bytes_max);
            prop_assert!(lines.len() <= bytes_max, "{} > {bytes_max}", lines.len());
            prop_assert!(!lines.chars().any(|c| (c.is_control() && c != '\n') || turns_text(c)));
        }

        #[test]
        fn plain_words_stay_as_they_are(text in "[a-zä:/.]{1,20}( [a-zä:/.]{1,20}){0,5}") {
            prop_assert_eq!(bounded(&text, 400), text);
        }
    }
}
