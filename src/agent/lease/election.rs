//! Who holds a lease, decided from what is seen of it and from the monotonic clock of this process.
//!
//! - Our own hold counts from the moment when the last successful renewal was *sent*; nobody else can have seen it earlier.
//! - Somebody else's hold has expired when it was seen unchanged for as long as it says that it lasts. Times in the lease are
//!   another machine's and are for people.
//! - Each write carries the resourceVersion that was seen last. A conflict, or an event that does not fit, is a reason to read
//!   the lease and to decide anew; the event itself is not believed, since a watch may lag behind our own answers.
//! - Each new hold counts `leaseTransitions` up, also one after our own hold had lapsed, so that no two claims are equal.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use tokio::time::{Duration, Instant};

use crate::cluster::{Claim, Held};
use crate::model::limits;

/// Which lease is kept, by whom, and for how long at a time.
#[derive(Debug, Clone)]
pub struct LeaseSettings {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who we are. No other living process has this identity.
    pub identity: String,
    /// Whether a hold in our name, seen when we begin, is that of a process which is dead for sure: a container that was
    /// started again keeps the name of its pod.
    pub inherit: bool,
    /// How long a hold lasts after a renewal.
    pub duration: Duration,
}

/// What is to be done about a lease.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Nothing before this time, unless something is seen.
    Wait(Instant),
    /// Read it.
    Read,
    /// Create it, held by us.
    Create(Box<Lease>),
    /// Replace it: acquired or renewed.
    Replace(Box<Lease>),
}

/// What is known of the lease.
#[derive(Debug)]
enum Known {
    /// It was not looked at, or what was seen is in doubt.
    InDoubt,
    Absent,
    There {
        lease: Box<Lease>,
        /// When it was first seen like this.
        since: Instant,
    },
}

/// Our own hold.
#[derive(Debug)]
struct Hold {
    claim: Claim,
    /// When the last successful renewal was sent.
    sent: Instant,
}

/// The state machine of one lease.
#[derive(Debug)]
pub struct Election {
    settings: LeaseSettings,
    known: Known,
    hold: Option<Hold>,
    /// Our last claim; a lease that still shows it was taken by nobody.
    last: Option<Claim>,
    /// The time of acquisition in writes that were not answered: a lease that shows it was written by one of them.
    tried: Option<MicroTime>,
    /// Whether the lease was read before.
    begun: bool,
    /// Requests that have failed one after another.
    failures: u32,
    not_before: Option<Instant>,
}

// === impl LeaseSettings ===

impl LeaseSettings {
    /// Time for one request.
    pub fn request_deadline(&self) -> Duration {
        self.duration / limits::LEASE_REQUEST_PART
    }

    fn renew_after(&self) -> Duration {
        self.duration / limits::LEASE_RENEW_PART
    }

    fn effects_last(&self) -> Duration {
        self.duration / limits::LEASE_GRACE_PART * (limits::LEASE_GRACE_PART - 1)
    }

    fn seconds(&self) -> i32 {
        i32::try_from(self.duration.as_secs()).unwrap_or(i32::MAX)
    }
}

// === impl Election ===

impl Election {
    /// Begins without any knowledge.
    pub fn new(settings: LeaseSettings) -> Self {
        Self {
            settings,
            known: Known::InDoubt,
            hold: None,
            last: None,
            tried: None,
            begun: false,
            failures: 0,
            not_before: None,
        }
    }

    /// Returns what is held.
    pub fn held(&self) -> Option<Held> {
        let hold = self.hold.as_ref()?;
        Some(Held {
            claim: hold.claim.clone(),
            effects_end: hold.sent + self.settings.effects_last(),
        })
    }

    /// Returns the lease as it was seen last; none when it is in doubt or not there.
    pub fn seen(&self) -> Option<&Lease> {
        match &self.known {
            Known::There { lease, .. } => Some(lease),
            Known::InDoubt | Known::Absent => None,
        }
    }

    /// Takes in that the watch shows the lease like this.
    pub fn noticed(&mut self, lease: Option<Lease>, now: Instant) {
        if let Some(hold) = &self.hold {
            let ours = lease
                .as_ref()
                .is_some_and(|lease| self.is_by_us(lease) && Claim::from(lease) == hold.claim);
            if !ours {
                self.known = Known::InDoubt;
            }
            return;
        }
        // What was read or answered first is at least as new; before that nothing is known to compare with.
        if self.begun {
            self.know(lease, now);
        }
    }

