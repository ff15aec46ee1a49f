//! Values that may be missing: `a.?b`, `a[?b]`, and what ends them.

use std::rc::Rc;

use super::Form::{Function as Global, Method};
use super::Function;
use crate::expression::evaluate::{Evaluated, Failure};
use crate::expression::item::Item;

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Function] = &[
    Function { name: "orValue", form: Method, arguments: (2, 2), usage: "`OPTIONAL.orValue(VALUE)`",
        about: "The value, or another one where it is missing.", example: "{'a': 1}.?b.orValue(2) == 2", run: |_, it| Ok(inside(&it[0])?.map_or_else(|| it[1].clone(), |value| (**value).clone())) },
    Function { name: "or", form: Method, arguments: (2, 2), usage: "`OPTIONAL.or(OPTIONAL)`",
        about: "The first that is not missing.", example: "{'a': 1}.?b.or(optional.of(2)).value() == 2", run: |_, it| { inside(&it[1])?; Ok(if inside(&it[0])?.is_some() { it[0].clone() } else { it[1].clone() }) } },
    Function { name: "hasValue", form: Method, arguments: (1, 1), usage: "`OPTIONAL.hasValue()`",
        about: "Whether it is not missing.", example: "{'a': 1}.?a.hasValue()", run: |_, it| Ok(Item::Bool(inside(&it[0])?.is_some())) },
    Function { name: "value", form: Method, arguments: (1, 1), usage: "`OPTIONAL.value()`",
        about: "The value; unknown where it is missing.", example: "optional.of(1).value() == 1", run: |_, it| value(&it[0]) },
    Function { name: "optional.of", form: Global, arguments: (1, 1), usage: "`optional.of(VALUE)`",
        about: "An optional value that is there.", example: "optional.of(1).hasValue()", run: |_, it| Ok(Item::Optional(Some(Rc::new(it[0].clone())))) },
    Function { name: "optional.none", form: Global, arguments: (0, 0), usage: "`optional.none()`",
        about: "An optional value that is missing.", example: "!optional.none().hasValue()", run: |_, _| Ok(Item::Optional(None)) },
    Function { name: "optional.ofNonZeroValue", form: Global, arguments: (1, 1), usage: "`optional.ofNonZeroValue(VALUE)`",
        about: "An optional value that is missing for null, 0, false and what is empty.", example: "!optional.ofNonZeroValue('').hasValue()", run: |_, it| Ok(of_non_zero(&it[0])) },
];

fn inside<'a, 'v>(item: &'a Item<'v>) -> Result<Option<&'a Rc<Item<'v>>>, Failure> {
    match item {
        Item::Optional(inside) => Ok(inside.as_ref()),
        other => Err(Failure::new(format!(
            "needs an optional value, as `a.?b` gives it, and there is {}",
            other.what()
        ))),
    }
}

fn value<'v>(item: &Item<'v>) -> Evaluated<'v> {
    inside(item)?
        .map(|value| (**value).clone())
        .ok_or_else(|| Failure::new("the value is missing"))
}

fn of_non_zero<'v>(item: &Item<'v>) -> Item<'v> {
    let is_zero = match item {
        Item::Null | Item::Bool(false) | Item::Int(0) | Item::UInt(0) | Item::Optional(None) => {
            true
        }
        Item::Float(value) => *value == 0.0,
        Item::Text(text) => text.is_empty(),
        Item::List(list) => list.len() == 0,
        Item::Map(fields) => fields.len() == 0,
        _ => false,
    };
    Item::Optional((!is_zero).then(|| Rc::new(item.clone())))
}
