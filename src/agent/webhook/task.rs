//! The webhook of one source: keeps its entry in the routing table, rings the source's bell, and writes `status.webhook`.
//!
//! What a delivery says is judged by then; here it is a reason to fetch, and a note. A burst of them costs at most two
//! fetches and one write. The tokens are read when the source or its Secret's answer demands it, and when somebody delivers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource as _;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::desk::{Desk, Notes};
use super::read::{followed, keys_of};
use crate::agent::bell::Bell;
use crate::agent::clock;
use crate::cluster::{Cluster, ClusterError, Patch};
use crate::model::api::{
    MissedChange, ReleaseSource, ReleaseSourceSpec, WebhookSpec, WebhookStatus, status_differs,
};
use crate::model::{SourceName, limits, names};
use crate::server::webhook::{Keys, Known, Registration, Route, Routes};

/// Looks after the webhook of one source.
pub(in crate::agent) struct WebhookTask {
    pub(in crate::agent) source: SourceName,
    pub(in crate::agent) cluster: Cluster,
    pub(in crate::agent) namespace: String,
    pub(in crate::agent) resource: watch::Receiver<Arc<ReleaseSource>>,
    /// None, when this agent does not listen.
    pub(in crate::agent) routes: Option<Routes>,
    /// Makes the source task fetch.
    pub(in crate::agent) announced: Bell,
    /// The last revision that a poll has found by itself.
    pub(in crate::agent) unannounced: watch::Receiver<Option<String>>,
    pub(in crate::agent) stop: CancellationToken,
}

/// What the task keeps.
struct State {
    desk: Arc<Desk>,
    registration: Option<Registration>,
    /// What is stored on the cluster.
    stored: WebhookStatus,
    /// The last write has failed.
    unwritten: bool,
    /// A change that counts as missed unless it is announced by then.
    suspected: Option<(Instant, MissedChange)>,
    failures: u32,
    retry_at: Option<Instant>,
}

/// What the entry in the routing table depends on.
#[derive(PartialEq)]
struct Wanted {
    spec: ReleaseSourceSpec,
    requested_at: Option<String>,
}

// === impl WebhookTask ===

impl WebhookTask {
    pub(in crate::agent) async fn run(mut self) {
        let resource = Arc::clone(&self.resource.borrow_and_update());
        let mut state = State::of(&resource, self.announced.clone());
        let mut wanted = Wanted::of(&resource);
        self.load(&mut state, &wanted.spec).await;
        loop {
            let idle = Notify::new();
            let asked = state
                .registration
                .as_ref()
                .map(|one| Arc::clone(&one.wanted));
            let due = state.due();
            let mut load = false;
            tokio::select! {
                () = self.stop.cancelled() => return,
                result = self.resource.changed() => {
                    if result.is_err() {
                        return;
                    }
                    let now = Wanted::of(&self.resource.borrow_and_update());
                    load = now != wanted;
                    wanted = now;
                }
                () = asked.as_deref().unwrap_or(&idle).notified() => load = true,
                // There is something to do when the burst is over.
                () = state.desk.heard.notified() => {}
                Ok(()) = self.unannounced.changed() => {
                    let revision = self.unannounced.borrow_and_update().clone();
                    state.suspect(revision);
                }
                () = sleep_until(due) => load = self.tick(&mut state).await,
            }
            if load {
                self.load(&mut state, &wanted.spec).await;
            }
        }
    }

    /// Does what has become due; returns whether the Secret is to be read again.
    async fn tick(&self, state: &mut State) -> bool {
        let now = Instant::now();
        let over = state.desk.notes().burst.over(now);
        if over == Some(true) {
            self.announced.ring();
        }
        let missed = state.suspected.take_if(|(until, _)| *until <= now);
        // It may have been announced since.
        let missed = missed.filter(|_| !state.announced());
        let write = over.is_some() || missed.is_some();
        if let Some((_, missed)) = missed {
            tracing::warn!(
                source.name = %self.source,
                source.revision = missed.revision,
                "the poll has found a change that no webhook has announced"
            );
            state.desk.notes().status.last_missed = Some(missed);
        }
        if write {
            self.write(state).await;
        }
        state.retry_at.take_if(|at| *at <= now).is_some()
    }

    /// Reads the Secret, and brings the entry in the routing table and the status in step with it.
    async fn load(&self, state: &mut State, spec: &ReleaseSourceSpec) {
        let (path, message) = match self.entry(state, spec).await {
            Ok(path) => {
                state.failures = 0;
                state.retry_at = None;
                (path, None)
            }
            Err(message) => {
                state.failures += 1;
                state.retry_at = Some(Instant::now() + retry_delay(state.failures));
                (None, Some(message))
            }
        };
        let changed = {
            let status = &mut state.desk.notes().status;
            let changed = (&status.path, &status.message) != (&path, &message);
            if spec.webhook.is_none() {
                *status = WebhookStatus::default();
            }
            (status.path, status.message) = (path, message);
            changed
        };
        if changed || state.unwritten {
            self.write(state).await;
        }
    }