    /// Takes in what a read has answered.
    pub fn read(&mut self, lease: Option<Lease>, now: Instant) {
        self.succeeded();
        if let Some(hold) = &self.hold {
            let ours = lease
                .as_ref()
                .is_some_and(|lease| self.is_by_us(lease) && Claim::from(lease) == hold.claim);
            if !ours {
                self.hold = None;
            }
        }
        let inherited = lease
            .as_ref()
            .filter(|lease| !self.begun && self.settings.inherit && self.is_by_us(lease));
        if let Some(lease) = inherited {
            self.last = Some(Claim::from(lease));
        }
        self.begun = true;
        if !lease
            .as_ref()
            .is_some_and(|lease| self.is_left_by_us(lease))
        {
            self.tried = None;
        }
        self.know(lease, now);
    }

    /// Takes in the answer to a write that was sent at this time: the lease is held.
    pub fn won(&mut self, lease: Lease, sent: Instant) {
        self.succeeded();
        let claim = Claim::from(&lease);
        self.last = Some(claim.clone());
        self.tried = None;
        self.hold = Some(Hold { claim, sent });
        self.know(Some(lease), sent);
    }

    /// Takes in that a write has met another one: what is there has to be read.
    pub fn conflicted(&mut self) {
        self.known = Known::InDoubt;
    }

    /// Takes in that a request has failed otherwise. Whether a write took effect is then not known: it carries a
    /// resourceVersion, so that the next one tells.
    pub fn failed(&mut self, now: Instant) {
        let pause = self.settings.duration / limits::LEASE_RETRY_PART;
        let doublings = if self.hold.is_some() {
            0
        } else {
            self.failures.min(16)
        };
        let pause = (pause * 2u32.pow(doublings)).min(self.settings.renew_after());
        self.failures += 1;
        self.not_before = Some(now + pause);
    }

    /// Gives up our hold when its time is over.
    pub fn lapse(&mut self, now: Instant) {
        if self.held().is_some_and(|held| held.effects_end <= now) {
            self.hold = None;
            self.known = Known::InDoubt;
        }
    }

    /// Returns what is to be done; `wall` is what a lease that is written shows to people.
    pub fn step(&mut self, now: Instant, wall: Timestamp) -> Step {
        let wall = MicroTime(in_microseconds(wall));
        let step = self.next(now, &wall);
        if self.hold.is_none() && matches!(step, Step::Create(_) | Step::Replace(_)) {
            self.tried.get_or_insert(wall);
        }
        step
    }

    fn next(&self, now: Instant, wall: &MicroTime) -> Step {
        let due = self.due(now);
        let due = self.not_before.map_or(due, |earliest| due.max(earliest));
        if due > now {
            let lapse = self.held().map_or(due, |held| held.effects_end);
            return Step::Wait(due.min(lapse));
        }
        match (&self.known, &self.hold) {
            (Known::InDoubt, _) => Step::Read,
            (Known::Absent, _) => Step::Create(Box::new(self.created(wall))),
            (Known::There { lease, .. }, Some(_)) => {
                Step::Replace(Box::new(rewritten(lease, |spec| {
                    spec.renew_time = Some(wall.clone());
                    spec.lease_duration_seconds = Some(self.settings.seconds());
                })))
            }
            (Known::There { lease, .. }, None) => {
                Step::Replace(Box::new(rewritten(lease, |spec| {
                    let transitions = spec.lease_transitions.unwrap_or_default();
                    *spec = self.spec(wall, transitions.checked_add(1).unwrap_or_default());
                })))
            }
        }
    }

    /// Returns the lease as it is given back; none when it is not held.
    pub fn given_back(&mut self, wall: Timestamp) -> Option<Lease> {
        self.hold.take()?;
        Some(emptied(self.seen()?, wall))
    }

    /// Returns what is to be done, after the lease was given back or never held, so that nobody has to wait for a hold of ours: a
    /// request whose answer was lost may have taken it, or changed what was to be given back. None where nothing of ours is left.
    pub fn left_behind(&self, wall: Timestamp) -> Option<Step> {
        match &self.known {
            Known::There { lease, .. } if self.is_left_by_us(lease) => {
                Some(Step::Replace(Box::new(emptied(lease, wall))))
            }
            _ if self.tried.is_some() => Some(Step::Read),
            Known::InDoubt if self.last.is_some() => Some(Step::Read),
            _ => None,
        }
    }

