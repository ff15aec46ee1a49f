//! Functions on texts. Positions count characters, not bytes.

use super::Form::{Both, Method};
use super::{Function, lists};
use crate::expression::evaluate::{Evaluated, Failure, Machine};
use crate::expression::item::Item;
use crate::expression::operators::text;

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Function] = &[
    Function { name: "size", form: Both, arguments: (1, 1), usage: "`TEXT.size()` or `size(TEXT)`, likewise for lists and objects",
        about: "Characters of a text, elements of a list, keys of an object.", example: "size('grün') == 4 && [1, 2].size() == 2", run: lists::size },
    Function { name: "contains", form: Method, arguments: (2, 2), usage: "`TEXT.contains(TEXT)`",
        about: "Whether the text is in it.", example: "'logging-loki'.contains('loki')", run: |m, it| search(m, it, |text, part| Item::Bool(text.contains(part))) },
    Function { name: "startsWith", form: Method, arguments: (2, 2), usage: "`TEXT.startsWith(TEXT)`",
        about: "Whether it begins so.", example: "'logging-loki'.startsWith('logging')", run: |m, it| search(m, it, |text, part| Item::Bool(text.starts_with(part))) },
    Function { name: "endsWith", form: Method, arguments: (2, 2), usage: "`TEXT.endsWith(TEXT)`",
        about: "Whether it ends so.", example: "'logging-loki'.endsWith('loki')", run: |m, it| search(m, it, |text, part| Item::Bool(text.ends_with(part))) },
    Function { name: "matches", form: Method, arguments: (2, 2), usage: "`TEXT.matches(PATTERN)`",
        about: "Whether a regular expression (RE2) matches a part of it.", example: "'loki-0'.matches('^[a-z]+-[0-9]$')", run: matches },
    Function { name: "find", form: Method, arguments: (2, 2), usage: "`TEXT.find(PATTERN)`",
        about: "The first match of a regular expression, or an empty text.", example: "'loki-0'.find('[0-9]+') == '0'", run: find },
    Function { name: "findAll", form: Method, arguments: (2, 3), usage: "`TEXT.findAll(PATTERN)` or `TEXT.findAll(PATTERN, LIMIT)`",
        about: "All matches, or the first of them.", example: "'a1b22'.findAll('[0-9]+') == ['1', '22']", run: find_all },
    Function { name: "charAt", form: Method, arguments: (2, 2), usage: "`TEXT.charAt(POSITION)`",
        about: "The character at a position; an empty text right behind the last.", example: "'abc'.charAt(1) == 'b'", run: char_at },
    Function { name: "indexOf", form: Method, arguments: (2, 3), usage: "`TEXT.indexOf(TEXT)`, `TEXT.indexOf(TEXT, FROM)` or `LIST.indexOf(ELEMENT)`",
        about: "Where it is found first; -1 where it is not.", example: "'a.b.c'.indexOf('.') == 1 && [4, 5].indexOf(5) == 1", run: index_of },
    Function { name: "lastIndexOf", form: Method, arguments: (2, 2), usage: "`TEXT.lastIndexOf(TEXT)` or `LIST.lastIndexOf(ELEMENT)`",
        about: "Where it is found last; -1 where it is not.", example: "'a.b.c'.lastIndexOf('.') == 3", run: last_index_of },
    Function { name: "substring", form: Method, arguments: (2, 3), usage: "`TEXT.substring(START)` or `TEXT.substring(START, END)`",
        about: "A part; the end is not in it.", example: "'abcd'.substring(1, 3) == 'bc'", run: substring },
    Function { name: "replace", form: Method, arguments: (3, 4), usage: "`TEXT.replace(OLD, NEW)` or `TEXT.replace(OLD, NEW, TIMES)`",
        about: "With another text in the place of one.", example: "'a-b-c'.replace('-', '.') == 'a.b.c'", run: replace },
    Function { name: "split", form: Method, arguments: (2, 3), usage: "`TEXT.split(SEPARATOR)` or `TEXT.split(SEPARATOR, PARTS)`",
        about: "Its parts between separators.", example: "'a,b,c'.split(',', 2) == ['a', 'b,c']", run: split },
    Function { name: "join", form: Method, arguments: (1, 2), usage: "`LIST.join()` or `LIST.join(SEPARATOR)`",
        about: "The texts of a list as one.", example: "['a', 'b'].join('-') == 'a-b'", run: join },
    Function { name: "lowerAscii", form: Method, arguments: (1, 1), usage: "`TEXT.lowerAscii()`",
        about: "With small letters from A to Z.", example: "'Loki'.lowerAscii() == 'loki'", run: |m, it| whole(m, it, str::to_ascii_lowercase) },
    Function { name: "upperAscii", form: Method, arguments: (1, 1), usage: "`TEXT.upperAscii()`",
        about: "With capital letters from A to Z.", example: "'Loki'.upperAscii() == 'LOKI'", run: |m, it| whole(m, it, str::to_ascii_uppercase) },
    Function { name: "trim", form: Method, arguments: (1, 1), usage: "`TEXT.trim()`",
        about: "Without white space at both ends.", example: "' a '.trim() == 'a'", run: |m, it| whole(m, it, |text| text.trim().to_owned()) },
    Function { name: "reverse", form: Method, arguments: (1, 1), usage: "`TEXT.reverse()` or `LIST.reverse()`",
        about: "The other way round.", example: "'abc'.reverse() == 'cba' && [1, 2].reverse() == [2, 1]", run: reverse },
];

