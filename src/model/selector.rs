//! Label selectors as kubectl writes them: `app=web,tier!=db,env in (a,b),!canary`.

use serde_json::{Map, Value};

/// A label selector; all its requirements must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector(Vec<Requirement>);

/// One requirement of a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    /// The label has one of these values.
    In(String, Vec<String>),
    /// The label is missing or has none of these values.
    NotIn(String, Vec<String>),
    /// The label is there.
    Exists(String),
    /// The label is not there.
    Missing(String),
}

impl Selector {
    /// Reads a selector.
    ///
    /// # Errors
    ///
    /// The part that is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut requirements = Vec::new();
        for part in parts(text) {
            let part = part.trim();
            requirements
                .push(requirement(part).ok_or_else(|| format!("`{part}` selects no label"))?);
        }
        Ok(Self(requirements))
    }

    /// Returns whether an object's labels satisfy every requirement.
    pub fn matches(&self, object: &Value) -> bool {
        let labels = object
            .pointer("/metadata/labels")
            .and_then(Value::as_object);
        let value = |key: &str| labels.and_then(|labels| labels.get(key)?.as_str());
        self.0.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => {
                value(key).is_some_and(|value| values.iter().any(|it| it == value))
            }
            Requirement::NotIn(key, values) => {
                value(key).is_none_or(|value| values.iter().all(|it| it != value))
            }
            Requirement::Exists(key) => value(key).is_some(),
            Requirement::Missing(key) => value(key).is_none(),
        })
    }

    /// Returns labels that satisfy what the selector asks to be there: the first value of each.
    pub fn labels(&self) -> Map<String, Value> {
        let mut labels = Map::new();
        for requirement in &self.0 {
            let (key, value) = match requirement {
                Requirement::In(key, values) => (key, values.first().map_or("", String::as_str)),
                Requirement::Exists(key) => (key, ""),
                Requirement::NotIn(..) | Requirement::Missing(_) => continue,
            };
            labels.insert(key.clone(), Value::from(value));
        }
        labels
    }
}

/// Splits at the commas that stand outside of parentheses.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() || start > 0 {
        parts.push(&text[start..]);
    }
    parts
}

fn requirement(part: &str) -> Option<Requirement> {
    if let Some(key) = part.strip_prefix('!') {
        return Some(Requirement::Missing(label(key)?));
    }
    if let Some(list) = part.strip_suffix(')') {
        let (head, values) = list.split_once('(')?;
        let mut words = head.split_whitespace();
        let (key, word) = (label(words.next()?)?, words.next()?);
        let values = values.split(',').map(|it| it.trim().to_owned()).collect();
        return match (word, words.next()) {
            ("in", None) => Some(Requirement::In(key, values)),
            ("notin", None) => Some(Requirement::NotIn(key, values)),
            _ => None,
        };
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Some(Requirement::NotIn(label(key)?, vec![value.trim().into()]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some(Requirement::In(label(key)?, vec![value.trim().into()]));
    }
    Some(Requirement::Exists(label(part)?))
}

fn label(key: &str) -> Option<String> {
    let key = key.trim();
    let is_label = !key.is_empty()
        && key
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.' | '/'));
    is_label.then(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_is_read_as_kubectl_writes_it() {
        let object = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}});
        for (text, matches) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier!=back", true),
            ("app in (web, db),!canary", true),
            ("app notin (web)", false),
            ("canary", false),
            ("app", true),
        ] {
            assert_eq!(
                Selector::parse(text).unwrap().matches(&object),
                matches,
                "{text}"
            );
        }
        for text in ["app=web,", "a b", "app in web", "app near (x)", "=x"] {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
    }
}
