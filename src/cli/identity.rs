//! Who this process is, where it has to be told from all others.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

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