fn search<'v>(
    machine: &mut Machine<'v>,
    arguments: &[Item<'v>],
    answer: impl Fn(&str, &str) -> Item<'v>,
) -> Evaluated<'v> {
    let (inside, part) = (text(&arguments[0])?, text(&arguments[1])?);
    machine.budget.take_bytes(inside.len() + part.len())?;
    Ok(answer(inside, part))
}

fn whole<'v>(
    machine: &mut Machine<'v>,
    arguments: &[Item<'v>],
    change: impl Fn(&str) -> String,
) -> Evaluated<'v> {
    let inside = text(&arguments[0])?;
    machine.budget.take_bytes(inside.len())?;
    Ok(Item::text(change(inside)))
}

/// Takes what a match costs: a step for each byte of the text, each of which may look at all of the pattern.
fn take_match(machine: &mut Machine<'_>, inside: &str, pattern: &str) -> Result<(), Failure> {
    machine
        .budget
        .take_bytes(inside.len() * (8 + pattern.len() / 4))
}

fn matches<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    let (inside, pattern) = (text(&arguments[0])?, text(&arguments[1])?);
    let regex = machine.pattern(pattern)?;
    take_match(machine, inside, pattern)?;
    Ok(Item::Bool(regex.is_match(inside)))
}

fn find<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    let (inside, pattern) = (text(&arguments[0])?, text(&arguments[1])?);
    let regex = machine.pattern(pattern)?;
    take_match(machine, inside, pattern)?;
    let found = regex.find(inside).map_or("", |found| found.as_str());
    Ok(Item::text(found))
}

fn find_all<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    let (inside, pattern) = (text(&arguments[0])?, text(&arguments[1])?);
    let limit = match arguments.get(2) {
        Some(limit) => position(limit)?,
        None => usize::MAX,
    };
    let regex = machine.pattern(pattern)?;
    let mut found = Vec::new();
    let mut at = 0;
    for part in regex.find_iter(inside).take(limit) {
        // Each search starts anew behind the last match.
        machine.budget.take_items(1)?;
        take_match(machine, &inside[at..part.end()], pattern)?;
        at = part.end();
        found.push(Item::text(part.as_str()));
    }
    take_match(machine, &inside[at..], pattern)?;
    Ok(Item::list(found))
}

/// Returns an argument that is a position or a count.
fn position(item: &Item<'_>) -> Result<usize, Failure> {
    match item {
        Item::Int(value) => usize::try_from(*value).ok(),
        Item::UInt(value) => usize::try_from(*value).ok(),
        _ => None,
    }
    .ok_or_else(|| Failure::new("needs a whole number that is not negative"))
}

