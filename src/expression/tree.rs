//! What a text means: the tree that is evaluated.

use std::sync::Arc;

use super::functions::Function;

/// A part of an expression, and where it begins.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Bytes from the start of the text.
    pub(super) at: usize,
    /// How many parts are inside of each other, this one counted.
    pub(super) depth: usize,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Literal(Literal),
    Name(Arc<str>),
    /// `a.b`, `a.?b`
    Select {
        operand: Box<Node>,
        field: Arc<str>,
        is_optional: bool,
    },
    /// `has(a.b)`
    Has {
        operand: Box<Node>,
        field: Arc<str>,
    },
    /// `a[b]`, `a[?b]`
    Index {
        operand: Box<Node>,
        index: Box<Node>,
        is_optional: bool,
    },
    Not(Box<Node>),
    Negate(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
    /// `a ? b : c`
    Choice(Box<[Node; 3]>),
    List(Vec<Element>),
    Map(Vec<(Node, Element)>),
    Loop(Box<Loop>),
    /// The target of a method is its first argument.
    Call(&'static Function, Vec<Node>),
}

#[derive(Debug, Clone)]
pub(super) struct Element {
    pub(super) is_optional: bool,
    pub(super) node: Node,
}

#[derive(Debug, Clone)]
pub(super) struct Loop {
    pub(super) form: LoopForm,
    pub(super) range: Node,
    pub(super) variable: Arc<str>,
    /// `map` with a condition.
    pub(super) condition: Option<Node>,
    pub(super) body: Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopForm {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug, Clone)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Text(Arc<str>),
}

impl Node {
    /// Returns the parts right below this one.
    pub(super) fn children(&self) -> Vec<&Self> {
        match &self.kind {
            Kind::Literal(_) | Kind::Name(_) => Vec::new(),
            Kind::Select { operand, .. } | Kind::Has { operand, .. } => vec![operand],
            Kind::Index { operand, index, .. } => vec![operand, index],
            Kind::Not(node) | Kind::Negate(node) => vec![node],
            Kind::Binary(_, left, right) => vec![left, right],
            Kind::All(nodes) | Kind::Any(nodes) | Kind::Call(_, nodes) => nodes.iter().collect(),
            Kind::Choice(nodes) => nodes.iter().collect(),
            Kind::List(elements) => elements.iter().map(|it| &it.node).collect(),
            Kind::Map(entries) => entries
                .iter()
                .flat_map(|(key, value)| [key, &value.node])
                .collect(),
            Kind::Loop(it) => [&it.range]
                .into_iter()
                .chain(&it.condition)
                .chain([&it.body])
                .collect(),
        }
    }

    /// Returns how many bytes stand before the leftmost part of this one; a field or an index begins at its sign.
    pub(super) fn start(&self) -> usize {
        match &self.kind {
            Kind::Select { operand, .. }
            | Kind::Has { operand, .. }
            | Kind::Index { operand, .. } => operand.start(),
            _ => self.at,
        }
    }

    /// Returns the path of an expression that is nothing but one: names, and constant texts as indexes.
    pub(super) fn path(&self) -> Option<Vec<String>> {
        match &self.kind {
            Kind::Name(name) => Some(vec![name.to_string()]),
            Kind::Select { operand, field, .. } | Kind::Has { operand, field } => {
                let mut path = operand.path()?;
                path.push(field.to_string());
                Some(path)
            }
            Kind::Index { operand, index, .. } => {
                let Kind::Literal(Literal::Text(name)) = &index.kind else {
                    return None;
                };
                let mut path = operand.path()?;
                path.push(name.to_string());
                Some(path)
            }
            _ => None,
        }
    }

    /// Returns how many loops are inside of each other.
    pub(super) fn loops(&self) -> usize {
        let below = |nodes: Vec<&Self>| nodes.into_iter().map(Self::loops).max().unwrap_or(0);
        match &self.kind {
            // The range is walked before the loop, not in it.
            Kind::Loop(it) => {
                let inside = it.condition.iter().chain([&it.body]).collect();
                it.range.loops().max(1 + below(inside))
            }
            _ => below(self.children()),
        }
    }
}

impl Operator {
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}
