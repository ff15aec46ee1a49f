//! Bursts of deliveries: the first one is acted on at once, all others together when it is quiet again.
//!
//! So one push is seen without delay, and any number of deliveries costs at most two fetches: one begun by the first, and
//! one begun after the last.

use tokio::time::Instant;

use crate::model::limits::{WEBHOOK_BURST_MAX, WEBHOOK_QUIET};

/// The burst that goes on, if any.
#[derive(Debug, Default)]
pub(super) struct Burst(Option<Ongoing>);

#[derive(Debug)]
struct Ongoing {
    quiet_at: Instant,
    until: Instant,
    /// One has rung at once.
    rung: bool,
    /// Others have rung since.
    more: bool,
}

impl Burst {
    /// Notes deliveries, and whether one of them rings; returns whether to ring now.
    pub(super) fn heard(&mut self, now: Instant, rings: bool) -> bool {
        let ongoing = self.0.get_or_insert_with(|| Ongoing {
            quiet_at: now,
            until: now + WEBHOOK_BURST_MAX,
            rung: false,
            more: false,
        });
        ongoing.quiet_at = now + WEBHOOK_QUIET;
        let first = rings && !ongoing.rung;
        ongoing.more |= rings && !first;
        ongoing.rung |= rings;
        first
    }

    /// Returns when to look whether it is over.
    pub(super) fn due(&self) -> Option<Instant> {
        let ongoing = self.0.as_ref()?;
        Some(ongoing.quiet_at.min(ongoing.until))
    }

    /// Looks whether it is over, or has gone on for too long; returns then whether to ring for the rest.
    pub(super) fn over(&mut self, now: Instant) -> Option<bool> {
        let ongoing = self.0.as_mut()?;
        let more = ongoing.more;
        if now >= ongoing.quiet_at {
            self.0 = None;
            return Some(more);
        }
        if now >= ongoing.until {
            ongoing.more = false;
            ongoing.until = now + WEBHOOK_BURST_MAX;
            return Some(more);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets deliveries ring at an even pace; returns how often they have rung in all.
    fn rings_of(count: u32, apart: std::time::Duration) -> u32 {
        let (mut burst, mut now, mut rings) = (Burst::default(), Instant::now(), 0);
        for _ in 0..count {
            rings += u32::from(burst.heard(now, true));
            now += apart;
            rings += u32::from(burst.over(now) == Some(true));
        }
        now += WEBHOOK_QUIET;
        rings += u32::from(burst.over(now) == Some(true));
        assert_eq!(burst.due(), None, "a burst that is over wants nothing");
        rings
    }

    #[test]
    fn one_delivery_rings_once_and_a_burst_twice() {
        assert_eq!(rings_of(1, WEBHOOK_QUIET / 10), 1);
        assert_eq!(rings_of(2, WEBHOOK_QUIET / 10), 2);
        assert_eq!(rings_of(2_000, WEBHOOK_BURST_MAX / 2_001), 2);
    }

    #[test]
    fn whoever_never_stops_is_heard_every_ten_seconds() {
        assert_eq!(rings_of(600, WEBHOOK_QUIET / 5), 1 + 6);
    }

    #[test]
    fn what_does_not_ring_makes_a_burst_that_ends_without_a_ring() {
        let (mut burst, now) = (Burst::default(), Instant::now());
        assert!(!burst.heard(now, false));
        assert!(
            burst.heard(now, true),
            "the first that rings is not delayed"
        );
        assert_eq!(burst.over(now), None);
        assert_eq!(burst.over(now + WEBHOOK_QUIET), Some(false));
    }
}
