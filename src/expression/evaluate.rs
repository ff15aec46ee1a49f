//! From an expression and values to a value.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Number, Value};

use super::bindings::Bindings;
use super::budget::Budget;
use super::compile::Expression;
use super::item::{Fields, Item, List, Text};
use super::operators;
use super::tree::{Element, Kind, Literal, Loop, LoopForm, Node, Operator};
use crate::model::limits;

/// Why an expression has no value: the result is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EvaluationError {
    /// What went wrong, as a lowercase fragment without the values involved.
    pub message: String,
}

impl EvaluationError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

/// Why a part has no value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failure {
    pub(super) message: String,
    /// Whether this ends the evaluation, whatever the other side of an `||` says.
    is_final: bool,
}

impl Failure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_final: false,
        }
    }

    pub(super) fn too_much() -> Self {
        Self {
            message: "it takes more work than one evaluation may; look at fewer objects, or use fewer loops"
                .to_owned(),
            is_final: true,
        }
    }
}

pub(super) type Evaluated<'v> = Result<Item<'v>, Failure>;

impl Expression {
    /// Evaluates the expression. It blocks for at most the deadline of one evaluation.
    ///
    /// # Errors
    ///
    /// When it names what is not there, mixes types, or takes too much work.
    pub fn evaluate(&self, bindings: &Bindings) -> Result<Value, EvaluationError> {
        if bindings.size() > limits::BINDINGS_SIZE_MAX {
            return Err(EvaluationError::new(format!(
                "what it may look at has more than {} bytes; narrow the lookups by namespace, selector or name",
                limits::BINDINGS_SIZE_MAX
            )));
        }
        let mut machine = Machine::new(bindings);
        machine
            .value(&self.tree)
            .and_then(|item| machine.json(&item))
            .map_err(|failure| EvaluationError::new(failure.message))
    }

    /// Evaluates the expression, which must come to true or false.
    ///
    /// # Errors
    ///
    /// As [`Expression::evaluate`], and when it comes to anything else.
    pub fn holds(&self, bindings: &Bindings) -> Result<bool, EvaluationError> {
        match self.evaluate(bindings)? {
            Value::Bool(holds) => Ok(holds),
            _ => Err(EvaluationError::new("it comes to neither true nor false")),
        }
    }
}

/// One evaluation.
pub(super) struct Machine<'v> {
    bindings: &'v Bindings,
    /// Variables of loops, the innermost last.
    variables: Vec<(&'v str, Item<'v>)>,
    pub(super) budget: Budget,
    patterns: BTreeMap<String, Regex>,
}

impl<'v> Machine<'v> {
    pub(super) fn new(bindings: &'v Bindings) -> Self {
        Self {
            bindings,
            variables: Vec::new(),
            budget: Budget::default(),
            patterns: BTreeMap::new(),
        }
    }

