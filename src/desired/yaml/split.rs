//! Cuts a file into documents at its markers, as kubectl does, so that each can be parsed by itself.
//!
//! A line that starts with `---` or `...` and goes on with a blank or nothing is a marker everywhere in YAML: neither a
//! block scalar nor a quoted one may hold such a line. Cutting there needs no parser, and a document with a syntax error
//! cannot swallow those that follow it.

/// One document's text, with its place in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    /// The text, from its `---` line where it has one.
    pub(super) text: &'a str,
    /// How many lines of the file stand before it.
    pub(super) lines_before: u32,
    /// The line of the file, from one, on which its content starts.
    pub(super) first_line: u32,
}

/// Returns the documents of a file that hold anything but comments, blank lines and directives.
pub(super) fn segments(text: &str) -> impl Iterator<Item = Segment<'_>> {
    let mut rest = Some((text, 0_u32));
    std::iter::from_fn(move || {
        loop {
            let (text, lines_before) = rest.take()?;
            let (here, lines) = length_of_document(text);
            if here < text.len() {
                rest = Some((&text[here..], lines_before + lines));
            }
            if let Some(line) = first_line_of_content(&text[..here]) {
                return Some(Segment {
                    text: &text[..here],
                    lines_before,
                    first_line: lines_before + line,
                });
            }
        }
    })
}

/// Returns the bytes and lines up to the next document.
fn length_of_document(text: &str) -> (usize, u32) {
    let mut length = 0;
    let mut lines = 0;
    for line in text.split_inclusive('\n') {
        if lines > 0 && is_marker(line, "---") {
            break;
        }
        length += line.len();
        lines += 1;
        if is_marker(line, "...") {
            break;
        }
    }
    (length, lines)
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

fn first_line_of_content(text: &str) -> Option<u32> {
    (1_u32..)
        .zip(text.lines())
        .find(|(number, line)| {
            let content = if *number == 1 && is_marker(line, "---") {
                &line[3..]
            } else {
                line
            };
            let content = content.trim_matches([' ', '\t', '\r']);
            !(content.is_empty()
                || content.starts_with('#')
                || line.starts_with('%')
                || is_marker(line, "..."))
        })
        .map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::segments;

    fn found(text: &str) -> Vec<(&str, u32)> {
        segments(text)
            .map(|segment| (segment.text, segment.first_line))
            .collect()
    }

    #[test]
    fn documents_without_content_are_left_out() {
        assert_eq!(found(""), []);
        assert_eq!(found("---\n---\n# only a comment\n---   \n\n...\n"), []);
        assert_eq!(found("%YAML 1.2\n---\n"), []);
    }

    #[test]
    fn each_document_knows_its_first_line() {
        assert_eq!(
            found("# licence\n\na: 1\n---\n# two\nb: 2\r\n--- {c: 3}\n---\nd: 4\n...\ne: 5"),
            [
                ("# licence\n\na: 1\n", 3),
                ("---\n# two\nb: 2\r\n", 6),
                ("--- {c: 3}\n", 7),
                ("---\nd: 4\n...\n", 9),
                ("e: 5", 11),
            ]
        );
    }

    #[test]
    fn what_only_looks_like_a_marker_is_content() {
        assert_eq!(
            found("a: |\n  ---\n---x: 1\n").len(),
            1,
            "indented, or without a blank after it"
        );
    }
}
