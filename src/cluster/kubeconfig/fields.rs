//! A mapping of the file, read field by field, each with its path.

use serde_json::{Map, Value};

use super::error::KubeconfigError;

/// One mapping and where it stands.
pub(super) struct Fields<'a> {
    path: String,
    map: &'a Map<String, Value>,
}

/// A field that is refused by name: the name, what it would do, and what to do instead.
pub(super) type Refusal = (&'static str, &'static str, &'static str);

/// Characters of an unknown field's name that an error repeats. A token that slipped in front of a colon is longer, or has
/// other characters than a name.
const NAME_LENGTH_MAX: usize = 30;

// === impl Fields ===

impl<'a> Fields<'a> {
    /// Begins with the whole file.
    pub(super) fn file(map: &'a Map<String, Value>) -> Self {
        Self {
            path: String::new(),
            map,
        }
    }

    /// Returns the path of a field of this mapping.
    pub(super) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// Checks that there is nothing but `known` fields. What is refused by name says why.
    pub(super) fn check(
        &self,
        known: &[&str],
        refusals: &[Refusal],
    ) -> Result<(), KubeconfigError> {
        for (name, value) in self.map {
            // `null` is how a program writes a field that it does not use.
            if known.contains(&name.as_str()) || value.is_null() {
                continue;
            }
            let refusal = refusals.iter().find(|(refused, ..)| *refused == name);
            return Err(match refusal {
                // And `false` a check that it does not skip.
                Some(_) if *value == Value::Bool(false) => continue,
                Some((name, reason, way_out)) => {
                    KubeconfigError::refused(self.path_of(name), reason, way_out)
                }
                None => KubeconfigError::Unknown {
                    field: self.path_of(shown(name)),
                },
            });
        }
        Ok(())
    }

    /// Returns a field that is text.
    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, KubeconfigError> {
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(KubeconfigError::invalid(
                self.path_of(name),
                "is not text; put it into quotes",
            )),
        }
    }

    /// Returns a field that is text and has to be there, with something in it.
    pub(super) fn text_required(
        &self,
        name: &str,
        way_out: &'static str,
    ) -> Result<&'a str, KubeconfigError> {
        match self.text(name)? {
            Some(text) if !text.is_empty() => Ok(text),
            Some(_) => Err(KubeconfigError::invalid(
                self.path_of(name),
                "is empty; give it a value",
            )),
            None => Err(KubeconfigError::missing(self.path_of(name), way_out)),
        }
    }

    /// Returns a field that is true or false; false when it is not there.
    pub(super) fn flag(&self, name: &str) -> Result<bool, KubeconfigError> {
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(KubeconfigError::invalid(
                self.path_of(name),
                "is neither `true` nor `false`",
            )),
        }
    }

    /// Returns a field that is a mapping and has to be there.
    pub(super) fn mapping(&self, name: &str) -> Result<Fields<'a>, KubeconfigError> {
        let path = self.path_of(name);
        match self.map.get(name) {
            Some(Value::Object(map)) => Ok(Fields { path, map }),
            None | Some(Value::Null) => Err(KubeconfigError::missing(
                path,
                "each entry has a name and this",
            )),
            Some(_) => Err(KubeconfigError::invalid(path, "is not a mapping")),
        }
    }

    /// Returns the entries of a field that is a list of mappings.
    pub(super) fn entries(&self, name: &str) -> Result<Vec<Fields<'a>>, KubeconfigError> {
        let path = self.path_of(name);
        let list = match self.map.get(name) {
            Some(Value::Array(list)) => list.as_slice(),
            None | Some(Value::Null) => &[],
            Some(_) => return Err(KubeconfigError::invalid(path, "is not a list")),
        };
        let entry = |(index, value): (usize, &'a Value)| {
            let path = format!("{path}[{index}]");
            match value {
                Value::Object(map) => Ok(Fields { path, map }),
                _ => Err(KubeconfigError::invalid(path, "is not a mapping")),
            }
        };
        list.iter().enumerate().map(entry).collect()
    }
}

fn shown(name: &str) -> &str {
    let is_name = name.len() <= NAME_LENGTH_MAX
        && name
            .chars()
            .all(|char| char.is_ascii_alphabetic() || char == '-');
    if is_name { name } else { "…" }
}
