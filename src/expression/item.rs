//! Values while an expression is evaluated. What comes from bindings is borrowed and never copied as a whole.

use std::collections::BTreeMap;
use std::rc::Rc;

use semver::Version;
use serde_json::{Map, Number, Value};

use super::quantity::Quantity;

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Item<'v> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Text(Text<'v>),
    List(List<'v>),
    Map(Fields<'v>),
    Optional(Option<Rc<Item<'v>>>),
    Quantity(Quantity),
    Version(Rc<Version>),
}

#[derive(Debug, Clone)]
pub(super) enum Text<'v> {
    Borrowed(&'v str),
    Owned(Rc<str>),
}

#[derive(Debug, Clone)]
pub(super) enum List<'v> {
    Borrowed(&'v [Value]),
    Owned(Rc<Vec<Item<'v>>>),
}

#[derive(Debug, Clone)]
pub(super) enum Fields<'v> {
    Borrowed(&'v Map<String, Value>),
    Owned(Rc<BTreeMap<String, Item<'v>>>),
}

// === impl Item ===

impl<'v> Item<'v> {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(Text::Owned(Rc::from(text.into())))
    }

    pub(super) fn list(items: Vec<Item<'v>>) -> Self {
        Self::List(List::Owned(Rc::new(items)))
    }

    /// Returns what this is, with its article, for a message. Never the value itself.
    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a truth value",
            Self::Int(_) | Self::UInt(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "an object",
            Self::Optional(_) => "an optional value",
            Self::Quantity(_) => "a quantity",
            Self::Version(_) => "a version",
        }
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int(_) | Self::UInt(_) | Self::Float(_))
    }
}

impl<'v> From<&'v Value> for Item<'v> {
    fn from(value: &'v Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::from(number),
            Value::String(text) => Self::Text(Text::Borrowed(text)),
            Value::Array(values) => Self::List(List::Borrowed(values)),
            Value::Object(fields) => Self::Map(Fields::Borrowed(fields)),
        }
    }
}

impl From<&Number> for Item<'_> {
    fn from(number: &Number) -> Self {
        if let Some(value) = number.as_i64() {
            Self::Int(value)
        } else if let Some(value) = number.as_u64() {
            Self::UInt(value)
        } else {
            Self::Float(number.as_f64().unwrap_or(f64::NAN))
        }
    }
}

// === impl Text, List, Fields ===

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }
}

impl<'v> List<'v> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Borrowed(values) => values.len(),
            Self::Owned(items) => items.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<Item<'v>> {
        match self {
            Self::Borrowed(values) => values.get(index).map(Item::from),
            Self::Owned(items) => items.get(index).cloned(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Item<'v>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

impl<'v> Fields<'v> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Borrowed(fields) => fields.len(),
            Self::Owned(fields) => fields.len(),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<Item<'v>> {
        match self {
            Self::Borrowed(fields) => fields.get(name).map(Item::from),
            Self::Owned(fields) => fields.get(name).cloned(),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::Borrowed(fields) => fields.contains_key(name),
            Self::Owned(fields) => fields.contains_key(name),
        }
    }

    /// Returns the names, in their order.
    pub(super) fn names(&self) -> Vec<Text<'v>> {
        match self {
            Self::Borrowed(fields) => fields.keys().map(|it| Text::Borrowed(it)).collect(),
            Self::Owned(fields) => fields
                .keys()
                .map(|it| Text::Owned(Rc::from(it.as_str())))
                .collect(),
        }
    }
}
