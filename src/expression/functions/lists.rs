//! Functions on lists and objects.

use std::cmp::Ordering;
use std::rc::Rc;

use super::Form::{Function as Global, Method};
use super::Function;
use crate::expression::compare::{equal, order};
use crate::expression::evaluate::{Evaluated, Failure, Machine};
use crate::expression::item::{Item, List};
use crate::expression::operators;
use crate::expression::tree::Operator;

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Function] = &[
    Function { name: "isSorted", form: Method, arguments: (1, 1), usage: "`LIST.isSorted()`",
        about: "Whether no element is greater than the next one.", example: "[1, 2, 2].isSorted()", run: is_sorted },
    Function { name: "sort", form: Method, arguments: (1, 1), usage: "`LIST.sort()`",
        about: "In order.", example: "['b', 'a'].sort() == ['a', 'b']", run: sort },
    Function { name: "sum", form: Method, arguments: (1, 1), usage: "`LIST.sum()`",
        about: "The sum of its numbers; 0 for an empty list.", example: "[1, 2, 3].sum() == 6", run: sum },
    Function { name: "min", form: Method, arguments: (1, 1), usage: "`LIST.min()`",
        about: "The smallest element; an empty list has none.", example: "[3, 1, 2].min() == 1", run: |m, it| extreme(m, it, Ordering::Less) },
    Function { name: "max", form: Method, arguments: (1, 1), usage: "`LIST.max()`",
        about: "The largest element; an empty list has none.", example: "[3, 1, 2].max() == 3", run: |m, it| extreme(m, it, Ordering::Greater) },
    Function { name: "slice", form: Method, arguments: (3, 3), usage: "`LIST.slice(START, END)`",
        about: "A part; the end is not in it.", example: "[1, 2, 3].slice(1, 3) == [2, 3]", run: slice },
    Function { name: "flatten", form: Method, arguments: (1, 1), usage: "`LIST.flatten()`",
        about: "With the elements of the lists in it, one level deep.", example: "[[1], [2, 3]].flatten() == [1, 2, 3]", run: flatten },
    Function { name: "distinct", form: Method, arguments: (1, 1), usage: "`LIST.distinct()`",
        about: "Each element once.", example: "[1, 2, 1].distinct() == [1, 2]", run: distinct },
    Function { name: "first", form: Method, arguments: (1, 1), usage: "`LIST.first()`",
        about: "The first element, as an optional value.", example: "[1, 2].first().orValue(0) == 1", run: |_, it| Ok(end(list(it, 0)?, 0)) },
    Function { name: "last", form: Method, arguments: (1, 1), usage: "`LIST.last()`",
        about: "The last element, as an optional value.", example: "[1, 2].last().orValue(0) == 2", run: |_, it| { let list = list(it, 0)?; Ok(end(list, list.len().wrapping_sub(1))) } },
    Function { name: "lists.range", form: Global, arguments: (1, 1), usage: "`lists.range(N)`",
        about: "The numbers from 0 to N - 1.", example: "lists.range(3) == [0, 1, 2]", run: range },
    Function { name: "sets.contains", form: Global, arguments: (2, 2), usage: "`sets.contains(LIST, LIST)`",
        about: "Whether each element of the second list is in the first.", example: "sets.contains([1, 2, 3], [3, 1])", run: |m, it| Ok(Item::Bool(is_subset(m, list(it, 1)?, list(it, 0)?)?)) },
    Function { name: "sets.equivalent", form: Global, arguments: (2, 2), usage: "`sets.equivalent(LIST, LIST)`",
        about: "Whether each has all elements of the other.", example: "sets.equivalent([1, 2], [2, 1, 1])", run: |m, it| Ok(Item::Bool(is_subset(m, list(it, 1)?, list(it, 0)?)? && is_subset(m, list(it, 0)?, list(it, 1)?)?)) },
    Function { name: "sets.intersects", form: Global, arguments: (2, 2), usage: "`sets.intersects(LIST, LIST)`",
        about: "Whether they have an element in common.", example: "sets.intersects([1, 2], [2, 3])", run: intersects },
];

fn list<'a, 'v>(arguments: &'a [Item<'v>], index: usize) -> Result<&'a List<'v>, Failure> {
    match &arguments[index] {
        Item::List(list) => Ok(list),
        other => Err(Failure::new(format!(
            "needs a list, and there is {}",
            other.what()
        ))),
    }
}

fn count<'v>(count: usize) -> Item<'v> {
    Item::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

pub(super) fn size<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    match &arguments[0] {
        Item::Text(text) => {
            machine.budget.take_bytes(text.len())?;
            Ok(count(text.chars().count()))
        }
        Item::List(list) => Ok(count(list.len())),
        Item::Map(fields) => Ok(count(fields.len())),
        other => Err(Failure::new(format!("{} has no size", other.what()))),
    }
}

