//! The private HTTP port: probes and metrics.
//!
//! Nothing here changes anything, and nothing is read from a request but its path. A connection serves one request within a
//! deadline, and there are few of them: what cannot be answered in time is closed, so that the port never costs the agent
//! more than its limits say.

mod listener;
mod probes;
#[cfg(test)]
mod tests;

pub use probes::{Probes, serve};
