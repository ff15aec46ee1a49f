//! The texts that a Migration restricts.

use crate::desired::kinds::is_label;
use crate::desired::schema::TextRule;
use crate::model::limits::EXPRESSION_SIZE_MAX;
use crate::model::migration::Span;

/// The name of a migration: the value of a label on its runs.
pub(super) static NAME: TextRule = TextRule {
    what: "a migration's name",
    pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    accepts: is_label,
    length: (1, 63),
    help: "lower-case letters, digits and `-`, at most 63: `grow-buffer`",
};

/// The id of a step: part of the names of its Jobs.
pub(super) static STEP_ID: TextRule = TextRule {
    what: "the id of a step",
    pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    accepts: is_label,
    length: (1, 40),
    help: "lower-case letters, digits and `-`, at most 40: `grow-claim`",
};

/// A name that expressions use behind a dot: `objects.claim`.
pub(super) static MEMBER: TextRule = TextRule {
    what: "a name for expressions",
    pattern: "^[a-zA-Z_][a-zA-Z0-9_]*$",
    accepts: |text| is_word(text) && !matches!(text, "true" | "false" | "null" | "in"),
    length: (1, 63),
    help: "letters, digits and `_`, not starting with a digit: `claim`",
};

/// A name that stands alone in expressions.
pub(super) static IDENTIFIER: TextRule = TextRule {
    what: "a name for expressions",
    pattern: "^[a-zA-Z_][a-zA-Z0-9_]*$",
    accepts: is_identifier,
    length: (1, 63),
    help: "letters, digits and `_`, not starting with a digit, and no word of CEL: `claim`",
};

/// CEL. That it can be read is a rule of its own.
pub(super) static EXPRESSION: TextRule = TextRule {
    what: "an expression",
    pattern: "",
    accepts: |text| !text.trim().is_empty(),
    length: (1, EXPRESSION_SIZE_MAX),
    help: "CEL: `objects.claim != null`",
};

/// Labels that select objects, as kubectl writes them. That they can be read is a rule of its own, since they may hold expressions.
pub(super) static SELECTOR: TextRule = TextRule {
    what: "labels that select, as a text",
    pattern: "",
    accepts: |_| true,
    length: (1, usize::MAX),
    help: "as kubectl writes it: `app=web,tier!=db,env in (a,b)`",
};

/// A length of time down to milliseconds.
pub(super) static SPAN: TextRule = TextRule {
    what: "a length of time",
    pattern: "^([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$",
    accepts: |text| Span::try_from(text.to_owned()).is_ok(),
    length: (2, 32),
    help: "hours, minutes, seconds and milliseconds: `500ms`, `30s`, `1h30m`",
};

/// On which deploys a migration runs.
pub(super) static ACTION: TextRule = TextRule {
    what: "a deploy that migrations run on",
    pattern: "^(install|upgrade)$",
    accepts: |text| matches!(text, "install" | "upgrade"),
    length: (1, 16),
    help: "install or upgrade; what a removal must take back are steps below `undo`",
};

/// The method of a request.
pub(super) static METHOD: TextRule = TextRule {
    what: "a method",
    pattern: "^(GET|HEAD|POST|PUT|PATCH|DELETE)$",
    accepts: |text| matches!(text, "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE"),
    length: (3, 6),
    help: "GET, HEAD, POST, PUT, PATCH or DELETE",
};

/// Words that CEL keeps for itself.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

fn is_identifier(text: &str) -> bool {
    is_word(text) && !RESERVED.contains(&text)
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