pub(super) fn index_of<'v>(
    machine: &mut Machine<'v>,
    arguments: &[Item<'v>],
    is_last: bool,
) -> Evaluated<'v> {
    let mut found = None;
    for (index, item) in list(arguments, 0)?.iter().enumerate() {
        if equal(&item, &arguments[1], &mut machine.budget)? {
            found = Some(index);
            if !is_last {
                break;
            }
        }
    }
    Ok(found.map_or(Item::Int(-1), count))
}

fn is_sorted<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    let mut before: Option<Item<'_>> = None;
    for item in list(arguments, 0)?.iter() {
        machine.budget.take(1)?;
        if let Some(before) = &before
            && order(before, &item, &mut machine.budget)? == Some(Ordering::Greater)
        {
            return Ok(Item::Bool(false));
        }
        before = Some(item);
    }
    Ok(Item::Bool(true))
}

fn sort<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    machine.budget.take_items(list(arguments, 0)?.len())?;
    let mut items: Vec<_> = list(arguments, 0)?.iter().collect();
    let mut failure = None;
    items.sort_by(|left, right| {
        if failure.is_some() {
            return Ordering::Equal;
        }
        let ordered = machine
            .budget
            .take(1)
            .and_then(|()| order(left, right, &mut machine.budget));
        match ordered {
            Ok(order) => order.unwrap_or(Ordering::Equal),
            Err(error) => {
                failure = Some(error);
                Ordering::Equal
            }
        }
    });
    match failure {
        Some(failure) => Err(failure),
        None => Ok(Item::list(items)),
    }
}

fn sum<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    let mut total: Option<Item<'v>> = None;
    for item in list(arguments, 0)?.iter() {
        machine.budget.take(1)?;
        if !item.is_number() {
            let message = format!("needs a list of numbers, and there is {}", item.what());
            return Err(Failure::new(message));
        }
        total = Some(match total {
            Some(total) => operators::binary(Operator::Add, &total, &item, &mut machine.budget)?,
            None => item,
        });
    }
    Ok(total.unwrap_or(Item::Int(0)))
}

fn extreme<'v>(
    machine: &mut Machine<'v>,
    arguments: &[Item<'v>],
    wanted: Ordering,
) -> Evaluated<'v> {
    let mut found: Option<Item<'v>> = None;
    for item in list(arguments, 0)?.iter() {
        machine.budget.take(1)?;
        found = Some(match found {
            Some(found) if order(&item, &found, &mut machine.budget)? != Some(wanted) => found,
            _ => item,
        });
    }
    found.ok_or_else(|| Failure::new("an empty list has none"))
}

fn slice<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    let list = list(arguments, 0)?;
    let bound = |item: &Item<'_>| match item {
        Item::Int(value) => usize::try_from(*value).ok().filter(|it| *it <= list.len()),
        _ => None,
    };
    let (Some(start), Some(end)) = (bound(&arguments[1]), bound(&arguments[2])) else {
        return Err(Failure::new("a position is beyond the ends of the list"));
    };
    if start > end {
        return Err(Failure::new("the end is before the start"));
    }
    machine.budget.take_items(end - start)?;
    Ok(Item::list(
        (start..end).filter_map(|index| list.get(index)).collect(),
    ))
}

fn flatten<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    let mut items = Vec::new();
    for item in list(arguments, 0)?.iter() {
        machine.budget.take_items(1)?;
        match item {
            Item::List(inside) => {
                machine.budget.take_items(inside.len())?;
                items.extend(inside.iter());
            }
            other => items.push(other),
        }
    }
    Ok(Item::list(items))
}

fn distinct<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    let mut items: Vec<Item<'v>> = Vec::new();
    for item in list(arguments, 0)?.iter() {
        let mut is_there = false;
        for other in &items {
            is_there |= equal(other, &item, &mut machine.budget)?;
        }
        if !is_there {
            items.push(item);
        }
    }
    Ok(Item::list(items))
}

fn end<'v>(list: &List<'v>, index: usize) -> Item<'v> {
    Item::Optional(list.get(index).map(Rc::new))
}

fn range<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    let end = match &arguments[0] {
        Item::Int(end) if *end >= 0 => *end,
        _ => return Err(Failure::new("needs a whole number that is not negative")),
    };
    machine
        .budget
        .take_items(usize::try_from(end).unwrap_or(usize::MAX))?;
    Ok(Item::list((0..end).map(Item::Int).collect()))
}

fn is_subset<'v>(
    machine: &mut Machine<'v>,
    small: &List<'v>,
    large: &List<'v>,
) -> Result<bool, Failure> {
    for item in small.iter() {
        let mut is_there = false;
        for other in large.iter() {
            if equal(&item, &other, &mut machine.budget)? {
                is_there = true;
                break;
            }
        }
        if !is_there {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    for item in list(arguments, 0)?.iter() {
        for other in list(arguments, 1)?.iter() {
            if equal(&item, &other, &mut machine.budget)? {
                return Ok(Item::Bool(true));
            }
        }
    }
    Ok(Item::Bool(false))
}
