//! The measures of the engine: `make bench` prints a table and writes `target/bench/engine.json`.
//!
//! The agent is the release binary under the token of the shipped ServiceAccount, against a real etcd and API server without
//! fsync on the same machine; git is served over https. Times are ratios against a bare loop of the same requests in the same
//! run; counts come from the API server's own metrics. `FAIRWAY_BENCH=quick` leaves out what takes minutes, `large` runs just
//! that.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark that cannot go on may stop anywhere, and prints"
)]

#[path = "engine/measures.rs"]
mod measures;
#[path = "engine/probe.rs"]
mod probe;
#[path = "engine/pure.rs"]
mod pure;
#[path = "engine/raw.rs"]
mod raw;
#[path = "engine/report.rs"]
mod report;
#[expect(dead_code, reason = "tests need more of it than benchmarks")]
#[path = "../tests/it/support/mod.rs"]
mod support;

use report::Report;

fn main() {
    // `cargo test --benches` passes this; there is nothing to test here.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    fairway::source::initialize().unwrap();
    let asked = support::environment("FAIRWAY_BENCH");
    let (quick, large) = (
        asked.as_deref() == Some("quick"),
        asked.as_deref() == Some("large"),
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut report = Report::default();
    pure::validate(&mut report, 10_000);
    runtime.block_on(async {
        if large {
            return measures::ten_thousand(&mut report).await;
        }
        measures::small(&mut report).await;
        measures::thousand(&mut report, if quick { 1 } else { 5 }).await;
        measures::components(&mut report).await;
        measures::server_processor(&mut report, if quick { 1 } else { 4 }).await;
        if !quick {
            measures::ten_thousand(&mut report).await;
        }
        measures::steady(&mut report, if quick { 15 } else { 90 }).await;
    });
    report.write("engine.json");
}