/// Returns the byte at which the character of a position begins; the end for the position right behind the last.
fn byte_of(inside: &str, position: usize) -> Result<usize, Failure> {
    inside
        .char_indices()
        .map(|(at, _)| at)
        .chain([inside.len()])
        .nth(position)
        .ok_or_else(|| Failure::new("a position is beyond the end of the text"))
}

fn char_at<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    let inside = text(&arguments[0])?;
    machine.budget.take_bytes(inside.len())?;
    let at = byte_of(inside, position(&arguments[1])?)?;
    let found = inside[at..].chars().next();
    Ok(Item::text(found.map(String::from).unwrap_or_default()))
}

fn index_of<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    if let Item::List(_) = arguments[0] {
        return lists::index_of(machine, arguments, false);
    }
    let (inside, part) = (text(&arguments[0])?, text(&arguments[1])?);
    machine.budget.take_bytes(inside.len() + part.len())?;
    let from = match arguments.get(2) {
        Some(from) => byte_of(inside, position(from)?)?,
        None => 0,
    };
    let found = inside[from..].find(&**part).map(|at| from + at);
    Ok(position_of(inside, found))
}

fn last_index_of<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    if let Item::List(_) = arguments[0] {
        return lists::index_of(machine, arguments, true);
    }
    search(machine, arguments, |inside, part| {
        position_of(inside, inside.rfind(part))
    })
}

fn position_of<'v>(inside: &str, byte: Option<usize>) -> Item<'v> {
    let position = byte.and_then(|byte| i64::try_from(inside[..byte].chars().count()).ok());
    Item::Int(position.unwrap_or(-1))
}

fn substring<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    let inside = text(&arguments[0])?;
    machine.budget.take_bytes(inside.len())?;
    let start = byte_of(inside, position(&arguments[1])?)?;
    let end = match arguments.get(2) {
        Some(end) => byte_of(inside, position(end)?)?,
        None => inside.len(),
    };
    if start > end {
        return Err(Failure::new("the end is before the start"));
    }
    Ok(Item::text(&inside[start..end]))
}

fn replace<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    let (inside, old, new) = (
        text(&arguments[0])?,
        text(&arguments[1])?,
        text(&arguments[2])?,
    );
    let times = match arguments.get(3) {
        // As Kubernetes has it, a negative number means all.
        Some(Item::Int(value)) if *value < 0 => usize::MAX,
        Some(times) => position(times)?,
        None => usize::MAX,
    };
    machine.budget.take_bytes(inside.len())?;
    let places = inside.matches(&**old).take(times).count();
    machine.budget.take_bytes(
        inside
            .len()
            .saturating_add(places.saturating_mul(new.len())),
    )?;
    Ok(Item::text(inside.replacen(&**old, new, times)))
}

fn split<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    let (inside, separator) = (text(&arguments[0])?, text(&arguments[1])?);
    let parts = match arguments.get(2) {
        Some(Item::Int(value)) if *value < 0 => usize::MAX,
        Some(parts) => position(parts)?,
        None => usize::MAX,
    };
    // An element for each part, and at most one more than there are bytes.
    machine.budget.take_bytes(inside.len())?;
    let count = inside.matches(&**separator).take(parts).count();
    machine.budget.take_items(count)?;
    let parts = inside.splitn(parts, &**separator);
    Ok(Item::list(parts.map(Item::text).collect()))
}

fn join<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    let Item::List(list) = &arguments[0] else {
        return Err(Failure::new("needs a list of texts"));
    };
    let separator = arguments.get(1).map(text).transpose()?;
    let separator = separator.map_or("", |it| it);
    let mut joined = String::new();
    for (index, item) in list.iter().enumerate() {
        let part = text(&item)?;
        machine.budget.take(1)?;
        machine.budget.take_bytes(separator.len() + part.len())?;
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(part);
    }
    Ok(Item::text(joined))
}

fn reverse<'v>(machine: &mut Machine<'v>, arguments: &[Item<'v>]) -> Evaluated<'v> {
    if let Item::List(list) = &arguments[0] {
        machine.budget.take_items(list.len())?;
        let mut items: Vec<_> = list.iter().collect();
        items.reverse();
        return Ok(Item::list(items));
    }
    whole(machine, arguments, |inside| inside.chars().rev().collect())
}
