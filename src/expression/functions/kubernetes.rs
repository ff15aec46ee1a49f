//! Quantities and versions, as Kubernetes' libraries of CEL have them.

use std::cmp::Ordering;
use std::rc::Rc;

use semver::Version;

use super::Form::{Function as Global, Method};
use super::Function;
use crate::expression::compare::order;
use crate::expression::evaluate::{Evaluated, Failure, Machine};
use crate::expression::item::Item;
use crate::expression::operators::text;
use crate::expression::quantity::Quantity;

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Function] = &[
    Function { name: "quantity", form: Global, arguments: (1, 1), usage: "`quantity(TEXT)`",
        about: "A quantity, of a text or a whole number. Quantities compare with `==`, `<`, `<=`, `>` and `>=`.", example: "quantity('30Mi') < quantity('1Gi')", run: quantity },
    Function { name: "isQuantity", form: Global, arguments: (1, 1), usage: "`isQuantity(TEXT)`",
        about: "Whether the text is a quantity.", example: "isQuantity('1.5Gi') && !isQuantity('large')", run: is_quantity },
    Function { name: "isInteger", form: Method, arguments: (1, 1), usage: "`QUANTITY.isInteger()`",
        about: "Whether it is a whole number.", example: "quantity('2k').isInteger()", run: |_, it| Ok(Item::Bool(amount(&it[0])?.as_integer().is_some())) },
    Function { name: "asInteger", form: Method, arguments: (1, 1), usage: "`QUANTITY.asInteger()`",
        about: "The whole number that it is.", example: "quantity('2k').asInteger() == 2000", run: as_integer },
    Function { name: "asApproximateFloat", form: Method, arguments: (1, 1), usage: "`QUANTITY.asApproximateFloat()`",
        about: "It as a number with a fraction.", example: "quantity('500m').asApproximateFloat() == 0.5", run: |_, it| Ok(Item::Float(amount(&it[0])?.as_float())) },
    Function { name: "sign", form: Method, arguments: (1, 1), usage: "`QUANTITY.sign()`",
        about: "1, 0 or -1.", example: "quantity('-1').sign() == -1", run: |_, it| Ok(Item::Int(amount(&it[0])?.sign())) },
    Function { name: "add", form: Method, arguments: (2, 2), usage: "`QUANTITY.add(QUANTITY)`",
        about: "The sum; a whole number will do as well.", example: "quantity('1Ki').add(1) == quantity('1025')", run: |_, it| Ok(Item::Quantity(amount(&it[0])?.add(amount_or_int(&it[1])?))) },
    Function { name: "sub", form: Method, arguments: (2, 2), usage: "`QUANTITY.sub(QUANTITY)`",
        about: "The difference.", example: "quantity('2').sub(quantity('500m')) == quantity('1.5')", run: |_, it| Ok(Item::Quantity(amount(&it[0])?.subtract(amount_or_int(&it[1])?))) },
    Function { name: "compareTo", form: Method, arguments: (2, 2), usage: "`QUANTITY.compareTo(QUANTITY)` or `VERSION.compareTo(VERSION)`",
        about: "-1 where it is smaller, 0 where it is equal, 1 where it is greater.", example: "semver('1.2.0').compareTo(semver('1.10.0')) == -1", run: |m, it| Ok(Item::Int(compared(m, it)? as i64)) },
    Function { name: "isGreaterThan", form: Method, arguments: (2, 2), usage: "`QUANTITY.isGreaterThan(QUANTITY)` or `VERSION.isGreaterThan(VERSION)`",
        about: "The same as `>`.", example: "quantity('1Gi').isGreaterThan(quantity('30Mi'))", run: |m, it| Ok(Item::Bool(compared(m, it)? == Ordering::Greater)) },
    Function { name: "isLessThan", form: Method, arguments: (2, 2), usage: "`QUANTITY.isLessThan(QUANTITY)` or `VERSION.isLessThan(VERSION)`",
        about: "The same as `<`.", example: "semver('1.2.0-rc1').isLessThan(semver('1.2.0'))", run: |m, it| Ok(Item::Bool(compared(m, it)? == Ordering::Less)) },
    Function { name: "semver", form: Global, arguments: (1, 2), usage: "`semver(TEXT)` or `semver(TEXT, true)`",
        about: "A version. With `true`, a `v` before it and missing parts are taken: `v1.2`. Versions compare with `==`, `<`, `<=`, `>` and `>=`.", example: "semver('1.9.0') < semver('v1.10', true)", run: semver },
    Function { name: "isSemver", form: Global, arguments: (1, 2), usage: "`isSemver(TEXT)` or `isSemver(TEXT, true)`",
        about: "Whether the text is a version.", example: "isSemver('1.2.3') && !isSemver('v1.2.3')", run: is_semver },
    Function { name: "major", form: Method, arguments: (1, 1), usage: "`VERSION.major()`",
        about: "The first number of it.", example: "semver('1.2.3').major() == 1", run: |_, it| part(&it[0], |version| version.major) },
    Function { name: "minor", form: Method, arguments: (1, 1), usage: "`VERSION.minor()`",
        about: "The second number of it.", example: "semver('1.2.3').minor() == 2", run: |_, it| part(&it[0], |version| version.minor) },
    Function { name: "patch", form: Method, arguments: (1, 1), usage: "`VERSION.patch()`",
        about: "The third number of it.", example: "semver('1.2.3').patch() == 3", run: |_, it| part(&it[0], |version| version.patch) },
];

