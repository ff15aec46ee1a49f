//! Operators on values.

use std::cmp::Ordering;
use std::rc::Rc;

use super::budget::Budget;
use super::compare::{equal, order};
use super::evaluate::{Evaluated, Failure};
use super::item::{Item, Text};
use super::tree::Operator;

/// Applies an operator.
pub(super) fn binary<'v>(
    operator: Operator,
    left: &Item<'v>,
    right: &Item<'v>,
    budget: &mut Budget,
) -> Evaluated<'v> {
    let is = |wanted: &[Ordering], found: Option<Ordering>| {
        Item::Bool(found.is_some_and(|it| wanted.contains(&it)))
    };
    Ok(match operator {
        Operator::Equal => Item::Bool(equal(left, right, budget)?),
        Operator::NotEqual => Item::Bool(!equal(left, right, budget)?),
        Operator::Less => is(&[Ordering::Less], order(left, right, budget)?),
        Operator::LessOrEqual => is(
            &[Ordering::Less, Ordering::Equal],
            order(left, right, budget)?,
        ),
        Operator::Greater => is(&[Ordering::Greater], order(left, right, budget)?),
        Operator::GreaterOrEqual => is(
            &[Ordering::Greater, Ordering::Equal],
            order(left, right, budget)?,
        ),
        Operator::In => Item::Bool(is_in(left, right, budget)?),
        Operator::Add => return add(left, right, budget),
        Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
            return arithmetic(operator, left, right);
        }
    })
}

fn is_in(item: &Item<'_>, range: &Item<'_>, budget: &mut Budget) -> Result<bool, Failure> {
    match (item, range) {
        (item, Item::List(list)) => {
            for other in list.iter() {
                if equal(item, &other, budget)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (Item::Text(name), Item::Map(fields)) => {
            budget.take_bytes(name.len())?;
            Ok(fields.has(name))
        }
        (_, Item::Map(_)) => Ok(false),
        (_, other) => Err(Failure::new(format!(
            "`in` needs a list or an object on its right, and there is {}",
            other.what()
        ))),
    }
}

fn add<'v>(left: &Item<'v>, right: &Item<'v>, budget: &mut Budget) -> Evaluated<'v> {
    match (left, right) {
        (Item::Text(a), Item::Text(b)) => {
            budget.take_bytes(a.len() + b.len())?;
            Ok(Item::text([&**a, &**b].concat()))
        }
        (Item::List(a), Item::List(b)) => {
            budget.take_items(a.len() + b.len())?;
            Ok(Item::list(a.iter().chain(b.iter()).collect()))
        }
        _ => arithmetic(Operator::Add, left, right),
    }
}

/// Calculates with numbers of one type, as CEL has it: whole numbers and fractions are not mixed, except with a constant that
/// JSON could have written either way.
fn arithmetic<'v>(operator: Operator, left: &Item<'v>, right: &Item<'v>) -> Evaluated<'v> {
    let symbol = operator.symbol();
    let too_large = || Failure::new(format!("the result of `{symbol}` is too large"));
    match (left, right) {
        (Item::Int(a), Item::Int(b)) => {
            let result = match operator {
                Operator::Add => a.checked_add(*b),
                Operator::Subtract => a.checked_sub(*b),
                Operator::Multiply => a.checked_mul(*b),
                Operator::Divide | Operator::Remainder if *b == 0 => return Err(by_zero()),
                Operator::Divide => a.checked_div(*b),
                _ => a.checked_rem(*b),
            };
            result.map(Item::Int).ok_or_else(too_large)
        }
        (Item::UInt(a), Item::UInt(b)) => {
            let result = match operator {
                Operator::Add => a.checked_add(*b),
                Operator::Subtract => a.checked_sub(*b),
                Operator::Multiply => a.checked_mul(*b),
                Operator::Divide | Operator::Remainder if *b == 0 => return Err(by_zero()),
                Operator::Divide => a.checked_div(*b),
                _ => a.checked_rem(*b),
            };
            result.map(Item::UInt).ok_or_else(too_large)
        }
        (Item::Float(a), Item::Float(b)) if operator != Operator::Remainder => {
            Ok(Item::Float(match operator {
                Operator::Add => a + b,
                Operator::Subtract => a - b,
                Operator::Multiply => a * b,
                _ => a / b,
            }))
        }
        (left, right) if left.is_number() && right.is_number() => Err(Failure::new(format!(
            "`{symbol}` takes numbers of one type; make them alike with `int(…)`, `uint(…)` or `double(…)`"
        ))),
        _ => Err(Failure::new(format!(
            "`{symbol}` is not for {} and {}",
            left.what(),
            right.what()
        ))),
    }
}

fn by_zero() -> Failure {
    Failure::new("a number is divided by zero")
}

/// Changes the sign.
pub(super) fn negate<'v>(item: &Item<'v>) -> Evaluated<'v> {
    match item {
        Item::Int(value) => value
            .checked_neg()
            .map(Item::Int)
            .ok_or_else(|| Failure::new("the result of `-` is too large")),
        Item::Float(value) => Ok(Item::Float(-value)),
        other => Err(Failure::new(format!("`-` is not for {}", other.what()))),
    }
}

/// Takes one element of a list, or one value of an object.
pub(super) fn index<'v>(item: Item<'v>, index: &Item<'v>, is_optional: bool) -> Evaluated<'v> {
    let (inside, is_optional) = match item {
        Item::Optional(None) => return Ok(Item::Optional(None)),
        Item::Optional(Some(inside)) => ((*inside).clone(), true),
        other => (other, is_optional),
    };
    let (found, missing) = match (&inside, index) {
        (Item::List(list), index) if index.is_number() => {
            let position = match index {
                Item::Int(value) => usize::try_from(*value).ok(),
                Item::UInt(value) => usize::try_from(*value).ok(),
                // JSON may have written a whole number with a point.
                Item::Float(value) if value.fract() == 0.0 => whole(*value),
                _ => None,
            };
            let found = position.and_then(|position| list.get(position));
            (found, "a list has no element at this index")
        }
        (Item::Map(fields), Item::Text(name)) => (
            fields.get(name),
            "an object has no such key; ask with `in` first",
        ),
        (Item::Null, _) if is_optional => (None, ""),
        (other, index) => {
            return Err(Failure::new(format!(
                "{} cannot be indexed by {}",
                other.what(),
                index.what()
            )));
        }
    };
    match (found, is_optional) {
        (Some(item), true) => Ok(Item::Optional(Some(Rc::new(item)))),
        (None, true) => Ok(Item::Optional(None)),
        (Some(item), false) => Ok(item),
        (None, false) => Err(Failure::new(missing)),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
fn whole(value: f64) -> Option<usize> {
    (0.0..4_294_967_296.0)
        .contains(&value)
        .then_some(value as usize)
}

/// Returns a text argument.
pub(super) fn text<'a, 'v>(item: &'a Item<'v>) -> Result<&'a Text<'v>, Failure> {
    match item {
        Item::Text(text) => Ok(text),
        other => Err(Failure::new(format!(
            "needs a text, and there is {}",
            other.what()
        ))),
    }
}
