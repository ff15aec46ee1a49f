//! Runs: durable executions of migrations. Attempts happen at least once, effects exactly once where a guard or a key allows it;
//! there is no success without evidence, and no budget that a restart refills.
//!
//! The step machine is pure; what it asks for goes through [`Effects`] to the cluster and through [`RunStore`] into the record.

mod clock;
mod cluster_effects;
pub mod compiled;
pub mod conductor;
mod driver;
mod effects;
mod guard;
mod lookups;
pub mod machine;
pub mod memory;
mod obstacle;
mod places;
mod record;
pub mod rights;
mod sight;
pub mod steps;
mod store;
pub mod trial;

pub use clock::{Clock, ProcessClock};
pub use cluster_effects::ClusterEffects;
#[cfg(test)]
pub(crate) use driver::spec_of_a_test;
pub use driver::{Driver, Judgement};
pub use effects::{
    Deletion, EffectError, Effects, HttpAnswer, HttpRequest, Listing, ObjectPatch, Removed,
    ResourceKind, Serving,
};
pub use guard::{Proof, Verdict, decide, guard_expressions, prove};
pub use lookups::{LookupCache, Scene, Surroundings, lookups_named};
pub use record::{ClusterRuns, RunHistory};
pub use sight::{Open, Sight};
pub use store::{RunStore, StoreError};
