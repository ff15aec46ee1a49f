//! What is measured of migrations. Labels are bounded: sources, and words of ours.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::model::SourceName;
use crate::model::api::RunPhase;
use crate::model::migration::Decision;

/// Counters and histograms of migrations.
#[derive(Debug)]
pub(super) struct MigrationMetrics {
    decisions: Family<DecisionLabels, Counter>,
    slow: Family<SourceLabel, Counter>,
    runs: Family<RunLabels, Counter>,
    wall: Family<HookLabels, Histogram, fn() -> Histogram>,
    summed: Family<HookLabels, Histogram, fn() -> Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabel {
    source: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    source: String,
    decision: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RunLabels {
    source: String,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HookLabels {
    source: String,
    hook: String,
}

/// From guards that find nothing to do (milliseconds) to a migration that waits for a night.
fn histogram() -> Histogram {
    Histogram::new([
        0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 300.0, 1_800.0, 14_400.0,
    ])
}

impl MigrationMetrics {
    pub(super) fn new() -> Self {
        Self {
            decisions: Family::default(),
            slow: Family::default(),
            runs: Family::default(),
            wall: Family::new_with_constructor(histogram),
            summed: Family::new_with_constructor(histogram),
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "migration_decisions",
            "Guards of migrations that were judged, by what they decided",
            self.decisions.clone(),
        );
        registry.register(
            "migration_slow_guards",
            "Guards that found nothing to do and took longer than their migration allows (policy.skipBudget)",
            self.slow.clone(),
        );
        registry.register(
            "runs_ended",
            "Runs that have ended, by how",
            self.runs.clone(),
        );
        registry.register_with_unit(
            "hook_wall",
            "Time from the first guard of a hook to the end of its last migration",
            Unit::Seconds,
            self.wall.clone(),
        );
        registry.register_with_unit(
            "hook_summed",
            "Time of all migrations of a hook together; they overlap",
            Unit::Seconds,
            self.summed.clone(),
        );
    }

    pub(super) fn judged(&self, source: &SourceName, decision: Decision, is_slow: bool) {
        let labels = DecisionLabels {
            source: source.to_string(),
            decision: decision.to_string(),
        };
        self.decisions.get_or_create(&labels).inc();
        if is_slow {
            let source = source.to_string();
            self.slow.get_or_create(&SourceLabel { source }).inc();
        }
    }

    pub(super) fn run_ended(&self, source: &SourceName, phase: RunPhase) {
        let labels = RunLabels {
            source: source.to_string(),
            result: phase.as_str(),
        };
        self.runs.get_or_create(&labels).inc();
    }

    pub(super) fn hook_ended(
        &self,
        source: &SourceName,
        hook: &str,
        (wall, summed): (Duration, Duration),
    ) {
        let labels = HookLabels {
            source: source.to_string(),
            hook: hook.to_owned(),
        };
        self.wall.get_or_create(&labels).observe(wall.as_secs_f64());
        self.summed
            .get_or_create(&labels)
            .observe(summed.as_secs_f64());
    }
}