    /// Returns when the next request is due.
    fn due(&self, now: Instant) -> Instant {
        match (&self.known, &self.hold) {
            (Known::InDoubt | Known::Absent, _) => now,
            (Known::There { .. }, Some(hold)) => hold.sent + self.settings.renew_after(),
            (Known::There { lease, since }, None) => {
                if is_free(lease) || self.is_left_by_us(lease) {
                    now
                } else {
                    *since + lasts(lease)
                }
            }
        }
    }

    fn know(&mut self, lease: Option<Lease>, now: Instant) {
        let Some(lease) = lease else {
            self.known = Known::Absent;
            return;
        };
        let since = match &self.known {
            Known::There { lease: old, since } if is_same(old, &lease) => *since,
            _ => now,
        };
        let lease = Box::new(lease);
        self.known = Known::There { lease, since };
    }

    fn succeeded(&mut self) {
        self.failures = 0;
        self.not_before = None;
    }

    fn is_by_us(&self, lease: &Lease) -> bool {
        holder(lease) == Some(self.settings.identity.as_str())
    }

    /// Returns whether the lease is as this process has written it: nobody has acted under it since.
    fn is_left_by_us(&self, lease: &Lease) -> bool {
        let spec = lease.spec.as_ref();
        let acquired = spec.and_then(|spec| spec.acquire_time.as_ref());
        let lapsed = self.last.as_ref() == Some(&Claim::from(lease));
        self.is_by_us(lease) && (lapsed || (acquired.is_some() && acquired == self.tried.as_ref()))
    }

    fn created(&self, wall: &MicroTime) -> Lease {
        let labels = [("app.kubernetes.io/name", "fairway")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Lease {
            metadata: ObjectMeta {
                name: Some(self.settings.name.clone()),
                namespace: Some(self.settings.namespace.clone()),
                labels: Some(labels.into()),
                ..ObjectMeta::default()
            },
            spec: Some(self.spec(wall, 0)),
        }
    }

    fn spec(&self, wall: &MicroTime, transitions: i32) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.settings.identity.clone()),
            lease_duration_seconds: Some(self.settings.seconds()),
            lease_transitions: Some(transitions),
            acquire_time: Some(self.tried.as_ref().unwrap_or(wall).clone()),
            renew_time: Some(wall.clone()),
            ..LeaseSpec::default()
        }
    }
}

impl From<&Lease> for Claim {
    fn from(lease: &Lease) -> Self {
        let spec = lease.spec.as_ref();
        Self {
            lease_uid: lease.metadata.uid.clone().unwrap_or_default(),
            transitions: spec
                .and_then(|spec| spec.lease_transitions)
                .unwrap_or_default(),
        }
    }
}

/// Drops what a lease does not store.
fn in_microseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

/// Returns who holds a lease, expired or not.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref();
    holder.filter(|holder| !holder.is_empty())
}

fn is_free(lease: &Lease) -> bool {
    holder(lease).is_none()
}

/// Returns how long a lease says that it lasts, within what can be believed.
pub(super) fn lasts(lease: &Lease) -> Duration {
    let seconds = lease
        .spec
        .as_ref()
        .and_then(|spec| spec.lease_duration_seconds);
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let told = seconds.map_or(limits::LEASE_DURATION, Duration::from_secs);
    told.min(limits::LEASE_DURATION_MAX)
}

/// Returns the lease as nobody holds it.
fn emptied(lease: &Lease, wall: Timestamp) -> Lease {
    rewritten(lease, |spec| {
        spec.holder_identity = None;
        spec.acquire_time = None;
        spec.renew_time = Some(MicroTime(wall));
    })
}

fn is_same(one: &Lease, other: &Lease) -> bool {
    one.metadata.uid == other.metadata.uid
        && one.metadata.resource_version == other.metadata.resource_version
        && one.spec == other.spec
}

/// Returns the lease with another spec. Who owns which field is the server's to write.
fn rewritten(lease: &Lease, change: impl FnOnce(&mut LeaseSpec)) -> Lease {
    let mut lease = lease.clone();
    lease.metadata.managed_fields = None;
    change(lease.spec.get_or_insert_default());
    lease
}

#[cfg(test)]
#[path = "election_tests.rs"]
mod tests;
