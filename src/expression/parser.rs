//! From words to the tree, after the grammar of CEL's specification. It recurses no deeper than the limit, and its time grows
//! with the length of the text.

use super::compile::ExpressionError;
use super::functions::{self, Form};
use super::tokens::{Token, TokenKind, error, tokens};
use super::tree::{Element, Kind, Literal, Loop, LoopForm, Node, Operator};
use crate::model::{limits, nearest};

/// Names that CEL keeps for itself. Fields may have them.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

/// Loops, which look like methods.
const LOOPS: &[&str] = &["all", "exists", "exists_one", "map", "filter"];

/// Operators by how tightly they bind, from the loosest; all of one line alike, from the left.
const LEVELS: &[&[(&str, Operator)]] = &[
    &[
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
        ("in", Operator::In),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[
        ("*", Operator::Multiply),
        ("/", Operator::Divide),
        ("%", Operator::Remainder),
    ],
];

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<Node, ExpressionError> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        position: 0,
        nesting: 0,
    };
    let node = parser.expression()?;
    match parser.peek() {
        TokenKind::End => Ok(node),
        other => {
            let message = format!("{} does not belong here", other.describe());
            Err(error(parser.at(), message))
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    position: usize,
    nesting: usize,
}

type Parsed = Result<Node, ExpressionError>;

impl Parser {
    fn peek(&self) -> &TokenKind {
        &self.tokens[self.position].kind
    }

    fn at(&self) -> usize {
        self.tokens[self.position].at
    }

    fn next(&mut self) -> Token {
        let token = self.tokens[self.position].clone();
        // The end is never passed.
        if self.position + 1 < self.tokens.len() {
            self.position += 1;
        }
        token
    }

    fn takes(&mut self, symbol: &str) -> bool {
        let is_there = match self.peek() {
            TokenKind::Symbol(it) => *it == symbol,
            TokenKind::Word(it) => it == symbol,
            _ => false,
        };
        if is_there {
            self.next();
        }
        is_there
    }

    fn expect(&mut self, symbol: &str) -> Result<(), ExpressionError> {
        if self.takes(symbol) {
            return Ok(());
        }
        let found = self.peek().describe();
        Err(error(
            self.at(),
            format!("expected `{symbol}`, found {found}"),
        ))
    }

    /// Makes a part, unless it is too deep.
    fn node(at: usize, kind: Kind) -> Parsed {
        let mut node = Node { at, depth: 1, kind };
        let below = node.children().into_iter().map(|it| it.depth).max();
        node.depth += below.unwrap_or(0);
        if node.depth > limits::EXPRESSION_DEPTH_MAX {
            return Err(too_deep(at));
        }
        Ok(node)
    }

    fn expression(&mut self) -> Parsed {
        self.nesting += 1;
        if self.nesting > limits::EXPRESSION_DEPTH_MAX {
            return Err(too_deep(self.at()));
        }
        let condition = self.any()?;
        let node = if self.takes("?") {
            let then = self.any()?;
            self.expect(":")?;
            let otherwise = self.expression()?;
            let at = condition.at;
            Self::node(at, Kind::Choice(Box::new([condition, then, otherwise])))?
        } else {
            condition
        };
        self.nesting -= 1;
        Ok(node)
    }

    fn any(&mut self) -> Parsed {
        let first = self.all()?;
        let at = first.at;
        let mut nodes = vec![first];
        while self.takes("||") {
            nodes.push(self.all()?);
        }
        match nodes.pop() {
            Some(node) if nodes.is_empty() => Ok(node),
            last => {
                nodes.extend(last);
                Self::node(at, Kind::Any(nodes))
            }
        }
    }

    fn all(&mut self) -> Parsed {
        let first = self.level(0)?;
        let at = first.at;
        let mut nodes = vec![first];
        while self.takes("&&") {
            nodes.push(self.level(0)?);
        }
        match nodes.pop() {
            Some(node) if nodes.is_empty() => Ok(node),
            last => {
                nodes.extend(last);
                Self::node(at, Kind::All(nodes))
            }
        }
    }

    fn level(&mut self, level: usize) -> Parsed {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.level(level + 1)?;
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.takes(symbol)) {
            let right = self.level(level + 1)?;
            let at = left.at;
            left = Self::node(at, Kind::Binary(*operator, Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed {
        let at = self.at();
        let mut signs = Vec::new();
        loop {
            if self.takes("!") {
                signs.push('!');
            } else if self.takes("-") {
                signs.push('-');
            } else {
                break;
            }
        }
        let mut node = self.member()?;
        for sign in signs.into_iter().rev() {
            node = match (sign, &node.kind) {
                ('-', Kind::Literal(Literal::Int(value))) => {
                    Self::node(at, Kind::Literal(Literal::Int(-value)))?
                }
                ('-', Kind::Literal(Literal::UInt(value))) if *value == 1 << 63 => {
                    Self::node(at, Kind::Literal(Literal::Int(i64::MIN)))?
                }
                ('-', Kind::Literal(Literal::Float(value))) => {
                    Self::node(at, Kind::Literal(Literal::Float(-value)))?
                }
                ('-', _) => Self::node(at, Kind::Negate(Box::new(node)))?,
                _ => Self::node(at, Kind::Not(Box::new(node)))?,
            };
        }
        Ok(node)
    }

    fn member(&mut self) -> Parsed {
        let mut node = self.primary()?;
        loop {
            let at = self.at();
            if self.takes(".") {
                let is_optional = self.takes("?");
                let (field, is_quoted) = self.field()?;
                if !is_optional && !is_quoted && self.takes("(") {
                    node = self.method(node, &field, at)?;
                } else {
                    let operand = Box::new(node);
                    node = Self::node(
                        at,
                        Kind::Select {
                            operand,
                            field: field.into(),
                            is_optional,
                        },
                    )?;
                }
            } else if self.takes("[") {
                let is_optional = self.takes("?");
                let index = Box::new(self.expression()?);
                self.expect("]")?;
                let operand = Box::new(node);
                node = Self::node(
                    at,
                    Kind::Index {
                        operand,
                        index,
                        is_optional,
                    },
                )?;
            } else {
                return Ok(node);
            }
        }
    }

    fn field(&mut self) -> Result<(String, bool), ExpressionError> {
        let token = self.next();
        match token.kind {
            TokenKind::Word(name) => Ok((name, false)),
            TokenKind::Quoted(name) => Ok((name, true)),
            other => Err(error(
                token.at,
                format!("expected the name of a field, found {}", other.describe()),
            )),
        }
    }

    /// Reads `target.name(…)`, from behind the parenthesis.
    fn method(&mut self, target: Node, name: &str, at: usize) -> Parsed {
        let form = match name {
            "all" => Some(LoopForm::All),
            "exists" => Some(LoopForm::Exists),
            "exists_one" | "existsOne" => Some(LoopForm::ExistsOne),
            "map" => Some(LoopForm::Map),
            "filter" => Some(LoopForm::Filter),
            _ => None,
        };
        let mut arguments = self.arguments(")")?;
        if let Some(form) = form {
            return Self::turns(target, form, name, arguments, at);
        }
        if let Kind::Name(prefix) = &target.kind {
            let whole = format!("{prefix}.{name}");
            if let Some(function) = functions::find(&whole) {
                return Self::call(function, arguments, at);
            }
        }
        let function = functions::find(name)
            .filter(|function| function.form != Form::Function)
            .ok_or_else(|| unknown(name, true, at))?;
        arguments.insert(0, target);
        Self::call(function, arguments, at)
    }

    fn turns(
        range: Node,
        form: LoopForm,
        name: &str,
        mut arguments: Vec<Node>,
        at: usize,
    ) -> Parsed {
        let has_condition = form == LoopForm::Map && arguments.len() == 3;
        if arguments.len() != 2 && !has_condition {
            let message = format!("`{name}` takes the name of a variable and an expression");
            return Err(error(at, message));
        }
        let (Some(body), Kind::Name(variable)) = (arguments.pop(), arguments[0].kind.clone())
        else {
            let message = format!("the first argument of `{name}` is no name of a variable");
            return Err(error(arguments[0].at, message));
        };
        let condition = if has_condition { arguments.pop() } else { None };
        let turns = Loop {
            form,
            range,
            variable,
            condition,
            body,
        };
        let node = Self::node(at, Kind::Loop(Box::new(turns)))?;
        if node.loops() > limits::EXPRESSION_LOOPS_MAX {
            let message = format!(
                "more than {} loops are inside of each other",
                limits::EXPRESSION_LOOPS_MAX
            );
            return Err(error(at, message));
        }
        Ok(node)
    }

    fn call(function: &'static functions::Function, arguments: Vec<Node>, at: usize) -> Parsed {
        let (least, most) = function.arguments;
        if arguments.len() < least || arguments.len() > most {
            let message = format!("`{}` is called as {}", function.name, function.usage);
            return Err(error(at, message));
        }
        Self::node(at, Kind::Call(function, arguments))
    }

    fn arguments(&mut self, end: &str) -> Result<Vec<Node>, ExpressionError> {
        let mut nodes = Vec::new();
        if self.takes(end) {
            return Ok(nodes);
        }
        loop {
            nodes.push(self.expression()?);
            if !self.takes(",") {
                break;
            }
        }
        self.expect(end)?;
        Ok(nodes)
    }

    fn primary(&mut self) -> Parsed {
        let token = self.next();
        let at = token.at;
        match token.kind {
            // Only a negation may stand before it, which looks at the number itself.
            TokenKind::Literal(literal) => Self::node(at, Kind::Literal(literal)),
            TokenKind::Symbol("(") => {
                let node = self.expression()?;
                self.expect(")")?;
                Ok(node)
            }
            TokenKind::Symbol("[") => self.list(at),
            TokenKind::Symbol("{") => self.map(at),
            TokenKind::Word(word) => self.word(word, at),
            other => Err(error(
                at,
                format!("expected a value, found {}", other.describe()),
            )),
        }
    }

    fn word(&mut self, word: String, at: usize) -> Parsed {
        let literal = match word.as_str() {
            "true" => Some(Literal::Bool(true)),
            "false" => Some(Literal::Bool(false)),
            "null" => Some(Literal::Null),
            "in" => return Err(error(at, "expected a value, found `in`")),
            _ => None,
        };
        if let Some(literal) = literal {
            return Self::node(at, Kind::Literal(literal));
        }
        if RESERVED.contains(&word.as_str()) {
            return Err(error(at, format!("CEL keeps the name `{word}` for itself")));
        }
        if !self.takes("(") {
            return Self::node(at, Kind::Name(word.into()));
        }
        let mut arguments = self.arguments(")")?;
        if word == "has" {
            let argument = arguments.pop().filter(|_| arguments.is_empty());
            return match argument.map(|it| it.kind) {
                Some(Kind::Select {
                    operand,
                    field,
                    is_optional: false,
                }) => Self::node(at, Kind::Has { operand, field }),
                _ => Err(error(at, "`has` takes one field, as in `has(a.b)`")),
            };
        }
        let function = functions::find(&word)
            .filter(|function| function.form != Form::Method)
            .ok_or_else(|| unknown(&word, false, at))?;
        Self::call(function, arguments, at)
    }

    fn list(&mut self, at: usize) -> Parsed {
        let mut elements = Vec::new();
        while !self.takes("]") {
            let is_optional = self.takes("?");
            let node = self.expression()?;
            elements.push(Element { is_optional, node });
            if !self.takes(",") {
                self.expect("]")?;
                break;
            }
        }
        Self::node(at, Kind::List(elements))
    }

    fn map(&mut self, at: usize) -> Parsed {
        let mut entries = Vec::new();
        while !self.takes("}") {
            let is_optional = self.takes("?");
            let key = self.expression()?;
            self.expect(":")?;
            let node = self.expression()?;
            entries.push((key, Element { is_optional, node }));
            if !self.takes(",") {
                self.expect("}")?;
                break;
            }
        }
        Self::node(at, Kind::Map(entries))
    }
}

fn too_deep(at: usize) -> ExpressionError {
    let message = format!(
        "more than {} parts are inside of each other",
        limits::EXPRESSION_DEPTH_MAX
    );
    error(at, message)
}

fn unknown(name: &str, is_method: bool, at: usize) -> ExpressionError {
    let what = if is_method { "method" } else { "function" };
    let known = functions::find(name);
    let usage = known.map_or_else(String::new, |it| format!("; it is called as {}", it.usage));
    let (macros, other) = if is_method {
        (LOOPS, Form::Function)
    } else {
        (&["has"][..], Form::Method)
    };
    let functions = functions::GROUPS.iter().flat_map(|it| it.functions);
    let names = functions.filter(|it| it.form != other).map(|it| it.name);
    let meant = nearest(name, names.chain(macros.iter().copied()));
    ExpressionError {
        meant: meant.filter(|_| known.is_none()),
        ..error(at, format!("there is no {what} `{name}`{usage}"))
    }
}
