//! What a migration belongs to, since when and until when it exists, and what it may look at.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a migration belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Binding {
    /// Global migrations run around a whole deploy, others around their component. Without it the folder decides: what stands
    /// below a component belongs to it, what stands in `migrations/` is global, unless `components` names some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// The components, as `components/NAME` or `modules/NAME`, or just NAME where only one of them exists. Without it: the
    /// one in whose folder it stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
    /// Before or after what it belongs to is applied.
    pub phase: HookPhase,
    /// On which deploys.
    #[serde(default = "on_both", skip_serializing_if = "is_both")]
    pub on: Vec<DeployAction>,
}

fn on_both() -> Vec<DeployAction> {
    vec![DeployAction::Install, DeployAction::Upgrade]
}

fn is_both(on: &Vec<DeployAction>) -> bool {
    *on == on_both()
}

/// What a migration belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// To components.
    Component,
    /// To the deploy as a whole.
    Global,
}

/// When a migration runs, relative to what it belongs to.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum HookPhase {
    /// Before the first object is applied.
    Pre,
    /// After everything is applied and healthy.
    Post,
}

impl HookPhase {
    /// Returns the word as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pre => "pre",
            Self::Post => "post",
        }
    }
}

/// What a deploy does with a component.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum DeployAction {
    /// Nothing of it is there yet.
    Install,
    /// It is there, and changes.
    Upgrade,
}

/// From which release on a migration exists, and when it goes. Exactly one of `removeIn` and `never` is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lifecycle {
    /// The first version of what it belongs to that needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introduced_in: Option<String>,
    /// The first version that does not have it any more: who comes from before `introducedIn` must not skip all between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_in: Option<String>,
    /// Why it can never be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never: Option<String>,
}

/// One thing that expressions may look at: one object by its name, or a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lookup {
    /// `v1`, `apps/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace. Without it a list goes over all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of the one object; bound to null where it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether this is a list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub list: bool,
    /// Labels that select the objects of a list, as kubectl writes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// How many objects a list may have; more make the guard unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// What it means that the cluster does not serve the kind.
    #[serde(default, skip_serializing_if = "MissingKind::is_null")]
    pub missing_kind: MissingKind,
}

/// What a kind that is not served means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MissingKind {
    /// The same as no object: null, or an empty list.
    #[default]
    Null,
    /// The guard is unknown.
    Unknown,
}

impl MissingKind {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands over a reference"
    )]
    fn is_null(&self) -> bool {
        *self == Self::Null
    }
}
