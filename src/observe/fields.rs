//! The set of fields that a `fieldsV1` entry names, as a compact tree.

use std::collections::BTreeMap;

use serde_json::Value;

/// A node of a `fieldsV1` tree: whether the field itself is owned, and what is owned below it.
///
/// Keys are kept as the API server writes them (structured-merge-diff): `f:NAME` for a field, `k:{…}` for an item of a list
/// with keys, `v:VALUE` for an item of a set, `i:INDEX` for one by position, and `.` for the node itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FieldSet {
    /// Whether `.` stands here: the node itself is owned.
    pub itself: bool,
    /// What is owned below.
    pub children: BTreeMap<Box<str>, FieldSet>,
}

impl FieldSet {
    /// Reads a `fieldsV1` value. Anything that is not an object counts as empty.
    pub fn from_fields_v1(value: &Value) -> Self {
        let mut set = Self::default();
        let Some(map) = value.as_object() else {
            return set;
        };
        for (key, below) in map {
            if key == "." {
                set.itself = true;
            } else {
                set.children
                    .insert(key.as_str().into(), Self::from_fields_v1(below));
            }
        }
        set
    }

    /// Returns whether the node is a leaf: owned as a whole, with nothing named below it.
    pub fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }
}
