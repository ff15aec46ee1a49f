//! Migrations: from documents in git to [`crate::model::migration::Migration`]s, with everything that can be refused refused.
//!
//! What comes in are the files of `components/NAME/migrations/`, `modules/NAME/migrations/` and `migrations/`; what goes out
//! are [`crate::desired::Desired::migrations`] and, for those that something is wrong with,
//! [`crate::desired::Desired::held_migrations`]. A migration is no object: it is never applied or pruned, and one that
//! cannot be read stops no deletion, but only what it belongs to.
//!
//! `document` reads one definition by itself (its schema, steps, expressions, lookups and tests), which is cached with its
//! file. `assemble` holds definitions against the rest of the repository. `retire` takes the steps out of one.

mod assemble;
mod bind;
mod builtins;
mod contest;
mod document;
mod expressions;
mod facts;
mod fixtures;
mod lifecycle;
mod lookups;
mod order;
mod outside;
mod places;
mod retire;
mod rules;
mod schema;
mod step_schema;
mod steps;
mod targets;
mod texts;

#[cfg(test)]
mod tests;

pub use lifecycle::LifecycleState;
pub use places::place_in;
pub use retire::{RetireError, retire};

pub(super) use assemble::assemble;
pub(super) use document::read_migration;
pub(super) use facts::MigrationFacts;
pub(super) use lifecycle::judge_removed;
pub(super) use schema::MIGRATION;
