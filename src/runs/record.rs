//! Records of runs on the cluster: Runs in the agent's own namespace, written through the door that asks for the claim.
//!
//! A status is replaced as a whole over the resourceVersion that was seen last, so a write that is late is refused. The claim in it
//! tells whose write it was; it is compared for equality.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;

use super::conductor::happens_once;
use super::machine::has_open_undo;
use super::store::{RunStore, StoreError};
use crate::cluster::{Cluster, ClusterError};
use crate::model::api::{HistorySpec, Run, RunStatus};
use crate::model::names::GROUP;
use crate::model::{GroupKind, ObjectKey};

/// The records of runs on one cluster.
#[derive(Clone)]
pub struct ClusterRuns {
    cluster: Cluster,
    namespace: String,
}

/// How long runs that are over are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunHistory {
    /// The newest so many.
    pub runs: usize,
    /// Days after their end.
    pub days: u32,
}

impl From<&HistorySpec> for RunHistory {
    fn from(spec: &HistorySpec) -> Self {
        Self {
            runs: usize::try_from(spec.runs).unwrap_or(usize::MAX),
            days: spec.days,
        }
    }
}

impl RunHistory {
    /// Returns the runs that are to go: those that are over and older than `days`, or not among the newest `runs`. The runs of one
    /// target are given, and `in_use` those whose record a deploy still asks for.
    ///
    /// Never among them are runs whose effects could still be taken back, and those whose record decides: without it nobody knows
    /// that they ever ran.
    pub fn surplus<'a>(
        &self,
        runs: &'a [Run],
        in_use: &BTreeSet<String>,
        now: Timestamp,
    ) -> Vec<&'a Run> {
        let mut over: Vec<(Timestamp, &Run)> = runs
            .iter()
            .filter_map(|run| Some((ended(run)?, run)))
            .collect();
        over.sort_by_key(|(ended, run)| (std::cmp::Reverse(*ended), run.name_any()));
        let age_max = SignedDuration::from_hours(24 * i64::from(self.days));
        over.into_iter()
            .enumerate()
            .filter(|(position, (ended, run))| {
                (*position >= self.runs || now.duration_since(*ended) > age_max)
                    && !in_use.contains(&run.name_any())
                    && !happens_once(run)
                    && !has_open_undo(run)
            })
            .map(|(_, (_, run))| run)
            .collect()
    }
}

/// Returns when a run has come to its end.
fn ended(run: &Run) -> Option<Timestamp> {
    let status = run.status.as_ref()?;
    let ended = status.ended_at.as_ref()?;
    status.phase.is_over().then_some(ended.0)
}

// === impl ClusterRuns ===

impl ClusterRuns {
    /// Opens the records in a namespace of a cluster, through a door that is under the claim.
    pub fn new(cluster: Cluster, namespace: impl Into<String>) -> Self {
        Self {
            cluster,
            namespace: namespace.into(),
        }
    }

    /// Lists the runs that labels select.
    ///
    /// # Errors
    ///
    /// What the request failed with; then nothing is known.
    pub async fn list(&self, labels: &str) -> Result<Vec<Run>, ClusterError> {
        self.cluster.list::<Run>(&self.namespace, labels).await
    }

    /// Deletes a run that is over, if it is still the one that was seen. `tell` writes it down first, as an audit line: where
    /// that fails, the run stays.
    ///
    /// # Errors
    ///
    /// Of `tell`, or why the run could not be deleted.
    pub async fn trim<Error: From<ClusterError>>(
        &self,
        run: &Run,
        tell: impl FnOnce(&Run) -> Result<(), Error>,
    ) -> Result<(), Error> {
        tell(run)?;
        let kind = GroupKind::new(GROUP, "Run");
        let key = ObjectKey::new(kind, Some(self.namespace.as_str()), run.name_any());
        let uid = run.metadata.uid.clone().unwrap_or_default();
        let version = run.metadata.resource_version.clone().unwrap_or_default();
        self.cluster.delete(&key, &uid, &version).await?;
        Ok(())
    }
}

impl RunStore for ClusterRuns {
    async fn create(&self, run: &Run) -> Result<Run, StoreError> {
        let name = run.name_any();
        match self.cluster.create(&self.namespace, run).await {
            Ok(run) => Ok(run),
            // It is there: from before, or from a request whose answer was lost.
            Err(ClusterError::Conflict { .. }) => {
                self.read(&name).await?.ok_or(StoreError::Gone(name))
            }
            Err(error) => Err(failed(&name, &error)),
        }
    }

