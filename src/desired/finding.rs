//! Findings inside a document, and how they become diagnostics with a place.
//!
//! Rules work on values, which carry no positions. A finding names document and pointer; the place is looked up only when
//! there is something to say.

use super::yaml::{Part, PointerPart, locate, locate_inside};
pub(super) use crate::model::nearest;
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
    /// Bytes from the start of the text that is meant, where only a part of it is.
    offset: Option<usize>,
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
            offset: None,
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

    /// Points at a part of a text: so many bytes from its start.
    #[must_use]
    pub(super) fn inside(self, offset: Option<usize>) -> Self {
        Self { offset, ..self }
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

    /// Returns whether it is about what stands at a pointer.
    pub(super) fn is_about(&self, pointer: &Pointer) -> bool {
        self.pointer == *pointer
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
        let inside = finding
            .offset
            .and_then(|offset| locate_inside(self.bytes, at.index, &finding.pointer, offset));
        let place = match inside {
            Some((line, column)) => Place::new(self.path, line, column),
            None => self.place(at, &finding.pointer, finding.part),
        };
        finding.at(place)
    }
}
