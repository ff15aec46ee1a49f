//! A look at a runtime whose catalog somebody else syncs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::link::{Blocked, Link};
use super::task::{Done, Rendered, RuntimeTask};
use crate::agent::clock;
use crate::model::api::ConditionReason;
use crate::observe::KindObservation;
use crate::report::{RuntimeState, target_observed};

impl RuntimeTask {
    /// Looks how much of home's catalog somebody else has brought to the runtime; writes nothing there.
    pub(super) async fn observe(
        &mut self,
        rendered: &Rendered,
        link: &Link,
    ) -> Result<Done, Blocked> {
        link.engine.observe(&rendered.desired, &[].into()).await;
        let view = link.observer.view();
        let mut missing = Vec::new();
        for (key, digest) in &rendered.catalog.home_digests {
            match view.kinds.get(&key.kind) {
                Some(KindObservation::Unlisted(reason)) => {
                    return Err(Blocked {
                        reason: ConditionReason::Unreachable,
                        message: reason.clone(),
                        found: None,
                    });
                }
                Some(listed) => {
                    let live = listed.get(key).and_then(|live| live.digest.as_ref());
                    if live.is_none_or(|live| live.as_str() != digest) {
                        missing.push(key.to_string());
                    }
                }
                None => missing.push(key.to_string()),
            }
        }
        let count = rendered.catalog.home_digests.len();
        let revision = rendered.desired.revision.to_string();
        let words = missing.first().map(|first| {
            format!(
                "{} of {count} objects are not as home has them; the first: {first}",
                missing.len()
            )
        });
        let shown = words.as_deref().map_or(Ok(count), Err);
        let source = self.around.source.to_string();
        self.write(|before| {
            let mut status = target_observed(before, &source, shown, clock::now());
            if shown.is_ok() && status.revision.as_ref() != Some(&revision) {
                status.revision = Some(revision.clone());
                status.since = Some(Time(clock::now()));
            }
            status
        })
        .await
        .map_err(|error| Blocked::unreachable(&error))?;
        let state = words.map_or(RuntimeState::Synced, RuntimeState::Behind);
        Ok(Done::Passed { state, next: None })
    }
}
