//! What an expression comes to, as far as its form alone tells: a rule that needs true or false can be held against it before
//! there is a cluster. Only what is certain is said.

use super::compile::Expression;
use super::tree::{Kind, Literal, LoopForm, Node, Operator};

/// What something comes to, if it comes to anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// True or false.
    Truth,
    /// Something else, with its article.
    Other(&'static str),
    /// Nobody knows.
    Unknown,
}

/// Functions that come to a number.
const NUMBERS: &[&str] = &[
    "sum",
    "int",
    "uint",
    "double",
    "math.abs",
    "math.ceil",
    "math.floor",
    "math.round",
    "size",
    "indexOf",
    "lastIndexOf",
    "asInteger",
    "asApproximateFloat",
    "sign",
    "compareTo",
    "major",
    "minor",
    "patch",
];
/// Functions that come to a text.
const TEXTS: &[&str] = &[
    "string",
    "find",
    "charAt",
    "substring",
    "replace",
    "join",
    "lowerAscii",
    "upperAscii",
    "trim",
];
/// Functions that come to a list.
const LISTS: &[&str] = &[
    "sort",
    "slice",
    "flatten",
    "distinct",
    "lists.range",
    "findAll",
    "split",
];
/// Functions that come to an optional value.
const OPTIONALS: &[&str] = &[
    "first",
    "last",
    "or",
    "optional.of",
    "optional.none",
    "optional.ofNonZeroValue",
];

impl Expression {
    /// Returns what the expression comes to where that is certainly neither true nor false, with its article. None says nothing.
    pub fn never_true_or_false(&self) -> Option<&'static str> {
        match sort_of(&self.tree) {
            Sort::Other(what) => Some(what),
            Sort::Truth | Sort::Unknown => None,
        }
    }
}

/// Returns what a part comes to.
pub(super) fn sort_of(node: &Node) -> Sort {
    match &node.kind {
        Kind::Literal(literal) => match literal {
            Literal::Null => Sort::Other("null"),
            Literal::Bool(_) => Sort::Truth,
            Literal::Int(_) | Literal::UInt(_) | Literal::Float(_) => Sort::Other("a number"),
            Literal::Text(_) => Sort::Other("a text"),
        },
        Kind::Has { .. } | Kind::Not(_) | Kind::All(_) | Kind::Any(_) => Sort::Truth,
        Kind::Negate(_) => Sort::Other("a number"),
        Kind::Binary(operator, left, right) => binary(*operator, left, right),
        Kind::Choice(nodes) => {
            let [_, then, otherwise] = nodes.as_ref();
            match (sort_of(then), sort_of(otherwise)) {
                (one, two) if one == two => one,
                (Sort::Other(_), Sort::Other(_)) => Sort::Other("one of two values"),
                _ => Sort::Unknown,
            }
        }
        Kind::List(_) => Sort::Other("a list"),
        Kind::Map(_) => Sort::Other("an object"),
        Kind::Loop(turns) => match turns.form {
            LoopForm::All | LoopForm::Exists | LoopForm::ExistsOne => Sort::Truth,
            LoopForm::Map | LoopForm::Filter => Sort::Other("a list"),
        },
        Kind::Call(function, _) => call(function.name),
        Kind::Name(_) | Kind::Select { .. } | Kind::Index { .. } => Sort::Unknown,
    }
}

fn binary(operator: Operator, left: &Node, right: &Node) -> Sort {
    match operator {
        Operator::Equal
        | Operator::NotEqual
        | Operator::Less
        | Operator::LessOrEqual
        | Operator::Greater
        | Operator::GreaterOrEqual
        | Operator::In => Sort::Truth,
        Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
            Sort::Other("a number")
        }
        // Both sides are of one sort, or there is no sum.
        Operator::Add => match (sort_of(left), sort_of(right)) {
            (Sort::Other(what), _) | (_, Sort::Other(what)) => Sort::Other(what),
            _ => Sort::Other("a sum"),
        },
    }
}

fn call(name: &str) -> Sort {
    let among = |names: &[&str]| names.contains(&name);
    match name {
        _ if among(NUMBERS) => Sort::Other("a number"),
        _ if among(TEXTS) => Sort::Other("a text"),
        _ if among(LISTS) => Sort::Other("a list"),
        _ if among(OPTIONALS) => Sort::Other("an optional value"),
        "reverse" => Sort::Other("a text or a list"),
        "quantity" | "add" | "sub" => Sort::Other("a quantity"),
        "semver" => Sort::Other("a version"),
        _ => Sort::Unknown,
    }
}
