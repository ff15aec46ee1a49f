//! The task that keeps one lease: sends what the election decides, and publishes what is held.

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::election::{Election, LeaseSettings, Step, holder, lasts};
use super::skew::{Skew, ahead};
use crate::agent::clock;
use crate::agent::heartbeat::Heartbeat;
use crate::cluster::{Cluster, ClusterError, Held};
use crate::model::limits;

/// A lease as people are told of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LeaseView {
    /// Whether it was looked at.
    pub known: bool,
    /// Who holds it, as the lease says.
    pub holder: Option<String>,
    /// Since when, by the holder's clock.
    pub since: Option<Timestamp>,
    /// When the holder has renewed it last, by the holder's clock.
    pub renewed: Option<Timestamp>,
    /// How long it lasts after a renewal, as the holder says.
    pub lasts: Duration,
    /// Its count of holds.
    pub transitions: i32,
    /// Why the last request about it has failed.
    pub trouble: Option<Trouble>,
}

/// Why a request about a lease has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What went wrong.
    pub message: String,
    /// Whether that may pass by itself: the request is sent again, and may have had its effect, since only the answer was lost.
    pub may_pass: bool,
}

/// A lease that is kept, or striven for, until this is dropped.
#[derive(Debug)]
pub struct KeptLease {
    held: watch::Receiver<Option<Held>>,
    view: watch::Receiver<LeaseView>,
    skew: watch::Receiver<Option<Skew>>,
    give_back: CancellationToken,
    task: JoinHandle<()>,
}

struct Keeper {
    cluster: Cluster,
    settings: LeaseSettings,
    election: Election,
    trouble: Option<Trouble>,
    held: watch::Sender<Option<Held>>,
    view: watch::Sender<LeaseView>,
    skew: watch::Sender<Option<Skew>>,
    heartbeat: Option<Heartbeat>,
    give_back: CancellationToken,
}

// === impl KeptLease ===

impl KeptLease {
    /// Begins to strive for a lease.
    pub(in crate::agent) fn keep_alive(
        cluster: Cluster,
        settings: LeaseSettings,
        heartbeat: Option<Heartbeat>,
    ) -> Self {
        let (held_sender, held) = watch::channel(None);
        let (view_sender, view) = watch::channel(LeaseView::default());
        let (skew_sender, skew) = watch::channel(None);
        let give_back = CancellationToken::new();
        let keeper = Keeper {
            cluster,
            election: Election::new(settings.clone()),
            settings,
            trouble: None,
            held: held_sender,
            view: view_sender,
            skew: skew_sender,
            heartbeat,
            give_back: give_back.clone(),
        };
        let task = tokio::spawn(keeper.run());
        Self {
            held,
            view,
            skew,
            give_back,
            task,
        }
    }

    /// Begins to strive for a lease.
    pub fn keep(cluster: Cluster, settings: LeaseSettings) -> Self {
        Self::keep_alive(cluster, settings, None)
    }

    /// Returns what is held, as it changes.
    pub fn held(&self) -> watch::Receiver<Option<Held>> {
        self.held.clone()
    }

    /// Returns what people are told, as it changes.
    pub fn view(&self) -> watch::Receiver<LeaseView> {
        self.view.clone()
    }

    /// Returns how our clock differs from the cluster's, as it changes; none where it does not, or that is not known.
    pub fn skew(&self) -> watch::Receiver<Option<Skew>> {
        self.skew.clone()
    }

    /// Waits for the end of the task, which nobody has asked for.
    pub async fn died(&mut self) {
        // A handle may be awaited to its end once only.
        if !self.task.is_finished() {
            let _ = (&mut self.task).await;
        }
    }

    /// Gives the lease back, so that the next one need not wait for its end. What it guards must have ended.
    pub async fn give_back(mut self) {
        self.give_back.cancel();
        self.died().await;
    }
}

impl Drop for KeptLease {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl Keeper ===

impl Keeper {
    async fn run(mut self) {
        let watch = self
            .cluster
            .watch_lease(&self.settings.namespace, &self.settings.name);
        let mut events = std::pin::pin!(watch);
        loop {
            self.election.lapse(Instant::now());
            self.publish();
            if self.give_back.is_cancelled() {
                break;
            }
            let until = match self.election.step(Instant::now(), clock::now()) {
                Step::Wait(until) => until,
                step => {
                    self.take(step).await;
                    continue;
                }
            };
            tokio::select! {
                () = self.give_back.cancelled() => {}
                () = sleep_until(until.min(Instant::now() + limits::HEARTBEAT)) => {}
                event = events.next() => match event {
                    Some(Ok(lease)) => self.election.noticed(lease, Instant::now()),
                    Some(Err(error)) => {
                        tracing::warn!(lease.name = self.settings.name, %error, "failed to watch the lease");
                    }
                    None => unreachable!("the watch begins anew for ever"),
                },
            }
            if let Some(heartbeat) = &self.heartbeat {
                heartbeat.beat();
            }
        }
        self.end().await;
    }

