//! What is there against what must be there.

use serde_json::Value;

use super::{About, Difference};
use crate::desired::yaml::PointerPart;

/// Characters of a value that a message shows.
const SHOWN_MAX: usize = 300;

/// Compares what must be there with what is: of an object only the fields that are named, of a list of objects each by its name
/// where it has one, and as many as there are. `at` is the way to what must be there in the case.
pub(super) fn compare(
    (path, at): (&str, &[PointerPart]),
    wanted: &Value,
    found: &Value,
) -> Vec<Difference> {
    let about = || About::Case(at.to_vec());
    let below = |part: PointerPart| [at, &[part]].concat();
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(fields)) => wanted
            .iter()
            .flat_map(|(name, wanted)| {
                let path = format!("{path}.{name}");
                let at = below(name.as_str().into());
                match fields.get(name) {
                    Some(found) => compare((&path, &at), wanted, found),
                    // A field that must be null may as well be missing.
                    None if wanted.is_null() => Vec::new(),
                    None => {
                        let about = About::Case(at);
                        vec![Difference::new(about, path, short(wanted), "nothing")]
                    }
                }
            })
            .collect(),
        (Value::Array(wanted), Value::Array(items)) => {
            if wanted.len() != items.len() {
                let (wanted, items) = (short_list(wanted), short_list(items));
                return vec![Difference::new(about(), path, wanted, items)];
            }
            wanted
                .iter()
                .enumerate()
                .flat_map(|(index, wanted)| {
                    let name = name_of(wanted);
                    // Without a namespace of its own, an element is the first of its name.
                    let same = items
                        .iter()
                        .find(|it| {
                            let namespace = namespace_of(wanted);
                            name.is_some()
                                && name_of(it) == name
                                && (namespace.is_none() || namespace_of(it) == namespace)
                        })
                        .unwrap_or(&items[index]);
                    let path = match name {
                        Some(name) => format!("{path}[{name}]"),
                        None => format!("{path}[{index}]"),
                    };
                    compare((&path, &below(index.into())), wanted, same)
                })
                .collect()
        }
        (wanted, found) if wanted == found => Vec::new(),
        (wanted, found) => {
            let (wanted, found) = (short(wanted), short(found));
            vec![Difference::new(about(), path, wanted, found)]
        }
    }
}

fn name_of(object: &Value) -> Option<&str> {
    object
        .pointer("/metadata/name")
        .or_else(|| object.get("name"))?
        .as_str()
}

fn namespace_of(object: &Value) -> Option<&str> {
    object.pointer("/metadata/namespace")?.as_str()
}

/// Writes a value in one line of bounded length.
pub fn short(value: &Value) -> String {
    let text = match value {
        Value::Null => "nothing".to_owned(),
        value => value.to_string(),
    };
    match text.char_indices().nth(SHOWN_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

fn short_list(items: &[Value]) -> String {
    let named: Option<Vec<&str>> = items.iter().map(name_of).collect();
    let count = items.len();
    match named {
        _ if count == 0 => "an empty list".to_owned(),
        Some(names) => format!("{count}: {}", names.join(", ")),
        None => format!("{count}: {}", short(&Value::Array(items.to_vec()))),
    }
}

/// Returns the first object of two worlds that differs, as each has it.
pub(super) fn first_difference(wanted: &[Value], found: &[Value]) -> (String, String) {
    let missing = wanted.iter().find(|it| !found.contains(it));
    let extra = found.iter().find(|it| !wanted.contains(it));
    let shown = |object: Option<&Value>| object.map_or_else(|| "nothing".to_owned(), short);
    (shown(missing), shown(extra))
}
