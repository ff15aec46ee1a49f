//! Integration tests, one binary: a folder or file for each stage, and the real control plane below `support`.

#![expect(
    clippy::unwrap_used,
    reason = "helpers stop at the first surprise, as the tests that call them do"
)]

mod agent;
mod architecture;
mod cli;
mod cluster;
mod crash;
mod desired;
mod kubectl_parity;
mod lease;
mod observe;
mod prune_safety;
mod readme;
mod runtimes;
mod source;
mod support;
mod webhook;
