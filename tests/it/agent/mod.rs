//! The agent as a process, from git over https to a cluster, under the rights that are shipped.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]

mod catalog;
mod commands;
mod counts;
mod follow;
mod kubectl;
mod life;
mod ownership;
mod signatures;
mod ssh;
mod tags;
