//! The measures of the agent with a webhook and runtimes: `make bench` prints a table and writes `target/bench/agent.json`.
//!
//! The agent is the release binary under the token of the shipped ServiceAccount, against a real etcd and API server without
//! fsync on the same machine. Runtimes are namespaces of that same API server, each behind a TCP line of its own; deliveries
//! are signed and come over real connections. `FAIRWAY_BENCH=quick` takes fewer rounds, and
//! `cargo bench --bench agent -- idle slow` takes only the measures of these names.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark that cannot go on may stop anywhere, and prints"
)]

#[path = "agent/catalog.rs"]
mod catalog;
#[expect(dead_code, reason = "tests need more of it than benchmarks")]
#[path = "../tests/it/webhook/forge.rs"]
mod forge;
#[path = "agent/idle.rs"]
mod idle;
#[path = "agent/load.rs"]
mod load;
#[path = "agent/moves.rs"]
mod moves;
#[expect(dead_code, reason = "the other benchmark needs more of it")]
#[path = "engine/probe.rs"]
mod probe;
#[expect(dead_code, reason = "tests need more of it than benchmarks")]
#[path = "../tests/it/lease/replicas.rs"]
mod replicas;
#[expect(dead_code, reason = "the other benchmark needs more of it")]
#[path = "engine/report.rs"]
mod report;
#[expect(dead_code, reason = "tests need more of it than benchmarks")]
#[path = "../tests/it/support/mod.rs"]
mod support;
#[path = "agent/takeover.rs"]
mod takeover;

use report::Report;

fn main() {
    // `cargo test --benches` passes this; there is nothing to test here.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let quick = support::environment("FAIRWAY_BENCH").as_deref() == Some("quick");
    let rounds = |full: usize, few: usize| if quick { few } else { full };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let only: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    let mut report = Report::default();
    runtime.block_on(async {
        if wanted("moves") {
            moves::two_runtimes(&mut report, rounds(50, 10)).await;
        }
        if wanted("new") {
            moves::new_runtime(&mut report, rounds(5, 2)).await;
        }
        if wanted("silent") {
            moves::one_of_five_silent(&mut report, rounds(20, 5)).await;
        }
        if wanted("burst") {
            load::burst(&mut report).await;
        }
        if wanted("takeover") {
            takeover::both(&mut report, rounds(3, 1)).await;
        }
        if wanted("idle") {
            idle::two_runtimes(&mut report, if quick { 15 } else { 90 }).await;
        }
        if wanted("slow") {
            load::slow_connections(&mut report).await;
        }
    });
    report.write("agent.json");
}
