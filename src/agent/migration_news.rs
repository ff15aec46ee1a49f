//! What is told about migrations: log lines, metrics, Events, audit lines.

use std::sync::Arc;

use super::clock;
use super::outlets::Outlets;
use super::run_events::RunEvents;
use crate::model::api::{HOME, Run, RunCommand, RunSpec};
use crate::model::migration::{Decision, Hook, HookScope};
use crate::model::{SourceName, limits};
use crate::report::{RunAction, RunNews};
use crate::runs::Judgement;
use crate::runs::conductor::{HookTimes, Listen};

/// Tells about the migrations of one source on home.
pub(super) struct MigrationNews {
    pub(super) source: SourceName,
    pub(super) namespace: String,
    pub(super) outlets: Outlets,
    pub(super) events: RunEvents,
}

impl MigrationNews {
    pub(super) fn new(
        source: &SourceName,
        namespace: &str,
        outlets: &Outlets,
        events: RunEvents,
    ) -> Arc<Self> {
        Arc::new(Self {
            events,
            source: source.clone(),
            namespace: namespace.to_owned(),
            outlets: outlets.clone(),
        })
    }

    /// Writes down that a run is about to be deleted.
    pub(super) fn trimmed(&self, run: &Run) -> std::io::Result<()> {
        self.write(run, RunAction::Trim, None)
    }

    fn audit(&self, run: &Run, action: RunAction, command: Option<&RunCommand>) {
        if let Err(error) = self.write(run, action, command) {
            tracing::error!(%error, "failed to write audit lines");
        }
    }

    fn write(
        &self,
        run: &Run,
        action: RunAction,
        command: Option<&RunCommand>,
    ) -> std::io::Result<()> {
        let news = RunNews {
            at: clock::now(),
            source: &self.source,
            namespace: &self.namespace,
            cluster: HOME,
            run,
            action,
            command,
        };
        self.outlets.audit.run(&news)
    }
}

/// Returns whether a guard that has found nothing to do has taken longer than its migration allows for that.
fn is_slow(spec: &RunSpec, judgement: &Judgement) -> bool {
    judgement.decision == Decision::NotNeeded
        && judgement.took > spec.definition.policy.skip_budget.0
}

impl Listen for MigrationNews {
    fn judged(&self, hook: &Hook, spec: &RunSpec, judgement: &Judgement) {
        let migration = spec.migration.as_str();
        let milliseconds = u64::try_from(judgement.took.as_millis()).unwrap_or(u64::MAX);
        let decision = judgement.decision;
        let is_slow = is_slow(spec, judgement);
        self.outlets.metrics.judged(&self.source, decision, is_slow);
        if is_slow {
            tracing::warn!(
                source.name = %self.source, migration.name = migration, %hook, milliseconds,
                "a guard that found nothing to do was slow"
            );
        } else {
            tracing::info!(
                source.name = %self.source, migration.name = migration, %hook, %decision, milliseconds,
                message = judgement.message,
                "judged a migration"
            );
        }
    }

    fn changed(&self, before: Option<&Run>, run: &Run) {
        let phase = |run: &Run| run.status.as_ref().map(|it| it.phase).unwrap_or_default();
        let commands = |run: &Run| run.status.as_ref().map_or(0, |it| it.commands.len());
        let status = run.status.clone().unwrap_or_default();
        // People's words count from the moment in which they are written down.
        for command in status.commands.iter().skip(before.map_or(0, commands)) {
            self.audit(run, RunAction::Command, Some(command));
        }
        self.events.tell(before, run);
        let was = before.map(phase);
        if was == Some(status.phase) {
            return;
        }
        tracing::info!(
            source.name = %self.source,
            run.name = run.metadata.name.as_deref().unwrap_or_default(),
            run.phase = %status.phase,
            step = status.current_step.as_deref().unwrap_or_default(),
            message = status.message,
            "a run has changed"
        );
        if was.is_none() {
            self.audit(run, RunAction::Start, None);
        } else if status.phase.is_over() {
            self.audit(run, RunAction::End, None);
            self.outlets.metrics.run_ended(&self.source, status.phase);
        }
    }

    fn ended(&self, hook: &Hook, times: &HookTimes) {
        let word = match hook.scope {
            HookScope::Global => "global",
            HookScope::Component(_) => "component",
        };
        let scope = format!("{word}-{}", hook.phase.as_str());
        self.outlets
            .metrics
            .hook_ended(&self.source, &scope, times.wall, times.summed());
        let slowest = times.migrations.iter().take(limits::SLOWEST_LISTED_MAX);
        let slowest: Vec<String> = slowest
            .map(|(name, time)| format!("{name} {} ms", time.as_millis()))
            .collect();
        tracing::info!(
            source.name = %self.source, %hook,
            migrations = times.migrations.len(),
            wall_milliseconds = u64::try_from(times.wall.as_millis()).unwrap_or(u64::MAX),
            summed_milliseconds = u64::try_from(times.summed().as_millis()).unwrap_or(u64::MAX),
            slowest = slowest.join(", "),
            "the migrations of a deploy have ended"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;

    use super::*;
    use crate::runs::spec_of_a_test;

    #[rstest]
    #[case::default_within(None, Decision::NotNeeded, 400, false)]
    #[case::default_beyond(None, Decision::NotNeeded, 600, true)]
    #[case::more_patient(Some("2s"), Decision::NotNeeded, 600, false)]
    #[case::less_patient(Some("100ms"), Decision::NotNeeded, 400, true)]
    #[case::work_is_found(Some("100ms"), Decision::Run, 400, false)]
    fn a_guard_is_slow_beyond_what_its_migration_allows(
        #[case] budget: Option<&str>,
        #[case] decision: Decision,
        #[case] milliseconds: u64,
        #[case] expected: bool,
    ) {
        let policy = budget.map_or(
            serde_json::json!({}),
            |budget| serde_json::json!({"skipBudget": budget}),
        );
        let spec =
            spec_of_a_test(serde_json::json!({"guard": {"needed": "true"}, "policy": policy}));
        let judgement = Judgement {
            decision,
            evidence: Vec::new(),
            message: String::new(),
            runbook: None,
            took: Duration::from_millis(milliseconds),
            may_be_overridden: false,
            reason: "",
            may_pass: false,
        };
        assert_eq!(is_slow(&spec, &judgement), expected);
    }
}
