//! One pass that creates, changes and prunes, disturbed.
//!
//! Crash points: the agent is killed before and after each request of a pass that creates, changes and prunes; the one that is
//! started after it must end where an undisturbed one ends, and nothing that is wanted may be deleted on the way.
//!
//! `make test` takes a representative set: every write, on both sides, and some of the reads. `FAIRWAY_CRASH_POINTS=all`
//! (`make crash`) takes all.
//!
//! Faults of the API: the same pass, with each way in which a request can go wrong.

mod api_faults;
mod approval;
mod examples;
pub(crate) mod history;
mod migrations;
mod points;
pub(crate) mod stage;
