//! Draws diagnostics: for people with the line of the source and a caret, for programs as one value.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::io::Write;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use serde::Serialize;

use super::arguments::OutputFormat;
use super::context::Context;
use super::failure::Failure;
use super::terminal::{harmless, printable};
use crate::model::{Code, Diagnostic, Place, Severity};

/// Characters of a source line that are shown on each side of its place; a generated line can have millions.
const LINE_SHOWN_MAX: usize = 400;

/// How many diagnostics there are, for the line that closes the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Errors.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
    /// Files that have any.
    pub files: usize,
    /// Beyond the limit: found, counted, and not listed.
    pub omitted: usize,
}

impl Summary {
    /// Counts.
    pub fn of(diagnostics: &[Diagnostic], omitted: usize) -> Self {
        let count = |severity| {
            diagnostics
                .iter()
                .filter(|found| found.severity == severity)
                .count()
        };
        let files: BTreeSet<_> = diagnostics.iter().map(|found| &found.place.file).collect();
        Self {
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            files: files.len(),
            omitted,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = [(self.errors, "error"), (self.warnings, "warning")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, noun)| counted(count, noun))
            .collect();
        write!(f, "{} in {}", parts.join(", "), counted(self.files, "file"))?;
        match self.omitted {
            0 => Ok(()),
            omitted => write!(f, "; {omitted} more are not shown"),
        }
    }
}

/// Returns a number with its noun, in the plural where it is not one.
pub(super) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Writes diagnostics to stdout in the form that was asked for, and to a person the summary on stderr.
///
/// `omitted` counts what was found beyond `diagnostics`. `read` returns the contents of a file of the repository; where it has none, the drawing goes without the source.
pub fn draw_diagnostics(
    context: &mut Context,
    diagnostics: &[Diagnostic],
    omitted: usize,
    read: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> Result<(), Failure> {
    if context.output != OutputFormat::Text {
        return context.write_value(&DiagnosticList::of(diagnostics, omitted));
    }
    let mut file = None;
    for found in diagnostics {
        // Diagnostics come sorted by place, so that one file at a time is enough.
        let path = found.place.file.as_str();
        let (_, bytes) = match file.take() {
            Some((last, bytes)) if last == path => file.insert((last, bytes)),
            _ => file.insert((path, read(path))),
        };
        writeln!(context.out, "{}\n", draw(found, bytes.as_deref()))?;
    }
    if !diagnostics.is_empty() {
        context.out.flush()?;
        writeln!(context.err, "{}", Summary::of(diagnostics, omitted))?;
    }
    Ok(())
}

/// Draws one diagnostic, styled. `source` is the whole file.
fn draw(found: &Diagnostic, source: Option<&[u8]>) -> String {
    let level = match found.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let message = printable(&found.message);
    let path = printable(&found.place.file);
    let title = level.primary_title(message).id(found.code.as_str());
    let line = source
        .filter(|bytes| !holds_secret(bytes))
        .and_then(|bytes| SourceLine::at(bytes, &found.place));
    let mut group = match &line {
        Some(line) => title.element(
            Snippet::source(line.text.as_str())
                .line_start(line.number)
                .path(path)
                .annotation(AnnotationKind::Primary.span(line.marked.clone())),
        ),
        None => title.element(origin(&found.place, path)),
    };
    if let Some(help) = &found.help {
        group = group.element(Level::HELP.message(printable(help)));
    }
    Renderer::styled().render(&[group])
}

/// Returns whether a file holds a Secret: its lines must not get into the log of a CI job.
fn holds_secret(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'\n').any(|line| {
        let mut words = line
            .split(|byte| b" \t\r\"':,{}-".contains(byte))
            .filter(|word| !word.is_empty());
        words.any(|word| word == b"kind") && words.next() == Some(b"Secret")
    })
}

fn origin<'a>(place: &Place, path: Cow<'a, str>) -> Origin<'a> {
    let mut origin = Origin::path(path);
    if let Some(line) = positive(place.line) {
        origin = origin.line(line);
        if let Some(column) = positive(place.column) {
            origin = origin.char_column(column);
        }
    }
    origin
}

fn positive(number: u32) -> Option<usize> {
    usize::try_from(number).ok().filter(|number| *number > 0)
}

/// The line that a diagnostic points at, made harmless, with the bytes of it that are marked.
struct SourceLine {
    number: usize,
    text: String,
    marked: Range<usize>,
}

impl SourceLine {
    fn at(bytes: &[u8], place: &Place) -> Option<Self> {
        let number = positive(place.line)?;
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let line = bytes.split(|byte| *byte == b'\n').nth(number - 1)?;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = harmless(&String::from_utf8_lossy(line));
        let column = positive(place.column);
        let (text, column) = cut(text, column);
        let marked = match column {
            Some(column) => word_at(&text, column),
            None => text.len() - text.trim_start().len()..text.trim_end().len(),
        };
        Some(Self {
            number,
            text,
            marked,
        })
    }
}

/// Cuts a very long line around the column, and returns the column in what is left.
fn cut(text: String, column: Option<usize>) -> (String, Option<usize>) {
    if text.len() <= 2 * LINE_SHOWN_MAX {
        return (text, column);
    }
    let skipped = column.unwrap_or(1).saturating_sub(LINE_SHOWN_MAX);
    let shown = text
        .chars()
        .skip(skipped)
        .take(2 * LINE_SHOWN_MAX)
        .collect();
    (shown, column.map(|column| column - skipped))
}

/// Returns the bytes of the word that starts at a column, counted in characters from one.
fn word_at(text: &str, column: usize) -> Range<usize> {
    let start = text
        .char_indices()
        .nth(column - 1)
        .map_or(text.len(), |(index, _)| index);
    let rest = &text[start..];
    let quoted = rest
        .strip_prefix(['"', '\''])
        .and_then(|inside| inside.find(&rest[..1]))
        .map(|length| length + 2);
    let length = quoted.unwrap_or_else(|| {
        let word = rest.split([' ', '\t']).next().unwrap_or_default();
        word.trim_end_matches([',', ':', ']', '}']).len()
    });
    let first = rest.chars().next().map_or(0, char::len_utf8);
    start..start + length.max(first)
}

/// Diagnostics as programs get them.
#[derive(Serialize)]
struct DiagnosticList<'a> {
    diagnostics: Vec<DiagnosticEntry<'a>>,
    /// How many were found beyond the limit; left out where there are none.
    #[serde(skip_serializing_if = "is_zero")]
    omitted: usize,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[derive(Serialize)]
struct DiagnosticEntry<'a> {
    code: Code,
    severity: Severity,
    file: &'a str,
    /// None for a finding about the whole file.
    line: Option<u32>,
    column: Option<u32>,
    message: &'a str,
    help: Option<&'a str>,
}

impl<'a> DiagnosticList<'a> {
    fn of(diagnostics: &'a [Diagnostic], omitted: usize) -> Self {
        let diagnostics = diagnostics
            .iter()
            .map(|found| DiagnosticEntry {
                code: found.code,
                severity: found.severity,
                file: &found.place.file,
                line: Some(found.place.line).filter(|line| *line > 0),
                column: Some(found.place.column).filter(|column| *column > 0),
                message: &found.message,
                help: found.help.as_deref(),
            })
            .collect();
        Self {
            diagnostics,
            omitted,
        }
    }
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
