//! Functions on numbers, and conversions.

use std::cmp::Ordering;

use super::Form::{Both, Function as Global};
use super::Function;
use crate::expression::compare::order;
use crate::expression::evaluate::{Evaluated, Failure, Machine};
use crate::expression::item::Item;

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Function] = &[
    Function { name: "int", form: Global, arguments: (1, 1), usage: "`int(VALUE)`",
        about: "A whole number of a number or a text; fractions are cut off.", example: "int('42') == 42 && int(2.9) == 2", run: |_, it| int(&it[0]) },
    Function { name: "uint", form: Global, arguments: (1, 1), usage: "`uint(VALUE)`",
        about: "A whole number that is not negative.", example: "uint(3) == 3u", run: |_, it| uint(&it[0]) },
    Function { name: "double", form: Global, arguments: (1, 1), usage: "`double(VALUE)`",
        about: "A number with a fraction.", example: "double('2.5') + double(1) == 3.5", run: |_, it| double(&it[0]) },
    Function { name: "bool", form: Global, arguments: (1, 1), usage: "`bool(VALUE)`",
        about: "True or false of a text.", example: "bool('true')", run: |_, it| bool(&it[0]) },
    Function { name: "string", form: Both, arguments: (1, 1), usage: "`string(VALUE)` or `VALUE.string()`",
        about: "A text of a number, a truth value, a quantity (its plain number) or a version.", example: "string(3) + string(true) == '3true'", run: string },
    Function { name: "dyn", form: Global, arguments: (1, 1), usage: "`dyn(VALUE)`",
        about: "The value itself; there for expressions that were written for Kubernetes.", example: "dyn(1) == 1", run: |_, it| Ok(it[0].clone()) },
    Function { name: "math.greatest", form: Global, arguments: (1, 16), usage: "`math.greatest(NUMBER, …)` or `math.greatest(LIST)`",
        about: "The greatest number.", example: "math.greatest(1, 2.5) == 2.5", run: |m, it| extreme(m, it, Ordering::Greater) },
    Function { name: "math.least", form: Global, arguments: (1, 16), usage: "`math.least(NUMBER, …)` or `math.least(LIST)`",
        about: "The least number.", example: "math.least([3, 1]) == 1", run: |m, it| extreme(m, it, Ordering::Less) },
    Function { name: "math.abs", form: Global, arguments: (1, 1), usage: "`math.abs(NUMBER)`",
        about: "Without its sign.", example: "math.abs(-2) == 2", run: |_, it| abs(&it[0]) },
    Function { name: "math.ceil", form: Global, arguments: (1, 1), usage: "`math.ceil(NUMBER)`",
        about: "Rounded up.", example: "math.ceil(1.2) == 2.0", run: |_, it| rounded(&it[0], f64::ceil) },
    Function { name: "math.floor", form: Global, arguments: (1, 1), usage: "`math.floor(NUMBER)`",
        about: "Rounded down.", example: "math.floor(1.8) == 1.0", run: |_, it| rounded(&it[0], f64::floor) },
    Function { name: "math.round", form: Global, arguments: (1, 1), usage: "`math.round(NUMBER)`",
        about: "Rounded to the nearest.", example: "math.round(1.5) == 2.0", run: |_, it| rounded(&it[0], f64::round) },
];

fn not_for(item: &Item<'_>) -> Failure {
    Failure::new(format!("is not for {}", item.what()))
}

fn out_of_range() -> Failure {
    Failure::new("the value does not fit, or is no number")
}

/// 2⁶³ and 2⁶⁴, which the types have just not any more.
const INT_END: f64 = 9_223_372_036_854_775_808.0;
const UINT_END: f64 = 18_446_744_073_709_551_616.0;

#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn int<'v>(item: &Item<'v>) -> Evaluated<'v> {
    match item {
        Item::Int(value) => Some(*value),
        Item::UInt(value) => i64::try_from(*value).ok(),
        Item::Float(value) => (-INT_END..INT_END).contains(value).then_some(*value as i64),
        Item::Text(text) => text.parse().ok(),
        Item::Quantity(quantity) => quantity.as_integer(),
        other => return Err(not_for(other)),
    }
    .map(Item::Int)
    .ok_or_else(out_of_range)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
fn uint<'v>(item: &Item<'v>) -> Evaluated<'v> {
    match item {
        Item::Int(value) => u64::try_from(*value).ok(),
        Item::UInt(value) => Some(*value),
        Item::Float(value) => (0.0..UINT_END).contains(value).then_some(*value as u64),
        Item::Text(text) => text.parse().ok(),
        other => return Err(not_for(other)),
    }
    .map(Item::UInt)
    .ok_or_else(out_of_range)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "that is what a double makes of a large number"
)]
fn double<'v>(item: &Item<'v>) -> Evaluated<'v> {
    match item {
        Item::Int(value) => Some(*value as f64),
        Item::UInt(value) => Some(*value as f64),
        Item::Float(value) => Some(*value),
        Item::Text(text) => text.parse().ok(),
        other => return Err(not_for(other)),
    }
    .map(Item::Float)
    .ok_or_else(out_of_range)
}

fn bool<'v>(item: &Item<'v>) -> Evaluated<'v> {
    match item {
        Item::Bool(value) => Ok(Item::Bool(*value)),
        Item::Text(text) => match &**text {
            "true" => Ok(Item::Bool(true)),
            "false" => Ok(Item::Bool(false)),
            _ => Err(Failure::new("the text is neither true nor false")),
        },
        other => Err(not_for(other)),
    }
}

fn string<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    // The longest number has fewer than 400 characters.
    machine.budget.take(1)?;
    Ok(match &arguments[0] {
        Item::Text(text) => Item::Text(text.clone()),
        Item::Bool(value) => Item::text(value.to_string()),
        Item::Int(value) => Item::text(value.to_string()),
        Item::UInt(value) => Item::text(value.to_string()),
        Item::Float(value) => Item::text(value.to_string()),
        Item::Quantity(quantity) => Item::text(quantity.to_string()),
        Item::Version(version) => Item::text(version.to_string()),
        other => return Err(not_for(other)),
    })
}

fn extreme<'v>(
    machine: &mut Machine<'v>,
    arguments: &[Item<'v>],
    wanted: Ordering,
) -> Evaluated<'v> {
    let items: Vec<Item<'v>> = match arguments {
        [Item::List(list)] => list.iter().collect(),
        items => items.to_vec(),
    };
    let mut found: Option<Item<'v>> = None;
    for item in items {
        machine.budget.take(1)?;
        if !item.is_number() {
            return Err(not_for(&item));
        }
        found = Some(match found {
            Some(found) if order(&item, &found, &mut machine.budget)? != Some(wanted) => found,
            _ => item,
        });
    }
    found.ok_or_else(|| Failure::new("an empty list has none"))
}

fn abs<'v>(item: &Item<'v>) -> Evaluated<'v> {
    match item {
        Item::Int(value) => value.checked_abs().map(Item::Int).ok_or_else(out_of_range),
        Item::UInt(value) => Ok(Item::UInt(*value)),
        Item::Float(value) => Ok(Item::Float(value.abs())),
        other => Err(not_for(other)),
    }
}

fn rounded<'v>(item: &Item<'v>, round: fn(f64) -> f64) -> Evaluated<'v> {
    match double(item)? {
        Item::Float(value) if item.is_number() => Ok(Item::Float(round(value))),
        _ => Err(not_for(item)),
    }
}
