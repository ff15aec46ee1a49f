//! Migrations that cannot be data: logic that joins, searches or counts in ways that CEL does not, as a Rust type.
//!
//! A definition in git still says when it runs, what it needs, who owns it and when it goes: only the step is code.
//!
//! ```yaml
//! steps:
//!   - id: hand-over
//!     compiled: {name: hand-over, with: {…}}
//! ```
//!
//! To write one:
//!
//! 1. Add a file here with a type that implements [`CompiledMigration`]. Read `hand_over.rs` first; it is short.
//! 2. Add it to the list at the end of `registry.rs`, and its name and what it is given to `src/model/migration/compiled.rs`, by which
//!    `fairway validate` knows it. A test holds the two lists together.
//! 3. Test it in its own file, against objects in memory: no cluster is needed.
//!
//! What it is given is everything that a step of another kind has ([`StepContext`]): the way to the cluster, what the lookups
//! found, the parameters, and the components that the deploy processes (`context.spec.components`). What it must keep:
//!
//! - It may be called any number of times: after a restart, after a failure, after a lost answer. Look first, change only what
//!   is not yet as it should be, and give every write the uid and resourceVersion of what was seen.
//! - It must not wait. Return [`StepResult::Wait`] with what to go on from; it is called again.
//! - No value of a Secret may get into its result, its progress, its effect or a message.

mod hand_over;
mod registry;

use serde_json::Value;

pub use registry::{access, attempt, names};

use super::effects::Effects;
use super::steps::{StepContext, StepResult};

/// A right that a compiled migration needs, as a Role has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NeededRight {
    /// `v1`, `apps/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; none for all of them, or for a kind without.
    pub namespace: Option<String>,
    /// The verbs.
    pub verbs: Vec<&'static str>,
}

/// Logic that is a step of a migration.
pub trait CompiledMigration {
    /// The name that definitions use; it never changes.
    const NAME: &'static str;

    /// Returns the rights that it needs, for `fairway migration rbac`.
    ///
    /// # Errors
    ///
    /// What is wrong with `with`, in words; `fairway validate` shows it.
    fn access(with: &Value) -> Result<Vec<NeededRight>, String>;

    /// Attempts it once. `with` is what the definition gives it, with values in the place of expressions.
    fn attempt<E: Effects>(
        context: &StepContext<'_, E>,
        with: &Value,
    ) -> impl Future<Output = StepResult> + Send;
}
