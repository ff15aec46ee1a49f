//! Rings when the Secret with a source's credentials is another one than was read last, so that whoever mends it need not wait
//! for the end of a back-off.
//!
//! Nothing but metadata is watched, of the one name that the source gives. Where the account may not watch it, a change is
//! seen by the next attempt, which reads the Secret anyway.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use tokio::sync::Notify;
use tokio::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::cluster::{Change, Cluster, ClusterError};
use crate::model::limits;

/// Watches one Secret until it is dropped.
pub(super) struct SecretWatch {
    name: String,
    read: Read,
    _stop: DropGuard,
}

/// The resourceVersion that was read last: none before the first time, empty when there was no Secret.
#[derive(Clone, Default)]
struct Read(Arc<Mutex<Option<String>>>);

// === impl SecretWatch ===

impl SecretWatch {
    pub(super) fn start(
        cluster: Cluster,
        namespace: String,
        name: String,
        changed: Arc<Notify>,
    ) -> Self {
        let (read, stop) = (Read::default(), CancellationToken::new());
        let task = Task {
            cluster,
            namespace,
            name: name.clone(),
            read: read.clone(),
            changed,
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(task.run()));
        Self {
            name,
            read,
            _stop: stop.drop_guard(),
        }
    }

    /// Returns the name of the Secret.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Takes down which version was read, or that there is none.
    pub(super) fn read(&self, secret: Option<&Secret>) {
        let version = secret.and_then(ResourceExt::resource_version);
        self.read.set(version.unwrap_or_default());
    }
}

// === impl Read ===

impl Read {
    fn set(&self, version: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(version);
    }

    /// Returns whether a version is news to who has read before.
    fn is_news(&self, version: &str) -> bool {
        let read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        read.as_ref().is_some_and(|read| read != version)
    }
}

struct Task {
    cluster: Cluster,
    namespace: String,
    name: String,
    read: Read,
    changed: Arc<Notify>,
}

// === impl Task ===

impl Task {
    async fn run(self) {
        let mut failures = 0;
        loop {
            let pause = match self.watch().await {
                Ok(()) => {
                    failures = 0;
                    limits::WATCH_RETRY_MIN
                }
                Err(error) => {
                    failures += 1;
                    if failures == 1 {
                        tracing::info!(
                            secret.name = self.name,
                            %error,
                            "changed credentials are only seen by the next fetch, since their Secret cannot be watched"
                        );
                    }
                    pause(&error, failures)
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Returns `Ok` when the server has ended the watch, as it does now and then.
    async fn watch(&self) -> Result<(), ClusterError> {
        let events = self
            .cluster
            .watch_one::<Secret>(&self.namespace, &self.name);
        let mut events = pin!(events.await?);
        while let Some(event) = events.next().await {
            if let Change::Set(secret) = event?
                && self
                    .read
                    .is_news(&secret.resource_version().unwrap_or_default())
            {
                self.changed.notify_one();
            }
        }
        Ok(())
    }
}

/// Doubled with each failure; a missing right is not asked for every half minute.
fn pause(error: &ClusterError, failures: u32) -> Duration {
    if matches!(error, ClusterError::Forbidden { .. }) {
        return limits::FAILURE_DELAY_MAX;
    }
    let doubled = limits::WATCH_RETRY_MIN * 2u32.pow(failures.min(16) - 1);
    doubled.min(limits::WATCH_RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_no_news_and_nothing_is_before_the_first_time() {
        let read = Read::default();
        assert!(!read.is_news("1"));
        read.set(String::new());
        assert!(read.is_news("1"), "there was none, and now there is one");
        read.set("1".to_owned());
        assert!(!read.is_news("1"));
        assert!(read.is_news("2"));
    }
}
