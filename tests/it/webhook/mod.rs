//! Webhooks over real HTTP, against the running agent: what is delivered rings its bell, and what is bad costs nothing.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]

mod commands;
mod deliveries;
mod forge;
mod hostile;
mod rotation;
