//! The claim: the right to write that the holder of a lease has, asked for at the moment of each write.
//!
//! The task that keeps the lease publishes what it holds. A [`Guard`] belongs to one claim: once another claim or none is
//! published, or the time of the last one is over by the monotonic clock of this process, it refuses for good. So losing the
//! API server stops writes by itself, and what was begun under an earlier claim cannot write under a later one.
//!
//! A guard does not fence: a request that is on the wire arrives. That is what preconditions are for.

use http::{Method, Request};
use kube::client::Body;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::error::ClusterError;

/// One uninterrupted hold of a lease. Two are the same or not; there is no order, since a lease that was deleted and made
/// anew counts from the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The uid of the Lease.
    pub lease_uid: String,
    /// Its `leaseTransitions`, which each new hold counts up.
    pub transitions: i32,
}

/// What is held now, as the task that keeps the lease publishes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The claim.
    pub claim: Claim,
    /// When effects must have ended, unless the lease is renewed before.
    pub effects_end: Instant,
}

/// Answers whether a claim still holds. Clones answer the same.
#[derive(Debug, Clone)]
pub struct Guard {
    claim: Claim,
    current: watch::Receiver<Option<Held>>,
}

// === impl Guard ===

impl Guard {
    /// Guards one claim by what is published.
    pub fn new(claim: Claim, current: watch::Receiver<Option<Held>>) -> Self {
        Self { claim, current }
    }

    /// Returns the claim.
    pub fn claim(&self) -> &Claim {
        &self.claim
    }

    /// Returns whether the claim holds now.
    pub fn holds(&self) -> bool {
        self.effects_end().is_some()
    }

    /// Waits until the claim does not hold any more.
    pub async fn lost(&self) {
        let mut current = self.current.clone();
        current.mark_unchanged();
        while let Some(end) = self.effects_end() {
            tokio::select! {
                changed = current.changed() => if changed.is_err() {
                    return;
                },
                () = sleep_until(end) => {}
            }
        }
    }

    /// Refuses a request that writes when the claim does not hold.
    pub(super) fn check(&self, request: &str) -> Result<(), ClusterError> {
        if self.holds() {
            return Ok(());
        }
        Err(refusal(request))
    }

    /// Returns until when the claim holds as far as is known now; none when it does not hold.
    fn effects_end(&self) -> Option<Instant> {
        // Whoever published is gone: nobody renews any more.
        if self.current.has_changed().is_err() {
            return None;
        }
        let held = self.current.borrow();
        let held = held.as_ref().filter(|held| held.claim == self.claim)?;
        (Instant::now() < held.effects_end).then_some(held.effects_end)
    }
}

/// Returns a client that refuses whatever is not a GET: what is under a claim writes through the door that asks for it.
pub(super) fn read_only(client: kube::Client) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            if request.method() == Method::GET {
                client.send(request).await.map_err(tower::BoxError::from)
            } else {
                Err("under a claim, writes take the methods of Cluster".into())
            }
        }
    });
    kube::Client::new(service, namespace)
}

/// Makes the error for a write that no claim covers any more.
pub(super) fn refusal(request: &str) -> ClusterError {
    ClusterError::ClaimLost {
        request: request.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::time::{Duration, advance};

    use super::*;

    fn claim(lease_uid: &str, transitions: i32) -> Claim {
        let lease_uid = lease_uid.to_owned();
        Claim {
            lease_uid,
            transitions,
        }
    }

    fn held(claim: Claim, seconds: u64) -> Held {
        let effects_end = Instant::now() + Duration::from_secs(seconds);
        Held { claim, effects_end }
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_ends_by_the_clock_unless_it_is_renewed() {
        let mine = claim("a", 3);
        let (sender, current) = watch::channel(Some(held(mine.clone(), 10)));
        let guard = Guard::new(mine.clone(), current);
        assert!(guard.holds());
        assert_eq!(guard.lost().now_or_never(), None);
        advance(Duration::from_secs(9)).await;
        sender.send_replace(Some(held(mine, 10)));
        advance(Duration::from_secs(9)).await;
        assert!(guard.holds());
        advance(Duration::from_secs(1)).await;
        assert!(!guard.holds());
        assert_eq!(
            guard.check("apply Thing a").unwrap_err().to_string(),
            "failed to apply Thing a: this process does not hold the lease any more"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn no_other_claim_counts_be_it_later_or_earlier() {
        let (sender, current) = watch::channel(Some(held(claim("a", 3), 10)));
        let guard = Guard::new(claim("a", 3), current);
        let lost = guard.lost();
        tokio::pin!(lost);
        for other in [claim("a", 4), claim("a", 2), claim("b", 3)] {
            sender.send_replace(Some(held(other, 10)));
            assert!(!guard.holds());
        }
        sender.send_replace(None);
        assert!(!guard.holds());
        assert_eq!(lost.now_or_never(), Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_holds_once_nobody_publishes() {
        let (sender, current) = watch::channel(Some(held(claim("a", 3), 10)));
        let guard = Guard::new(claim("a", 3), current);
        assert!(guard.holds());
        drop(sender);
        assert!(!guard.holds());
        guard.lost().await;
    }
}
