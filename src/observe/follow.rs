//! Follows one kind for as long as its task lives: finds how it is served, lists, watches, and begins anew where it must.
//!
//! kube's own watcher is not used because it keeps three things to itself that are needed here: that a broken watch runs again
//! (it is silent until the next event), the version of a list (it decides whether the list is older than an answer of ours),
//! and a deadline for requests that never answer.

use std::pin::pin;
use std::sync::Arc;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::StreamExt as _;
use tokio::time::{Duration, Instant, sleep};

use super::health::{Item, needs_whole_object};
use super::observer::Shared;
use crate::cluster::{Change, ClusterError, Page, Selection};
use crate::model::{GroupKind, ServedKind, limits};

/// Why a kind is followed anew.
enum Ended {
    /// The list or watch cannot be continued; it begins anew.
    Expired,
    /// Something failed.
    Failed(ClusterError),
}

/// Follows one kind. Never returns.
pub(super) async fn follow(shared: Arc<Shared>, kind: GroupKind) {
    let mut delays = delays();
    loop {
        let ended = match shared.cluster.resolve(&kind, None).await {
            Ok(served) => list_and_watch(&shared, &kind, &served, &mut delays).await,
            // Discovery was complete and does not name it. What is not served can neither be seen nor deleted, so that "nothing
            // is there" is all there is to know; an object that git wants is held by the planner as of an unknown kind.
            Err(ClusterError::KindUnknown { .. }) => {
                shared.update(&kind, |store, _| store.unserved());
                tokio::select! {
                    () = sleep(limits::UNSERVED_INTERVAL) => {}
                    () = shared.until_served(&kind) => {}
                }
                continue;
            }
            Err(error) => Ended::Failed(error),
        };
        if let Ended::Failed(error) = ended {
            if matches!(error, ClusterError::NotFound { .. }) {
                // It was served and is not any more.
                let _ = shared.cluster.refresh_served().await;
            }
            fail(&shared, &kind, &error);
        }
        wait(&mut delays).await;
    }
}

async fn list_and_watch(
    shared: &Shared,
    kind: &GroupKind,
    served: &ServedKind,
    delays: &mut ExponentialBackoff,
) -> Ended {
    let whole = needs_whole_object(kind);
    let selection = Selection {
        kind,
        served,
        labels: &shared.labels,
        whole,
    };
    let mut version = match list(shared, selection).await {
        Ok(version) => version,
        Err(ended) => return ended,
    };
    loop {
        let begun = Instant::now();
        match watch(shared, selection, &mut version).await {
            Ok(()) => {}
            Err(ClusterError::Expired { .. }) => return Ended::Expired,
            // What it was can only be told from a new list; or it is not served any more, or forbidden now.
            Err(
                error @ (ClusterError::AnswerInvalid { .. }
                | ClusterError::NotFound { .. }
                | ClusterError::Forbidden { .. }),
            ) => return Ended::Failed(error),
            Err(error) => fail(shared, kind, &error),
        }
        if begun.elapsed() > limits::WATCH_RETRY_MAX {
            *delays = self::delays();
        }
        wait(delays).await;
    }
}

async fn list(shared: &Shared, selection: Selection<'_>) -> Result<String, Ended> {
    let mut objects = Vec::new();
    let mut next: Option<String> = None;
    loop {
        let page = shared
            .cluster
            .list_page::<Item>(selection, next.as_deref())
            .await;
        let Page {
            items,
            resource_version,
            next: following,
        } = page.map_err(|error| match error {
            ClusterError::Expired { .. } => Ended::Expired,
            error => Ended::Failed(error),
        })?;
        objects.extend(
            items
                .iter()
                .filter_map(|item| shared.project(selection.kind, item)),
        );
        next = following;
        if next.is_none() {
            shared.update(selection.kind, |store, _| {
                store.listed(objects, &resource_version)
            });
            return Ok(resource_version);
        }
    }
}

/// Returns `Ok` when the watch has ended by itself and goes on from `version`.
async fn watch(
    shared: &Shared,
    selection: Selection<'_>,
    version: &mut String,
) -> Result<(), ClusterError> {
    let kind = selection.kind;
    let mut events = pin!(shared.cluster.watch::<Item>(selection, version).await?);
    shared.update(kind, |store, _| store.running());
    while let Some(event) = events.next().await {
        match event? {
            Change::Set(item) => {
                if let Some(object) = shared.project(kind, &item) {
                    version.clone_from(&object.resource_version);
                    shared.update(kind, |store, _| store.set(object));
                }
            }
            Change::Removed(item) => {
                if let Some(object) = shared.project(kind, &item) {
                    version.clone_from(&object.resource_version);
                    shared.update(kind, |store, _| {
                        store.removed(&object.key, &object.resource_version)
                    });
                }
            }
            Change::Bookmark(mark) => *version = mark,
        }
    }
    Ok(())
}

fn fail(shared: &Shared, kind: &GroupKind, error: &ClusterError) {
    let reason = match error {
        ClusterError::Forbidden { .. } => {
            let plural = shared.cluster.known_served();
            let plural = plural
                .as_ref()
                .and_then(|served| served.kinds.get(kind))
                .map_or(kind.kind.as_str(), |served| served.plural.as_str());
            format!(
                "{error}; the account needs a rule with the verbs list and watch on {plural} in the API group `{}`",
                kind.group
            )
        }
        error => error.to_string(),
    };
    shared.update(kind, |store, now| store.failed(&reason, now));
}

fn delays() -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_jitter()
        .with_min_delay(limits::WATCH_RETRY_MIN)
        .with_max_delay(limits::WATCH_RETRY_MAX)
        .without_max_times()
        .build()
}

async fn wait(delays: &mut ExponentialBackoff) {
    sleep(delays.next().unwrap_or(Duration::from_secs(1))).await;
}
