//! What tests share: one file per helper.

pub(crate) mod agent;
pub(crate) mod canaries;
pub(crate) mod control_plane;
pub(crate) mod desired;
pub(crate) mod fleet;
pub(crate) mod git_server;
pub(crate) mod http;
pub(crate) mod line;
pub(crate) mod messages;
pub(crate) mod proxy;
pub(crate) mod repository;
pub(crate) mod watch;
pub(crate) mod world;

/// Says something to who looks on; a test that passes shows it only with `--nocapture`.
pub(crate) fn say(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Reads a variable of the environment that steers the tests.
#[expect(
    clippy::disallowed_methods,
    reason = "the one door of the tests to the environment"
)]
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
