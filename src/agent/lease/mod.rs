//! Leases: of several replicas one acts, and stops acting before another could begin.
//!
//! [`Election`] decides and is free of effects; [`KeptLease`] is its task, which sends what it decides and publishes what is
//! held. What is guarded by a lease asks its [`crate::cluster::Guard`] at each write. Nothing here knows what the lease is for.

mod election;
mod keep;
mod skew;

pub use election::{Election, LeaseSettings, Step};
pub use keep::{KeptLease, LeaseView, Trouble};
pub use skew::{Skew, ahead};
