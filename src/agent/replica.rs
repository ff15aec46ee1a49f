//! One replica of the agent: stands by, leads while it holds the lease, and stands by again.
//!
//! What leads is made anew for each claim and dropped with it: another replica may have acted in between, so nothing that was
//! known before counts. It gets the cluster under that claim, so that no write of an earlier one can go out.

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::heartbeat::Heartbeats;
use super::lease::{KeptLease, LeaseSettings, Skew};
use crate::cluster::{Cluster, Guard};

/// One of the agents that may act for a cluster.
pub struct Replica {
    cluster: Cluster,
    heartbeats: Heartbeats,
    identity: String,
    lease: KeptLease,
    stop: CancellationToken,
}

/// How leading has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Everything that was under way has ended.
    Well,
    /// Something may still be under way.
    Late,
}

/// The task that keeps the lease has died. Nothing may go on without it.
#[derive(Debug, thiserror::Error)]
#[error("the task that keeps the lease has died")]
pub struct LeaseTaskDied;

enum Woken {
    Told,
    Died,
    Holds(Guard),
}

// === impl Replica ===

impl Replica {
    /// Makes a replica and begins to strive for the lease. `cluster` is under no claim.
    pub fn new(
        cluster: Cluster,
        lease: LeaseSettings,
        heartbeats: Heartbeats,
        stop: CancellationToken,
    ) -> Self {
        let heartbeat = heartbeats.task("the lease");
        let identity = lease.identity.clone();
        let lease = KeptLease::keep_alive(cluster.clone(), lease, Some(heartbeat));
        Self {
            cluster,
            heartbeats,
            identity,
            lease,
            stop,
        }
    }

    /// Returns the lease, for those who tell of it.
    pub fn lease(&self) -> &KeptLease {
        &self.lease
    }

    /// Leads with what `lead` makes of the cluster under the claim, how the clock stands, and its end, each time that the lease is held, until told to stop; then gives the lease back, if all
    /// effects have ended. What `lead` makes ends when its token is cancelled, and when it ends by itself the replica does.
    ///
    /// # Errors
    ///
    /// When the task that keeps the lease has died; the process should end.
    pub async fn run<F, L>(mut self, mut lead: F) -> Result<(), LeaseTaskDied>
    where
        F: FnMut(Cluster, watch::Receiver<Option<Skew>>, CancellationToken) -> L,
        L: Future<Output = Ended>,
    {
        loop {
            let guard = match self.stand_by().await {
                Woken::Told => break,
                Woken::Died => return Err(self.died()),
                Woken::Holds(guard) => guard,
            };
            let term = self.stop.child_token();
            let cluster = self.cluster.under(guard.clone());
            let mut leading = std::pin::pin!(lead(cluster, self.lease.skew(), term.clone()));
            let (ended, died) = tokio::select! {
                ended = &mut leading => {
                    // Told to, or something in it has died.
                    self.stop.cancel();
                    (ended, false)
                }
                () = guard.lost() => {
                    tracing::warn!("the lease is lost; what is under way ends");
                    term.cancel();
                    (leading.await, false)
                }
                () = self.lease.died() => {
                    term.cancel();
                    (leading.await, true)
                }
            };
            if died {
                return Err(self.died());
            }
            if self.stop.is_cancelled() && ended == Ended::Late {
                // A write that is still under way must not meet the next holder's; the lease expires in its own time.
                return Ok(());
            }
        }
        self.lease.give_back().await;
        Ok(())
    }

    async fn stand_by(&mut self) -> Woken {
        let (mut held, mut view) = (self.lease.held(), self.lease.view());
        loop {
            if self.stop.is_cancelled() {
                return Woken::Told;
            }
            let now = held.borrow_and_update().clone();
            if let Some(now) = now {
                let guard = Guard::new(now.claim, self.lease.held());
                if guard.holds() {
                    return Woken::Holds(guard);
                }
            }
            // Somebody else leads, and this one could take over: that is all that is asked of a replica which stands by.
            let holder = view.borrow_and_update().holder.clone();
            if holder.is_some_and(|holder| holder != self.identity) {
                self.heartbeats.standing_by();
            }
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = self.lease.died() => return Woken::Died,
                Ok(()) = held.changed() => {}
                Ok(()) = view.changed() => {}
            }
        }
    }

    fn died(&self) -> LeaseTaskDied {
        tracing::error!("the task that keeps the lease has died; the agent stops");
        self.stop.cancel();
        LeaseTaskDied
    }
}
