//! Drives one run: asks the machine what is next, does it, and writes down what came of it.
//!
//! An attempt is written down before its effect and its result after it, each over the version of the record that was seen last
//! and with the claim of this process. So there is no effect without a recorded attempt, and whoever goes on after a kill knows
//! which step may have had its effect. Only one process drives a run: what another has written under its own claim ends this one.

mod ahead;
mod drive;
mod judge;
mod look;
mod session;
mod step;
mod undo;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::spec as spec_of_a_test;

pub use judge::Judgement;

use jiff::Timestamp;

use super::clock::{Clock, ProcessClock};

/// Drives runs on one cluster. It holds no state of any run, so one may drive many side by side.
#[derive(Debug)]
pub struct Driver<E, S, C = ProcessClock> {
    /// The way to the world.
    effects: E,
    /// Where records are kept.
    store: S,
    /// Time.
    clock: C,
    /// The claim under which this process writes; another one in a record means that somebody else has taken over.
    claim: String,
}

// === impl Driver ===

impl<E, S, C> Driver<E, S, C> {
    /// Makes a driver. `claim` names the uninterrupted hold of the lease under which `store` writes; it is compared for equality
    /// and never ordered.
    pub fn new(effects: E, store: S, clock: C, claim: impl Into<String>) -> Self {
        Self {
            effects,
            store,
            clock,
            claim: claim.into(),
        }
    }

    /// Returns the way to the world.
    pub fn effects(&self) -> &E {
        &self.effects
    }

    /// Returns where records are kept.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Returns wall time to the second, which is what a record holds: one that was read back is the same as the one that was written.
    fn now(&self) -> Timestamp
    where
        C: Clock,
    {
        let wall = self.clock.wall();
        Timestamp::from_second(wall.as_second()).unwrap_or(wall)
    }

    /// Returns the clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }
}
