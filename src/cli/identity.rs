//! Who this process is, where it has to be told from all others, and who decides by it.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use super::context::Context;
use super::failure::Failure;
use crate::model::limits;

/// Returns who decides, and why: what was typed, or the user of the kubeconfig's context.
///
/// # Errors
///
/// When either is longer than what is kept with a decision.
pub(super) fn who_and_why(
    context: &Context,
    reason: &str,
    by: Option<&str>,
) -> Result<(String, String), Failure> {
    let by = by.map_or_else(|| user(context), str::to_owned);
    for (what, text, bytes_max) in [
        ("the reason", reason, limits::DECISION_REASON_MAX),
        ("the name", by.as_str(), limits::DECISION_BY_MAX),
    ] {
        if text.len() > bytes_max {
            return Err(Failure::Misuse(format!(
                "{what} has {} bytes; at most {bytes_max} are kept with a decision",
                text.len()
            )));
        }
    }
    Ok((by, reason.to_owned()))
}

/// Names the user of the current context. The API server's own audit log knows better; this is for people.
fn user(context: &Context) -> String {
    let kubeconfig = match &context.cluster.kubeconfig {
        Some(path) => kube::config::Kubeconfig::read_from(path),
        None => kube::config::Kubeconfig::read(),
    };
    let Ok(kubeconfig) = kubeconfig else {
        return "unknown".to_owned();
    };
    let current = context
        .cluster
        .context
        .clone()
        .or(kubeconfig.current_context);
    kubeconfig
        .contexts
        .into_iter()
        .find(|named| Some(&named.name) == current.as_ref())
        .and_then(|named| named.context?.user)
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Makes a name that no other process has: what it does, the host, and 64 random bits.
pub(super) fn unique(what: &str) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = match host.trim() {
        "" => "host",
        host => host,
    };
    // The standard library's one source of randomness: the keys of a hash map.
    let random = RandomState::new().hash_one(std::process::id());
    format!("{what}-{host}-{random:016x}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_two_are_alike() {
        assert_ne!(super::unique("sync"), super::unique("sync"));
    }
}
