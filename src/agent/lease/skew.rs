//! Whether the clock of who holds a lease differs from the cluster's. Nothing is decided by it; people are told, since dates in
//! statuses, audit lines and commands are by that clock.
//!
//! A lease tells by itself: its holder writes `renewTime` by its own clock, and the API server notes beside it, in `managedFields`,
//! when that was written by its own. So nobody has to ask for the time, and who reads the lease later sees the same.

use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;

use crate::model::{limits, names};

/// A clock that is wrong, against the cluster's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skew {
    /// It is ahead.
    Ahead,
    /// It is behind.
    Behind,
}

/// Returns by how much the clock of who has renewed a lease last was ahead of the cluster's, to the second; none where that cannot be
/// seen.
pub fn ahead(lease: &Lease) -> Option<SignedDuration> {
    let renewed = lease.spec.as_ref()?.renew_time.as_ref()?.0;
    let entries = lease.metadata.managed_fields.iter().flatten();
    let ours = entries.filter(|entry| entry.manager.as_deref() == Some(names::MANAGER_LEASE));
    let written = ours
        .filter_map(|entry| entry.time.as_ref())
        .map(|time| time.0);
    let ahead = renewed.duration_since(written.max()?);
    Some(SignedDuration::from_secs(ahead.as_secs()))
}

// === impl Skew ===

impl Skew {
    /// Returns what `ahead` means. What was told before stays until the clock is well within the limit, so that one at the limit is
    /// not told again and again.
    pub fn of(ahead: SignedDuration, before: Option<Self>) -> Option<Self> {
        let found = if ahead.is_negative() {
            Self::Behind
        } else {
            Self::Ahead
        };
        let limit = if before == Some(found) {
            limits::CLOCK_SKEW_MAX / 2
        } else {
            limits::CLOCK_SKEW_MAX
        };
        (ahead.unsigned_abs() > limit).then_some(found)
    }
}

impl std::fmt::Display for Skew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = match self {
            Self::Ahead => "ahead of",
            Self::Behind => "behind",
        };
        write!(
            f,
            "the clock of the agent is more than {} s {word} the cluster's, and so are the dates that it writes: mend the clock of its \
             node",
            limits::CLOCK_SKEW_MAX.as_secs()
        )
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn lease(renewed: &str, manager: &str) -> Lease {
        serde_json::from_value(serde_json::json!({
            "metadata": {"name": "fairway-home", "managedFields": [
                {"manager": "kubectl", "operation": "Update", "time": "2026-06-01T09:00:00Z"},
                {"manager": manager, "operation": "Update", "time": "2026-06-01T00:00:00Z"},
            ]},
            "spec": {"renewTime": renewed},
        }))
        .unwrap()
    }

    #[rstest]
    #[case("2026-06-01T00:00:00.250000Z", 0)]
    #[case("2026-06-01T02:00:00.000000Z", 7_200)]
    #[case("2026-05-31T22:00:00.000000Z", -7_200)]
    // The same moment in another zone.
    #[case("2026-06-01T02:00:00.000000+02:00", 0)]
    fn f14_a_lease_tells_whose_clock_is_wrong(#[case] renewed: &str, #[case] seconds: i64) {
        let lease = lease(renewed, names::MANAGER_LEASE);
        assert_eq!(ahead(&lease), Some(SignedDuration::from_secs(seconds)));
    }

    #[test]
    fn f14_where_nobody_has_noted_the_time_nothing_is_known() {
        assert_eq!(ahead(&lease("2026-06-01T02:00:00.000000Z", "other")), None);
        assert_eq!(ahead(&Lease::default()), None);
    }

    #[rstest]
    #[case(30, None, None)]
    #[case(31, None, Some(Skew::Ahead))]
    #[case(-31, None, Some(Skew::Behind))]
    #[case(20, Some(Skew::Ahead), Some(Skew::Ahead))]
    #[case(15, Some(Skew::Ahead), None)]
    #[case(20, Some(Skew::Behind), None)]
    #[case(-7_200, Some(Skew::Ahead), Some(Skew::Behind))]
    fn f14_a_clock_is_wrong_beyond_the_limit_until_it_is_well_within(
        #[case] seconds: i64,
        #[case] before: Option<Skew>,
        #[case] wanted: Option<Skew>,
    ) {
        assert_eq!(Skew::of(SignedDuration::from_secs(seconds), before), wanted);
    }
}
