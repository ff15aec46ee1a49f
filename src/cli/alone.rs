//! Working alone: a command that writes takes the lease of the agent while it works, or says who holds it.

use std::io::Write as _;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::failure::Failure;
use super::identity;
use super::signals::stopped_by_signals;
use crate::agent::clock;
use crate::agent::lease::{KeptLease, LeaseSettings, LeaseView};
use crate::cluster::{Cluster, Guard};
use crate::model::{limits, names};

/// The lease, held until it is given back.
pub(super) struct Alone {
    lease: KeptLease,
    guard: Guard,
    /// Cancelled by SIGINT and SIGTERM, and when the lease is lost.
    pub(super) stop: CancellationToken,
}

/// Returns the lease of home as a command would hold it.
fn settings(namespace: &str) -> LeaseSettings {
    LeaseSettings {
        namespace: namespace.to_owned(),
        name: names::LEASE_HOME.to_owned(),
        identity: identity::unique("sync"),
        inherit: false,
        duration: limits::LEASE_DURATION,
    }
}

/// Refuses to go on where somebody holds the lease; changes nothing.
pub(super) async fn refuse_if_held(cluster: &Cluster, namespace: &str) -> Result<(), Failure> {
    let deadline = limits::REQUEST_DEADLINE;
    let found = cluster
        .read_lease(namespace, names::LEASE_HOME, deadline)
        .await
        .map_err(Failure::of)?;
    match found.as_ref().map(LeaseView::of) {
        Some(view) if view.seems_held(clock::now()) => Err(held_by(&view, namespace)),
        _ => Ok(()),
    }
}

// === impl Alone ===

impl Alone {
    /// Takes the lease. A holder that is silent is waited for until its hold has expired, and no longer.
    pub(super) async fn begin(
        cluster: &Cluster,
        namespace: &str,
        context: &mut Context,
    ) -> Result<Self, Failure> {
        let stop = stopped_by_signals()?;
        let settings = settings(namespace);
        let mut lease = KeptLease::keep(cluster.clone(), settings.clone());
        match until_held(&mut lease, &settings, &stop, context).await {
            Ok(guard) => {
                let (lost, told) = (guard.clone(), stop.clone());
                tokio::spawn(async move {
                    lost.lost().await;
                    told.cancel();
                });
                Ok(Self { lease, guard, stop })
            }
            Err(failure) => {
                lease.give_back().await;
                Err(failure)
            }
        }
    }

    /// Returns the cluster, to be written to while the lease is held.
    pub(super) fn on(&self, cluster: &Cluster) -> Cluster {
        cluster.under(self.guard.clone())
    }

    /// Returns why the work has to end before it is done.
    pub(super) fn told_to_end(&self) -> Option<Failure> {
        if !self.stop.is_cancelled() {
            return None;
        }
        Some(Failure::Misuse(if self.guard.holds() {
            "interrupted; what was begun is done, and nothing after it".to_owned()
        } else {
            "the lease was lost; whoever took it goes on".to_owned()
        }))
    }

    /// Gives the lease back. What was begun under it has ended.
    pub(super) async fn end(self) {
        self.lease.give_back().await;
    }
}

async fn until_held(
    lease: &mut KeptLease,
    settings: &LeaseSettings,
    stop: &CancellationToken,
    context: &mut Context,
) -> Result<Guard, Failure> {
    let (mut held, mut view) = (lease.held(), lease.view());
    let namespace = &settings.namespace;
    let mut first: Option<LeaseView> = None;
    // Set while requests fail one after another.
    let mut patience: Option<Instant> = None;
    loop {
        if let Some(held) = held.borrow_and_update().clone() {
            return Ok(Guard::new(held.claim, lease.held()));
        }
        let seen = view.borrow_and_update().clone();
        patience = seen
            .trouble
            .as_ref()
            .map(|_| patience.unwrap_or_else(|| Instant::now() + limits::REQUEST_DEADLINE));
        if let Some(trouble) = &seen.trouble
            && (!trouble.may_pass || patience.is_some_and(|end| end <= Instant::now()))
        {
            return Err(Failure::Misuse(format!(
                "the lease {namespace}/{} cannot be taken: {}",
                names::LEASE_HOME,
                trouble.message
            )));
        }
        // Our own name is there where the answer to our request was lost: whoever keeps the lease finds that out.
        let is_ours = seen.holder.as_ref() == Some(&settings.identity);
        if seen.holder.is_some() && !is_ours {
            // It is alive when it renews before our eyes, whatever its clock says.
            let renews = first.as_ref().is_some_and(|first| {
                (&first.holder, first.renewed) != (&seen.holder, seen.renewed)
            });
            if renews || seen.seems_held(clock::now()) {
                return Err(held_by(&seen, namespace));
            }
            if first.is_none() {
                writeln!(
                    context.err,
                    "{} holds the lease and is silent; it is taken in {} s unless it is renewed",
                    seen.holder.as_deref().unwrap_or_default(),
                    seen.lasts.as_secs()
                )?;
                first = Some(seen);
            }
        }
        tokio::select! {
            () = stop.cancelled() => return Err(Failure::Misuse("interrupted; nothing was changed".to_owned())),
            () = lease.died() => return Err(Failure::Misuse("the task that keeps the lease has died".to_owned())),
            () = tokio::time::sleep_until(patience.unwrap_or_else(Instant::now)), if patience.is_some() => {}
            Ok(()) = held.changed() => {}
            Ok(()) = view.changed() => {}
        }
    }
}

fn held_by(view: &LeaseView, namespace: &str) -> Failure {
    let holder = view.holder.as_deref().unwrap_or_default();
    let since = view
        .since
        .map(|since| format!(", since {}", since.strftime("%Y-%m-%dT%H:%M:%SZ")))
        .unwrap_or_default();
    Failure::Misuse(format!(
        "{holder} holds the lease {namespace}/{}{since}: two at once would take turns; stop the agent first (kubectl -n \
         {namespace} scale deployment fairway --replicas 0), or wait for the other fairway sync",
        names::LEASE_HOME
    ))
}
