//! Two HTTP ports: the private one with probes and metrics, and the public one of [`webhook`].
//!
//! Nothing on the private port changes anything, and nothing is read from a request but its path. A connection serves one request within a
//! deadline, and there are few of them: what cannot be answered in time is closed, so that the port never costs the agent
//! more than its limits say.

mod listener;
mod probes;
#[cfg(test)]
mod tests;
pub mod webhook;

pub use probes::{Probes, serve};
