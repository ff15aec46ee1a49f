//! Findings inside a document, and how they become diagnostics with a place.
//!
//! Rules work on values, which carry no positions. A finding names document and pointer; the place is looked up only when
//! there is something to say.

use super::yaml::{Part, PointerPart, locate};
use crate::model::{Code, Diagnostic, Place, Severity};

/// A path from the root of a document to a value in it.
pub(super) type Pointer = Vec<PointerPart>;

/// Makes a pointer of keys and indices.
macro_rules! pointer {
    ($($part:expr),* $(,)?) => {
        vec![$($crate::desired::yaml::PointerPart::from($part)),*]
    };
}
pub(super) use pointer;

/// What a rule has to say about one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    code: Code,
    severity: Severity,
    pointer: Pointer,
    part: Part,
    message: String,
    help: Option<String>,
}

impl Finding {
    /// Makes an error about a value.
    pub(super) fn error(code: Code, pointer: Pointer, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            pointer,
            part: Part::Value,
            message: message.into(),
            help: None,
        }
    }

    /// Makes a warning about a value.
    pub(super) fn warning(code: Code, pointer: Pointer, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, pointer, message)
        }
    }

    /// Points at the key instead of the value.
    #[must_use]
    pub(super) fn at_key(self) -> Self {
        Self {
            part: Part::Key,
            ..self
        }
    }

    /// Adds the way out.
    #[must_use]
    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self {
            help: Some(help.into()),
            ..self
        }
    }

    /// Puts the finding below a value, where it was made for a part of a document.
    #[must_use]
    pub(super) fn below(mut self, base: &[PointerPart]) -> Self {
        self.pointer.splice(0..0, base.iter().cloned());
        self
    }

    /// Makes the diagnostic, at a place that is already known.
    pub(super) fn at(self, place: Place) -> Diagnostic {
        Diagnostic {
            code: self.code,
            severity: self.severity,
            place,
            message: self.message,
            help: self.help,
        }
    }

    /// Returns whether what it is about must be held.
    pub(super) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// The text of one file, to find places in.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceText<'a> {
    /// The path inside the repository.
    pub(super) path: &'a str,
    /// The content.
    pub(super) bytes: &'a [u8],
}

/// Which document of a file is meant.
#[derive(Debug, Clone, Copy)]
pub(super) struct DocumentAt {
    /// The document's number in the file, from zero.
    pub(super) index: usize,
    /// The line on which it starts.
    pub(super) line: u32,
}

impl SourceText<'_> {
    /// Finds the place of a value.
    pub(super) fn place(&self, at: DocumentAt, pointer: &[PointerPart], part: Part) -> Place {
        let (line, column) = locate(self.bytes, at.index, pointer, part).unwrap_or((at.line, 1));
        Place::new(self.path, line, column)
    }

    /// Returns the place of a document as a whole.
    pub(super) fn start(&self, at: DocumentAt) -> Place {
        Place::new(self.path, at.line, 1)
    }

    /// Gives a finding its place.
    pub(super) fn diagnose(&self, at: DocumentAt, finding: Finding) -> Diagnostic {
        let place = self.place(at, &finding.pointer, finding.part);
        finding.at(place)
    }
}

/// Returns the candidate that was probably meant: at most a third of its letters away.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    /// Names longer than this are not slips of the pen, and comparing them would cost the product of their lengths.
    const NAME_MAX: usize = 100;
    /// Candidates beyond these are not compared, so that a finding costs the same in any repository.
    const CANDIDATES_MAX: usize = 200;
    if name.len() > NAME_MAX {
        return None;
    }
    candidates
        .into_iter()
        .take(CANDIDATES_MAX)
        .filter(|candidate| candidate.len() <= NAME_MAX)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance * 3 <= candidate.len().max(3))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Returns how many letters must be added, removed or exchanged to get from one name to the other (Levenshtein), without
/// regard to case.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in to.iter().enumerate() {
            let exchanged = diagonal + usize::from(!letter.eq_ignore_ascii_case(other));
            diagonal = row[column + 1];
            row[column + 1] = exchanged.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::nearest;

    #[rstest]
    #[case("chanels", Some("channels"))]
    #[case("Channels", Some("channels"))]
    #[case("versoin", Some("version"))]
    #[case("moduleName", None)]
    #[case("", None)]
    fn nearest_names(#[case] name: &str, #[case] expected: Option<&str>) {
        assert_eq!(
            nearest(name, ["channels", "version", "mandatory"]),
            expected
        );
    }
}
