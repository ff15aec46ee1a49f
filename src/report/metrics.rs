//! Metrics: one registry, and labels of which there are few. No label holds a commit, an object or a message.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::migration_metrics::MigrationMetrics;
use super::pass::{FetchFailure, PassReport};
use crate::model::SourceName;
use crate::model::api::{ConditionType, ReleaseSourceStatus, RunPhase, find};
use crate::model::migration::Decision;

/// What the agent counts and measures.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    passes: Family<SourceResult, Counter>,
    pass_duration: Histogram,
    fetches: Family<SourceResult, Counter>,
    actions: Family<ActionLabels, Counter>,
    holds: Family<HoldLabels, Gauge>,
    commit_to_applied: Histogram,
    commit_to_runtime: Family<WaveLabel, Histogram>,
    last_applied: Family<SourceLabel, Gauge<f64, AtomicU64>>,
    lease_holder: Family<HolderLabels, Gauge>,
    lease_transitions: Family<LeaseLabel, Gauge>,
    lease_remaining: Family<LeaseLabel, Gauge<f64, AtomicU64>>,
    webhooks: Family<SourceResult, Counter>,
    migrations: MigrationMetrics,
}

/// One lease as it is at the moment of a scrape.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseMeasure<'a> {
    /// Its name.
    pub lease: &'a str,
    /// Who holds it, as the lease says; none when nobody does.
    pub holder: Option<&'a str>,
    /// How often it was taken.
    pub transitions: i32,
    /// How long this process may act if it is not renewed any more; zero when it does not hold it.
    pub remaining: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WaveLabel {
    wave: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabel {
    source: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceResult {
    source: String,
    result: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ActionLabels {
    action: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HoldLabels {
    source: String,
    reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeaseLabel {
    lease: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HolderLabels {
    lease: String,
    holder: String,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Makes the registry with everything at zero.
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("fairway"),
            passes: Family::default(),
            // From a pass that finds nothing (milliseconds) to a first one of a large repository (minutes).
            pass_duration: Histogram::new([
                0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
            ]),
            fetches: Family::default(),
            actions: Family::default(),
            holds: Family::default(),
            commit_to_applied: commit_histogram(),
            commit_to_runtime: Family::new_with_constructor(commit_histogram),
            last_applied: Family::default(),
            lease_holder: Family::default(),
            lease_transitions: Family::default(),
            lease_remaining: Family::default(),
            webhooks: Family::default(),
            migrations: MigrationMetrics::new(),
        };
        metrics.register();
        metrics.migrations.register(&mut metrics.registry);
        metrics.register_leases();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "passes",
            "Passes by the reason of Ready that they ended with",
            self.passes.clone(),
        );
        registry.register_with_unit(
            "pass_duration",
            "Time of one pass",
            Unit::Seconds,
            self.pass_duration.clone(),
        );
        registry.register("fetches", "Fetches by result", self.fetches.clone());
        registry.register(
            "actions",
            "Objects applied and deleted, by result",
            self.actions.clone(),
        );
        registry.register(
            "holds",
            "What is held now, by reason; at most the holds that a status lists",
            self.holds.clone(),
        );
        registry.register_with_unit(
            "commit_to_applied",
            "Time from a commit to its being applied with nothing held",
            Unit::Seconds,
            self.commit_to_applied.clone(),
        );
        registry.register_with_unit(
            "commit_to_runtime",
            "Time from a commit to its being on a runtime with nothing held, by wave",
            Unit::Seconds,
            self.commit_to_runtime.clone(),
        );
        registry.register_with_unit(
            "last_applied_timestamp",
            "When a revision was last applied with nothing held, in seconds since 1970",
            Unit::Seconds,
            self.last_applied.clone(),
        );
        registry.register(
            "webhook_deliveries",
            "Webhook deliveries by what became of them; without a source where nobody has the path",
            self.webhooks.clone(),
        );
        registry.register(
            "build",
            "The version that runs",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
    }

    fn register_leases(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "lease_holder",
            "Who holds the lease, as this replica sees it",
            self.lease_holder.clone(),
        );
        registry.register(
            "lease_transitions",
            "How often the lease was taken",
            self.lease_transitions.clone(),
        );
        registry.register_with_unit(
            "lease_remaining",
            "How long this replica may act if it can not renew the lease any more; 0 while it stands by",
            Unit::Seconds,
            self.lease_remaining.clone(),
        );
    }

    /// Counts a guard of a migration that was judged.
    pub fn judged(&self, source: &SourceName, decision: Decision, is_slow: bool) {
        self.migrations.judged(source, decision, is_slow);
    }

    /// Counts a run that has ended.
    pub fn run_ended(&self, source: &SourceName, phase: RunPhase) {
        self.migrations.run_ended(source, phase);
    }

    /// Measures a hook whose migrations have all ended: the time that passed, and that of its migrations together.
    pub fn hook_ended(&self, source: &SourceName, hook: &str, wall: Duration, summed: Duration) {
        self.migrations.hook_ended(source, hook, (wall, summed));
    }

    /// Measures a lease.
    pub fn lease(&self, measure: &LeaseMeasure<'_>) {
        let lease = || LeaseLabel {
            lease: measure.lease.to_owned(),
        };
        self.lease_holder.clear();
        if let Some(holder) = measure.holder {
            let labels = HolderLabels {
                lease: measure.lease.to_owned(),
                holder: holder.to_owned(),
            };
            self.lease_holder.get_or_create(&labels).set(1);
        }
        self.lease_transitions
            .get_or_create(&lease())
            .set(measure.transitions.into());
        self.lease_remaining
            .get_or_create(&lease())
            .set(measure.remaining.as_secs_f64());
    }

    /// Forgets the gauges of all sources, when this replica does not follow them any more: another one's are right.
    pub fn stands_by(&self) {
        self.holds.clear();
        self.last_applied.clear();
    }

    /// Counts a fetch.
    pub fn fetched(&self, source: &SourceName, result: Result<(), &FetchFailure>) {
        let result = match result {
            Ok(()) => "ok",
            Err(failure) if failure.retryable => "failed",
            Err(_) => "refused",
        };
        let labels = SourceResult {
            source: source.to_string(),
            result: result.to_owned(),
        };
        self.fetches.get_or_create(&labels).inc();
    }

    /// Counts a webhook delivery; without a source when nobody has its path.
    pub fn webhook_delivered(&self, source: Option<&SourceName>, result: &str) {
        let labels = SourceResult {
            source: source.map_or_else(String::new, ToString::to_string),
            result: result.to_owned(),
        };
        self.webhooks.get_or_create(&labels).inc();
    }

    /// Counts a pass with all that it did, from its report and the statuses before and after it.
    pub fn passed(
        &self,
        report: &PassReport<'_>,
        before: &ReleaseSourceStatus,
        after: &ReleaseSourceStatus,
    ) {
        let source = report.source.to_string();
        let result = find(&after.conditions, ConditionType::Ready)
            .map_or_else(|| "Unknown".to_owned(), |ready| ready.reason.clone());
        let labels = SourceResult {
            source: source.clone(),
            result,
        };
        self.passes.get_or_create(&labels).inc();
        let duration = report.ended.duration_since(report.started);
        self.pass_duration.observe(duration.as_secs_f64().max(0.0));
        for effect in report.effects {
            let labels = ActionLabels {
                action: effect.kind.as_str(),
                result: effect.result.as_str(),
            };
            self.actions.get_or_create(&labels).inc();
        }
        self.held(&source, before, after);
        if before.last_applied_revision != after.last_applied_revision {
            self.applied(source, report);
        }
    }

    fn held(&self, source: &str, before: &ReleaseSourceStatus, after: &ReleaseSourceStatus) {
        let labels = |reason: &str| HoldLabels {
            source: source.to_owned(),
            reason: reason.to_owned(),
        };
        for item in before.holds.iter().chain(&after.holds) {
            self.holds.get_or_create(&labels(&item.reason)).set(0);
        }
        for item in &after.holds {
            self.holds.get_or_create(&labels(&item.reason)).inc();
        }
    }

    fn applied(&self, source: String, report: &PassReport<'_>) {
        self.last_applied
            .get_or_create(&SourceLabel { source })
            .set(report.ended.as_duration().as_secs_f64());
        if let Some(taken) = since_commit(report) {
            self.commit_to_applied.observe(taken);
        }
    }

    /// Measures how long a revision took to a runtime, by the wave that it came with.
    pub fn runtime_applied(&self, wave: &'static str, report: &PassReport<'_>) {
        if let Some(taken) = since_commit(report) {
            self.commit_to_runtime
                .get_or_create(&WaveLabel { wave })
                .observe(taken);
        }
    }

    /// Forgets the gauges of a source that is gone, so that they do not stay at their last value.
    pub fn forget(&self, source: &SourceName, last: &ReleaseSourceStatus) {
        let source = source.to_string();
        for item in &last.holds {
            self.holds.remove(&HoldLabels {
                source: source.clone(),
                reason: item.reason.clone(),
            });
        }
        self.last_applied.remove(&SourceLabel { source });
    }

    /// Returns everything in the text format of OpenMetrics.
    pub fn render(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .expect("writing into a String does not fail");
        text
    }
}

/// From a webhook's few seconds to a poll's interval and a slow rollout.
fn commit_histogram() -> Histogram {
    Histogram::new([
        1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1_800.0, 3_600.0, 86_400.0,
    ])
}

/// Returns the seconds from the commit to the end of a pass. A working tree has no commit time, and a forged one may be in the
/// future.
fn since_commit(report: &PassReport<'_>) -> Option<f64> {
    if report.commit.time <= 0 {
        return None;
    }
    let committed = Timestamp::from_second(report.commit.time).ok()?;
    Some(
        report
            .ended
            .duration_since(committed)
            .as_secs_f64()
            .max(0.0),
    )
}
