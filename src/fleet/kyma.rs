//! One runtime, as its Kyma on home describes it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::api::HOME;
use crate::model::names::{LABEL_KYMA_BETA, LABEL_KYMA_INTERNAL, LABEL_KYMA_SKIP};
use crate::model::{Digest, NameError};

/// The channel of a Kyma and of its modules where neither names one (Kyma's default).
const DEFAULT_CHANNEL: &str = "regular";

/// The name of a runtime: that of its Kyma. It is part of the name of its Target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuntimeName(String);

/// What a Kyma says that matters for the catalog of its runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kyma {
    /// The runtime's name.
    pub name: RuntimeName,
    /// Whether ModuleTemplates labelled as beta are for this runtime.
    pub beta: bool,
    /// Whether ModuleTemplates labelled as internal are for this runtime.
    pub internal: bool,
    /// Whether nobody is to reconcile the runtime.
    pub skip: bool,
    /// The modules that it uses, by name.
    pub modules: BTreeMap<String, ModuleUse>,
}

/// How a runtime uses a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleUse {
    /// The channel that it follows.
    pub channel: String,
    /// The version that is installed, where the Kyma's status tells.
    pub version: Option<String>,
}

// === impl RuntimeName ===

impl RuntimeName {
    /// Makes the name.
    ///
    /// # Errors
    ///
    /// When it is empty, longer than the name of a Target has room for, or the word that Targets use for home.
    pub fn new(name: &str) -> Result<Self, NameError> {
        // A Target is named SOURCE.RUNTIME, and the name of an object has at most 253 characters: 63 for the source, and the dot.
        if (1..=189).contains(&name.len()) && name != HOME {
            return Ok(Self(name.to_owned()));
        }
        Err(NameError {
            what: "runtime name",
            name: name.to_owned(),
            rule: "at most 189 characters, and not `home`",
        })
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the value of the label [`crate::model::names::LABEL_RUNTIME`] on objects of this runtime: the name, or its digest
    /// where it is longer than a label's value may be.
    pub fn label(&self) -> String {
        if self.0.len() <= 63 {
            return self.0.clone();
        }
        Digest::of_parts([self.0.as_str()])
            .as_str()
            .replace(':', "-")
    }
}

impl std::fmt::Display for RuntimeName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Kyma ===

impl Kyma {
    /// Reads a Kyma as the API server returns it. What is missing or of another type counts as not said.
    ///
    /// # Errors
    ///
    /// When its name cannot be a runtime's.
    pub fn read(kyma: &Value) -> Result<Self, NameError> {
        let name = text(kyma, &["metadata", "name"]).unwrap_or_default();
        let labelled = |label: &str| text(kyma, &["metadata", "labels", label]) == Some("true");
        Ok(Self {
            name: RuntimeName::new(name)?,
            beta: labelled(LABEL_KYMA_BETA),
            internal: labelled(LABEL_KYMA_INTERNAL),
            skip: labelled(LABEL_KYMA_SKIP),
            modules: modules(kyma),
        })
    }

    /// Returns whether the runtime uses this module on this channel, or has this version of it.
    pub fn uses(&self, module: &str, channel: &str, version: &str) -> bool {
        self.modules
            .get(module)
            .is_some_and(|used| used.channel == channel || used.version.as_deref() == Some(version))
    }
}

/// What is installed is in the status; the spec says what is wanted, and has the last word on the channel.
fn modules(kyma: &Value) -> BTreeMap<String, ModuleUse> {
    let channel_of_kyma = text(kyma, &["spec", "channel"]).unwrap_or(DEFAULT_CHANNEL);
    let mut modules = BTreeMap::new();
    for (at, wanted) in [("status", false), ("spec", true)] {
        let listed = kyma[at]["modules"].as_array().into_iter().flatten();
        for module in listed {
            let Some(name) = text(module, &["name"]) else {
                continue;
            };
            let channel = text(module, &["channel"]);
            let used = modules.entry(name.to_owned()).or_insert_with(|| ModuleUse {
                channel: channel_of_kyma.to_owned(),
                version: None,
            });
            if wanted {
                channel
                    .unwrap_or(channel_of_kyma)
                    .clone_into(&mut used.channel);
            } else {
                used.version = text(module, &["version"]).map(str::to_owned);
                channel
                    .unwrap_or(channel_of_kyma)
                    .clone_into(&mut used.channel);
            }
        }
    }
    modules
}

/// Returns the text at a path; an empty one counts as none, as Kyma has it.
fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    path.iter()
        .try_fold(value, |value, key| value.get(key))?
        .as_str()
        .filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_module_follows_its_own_channel_then_that_of_the_kyma_then_regular() {
        let kyma = Kyma::read(&json!({
            "metadata": {"name": "one", "labels": {LABEL_KYMA_BETA: "true", LABEL_KYMA_INTERNAL: "yes"}},
            "spec": {"channel": "fast", "modules": [{"name": "telemetry"}, {"name": "serverless", "channel": "experimental"}]},
            "status": {"modules": [
                {"name": "telemetry", "channel": "regular", "version": "1.41.2"},
                {"name": "api-gateway", "channel": "regular", "version": "2.1.0"},
            ]},
        }))
        .unwrap();
        assert!(kyma.beta && !kyma.internal && !kyma.skip);
        assert!(kyma.uses("telemetry", "fast", "9.9.9"));
        assert!(kyma.uses("telemetry", "slow", "1.41.2"));
        assert!(!kyma.uses("telemetry", "regular", "1.42.0"));
        assert!(kyma.uses("serverless", "experimental", "1.0.0"));
        assert!(kyma.uses("api-gateway", "regular", "2.2.0"));
        assert!(!kyma.uses("istio", "regular", "1.0.0"));
        let plain = Kyma::read(
            &json!({"metadata": {"name": "two"}, "spec": {"modules": [{"name": "istio"}]}}),
        )
        .unwrap();
        assert!(plain.uses("istio", DEFAULT_CHANNEL, "1.0.0"));
    }

    #[test]
    fn names_that_targets_cannot_carry_are_refused() {
        assert!(RuntimeName::new("home").is_err());
        assert!(RuntimeName::new("").is_err());
        assert!(RuntimeName::new(&"x".repeat(190)).is_err());
        assert!(Kyma::read(&json!({"metadata": {"name": "home"}})).is_err());
        assert_eq!(
            RuntimeName::new("c-123.prod").unwrap().as_str(),
            "c-123.prod"
        );
    }

    #[test]
    fn what_is_of_another_type_counts_as_not_said() {
        let odd = json!({"metadata": {"name": "one", "labels": []}, "spec": {"modules": "all", "channel": 3}, "status": []});
        assert!(Kyma::read(&odd).unwrap().modules.is_empty());
    }
}
