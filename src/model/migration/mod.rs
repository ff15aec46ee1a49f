//! Migrations: what a definition in git says, as types. `desired` reads and checks them; a Run keeps a copy.
//!
//! The semantics are those of the section "Migrations" of the design; every field is explained in `docs/write-a-migration.md`.
//! A value of these types was checked: names are names, expressions compile, durations are within their limits.

mod binding;
mod builtin;
mod compiled;
mod hook;
mod hosts;
mod policy;
mod step;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use binding::{Binding, DeployAction, HookPhase, Lifecycle, Lookup, MissingKind, Scope};
pub use builtin::{
    BUILTINS, BuiltinField, BuiltinForm, EnsureCredentialsWith, FindNodePortWith,
    GenerateSecretWith, builtin_fields,
};
pub use compiled::{COMPILED, HandOverSide, HandOverWith, check_compiled};
pub use hook::{DeployComponent, Hook, HookScope};
pub use hosts::host_is_allowed;
pub use policy::{FailurePolicy, OnUnknown, Policy, Retry, RunPolicy, Span};
pub use step::{
    ApplyStep, BuiltinStep, CompiledStep, DeleteStep, ForEach, HttpStep, JobStep, ObjectReference,
    PatchStep, PatchType, Propagation, RewriteStep, SecretKeyReference, Selection, Step,
    StepAction, WaitStep,
};

use super::{ComponentName, Digest, Place};

/// One migration, as git has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Migration {
    /// Its name, unique in the repository.
    pub name: String,
    /// The components that it belongs to; none for a global one.
    pub components: Vec<ComponentName>,
    /// What it does.
    pub spec: MigrationSpec,
    /// The digest of its definition. Tests and description count too: a Run names exactly what it ran.
    pub digest: Digest,
    /// Where it stands.
    pub place: Place,
}

impl Migration {
    /// Returns whether this belongs to no component.
    pub fn is_global(&self) -> bool {
        self.components.is_empty()
    }
}

/// What a migration says below `spec`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MigrationSpec {
    /// What this is for, in a sentence or two.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whose it is: who is asked when it waits or fails.
    pub owner: String,
    /// What it belongs to, and when it runs.
    pub bind: Binding,
    /// From which release on it exists, and when it goes.
    pub lifecycle: Lifecycle,
    /// Migrations of the same hook, by name, that must have ended well before this one starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Constants, as `params.NAME` in expressions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Value>,
    /// What expressions may look at, as `objects.NAME`; nothing else of the cluster is read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lookups: BTreeMap<String, Lookup>,
    /// Whether there is anything to do, and whether it may be done. A retired migration has nothing else.
    pub guard: Guard,
    /// What is done, in this order. Empty in a retired migration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// What takes the effects back when the component is removed, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undo: Vec<Step>,
    /// How often, how long, and what a failure means.
    #[serde(default)]
    pub policy: Policy,
    /// Cases that `fairway migration test` tries without a cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<Fixture>,
}

/// When a migration runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Guard {
    /// CEL over the final state: true while there is work. It is the check before, and the proof of success after: it must stay
    /// true until the last effect, and must then be false.
    pub needed: String,
    /// What must hold before the first change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Requirement>,
    /// The proof of success, where `!needed` is not it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_when: Option<String>,
}

/// A precondition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requirement {
    /// CEL; true when the migration may go on.
    pub cel: String,
    /// What a person must do, in a sentence.
    pub message: String,
    /// Where it is explained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runbook: Option<String>,
    /// What happens where it is false.
    #[serde(default)]
    pub on_false: OnFalse,
}

/// What a precondition that is false means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnFalse {
    /// The migration waits until it is true, and what depends on it waits too.
    #[default]
    Block,
    /// The migration is left out of this deploy.
    Skip,
}

/// One case of a migration's own tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fixture {
    /// What the case is about.
    pub name: String,
    /// What each lookup finds: an object, a list of objects, or null. A lookup that is not named finds nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub given: BTreeMap<String, Value>,
    /// What this revision would apply for a lookup, as `desired.NAME`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub desired: BTreeMap<String, Value>,
    /// Params that differ from the definition's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Value>,
    /// The components that the deploy processes, as `deploy.components`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<DeployComponent>,
    /// What comes of steps that the model of a cluster cannot carry out, by the id of the step: a Job, a request, or a wait for
    /// what others do. Without it a Job exits with 0 and a request is answered with 200, and both leave nothing behind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outcomes: BTreeMap<String, FixtureOutcome>,
    /// What must come of it.
    pub expect: Expectation,
}

/// What comes of a step that leaves the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FixtureOutcome {
    /// What the program of a Job exits with.
    #[serde(skip_serializing_if = "is_success")]
    pub exit_code: i32,
    /// The status of the answer to a request.
    #[serde(skip_serializing_if = "is_usual_status")]
    pub status: u16,
    /// `result` for the outputs: what a Job writes as its termination message, or the body of the answer.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub result: Value,
    /// What lookups find after it, as others would have left it: merged into an object, or into the object of that name in a
    /// list; null where the object is gone. Happens once, however often the step is tried.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub leaves: BTreeMap<String, Value>,
}

impl Default for FixtureOutcome {
    fn default() -> Self {
        Self {
            exit_code: 0,
            status: 200,
            result: Value::Null,
            leaves: BTreeMap::new(),
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_success(code: &i32) -> bool {
    *code == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_usual_status(status: &u16) -> bool {
    *status == 200
}

/// What must come of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expectation {
    /// The decision.
    pub decision: Decision,
    /// The ids of the steps that have an effect, in their order; not compared where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<String>>,
    /// What lookups find afterwards: each value named here must be there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub then: BTreeMap<String, Value>,
}

/// What a guard decides.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Decision {
    /// There is nothing to do.
    NotNeeded,
    /// There is work, and it may be done.
    Run,
    /// There is work, but a precondition is false.
    Block,
    /// There is work, but a precondition that is false leaves it out.
    Skip,
    /// The guard could not be evaluated. Never the same as false.
    Unknown,
}
