//! What is wrong with a file, at its place.

use granit_parser::ErrorKind;
use serde_yaml::Error;
use serde_yaml::localizer::ExternalMessageSource;

use super::split::Segment;
use crate::model::Code;

/// Why a document could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Syntax, a duplicate key, or a limit.
    pub code: Code,
    /// Line, from one.
    pub line: u32,
    /// Column in characters, from one.
    pub column: u32,
    /// What is wrong, a lowercase fragment.
    pub message: String,
    /// The way out.
    pub help: Option<String>,
    /// Whether objects of the file may be unknown because of it.
    pub hides_objects: bool,
}

impl Problem {
    /// Makes a problem that hides what the document holds.
    pub(super) fn new(code: Code, (line, column): (u32, u32), message: impl Into<String>) -> Self {
        Self {
            code,
            line,
            column,
            message: message.into(),
            help: None,
            hides_objects: true,
        }
    }

    /// Turns the parser's error into ours; `refused` is the rule of ours that it failed on, if any.
    pub(super) fn from_parser(error: &Error, refused: Option<Code>, segment: &Segment<'_>) -> Self {
        let error = innermost(error);
        let code = refused.unwrap_or_else(|| code_of(error));
        let (line, column) = error.location().map_or((1, 1), |found| {
            let count = |number| u32::try_from(number).unwrap_or(u32::MAX).max(1);
            (count(found.line()), count(found.column()))
        });
        let lines_before = segment.lines_before;
        let Some(source) = segment.text.lines().nth(line as usize - 1) else {
            return Self::at_end(code, segment, message_of(error));
        };
        let place = (lines_before.saturating_add(line), column);
        let mut problem = Self::new(code, place, message_of(error));
        if code == Code::YamlSyntax {
            problem.help = help_for(source).map(str::to_owned);
        }
        problem
    }

    /// The parser gave up behind the last line: what is wrong began somewhere above.
    fn at_end(code: Code, segment: &Segment<'_>, message: String) -> Self {
        let (line, text) = (1_u32..)
            .zip(segment.text.lines())
            .last()
            .unwrap_or((1, ""));
        let column = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let place = (segment.lines_before.saturating_add(line), column.max(1));
        let mut problem = Self::new(code, place, message);
        problem.help =
            Some("the document ends here; is a quote or bracket left open above?".to_owned());
        problem
    }
}

fn innermost(error: &Error) -> &Error {
    match error {
        Error::AliasError { error, .. } | Error::WithSnippet { error, .. } => innermost(error),
        other => other,
    }
}

fn code_of(error: &Error) -> Code {
    match error {
        Error::DuplicateMappingKey { .. } => Code::YamlDuplicateKey,
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => Code::YamlLimit,
        Error::ExternalMessage { source, .. } => match source.as_ref() {
            ExternalMessageSource::Parser(error)
                if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) =>
            {
                Code::YamlLimit
            }
            _ => Code::YamlSyntax,
        },
        _ => Code::YamlSyntax,
    }
}

fn message_of(error: &Error) -> String {
    match error {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key `{key}` stands twice in this mapping")
        }
        Error::Message { msg, .. } | Error::ExternalMessage { msg, .. } => msg.clone(),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "the alias stands inside the value that it refers to".to_owned()
        }
        Error::NonFiniteFloat { value, .. } => {
            format!("`{value}` is infinite or not a number, which JSON does not have")
        }
        Error::MultipleDocuments { .. } => "a second document starts without `---`".to_owned(),
        Error::UnknownAnchor { .. } => {
            "the alias refers to an anchor that does not exist".to_owned()
        }
        Error::InvalidScalar { .. } => "the value is not what its tag says".to_owned(),
        other => {
            let text = other.to_string();
            // The parser appends the place, which we show ourselves and which does not know the lines before.
            match text.rfind(" at line ") {
                Some(end) => text[..end].to_owned(),
                None => text,
            }
        }
    }
}

/// Guesses from the line what went wrong.
fn help_for(source: &str) -> Option<&'static str> {
    if source.contains("{{") || source.contains("{%") {
        return Some(
            "this looks like a template that was not rendered; commit the rendered manifest",
        );
    }
    let indentation = &source[..source.len() - source.trim_start().len()];
    indentation
        .contains('\t')
        .then_some("YAML is indented with blanks only; this line has a tab")
}
