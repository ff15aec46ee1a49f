//! The measures of migrations: `make bench` prints a table and writes `target/bench/migrations.json`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark that cannot go on may stop anywhere, and prints"
)]

#[path = "migrations/guards.rs"]
mod guards;
#[expect(dead_code, reason = "other benchmarks need more of it")]
#[path = "engine/report.rs"]
mod report;

use report::Report;

fn main() {
    // `cargo test --benches` passes this; there is nothing to test here.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let mut report = Report::default();
    guards::one_guard(&mut report);
    guards::worst_evaluation(&mut report);
    report.write("migrations.json");
}
