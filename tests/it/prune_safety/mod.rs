//! Prune safety: faults of git and of the API, each with zero wrong deletions.
//!
//! The witness stands between the agent and the API server: every DELETE passes the proxy. Objects are compared by uid, since
//! one that was deleted and created anew would look the same otherwise.

mod api;
mod git;
mod groups;
mod races;
mod reach;
mod record;
mod witness;
