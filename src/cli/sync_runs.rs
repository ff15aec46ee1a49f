//! The migrations of `fairway sync`: a conductor as the agent has one, and lines about what it does.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::alone::Alone;
use super::draw::counted;
use crate::agent::{HomeConductor, conductor, follow_runs};
use crate::cluster::{Acting, Cluster};
use crate::model::SourceName;
use crate::model::api::{Run, RunPhase, RunSpec};
use crate::model::migration::{Decision, Hook};
use crate::runs::Judgement;
use crate::runs::conductor::{HookTimes, Listen};

/// Lines about migrations that nobody has read yet. There are as many as phases of runs, and they are taken with each pass.
#[derive(Debug, Default)]
pub(super) struct SyncNews(Mutex<Vec<String>>);

impl SyncNews {
    /// Takes the lines.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn tell(&self, line: String) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(line);
    }
}

impl Listen for SyncNews {
    fn judged(&self, hook: &Hook, spec: &RunSpec, judgement: &Judgement) {
        // What is needed has a run, whose lines follow.
        if judgement.decision != Decision::NotNeeded {
            let milliseconds = judgement.took.as_millis();
            self.tell(format!(
                "migration {} ({hook}): {}, judged in {milliseconds} ms",
                spec.migration, judgement.decision
            ));
        }
    }

    fn changed(&self, before: Option<&Run>, run: &Run) {
        let status = run.status.clone().unwrap_or_default();
        let seen = before
            .and_then(|before| before.status.clone())
            .unwrap_or_default();
        if status.phase == seen.phase && status.current_step == seen.current_step {
            return;
        }
        let name = run.metadata.name.as_deref().unwrap_or_default();
        let step = status
            .current_step
            .as_ref()
            .map(|step| format!(", step {step}"));
        let message = match status.phase {
            RunPhase::Succeeded => format!(": {} ms of work", status.active_milliseconds),
            _ if status.message.is_empty() => String::new(),
            _ => format!(": {}", status.message),
        };
        self.tell(format!(
            "run {name} {}{}{message}",
            status.phase,
            step.unwrap_or_default()
        ));
    }

    fn ended(&self, hook: &Hook, times: &HookTimes) {
        let slowest = times
            .migrations
            .first()
            .map(|(name, time)| format!(", the slowest {name} with {} ms", time.as_millis()));
        self.tell(format!(
            "{hook}: {} in {} ms{}",
            counted(times.migrations.len(), "migration"),
            times.wall.as_millis(),
            slowest.unwrap_or_default()
        ));
    }
}

/// The conductor with the watch that feeds it.
pub(super) struct Runs {
    pub(super) conductor: HomeConductor,
    following: JoinHandle<()>,
    stop: CancellationToken,
}

impl Runs {
    /// Starts both, under the claim that `cluster` has.
    pub(super) fn follow(
        (cluster, acting): (&Cluster, &Acting),
        namespace: &str,
        source: &SourceName,
        news: &Arc<SyncNews>,
        bell: &Arc<Notify>,
        alone: &Alone,
    ) -> Self {
        let stop = alone.stop.child_token();
        let rung = Arc::clone(bell);
        let ring = move || rung.notify_one();
        let news = Arc::clone(news);
        let conductor = conductor(
            (cluster, acting),
            namespace,
            source,
            news,
            ring,
            stop.clone(),
        );
        let following = tokio::spawn(follow_runs(
            conductor.clone(),
            cluster.clone(),
            namespace.to_owned(),
            source.clone(),
            None,
            stop.clone(),
        ));
        Self {
            conductor,
            following,
            stop,
        }
    }

    /// Ends both; what is under way is written down first, and goes on with whoever comes next.
    pub(super) async fn end(self) {
        self.stop.cancel();
        if let Err(error) = self.following.await {
            tracing::error!(%error, "the watch of Runs has died");
        }
    }
}