    async fn read(&self, name: &str) -> Result<Option<Run>, StoreError> {
        let read = self.cluster.get(&self.namespace, name).await;
        read.map_err(|error| failed(name, &error))
    }

    async fn write(&self, run: &Run, status: RunStatus) -> Result<Run, StoreError> {
        let name = run.name_any();
        let mut run = run.clone();
        run.status = Some(status);
        let written = self.cluster.replace(&self.namespace, &run, Some("status"));
        written.await.map_err(|error| failed(&name, &error))
    }
}

fn failed(name: &str, error: &ClusterError) -> StoreError {
    let message = error.to_string();
    match error {
        ClusterError::Conflict { .. } => StoreError::Conflict(name.to_owned()),
        ClusterError::NotFound { .. } => StoreError::Gone(name.to_owned()),
        ClusterError::ClaimLost { .. } => StoreError::ClaimLost(message),
        error if error.is_retryable() => StoreError::Unavailable(message),
        _ => StoreError::Refused(message),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::model::api::{RunCommand, RunPhase, StepRecord, StepState};
    use crate::model::migration::RunPolicy;
    use crate::model::names::ANNOTATION_COMMAND;
    use crate::runs::driver::spec_of_a_test as spec;

    fn over(name: &str, days_ago: i64, phase: RunPhase) -> Run {
        let mut run = Run::new(name, spec(serde_json::json!({"guard": {"needed": "true"}})));
        let ended = now() - SignedDuration::from_hours(24 * days_ago);
        run.status = Some(RunStatus {
            phase,
            ended_at: Some(Time(ended)),
            ..RunStatus::default()
        });
        run
    }

    fn now() -> Timestamp {
        "2026-06-01T00:00:00Z".parse().unwrap()
    }

    fn surplus(runs: &[Run], history: RunHistory) -> Vec<String> {
        let in_use = BTreeSet::from(["used".to_owned()]);
        let surplus = history.surplus(runs, &in_use, now());
        surplus
            .into_iter()
            .map(kube::ResourceExt::name_any)
            .collect()
    }

    #[test]
    fn the_newest_stay_for_some_days() {
        let runs = [
            over("old", 31, RunPhase::Succeeded),
            over("third", 3, RunPhase::Failed),
            over("second", 2, RunPhase::Superseded),
            over("first", 1, RunPhase::Cancelled),
        ];
        let history = RunHistory { runs: 2, days: 30 };
        assert_eq!(surplus(&runs, history), ["third", "old"]);
        let history = RunHistory { runs: 10, days: 30 };
        assert_eq!(surplus(&runs, history), ["old"]);
    }

    #[test]
    fn what_still_decides_is_never_trimmed() {
        let history = RunHistory { runs: 0, days: 0 };
        let used = over("used", 400, RunPhase::Succeeded);
        let mut open = over("open", 400, RunPhase::Succeeded);
        open.status.as_mut().unwrap().phase = RunPhase::Waiting;
        let mut once = over("once", 400, RunPhase::Succeeded);
        once.spec.definition.policy.run = RunPolicy::OncePerCluster;
        let mut undo = over("undo", 400, RunPhase::Succeeded);
        undo.spec.definition.undo = serde_json::from_value(serde_json::json!([
            {"id": "back", "wait": {"until": "true"}},
        ]))
        .unwrap();
        undo.status.as_mut().unwrap().steps = vec![StepRecord {
            id: "a".to_owned(),
            state: StepState::Done,
            ..StepRecord::default()
        }];
        let mut undone = undo.clone();
        undone.metadata.name = Some("undone".to_owned());
        undone.status.as_mut().unwrap().undoing = true;
        assert_eq!(
            surplus(&[used, open, once, undo, undone], history),
            ["undone"]
        );
    }

    #[test]
    fn a_wish_is_read_from_the_annotation() {
        let mut run = over("a", 1, RunPhase::Failed);
        assert_eq!(RunCommand::wished(&run), None);
        let wish = r#"{"verb":"retry","by":"anna","reason":"mended","at":"2026-05-31T00:00:00Z"}"#;
        let annotations = run.metadata.annotations.get_or_insert_default();
        annotations.insert(ANNOTATION_COMMAND.to_owned(), wish.to_owned());
        assert_eq!(RunCommand::wished(&run).unwrap().reason, "mended");
        let annotations = run.metadata.annotations.get_or_insert_default();
        annotations.insert(ANNOTATION_COMMAND.to_owned(), "now!".to_owned());
        assert_eq!(RunCommand::wished(&run), None);
    }
}
