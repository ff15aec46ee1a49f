//! Values with expressions in their texts: `"${params.size}"`.

use serde_json::{Map, Value};

use super::bindings::Bindings;
use super::compile::{Expression, ExpressionError};
use super::evaluate::EvaluationError;

/// A value whose texts were read. A text that is one expression alone becomes the expression's value, whatever its type; in a
/// text with more around it, the value must be a text, a number or a truth value. `$${` stands for `${`.
#[derive(Debug, Clone)]
pub enum Template {
    /// A value without expressions.
    Constant(Value),
    /// One expression and nothing else.
    Value(Expression),
    /// A text with expressions in it.
    Text(Vec<Piece>),
    /// A list.
    List(Vec<Template>),
    /// An object; keys are never read for expressions.
    Object(Vec<(String, Template)>),
}

/// A part of a text.
#[derive(Debug, Clone)]
pub enum Piece {
    /// As it stands.
    Constant(String),
    /// Replaced by its value.
    Expression(Expression),
}

/// Which text of a template is wrong, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct TemplateError {
    /// The way to the text, as a JSON pointer.
    pub pointer: String,
    /// What is wrong with it.
    pub error: ExpressionError,
}

impl Template {
    /// Reads the texts of a value.
    ///
    /// # Errors
    ///
    /// The first text that is wrong.
    pub fn compile(value: &Value) -> Result<Self, TemplateError> {
        compile(value, &mut String::new())
    }

    /// Returns every expression of the template.
    pub fn expressions(&self) -> Vec<&Expression> {
        match self {
            Self::Constant(_) => Vec::new(),
            Self::Value(expression) => vec![expression],
            Self::Text(pieces) => pieces
                .iter()
                .filter_map(|piece| match piece {
                    Piece::Expression(expression) => Some(expression),
                    Piece::Constant(_) => None,
                })
                .collect(),
            Self::List(items) => items.iter().flat_map(Self::expressions).collect(),
            Self::Object(fields) => fields
                .iter()
                .flat_map(|(_, field)| field.expressions())
                .collect(),
        }
    }

    /// Puts values in the place of expressions.
    ///
    /// # Errors
    ///
    /// When an expression has no value, or one that cannot stand in a text.
    pub fn render(&self, bindings: &Bindings) -> Result<Value, EvaluationError> {
        Ok(match self {
            Self::Constant(value) => value.clone(),
            Self::Value(expression) => expression.evaluate(bindings)?,
            Self::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Constant(constant) => text.push_str(constant),
                        Piece::Expression(expression) => match expression.evaluate(bindings)? {
                            Value::String(value) => text.push_str(&value),
                            value @ (Value::Number(_) | Value::Bool(_)) => {
                                text.push_str(&value.to_string());
                            }
                            _ => {
                                return Err(EvaluationError::new(format!(
                                    "`{}` stands inside a text and comes to neither a text, a number nor a truth value",
                                    expression.text()
                                )));
                            }
                        },
                    }
                }
                Value::String(text)
            }
            Self::List(items) => Value::Array(
                items
                    .iter()
                    .map(|item| item.render(bindings))
                    .collect::<Result<_, _>>()?,
            ),
            Self::Object(fields) => {
                let mut object = Map::new();
                for (name, field) in fields {
                    object.insert(name.clone(), field.render(bindings)?);
                }
                Value::Object(object)
            }
        })
    }
}

fn compile(value: &Value, pointer: &mut String) -> Result<Template, TemplateError> {
    Ok(match value {
        Value::String(text) if text.contains("${") => {
            text_of(text).map_err(|error| TemplateError {
                pointer: pointer.clone(),
                error,
            })?
        }
        Value::Array(items) => {
            let mut templates = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                templates.push(below(pointer, &index.to_string(), item)?);
            }
            Template::List(templates)
        }
        Value::Object(fields) => {
            let mut templates = Vec::with_capacity(fields.len());
            for (name, field) in fields {
                let segment = name.replace('~', "~0").replace('/', "~1");
                templates.push((name.clone(), below(pointer, &segment, field)?));
            }
            Template::Object(templates)
        }
        constant => Template::Constant(constant.clone()),
    })
}

fn below(pointer: &mut String, segment: &str, value: &Value) -> Result<Template, TemplateError> {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(segment);
    let template = compile(value, pointer);
    pointer.truncate(length);
    template
}

fn text_of(text: &str) -> Result<Template, ExpressionError> {
    let mut pieces = Vec::new();
    let mut constant = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        if rest[..start].ends_with('$') {
            constant.push_str(&rest[..start - 1]);
            constant.push_str("${");
            rest = &rest[start + 2..];
            continue;
        }
        constant.push_str(&rest[..start]);
        let inside = &rest[start + 2..];
        let end = end_of(inside).ok_or_else(|| ExpressionError {
            message: "`${` has no `}` that ends it".to_owned(),
            offset: Some(text.len() - rest.len() + start),
            meant: None,
        })?;
        if !constant.is_empty() {
            pieces.push(Piece::Constant(std::mem::take(&mut constant)));
        }
        let inner = &inside[..end];
        let before = text.len() - inside.len() + inner.len() - inner.trim_start().len();
        let expression = Expression::compile(inner.trim()).map_err(|error| ExpressionError {
            offset: error.offset.map(|offset| before + offset),
            ..error
        })?;
        pieces.push(Piece::Expression(expression.behind(before)));
        rest = &inside[end + 1..];
    }
    constant.push_str(rest);
    if !constant.is_empty() {
        pieces.push(Piece::Constant(constant));
    }
    Ok(match pieces.as_slice() {
        [Piece::Expression(expression)] => Template::Value(expression.clone()),
        [Piece::Constant(constant)] => Template::Constant(Value::from(constant.as_str())),
        _ => Template::Text(pieces),
    })
}

/// Returns where the expression ends: at the first closing brace that is neither inside a text nor closes an own one.
fn end_of(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, '{') => depth += 1,
            (None, '}') if depth == 0 => return Some(at),
            (None, '}') => depth -= 1,
            _ => {}
        }
    }
    None
}
