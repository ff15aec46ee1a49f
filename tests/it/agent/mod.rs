//! The agent as a process, from git over https to a cluster, under the rights that are shipped.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]

mod account;
mod canaries;
mod catalog;
mod commands;
mod counts;
mod credentials;
mod decisions;
mod follow;
mod full_disk;
mod jobs;
mod kubectl;
mod life;
mod offline;
mod ownership;
mod secrets;
mod signatures;
mod ssh;
mod tags;
mod truth;
mod turns;
mod withdrawal;
