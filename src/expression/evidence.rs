//! What a decision rests on: the values of the paths that an expression names.

use std::collections::BTreeMap;

use serde_json::Value;

use super::bindings::Bindings;
use super::compile::Expression;
use super::evaluate::EvaluationError;
use crate::model::api::Evidence;
use crate::model::limits;

/// Returns what an expression came to, and the values of the paths that it names, within the limit of evidence.
pub fn evidence(
    about: &str,
    expression: &Expression,
    bindings: &Bindings,
    result: &Result<Value, EvaluationError>,
) -> Evidence {
    let mut values = BTreeMap::new();
    let mut size = expression.text().len();
    for path in expression.paths() {
        let Some(value) = lookup(bindings, &path) else {
            continue;
        };
        let key = path.join(".");
        let length = key.len() + value.to_string().len();
        if size + length > limits::EVIDENCE_SIZE_MAX {
            continue;
        }
        size += length;
        values.insert(key, value.clone());
    }
    Evidence {
        about: about.to_owned(),
        expression: expression.text().to_owned(),
        result: match result {
            Ok(value) => value.to_string(),
            Err(error) => format!("unknown: {error}"),
        },
        values,
        at: None,
    }
}

fn lookup<'a>(bindings: &'a Bindings, path: &[String]) -> Option<&'a Value> {
    let (root, rest) = path.split_first()?;
    rest.iter()
        .try_fold(bindings.get(root)?, |value, name| value.get(name))
}
