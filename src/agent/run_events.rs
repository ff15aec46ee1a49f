//! Events of runs: what is told about a run while it goes on is written beside it, on the Run and on its source. A run never waits for
//! its Events.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource as _;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::clock;
use super::outlets::Outlets;
use crate::model::api::{ReleaseSource, Run};
use crate::model::limits::RUN_EVENTS_WAITING_MAX;
use crate::report::{Notice, run_notices};

/// What is worth an Event about one run.
struct Told {
    run: ObjectReference,
    notices: Vec<Notice>,
}

/// Takes what has become of runs.
pub(super) struct RunEvents {
    waiting: mpsc::Sender<Told>,
}

/// Writes it down.
pub(super) struct RunEventWriter {
    told: mpsc::Receiver<Told>,
    outlets: Outlets,
    resource: watch::Receiver<Arc<ReleaseSource>>,
}

/// Makes both ends for the runs of one source.
pub(super) fn run_events(
    outlets: &Outlets,
    resource: watch::Receiver<Arc<ReleaseSource>>,
) -> (RunEvents, RunEventWriter) {
    let (waiting, told) = mpsc::channel(RUN_EVENTS_WAITING_MAX);
    let writer = RunEventWriter {
        told,
        outlets: outlets.clone(),
        resource,
    };
    (RunEvents { waiting }, writer)
}

impl RunEvents {
    /// Tells what has become of a run since its record was written before.
    pub(super) fn tell(&self, before: Option<&Run>, run: &Run) {
        let notices = run_notices(before, run);
        if notices.is_empty() {
            return;
        }
        let told = Told {
            run: run.object_ref(&()),
            notices,
        };
        if self.waiting.try_send(told).is_err() {
            tracing::warn!(
                run.name = run.metadata.name.as_deref().unwrap_or_default(),
                "left events of a run out: too many wait, or the agent stops"
            );
        }
    }
}

impl RunEventWriter {
    /// Writes until told to stop.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        loop {
            let told = tokio::select! {
                biased;
                told = self.told.recv() => told,
                () = stop.cancelled() => return,
            };
            let Some(Told { run, notices }) = told else {
                return;
            };
            let source: ObjectReference = self.resource.borrow().object_ref(&());
            self.outlets
                .events
                .publish(&run, &notices, clock::now())
                .await;
            let related: Vec<Notice> = notices
                .into_iter()
                .map(|notice| Notice {
                    related: Some(Box::new(run.clone())),
                    ..notice
                })
                .collect();
            self.outlets
                .events
                .publish(&source, &related, clock::now())
                .await;
        }
    }
}