fn amount(item: &Item<'_>) -> Result<Quantity, Failure> {
    match item {
        Item::Quantity(quantity) => Ok(*quantity),
        other => Err(Failure::new(format!(
            "needs a quantity, and there is {}; make it one with `quantity(…)`",
            other.what()
        ))),
    }
}

fn amount_or_int(item: &Item<'_>) -> Result<Quantity, Failure> {
    match item {
        Item::Int(value) => Ok(Quantity::from_int((*value).into())),
        other => amount(other),
    }
}

fn quantity<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    let quantity = match &arguments[0] {
        // YAML has `cpu: 2` as a number.
        Item::Int(value) => Some(Quantity::from_int((*value).into())),
        Item::UInt(value) => Some(Quantity::from_int((*value).into())),
        Item::Float(value) => Quantity::parse(&value.to_string()),
        Item::Quantity(quantity) => Some(*quantity),
        other => {
            let text = text(other)?;
            machine.budget.take_bytes(text.len())?;
            Quantity::parse(text)
        }
    };
    quantity
        .map(Item::Quantity)
        .ok_or_else(|| Failure::new("the text is no quantity"))
}

fn is_quantity<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    let text = text(&arguments[0])?;
    machine.budget.take_bytes(text.len())?;
    Ok(Item::Bool(Quantity::parse(text).is_some()))
}

fn as_integer<'v>(_: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    amount(&arguments[0])?
        .as_integer()
        .map(Item::Int)
        .ok_or_else(|| Failure::new("the quantity is no whole number"))
}

fn compared<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Result<Ordering, Failure> {
    match (&arguments[0], &arguments[1]) {
        (left @ Item::Quantity(_), right @ Item::Quantity(_))
        | (left @ Item::Version(_), right @ Item::Version(_)) => {
            order(left, right, &mut machine.budget).map(|order| order.unwrap_or(Ordering::Equal))
        }
        (left, right) => Err(Failure::new(format!(
            "needs two quantities or two versions, and there are {} and {}",
            left.what(),
            right.what()
        ))),
    }
}

fn version(machine: &mut Machine<'_>, arguments: &[Item<'_>]) -> Result<Option<Version>, Failure> {
    let text = text(&arguments[0])?;
    machine.budget.take_bytes(text.len())?;
    let is_lenient = match arguments.get(1) {
        None => false,
        Some(Item::Bool(is_lenient)) => *is_lenient,
        Some(_) => return Err(Failure::new("the second argument is true or false")),
    };
    if !is_lenient {
        return Ok(Version::parse(text).ok());
    }
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let mut parts: Vec<&str> = numbers
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0",
            part => part,
        })
        .collect();
    while parts.len() < 3 {
        parts.push("0");
    }
    Ok(Version::parse(&format!("{}{rest}", parts.join("."))).ok())
}

fn semver<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    if let Item::Version(version) = &arguments[0] {
        return Ok(Item::Version(Rc::clone(version)));
    }
    version(machine, arguments)?
        .map(|version| Item::Version(Rc::new(version)))
        .ok_or_else(|| Failure::new("the text is no version, MAJOR.MINOR.PATCH"))
}

fn is_semver<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    Ok(Item::Bool(version(machine, arguments)?.is_some()))
}

fn part<'v>(item: &Item<'v>, part: fn(&Version) -> u64) -> Evaluated<'v> {
    match item {
        Item::Version(version) => Ok(Item::Int(i64::try_from(part(version)).unwrap_or(i64::MAX))),
        other => Err(Failure::new(format!(
            "needs a version, and there is {}; make it one with `semver(…)`",
            other.what()
        ))),
    }
}
