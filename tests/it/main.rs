//! Integration tests, one binary: a folder or file for each stage, and the real control plane below `support`.

#![expect(
    clippy::unwrap_used,
    reason = "helpers stop at the first surprise, as the tests that call them do"
)]

mod acceptance;
mod agent;
mod architecture;
mod cli;
mod cluster;
mod conditions;
mod crash;
mod dependencies;
mod desired;
mod kubectl_parity;
mod lease;
mod migrations;
mod observe;
mod operate;
mod prune_safety;
mod readme;
mod runtimes;
mod source;
mod support;
mod webhook;