    /// Sends one request and takes in its answer.
    async fn take(&mut self, step: Step) {
        let sent = Instant::now();
        let deadline = self.settings.request_deadline();
        self.trouble = None;
        // A hold that lapses while a request hangs is told at once.
        let end = self.election.held().map(|held| held.effects_end);
        let end = end.map_or(sent + deadline, |end| end.min(sent + deadline));
        let answer = timeout_at(end, self.send(&step)).await;
        match (step, answer) {
            (Step::Wait(_), _) => {}
            (Step::Read, Ok(Ok(lease))) => self.election.read(lease, Instant::now()),
            (_, Ok(Ok(Some(lease)))) => {
                self.election.won(lease, sent);
                self.compare_clocks();
            }
            (_, Ok(Ok(None)) | Err(_)) => {
                self.failed("no answer in time".to_owned(), true);
            }
            (_, Ok(Err(ClusterError::Conflict { .. })))
            | (Step::Replace(_), Ok(Err(ClusterError::NotFound { .. }))) => {
                self.election.conflicted();
            }
            (_, Ok(Err(error))) => {
                self.failed(error.to_string(), error.is_retryable());
            }
        }
    }

    async fn send(&self, step: &Step) -> Result<Option<Lease>, ClusterError> {
        let deadline = self.settings.request_deadline();
        let (namespace, name) = (&self.settings.namespace, &self.settings.name);
        let cluster = &self.cluster;
        match step {
            Step::Wait(_) => Ok(None),
            Step::Read => cluster.read_lease(namespace, name, deadline).await,
            Step::Create(lease) => cluster.create_lease(lease, deadline).await.map(Some),
            Step::Replace(lease) => cluster.replace_lease(lease, deadline).await.map(Some),
        }
    }

    fn publish(&self) {
        let held = self.election.held();
        self.held.send_if_modified(|now| {
            let changed = *now != held;
            now.clone_from(&held);
            changed
        });
        let seen = self.election.seen().map(LeaseView::of);
        let mut view = seen.unwrap_or_else(|| self.view.borrow().clone());
        view.trouble.clone_from(&self.trouble);
        self.view.send_if_modified(|now| {
            if view.known && (now.holder != view.holder || !now.known) {
                tracing::info!(
                    lease.name = self.settings.name,
                    lease.holder = view.holder.as_deref().unwrap_or_default(),
                    lease.transitions = view.transitions,
                    lease.ours = held.is_some(),
                    "the lease has a holder"
                );
            }
            let changed = *now != view;
            *now = view;
            changed
        });
    }

    /// Compares our clock with the cluster's: a lease that we hold was renewed by us.
    fn compare_clocks(&self) {
        let seen = self.election.held().and_then(|_| self.election.seen());
        let Some(ahead) = seen.and_then(ahead) else {
            return;
        };
        self.skew.send_if_modified(|now| {
            let found = Skew::of(ahead, *now);
            if found == *now {
                return false;
            }
            if let Some(skew) = found {
                tracing::warn!(seconds.ahead = ahead.as_secs(), "{skew}");
            } else {
                tracing::info!("the clock of the agent is the cluster's again");
            }
            *now = found;
            true
        });
    }

    fn failed(&mut self, error: String, may_pass: bool) {
        tracing::warn!(
            lease.name = self.settings.name,
            error,
            "failed to keep the lease"
        );
        self.trouble = Some(Trouble {
            message: error,
            may_pass,
        });
        self.election.failed(Instant::now());
    }

    /// Gives the lease back. Where an answer is lost, it is looked what became of the request: whoever comes next would wait for the
    /// end of a hold of which nobody knows any more.
    async fn end(mut self) {
        let given = self.election.given_back(clock::now());
        self.publish();
        let mut next = given.map(|lease| Step::Replace(Box::new(lease)));
        next = next.or_else(|| self.election.left_behind(clock::now()));
        let end = Instant::now() + self.settings.request_deadline() * limits::LEASE_GIVE_BACK_TRIES;
        while let Some(step) = next {
            match timeout_at(end, self.send(&step)).await {
                Ok(Ok(_)) if matches!(step, Step::Replace(_)) => {
                    tracing::info!(lease.name = self.settings.name, "gave the lease back");
                    return;
                }
                Ok(Ok(lease)) => self.election.read(lease, Instant::now()),
                Ok(Err(ClusterError::Conflict { .. } | ClusterError::NotFound { .. })) => {
                    self.election.conflicted();
                }
                Ok(Err(error)) if error.is_retryable() && Instant::now() < end => {
                    self.election.conflicted();
                    sleep_until(end.min(Instant::now() + limits::RETRY_DELAY_MIN)).await;
                }
                failed => {
                    let error = match failed {
                        Ok(Err(error)) => error.to_string(),
                        _ => "no answer in time".to_owned(),
                    };
                    tracing::warn!(
                        lease.name = self.settings.name,
                        error,
                        "failed to give the lease back; it expires"
                    );
                    return;
                }
            }
            next = self.election.left_behind(clock::now());
        }
    }
}

// === impl LeaseView ===

impl LeaseView {
    /// Reads a lease.
    pub fn of(lease: &Lease) -> Self {
        let spec = lease.spec.as_ref();
        Self {
            known: true,
            holder: holder(lease).map(str::to_owned),
            since: spec.and_then(|spec| spec.acquire_time.as_ref().map(|time| time.0)),
            renewed: spec.and_then(|spec| spec.renew_time.as_ref().map(|time| time.0)),
            transitions: spec
                .and_then(|spec| spec.lease_transitions)
                .unwrap_or_default(),
            lasts: lasts(lease),
            trouble: None,
        }
    }

    /// Returns whether somebody holds the lease, as far as the clocks of two machines can tell.
    pub fn seems_held(&self, wall: Timestamp) -> bool {
        let renewed = self.renewed.filter(|_| self.holder.is_some());
        renewed.is_some_and(|renewed| wall < renewed + self.lasts)
    }
}
