//! Builds a `serde_json::Value` as kubectl would, and counts what it costs.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::model::Code;
use crate::model::limits::DEPTH_MAX;

/// What is left of a file's budget, shared by its documents, and which rule of ours stopped the parser.
pub(super) struct Budget {
    nodes: Cell<usize>,
    refused: Cell<Option<Code>>,
}

impl Budget {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            nodes: Cell::new(nodes),
            refused: Cell::new(None),
        }
    }

    /// Takes the code of the rule that made the last document fail, if it was one of ours.
    pub(super) fn take_refused(&self) -> Option<Code> {
        self.refused.take()
    }

    pub(super) fn nodes_left(&self) -> usize {
        self.nodes.get()
    }

    /// Forgets an attempt that another parser repeats.
    pub(super) fn rewind(&self, nodes_left: usize) {
        self.nodes.set(nodes_left);
        self.refused.set(None);
    }

    fn refuse<E: de::Error>(&self, code: Code, message: impl fmt::Display) -> E {
        self.refused.set(Some(code));
        E::custom(message)
    }

    fn spend_node<E: de::Error>(&self) -> Result<(), E> {
        match self.nodes.get().checked_sub(1) {
            Some(left) => {
                self.nodes.set(left);
                Ok(())
            }
            None => Err(self.refuse(
                Code::YamlLimit,
                "the file has too many nodes after its aliases are resolved",
            )),
        }
    }
}

/// Reads one value at some depth.
#[derive(Clone, Copy)]
pub(super) struct ValueSeed<'a> {
    budget: &'a Budget,
    depth: usize,
}

impl<'a> ValueSeed<'a> {
    pub(super) fn document(budget: &'a Budget) -> Self {
        Self { budget, depth: 0 }
    }

    fn below<E: de::Error>(self) -> Result<Self, E> {
        if self.depth >= DEPTH_MAX {
            return Err(self.budget.refuse(
                Code::YamlLimit,
                format_args!("the document is nested deeper than {DEPTH_MAX} levels"),
            ));
        }
        Ok(Self {
            depth: self.depth + 1,
            ..self
        })
    }
}

// === impl ValueSeed ===

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.budget.spend_node()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        number_from_u64(value).map(Value::Number)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        number_from_f64(value).map(Value::Number)
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(below)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut map = Map::new();
        loop {
            let key = KeySeed {
                budget: self.budget,
                earlier: &map,
            };
            let Some(key) = entries.next_key_seed(key)? else {
                return Ok(Value::Object(map));
            };
            let value = entries.next_value_seed(below)?;
            map.insert(key, value);
        }
    }
}

/// Reads a key; kubectl writes numbers and booleans out.
#[derive(Clone, Copy)]
struct KeySeed<'a> {
    budget: &'a Budget,
    /// The entries before it. The parser finds keys that are written alike; `yes` and `on` also are the same key.
    earlier: &'a Map<String, Value>,
}

impl KeySeed<'_> {
    fn refuse<E: de::Error>(self, what: &str) -> E {
        self.budget.refuse(
            Code::YamlSyntax,
            format_args!("{what} cannot be the key of a mapping"),
        )
    }

    fn accept<E: de::Error>(self, key: String) -> Result<String, E> {
        if self.earlier.contains_key(&key) {
            return Err(self.budget.refuse(
                Code::YamlDuplicateKey,
                format_args!("the key `{key}` stands twice in this mapping"),
            ));
        }
        Ok(key)
    }
}

// === impl KeySeed ===

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KeySeed<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a scalar as the key")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<String, E> {
        self.accept(value.to_string())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<String, E> {
        self.accept(value.to_string())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<String, E> {
        self.accept(value.to_string())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<String, E> {
        self.accept(number_from_f64::<E>(value)?.to_string())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<String, E> {
        self.accept(value.to_owned())
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<String, E> {
        self.accept(value)
    }

    fn visit_unit<E: de::Error>(self) -> Result<String, E> {
        Err(self.refuse("null"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<String, A::Error> {
        Err(self.refuse("a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<String, A::Error> {
        Err(self.refuse("a mapping"))
    }
}

/// Integers beyond `i64` become floats, since that is all that Kubernetes' JSON knows.
fn number_from_u64<E: de::Error>(value: u64) -> Result<Number, E> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "what Kubernetes' own decoder does to such a number"
    )]
    match i64::try_from(value) {
        Ok(value) => Ok(Number::from(value)),
        Err(_) => number_from_f64(value as f64),
    }
}

/// Integral floats become integers where they fit: kubectl's way goes through JSON, which writes `1.0` as `1`.
fn number_from_f64<E: de::Error>(value: f64) -> Result<Number, E> {
    /// 2^63; every integral float below it in magnitude is an `i64`.
    const INTEGERS_END: f64 = 9_223_372_036_854_775_808.0;
    if value.fract() == 0.0 && value.abs() < INTEGERS_END {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "integral and inside the range"
        )]
        return Ok(Number::from(value as i64));
    }
    Number::from_f64(value).ok_or_else(|| E::custom("JSON has no infinity and no NaN"))
}
