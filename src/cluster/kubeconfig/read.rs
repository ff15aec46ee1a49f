//! From bytes to a mapping, with a budget.

use granit_parser::ErrorKind;
use serde_json::{Map, Value};
use serde_yaml::Error;
use serde_yaml::localizer::ExternalMessageSource;

use super::error::KubeconfigError;
use crate::model::limits::{KUBECONFIG_DEPTH_MAX, KUBECONFIG_NODES_MAX, KUBECONFIG_SIZE_MAX};

/// Reads one YAML or JSON document that is a mapping. The parser's words are never repeated: they quote values.
pub(super) fn read(bytes: &[u8]) -> Result<Map<String, Value>, KubeconfigError> {
    if bytes.len() > KUBECONFIG_SIZE_MAX {
        return Err(KubeconfigError::TooLarge);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| KubeconfigError::NotText)?;
    let value: Value =
        serde_yaml::from_str_with_options(text, options()).map_err(|error| problem(&error))?;
    match value {
        Value::Object(map) => Ok(map),
        Value::Null => Err(KubeconfigError::missing(
            "clusters",
            "it is empty; store the whole file under this key",
        )),
        _ => Err(KubeconfigError::Syntax { line: 1, column: 1 }),
    }
}

fn options() -> serde_yaml::Options {
    serde_yaml::options! {
        emit_comments: false,
        with_snippet: false,
        reject_unsupported_tags: true,
        duplicate_keys: serde_yaml::DuplicateKeyPolicy::Error,
        // A merge key is then a field that is not known.
        merge_keys: serde_yaml::MergeKeyPolicy::AsOrdinary,
        budget: serde_yaml::budget! {
            flow_nesting_limit: KUBECONFIG_DEPTH_MAX,
            max_depth: KUBECONFIG_DEPTH_MAX,
            max_nodes: KUBECONFIG_NODES_MAX,
            // A node has a start and an end, and the stream and its document have theirs.
            max_events: 2 * KUBECONFIG_NODES_MAX + 4,
            max_aliases: 0,
            max_anchors: 0,
        },
    }
}

fn problem(error: &Error) -> KubeconfigError {
    let error = innermost(error);
    let (line, column) = error
        .location()
        .map_or((1, 1), |place| (place.line(), place.column()));
    match error {
        Error::DuplicateMappingKey { .. } => KubeconfigError::DuplicateKey { line },
        Error::Budget { .. } => KubeconfigError::TooComplex,
        Error::ExternalMessage { source, .. } if is_too_deep(source) => KubeconfigError::TooComplex,
        _ => KubeconfigError::Syntax { line, column },
    }
}

fn is_too_deep(source: &ExternalMessageSource) -> bool {
    matches!(source, ExternalMessageSource::Parser(error) if matches!(error.kind(), ErrorKind::RecursionLimitExceeded))
}

fn innermost(error: &Error) -> &Error {
    match error {
        Error::AliasError { error, .. } | Error::WithSnippet { error, .. } => innermost(error),
        other => other,
    }
}
