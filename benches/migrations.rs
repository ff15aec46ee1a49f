//! The measures of migrations: `make bench` prints a table and writes `target/bench/migrations.json`.
//!
//! Guards are measured alone; deploys with the release binary under the token of the shipped ServiceAccount, against a real etcd and
//! API server without fsync on the same machine. `FAIRWAY_BENCH=quick` takes fewer rounds, and
//! `cargo bench --bench migrations -- hundred` takes only the measures of these names.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark that cannot go on may stop anywhere, and prints"
)]

#[path = "migrations/deploys.rs"]
mod deploys;
#[path = "migrations/guards.rs"]
mod guards;
#[expect(dead_code, reason = "the other benchmarks need more of it")]
#[path = "engine/probe.rs"]
mod probe;
#[expect(dead_code, reason = "other benchmarks need more of it")]
#[path = "engine/report.rs"]
mod report;
#[expect(dead_code, reason = "tests need more of it than benchmarks")]
#[path = "../tests/it/migrations/deploy/stage.rs"]
mod stage;
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
    let quick = support::environment("FAIRWAY_BENCH").as_deref() == Some("quick");
    let rounds = |full: usize, few: usize| if quick { few } else { full };
    let only: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    let mut report = Report::default();
    if wanted("guards") {
        guards::one_guard(&mut report);
        guards::worst_evaluation(&mut report);
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        if wanted("hundred") {
            deploys::hundred_not_needed(&mut report, rounds(21, 5)).await;
        }
        if wanted("thousand") {
            deploys::thousand_idle(&mut report, rounds(11, 3)).await;
        }
        if wanted("writes") {
            deploys::writes_of_a_step(&mut report).await;
        }
        if wanted("fifty") {
            deploys::fifty_open(&mut report).await;
        }
    });
    report.write("migrations.json");
}