    /// Returns the path, or why there is none, in words for the status.
    async fn entry(
        &self,
        state: &mut State,
        spec: &ReleaseSourceSpec,
    ) -> Result<Option<String>, String> {
        let Some(webhook) = &spec.webhook else {
            state.registration = None;
            return Ok(None);
        };
        let Some(routes) = &self.routes else {
            return Err(
                "this agent does not listen for webhooks: start it with --webhook-listen"
                    .to_owned(),
            );
        };
        let registration = state.registration.get_or_insert_with(|| {
            let desk = Arc::clone(&state.desk);
            let deliver = Arc::new(move |delivery| desk.deliver(delivery));
            routes.register(self.source.clone(), deliver)
        });
        let route = match self.keys(webhook).await {
            Ok(keys) => Ok(self.route(spec, webhook, keys)),
            Err(Unusable::Unread(error)) => match &registration.known.borrow().route {
                // What was known goes on: the API server may be down, and a bell does no harm.
                Some(route) => Ok(Arc::clone(route)),
                None => Err(error),
            },
            Err(Unusable::Refused(error)) => Err(error),
        };
        let (route, path) = match route {
            Ok(route) => {
                let path = route.paths.first().cloned();
                (Some(route), Ok(path))
            }
            Err(error) => (None, Err(error)),
        };
        registration.known.send_replace(Known {
            route,
            checked: Some(Instant::now()),
        });
        path
    }

    fn route(&self, spec: &ReleaseSourceSpec, webhook: &WebhookSpec, keys: Keys) -> Arc<Route> {
        Arc::new(Route {
            source: self.source.clone(),
            suspended: spec.suspend,
            provider: webhook.provider,
            followed: followed(spec),
            paths: keys.paths(&self.namespace, self.source.as_str()),
            keys,
        })
    }

    async fn keys(&self, webhook: &WebhookSpec) -> Result<Keys, Unusable> {
        let name = &webhook.secret_ref.name;
        let secret = self.cluster.get::<Secret>(&self.namespace, name).await;
        let secret = secret.map_err(|error| {
            Unusable::Unread(format!("the Secret `{name}` cannot be read: {error}"))
        })?;
        let Some(secret) = secret else {
            return Err(Unusable::Refused(format!(
                "the Secret `{name}` does not exist in {}: create it with the key `token`",
                self.namespace
            )));
        };
        keys_of(&secret).map_err(|error| {
            Unusable::Refused(format!("the Secret `{name}` cannot be used: {error}"))
        })
    }

    /// Stores the status, if it differs.
    async fn write(&self, state: &mut State) {
        let status = state.desk.notes().status.clone();
        if !status_differs(&state.stored, &status) {
            state.unwritten = false;
            return;
        }
        match self.store(&status).await {
            Ok(()) => {
                state.stored = status;
                state.unwritten = false;
            }
            Err(error) => {
                state.unwritten = true;
                state.retry_at = Some(Instant::now() + limits::WEBHOOK_KEYS_RETRY_MIN);
                tracing::warn!(source.name = %self.source, %error, "failed to write the status of the webhook");
            }
        }
    }

    async fn store(&self, status: &WebhookStatus) -> Result<(), ClusterError> {
        let nothing = *status == WebhookStatus::default();
        let written: Value = if nothing {
            json!({})
        } else {
            json!({"webhook": status})
        };
        let uid = self.resource.borrow().metadata.uid.clone();
        let body = json!({
            "apiVersion": ReleaseSource::api_version(&()),
            "kind": ReleaseSource::kind(&()),
            "metadata": {"name": self.source, "uid": uid},
            "status": written,
        });
        let manager = names::MANAGER_WEBHOOK;
        self.cluster
            .patch::<ReleaseSource>(
                &self.namespace,
                self.source.as_str(),
                Some("status"),
                manager,
                (Patch::Apply, &body),
            )
            .await
            .map(drop)
    }
}

/// Why there are no tokens.
enum Unusable {
    /// The Secret could not be read; it may be as it was.
    Unread(String),
    /// What is there cannot be used.
    Refused(String),
}

// === impl State ===

impl State {
    fn of(resource: &ReleaseSource, announced: Bell) -> Self {
        let stored = resource.status.as_ref();
        let stored = stored.and_then(|status| status.webhook.clone());
        let stored = stored.unwrap_or_default();
        let notes = Notes {
            status: stored.clone(),
            ..Notes::default()
        };
        let desk = Arc::new(Desk {
            notes: Mutex::new(notes),
            heard: Notify::new(),
            announced,
        });
        Self {
            desk,
            registration: None,
            stored,
            unwritten: false,
            suspected: None,
            failures: 0,
            retry_at: None,
        }
    }

    fn due(&self) -> Option<Instant> {
        let suspected = self.suspected.as_ref().map(|(until, _)| *until);
        [self.desk.notes().burst.due(), suspected, self.retry_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns whether somebody has announced a change lately.
    fn announced(&self) -> bool {
        let ring = self.desk.notes().last_ring;
        ring.is_some_and(|ring| ring.elapsed() < limits::WEBHOOK_GRACE)
    }

    /// Waits whether a change that a poll has found is still announced.
    fn suspect(&mut self, revision: Option<String>) {
        let taken = self
            .registration
            .as_ref()
            .is_some_and(|one| one.known.borrow().route.is_some());
        if let (Some(revision), true, false) = (revision, taken, self.announced()) {
            let missed = MissedChange {
                time: Time(clock::now()),
                revision,
            };
            self.suspected = Some((Instant::now() + limits::WEBHOOK_GRACE, missed));
        }
    }
}

// === impl Wanted ===

impl Wanted {
    fn of(resource: &ReleaseSource) -> Self {
        let annotations = resource.metadata.annotations.as_ref();
        Self {
            spec: resource.spec.clone(),
            requested_at: annotations
                .and_then(|all| all.get(names::ANNOTATION_REQUESTED_AT).cloned()),
        }
    }
}

/// Doubled with each failure.
fn retry_delay(failures: u32) -> Duration {
    let doubled = limits::WEBHOOK_KEYS_RETRY_MIN * 2u32.pow(failures.clamp(1, 16) - 1);
    doubled.min(limits::WEBHOOK_KEYS_RETRY_MAX)
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
