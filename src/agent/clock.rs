//! The one door to wall time.

use jiff::Timestamp;

/// Returns the time now.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the door that all others are sent to"
)]
pub fn now() -> Timestamp {
    Timestamp::now()
}
