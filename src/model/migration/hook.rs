//! Where migrations sit in a deploy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DeployAction, HookPhase};
use crate::model::{ComponentName, Digest};

/// One place in a deploy at which migrations run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hook {
    /// Around what.
    pub scope: HookScope,
    /// Before or after it.
    pub phase: HookPhase,
    /// Which deploy: the digest of what the component is to become, or of the revision for the deploy as a whole. The same
    /// hook of another deploy is another hook.
    pub deploy: Digest,
}

impl std::fmt::Display for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.scope {
            HookScope::Global => write!(f, "global {}", self.phase.as_str()),
            HookScope::Component(name) => write!(f, "{} of {name}", self.phase.as_str()),
        }
    }
}

/// Around what a hook is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookScope {
    /// The deploy as a whole.
    Global,
    /// One component.
    Component(ComponentName),
}

/// One component that a deploy is about to process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeployComponent {
    /// The component, written `components/NAME` or `modules/NAME`.
    pub name: String,
    /// The version that was committed last; none where there was none, or it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The version that it is to have, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What is done with it.
    pub action: DeployAction,
}
