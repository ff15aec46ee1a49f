//! Equality and order.

use std::cmp::Ordering;

use super::budget::Budget;
use super::evaluate::Failure;
use super::item::Item;

/// Returns whether two values are equal. Numbers compare by what they stand for, whatever their types; values of different
/// kinds are not equal.
pub(super) fn equal(
    left: &Item<'_>,
    right: &Item<'_>,
    budget: &mut Budget,
) -> Result<bool, Failure> {
    budget.take(1)?;
    Ok(match (left, right) {
        (Item::Null, Item::Null) => true,
        (Item::Bool(left), Item::Bool(right)) => left == right,
        (Item::Text(left), Item::Text(right)) => {
            budget.take_bytes(left.len().min(right.len()))?;
            **left == **right
        }
        (Item::List(left), Item::List(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for (left, right) in left.iter().zip(right.iter()) {
                if !equal(&left, &right, budget)? {
                    return Ok(false);
                }
            }
            true
        }
        (Item::Map(left), Item::Map(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for name in left.names() {
                budget.take_bytes(name.len())?;
                let same = match (left.get(&name), right.get(&name)) {
                    (Some(left), Some(right)) => equal(&left, &right, budget)?,
                    _ => false,
                };
                if !same {
                    return Ok(false);
                }
            }
            true
        }
        (Item::Optional(left), Item::Optional(right)) => match (left, right) {
            (None, None) => true,
            (Some(left), Some(right)) => equal(left, right, budget)?,
            _ => false,
        },
        (Item::Quantity(left), Item::Quantity(right)) => left == right,
        (Item::Version(left), Item::Version(right)) => left == right,
        (left, right) if left.is_number() && right.is_number() => {
            numbers(left, right) == Some(Ordering::Equal)
        }
        _ => false,
    })
}

/// Returns the order of two values; none for a number that is none.
pub(super) fn order(
    left: &Item<'_>,
    right: &Item<'_>,
    budget: &mut Budget,
) -> Result<Option<Ordering>, Failure> {
    match (left, right) {
        (Item::Bool(left), Item::Bool(right)) => Ok(Some(left.cmp(right))),
        (Item::Text(left), Item::Text(right)) => {
            budget.take_bytes(left.len().min(right.len()))?;
            Ok(Some((**left).cmp(&**right)))
        }
        (Item::Quantity(left), Item::Quantity(right)) => Ok(Some(left.cmp(right))),
        (Item::Version(left), Item::Version(right)) => Ok(Some(left.cmp(right))),
        (left, right) if left.is_number() && right.is_number() => Ok(numbers(left, right)),
        _ => Err(incomparable(left, right)),
    }
}

fn incomparable(left: &Item<'_>, right: &Item<'_>) -> Failure {
    Failure::new(format!(
        "{} and {} have no order",
        left.what(),
        right.what()
    ))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "only a difference that a float could not have shown is lost"
)]
fn numbers(left: &Item<'_>, right: &Item<'_>) -> Option<Ordering> {
    let whole = |item: &Item<'_>| match item {
        Item::Int(value) => Some(i128::from(*value)),
        Item::UInt(value) => Some(i128::from(*value)),
        _ => None,
    };
    if let (Some(left), Some(right)) = (whole(left), whole(right)) {
        return Some(left.cmp(&right));
    }
    let float = |item: &Item<'_>| match item {
        Item::Float(value) => *value,
        other => whole(other).unwrap_or_default() as f64,
    };
    float(left).partial_cmp(&float(right))
}