    pub(super) fn value(&mut self, node: &'v Node) -> Evaluated<'v> {
        self.budget.take(1)?;
        match &node.kind {
            Kind::Literal(literal) => Ok(match literal {
                Literal::Null => Item::Null,
                Literal::Bool(value) => Item::Bool(*value),
                Literal::Int(value) => Item::Int(*value),
                Literal::UInt(value) => Item::UInt(*value),
                Literal::Float(value) => Item::Float(*value),
                Literal::Text(text) => Item::Text(Text::Borrowed(text)),
            }),
            Kind::Name(name) => self.named(name),
            Kind::Select {
                operand,
                field,
                is_optional,
            } => {
                let item = self.value(operand)?;
                select(item, field, *is_optional, operand)
            }
            Kind::Has { operand, field } => {
                let item = self.value(operand)?;
                has(&item, field, operand)
            }
            Kind::Index {
                operand,
                index,
                is_optional,
            } => {
                let item = self.value(operand)?;
                let index = self.value(index)?;
                operators::index(item, &index, *is_optional)
            }
            Kind::Not(inside) => match self.value(inside)? {
                Item::Bool(value) => Ok(Item::Bool(!value)),
                other => Err(no_truth("!", &other)),
            },
            Kind::Negate(inside) => operators::negate(&self.value(inside)?),
            Kind::Binary(operator, left, right) => self.binary(*operator, left, right),
            Kind::All(nodes) => self.logic(nodes, false),
            Kind::Any(nodes) => self.logic(nodes, true),
            Kind::Choice(nodes) => {
                let [condition, then, otherwise] = nodes.as_ref();
                match self.value(condition)? {
                    Item::Bool(true) => self.value(then),
                    Item::Bool(false) => self.value(otherwise),
                    other => Err(no_truth("?", &other)),
                }
            }
            Kind::List(elements) => self.list(elements),
            Kind::Map(entries) => self.map(entries),
            Kind::Loop(turns) => self.turns(turns),
            Kind::Call(function, nodes) => {
                let mut arguments = Vec::with_capacity(nodes.len());
                for node in nodes {
                    arguments.push(self.value(node)?);
                }
                (function.run)(self, &arguments).map_err(|failure| {
                    let message = format!("`{}`: {}", function.name, failure.message);
                    Failure { message, ..failure }
                })
            }
        }
    }

    fn named(&self, name: &'v str) -> Evaluated<'v> {
        let variable = self.variables.iter().rev().find(|(it, _)| *it == name);
        match (variable, self.bindings.get(name)) {
            (Some((_, item)), _) => Ok(item.clone()),
            (None, Some(value)) => Ok(Item::from(value)),
            (None, None) => Err(Failure::new(format!("there is no `{name}`"))),
        }
    }

    fn binary(&mut self, operator: Operator, left: &'v Node, right: &'v Node) -> Evaluated<'v> {
        let left = self.value(left)?;
        let right = self.value(right)?;
        operators::binary(operator, &left, &right, &mut self.budget)
    }

    /// Evaluates `&&` (`ends_with` false) and `||` (true): one part that decides makes up for parts that have no value.
    fn logic(&mut self, nodes: &'v [Node], ends_with: bool) -> Evaluated<'v> {
        let symbol = if ends_with { "||" } else { "&&" };
        let mut failure = None;
        for node in nodes {
            match self.value(node) {
                Ok(Item::Bool(value)) if value == ends_with => return Ok(Item::Bool(value)),
                Ok(Item::Bool(_)) => {}
                Ok(other) => {
                    failure.get_or_insert(no_truth(symbol, &other));
                }
                Err(error) if error.is_final => return Err(error),
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        failure.map_or(Ok(Item::Bool(!ends_with)), Err)
    }

    fn list(&mut self, elements: &'v [Element]) -> Evaluated<'v> {
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            items.extend(self.element(element)?);
        }
        Ok(Item::list(items))
    }

    fn map(&mut self, entries: &'v [(Node, Element)]) -> Evaluated<'v> {
        let mut fields = BTreeMap::new();
        for (key, element) in entries {
            let Item::Text(key) = self.value(key)? else {
                return Err(Failure::new("a key of an object is no text"));
            };
            self.budget.take_bytes(key.len())?;
            let Some(item) = self.element(element)? else {
                continue;
            };
            if fields.insert(key.to_string(), item).is_some() {
                return Err(Failure::new("an object has the same key twice"));
            }
        }
        Ok(Item::Map(Fields::Owned(Rc::new(fields))))
    }

    fn element(&mut self, element: &'v Element) -> Result<Option<Item<'v>>, Failure> {
        let item = self.value(&element.node)?;
        match (element.is_optional, item) {
            (false, item) => Ok(Some(item)),
            (true, Item::Optional(inside)) => Ok(inside.map(|it| (*it).clone())),
            (true, other) => Err(Failure::new(format!(
                "`?` needs an optional value, and {} is none",
                other.what()
            ))),
        }
    }

    fn turns(&mut self, turns: &'v Loop) -> Evaluated<'v> {
        let range = match self.value(&turns.range)? {
            Item::List(list) => list,
            Item::Map(fields) => {
                self.budget.take_items(fields.len())?;
                let names = fields.names().into_iter().map(Item::Text).collect();
                List::Owned(Rc::new(names))
            }
            other => {
                return Err(Failure::new(format!(
                    "{} is {} and cannot be looped over",
                    place(&turns.range),
                    other.what()
                )));
            }
        };
        let mut found = Vec::new();
        let mut count = 0_usize;
        let mut failure = None;
        for item in range.iter() {
            self.budget.take(1)?;
            self.variables.push((&turns.variable, item.clone()));
            let outcome = self.turn(turns);
            self.variables.pop();
            match (turns.form, outcome) {
                (LoopForm::All, Ok(Some(Item::Bool(false)))) => return Ok(Item::Bool(false)),
                (LoopForm::Exists, Ok(Some(Item::Bool(true)))) => return Ok(Item::Bool(true)),
                (LoopForm::ExistsOne, Ok(Some(Item::Bool(true)))) => count += 1,
                (LoopForm::Filter, Ok(Some(Item::Bool(true)))) => found.push(item),
                (LoopForm::Map, Ok(Some(item))) => found.push(item),
                (_, Ok(_)) => {}
                (LoopForm::All | LoopForm::Exists, Err(error)) if !error.is_final => {
                    failure.get_or_insert(error);
                }
                (_, Err(error)) => return Err(error),
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        Ok(match turns.form {
            LoopForm::All => Item::Bool(true),
            LoopForm::Exists => Item::Bool(false),
            LoopForm::ExistsOne => Item::Bool(count == 1),
            LoopForm::Map | LoopForm::Filter => Item::list(found),
        })
    }

    /// Returns whether one element decides a loop: by what it comes to, or since nobody knows what that is. None where that took too
    /// much to be found out.
    pub(super) fn is_decided_by(&mut self, turns: &'v Loop, item: Item<'v>) -> Option<bool> {
        self.variables.push((&turns.variable, item));
        let outcome = self.turn(turns);
        self.variables.pop();
        match outcome {
            Ok(Some(Item::Bool(holds))) => Some(holds != (turns.form == LoopForm::All)),
            Ok(found) => Some(found.is_some() && turns.condition.is_some()),
            Err(failure) => (!failure.is_final).then_some(true),
        }
    }

    /// Takes one turn; none where the condition of a `map` is false.
    fn turn(&mut self, turns: &'v Loop) -> Result<Option<Item<'v>>, Failure> {
        if let Some(condition) = &turns.condition {
            match self.value(condition)? {
                Item::Bool(true) => {}
                Item::Bool(false) => return Ok(None),
                other => return Err(no_truth("map", &other)),
            }
        }
        let item = self.value(&turns.body)?;
        match (turns.form, &item) {
            (LoopForm::Map, _) | (_, Item::Bool(_)) => Ok(Some(item)),
            (_, other) => Err(Failure::new(format!(
                "the condition of a loop is {}, neither true nor false",
                other.what()
            ))),
        }
    }

    /// Returns a compiled pattern; one that is used again is compiled once.
    pub(super) fn pattern(&mut self, pattern: &str) -> Result<Regex, Failure> {
        if let Some(regex) = self.patterns.get(pattern) {
            return Ok(regex.clone());
        }
        self.budget.take(limits::EXPRESSION_PATTERN_COST)?;
        let regex = RegexBuilder::new(pattern)
            .size_limit(limits::EXPRESSION_PATTERN_SIZE_MAX)
            .dfa_size_limit(limits::EXPRESSION_PATTERN_SIZE_MAX)
            .build()
            .map_err(|error| {
                Failure::new(match error {
                    regex::Error::CompiledTooBig(_) => "the pattern is too large",
                    _ => "the pattern is no regular expression (RE2)",
                })
            })?;
        self.patterns.insert(pattern.to_owned(), regex.clone());
        Ok(regex)
    }

    fn json(&mut self, item: &Item<'_>) -> Result<Value, Failure> {
        self.budget.take(1)?;
        Ok(match item {
            Item::Null => Value::Null,
            Item::Bool(value) => Value::Bool(*value),
            Item::Int(value) => Value::from(*value),
            Item::UInt(value) => Value::from(*value),
            Item::Float(value) => Number::from_f64(*value)
                .map(Value::Number)
                .ok_or_else(|| Failure::new("it comes to a number that JSON does not have"))?,
            Item::Text(text) => {
                self.budget.take_bytes(text.len())?;
                Value::from(&**text)
            }
            Item::List(list) => Value::Array(
                list.iter()
                    .map(|item| self.json(&item))
                    .collect::<Result<_, _>>()?,
            ),
            Item::Map(fields) => {
                let mut object = Map::new();
                for name in fields.names() {
                    self.budget.take_bytes(name.len())?;
                    if let Some(item) = fields.get(&name) {
                        object.insert(name.to_string(), self.json(&item)?);
                    }
                }
                Value::Object(object)
            }
            Item::Optional(Some(_) | None) | Item::Quantity(_) | Item::Version(_) => {
                let hint = match item {
                    Item::Optional(_) => "end it with `.orValue(…)`",
                    _ => "make it a text with `string(…)`",
                };
                return Err(Failure::new(format!(
                    "it comes to {}, which JSON does not have; {hint}",
                    item.what()
                )));
            }
        })
    }
}

/// Names a part for a message: by its path, where it is one.
fn place(node: &Node) -> Cow<'static, str> {
    match node.path() {
        Some(path) => Cow::Owned(format!("`{}`", path.join("."))),
        None => Cow::Borrowed("what stands there"),
    }
}

fn no_truth(symbol: &str, item: &Item<'_>) -> Failure {
    Failure::new(format!(
        "`{symbol}` needs true or false, and there is {}",
        item.what()
    ))
}

fn select<'v>(
    item: Item<'v>,
    field: &Arc<str>,
    is_optional: bool,
    operand: &Node,
) -> Evaluated<'v> {
    let (inside, is_optional) = match item {
        Item::Optional(None) => return Ok(Item::Optional(None)),
        Item::Optional(Some(inside)) => ((*inside).clone(), true),
        other => (other, is_optional),
    };
    match inside {
        Item::Map(fields) => match fields.get(field) {
            Some(item) if is_optional => Ok(Item::Optional(Some(Rc::new(item)))),
            Some(item) => Ok(item),
            None if is_optional => Ok(Item::Optional(None)),
            None => Err(Failure::new(format!(
                "{} has no `{field}`; ask with `has(…)` or `.?{field}` first",
                place(operand)
            ))),
        },
        Item::Null if is_optional => Ok(Item::Optional(None)),
        other => Err(Failure::new(format!(
            "{} is {} and has no field `{field}`",
            place(operand),
            other.what()
        ))),
    }
}

fn has<'v>(item: &Item<'v>, field: &str, operand: &Node) -> Evaluated<'v> {
    match item {
        Item::Map(fields) => Ok(Item::Bool(fields.has(field))),
        Item::Optional(None) => Ok(Item::Bool(false)),
        Item::Optional(Some(inside)) => has(inside, field, operand),
        other => Err(Failure::new(format!(
            "{} is {} and has no fields",
            place(operand),
            other.what()
        ))),
    }
}
