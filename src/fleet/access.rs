//! Which Secret leads to a runtime: exactly one, labelled with the Kyma's name, in the Kyma's namespace.

use std::collections::BTreeMap;

use super::kyma::RuntimeName;
use crate::model::names::{KUBECONFIG_KEY, LABEL_KYMA_NAME};

/// One kubeconfig Secret as it was seen: without its contents, which are read when they are needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessSecret {
    /// The Secret's name.
    pub name: String,
    /// Its uid and resourceVersion: when they change, the connection is made anew.
    pub version: (String, String),
    /// The namespace for the catalog that it asks for.
    pub namespace: Option<String>,
}

/// The kubeconfig Secrets of all runtimes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    secrets: BTreeMap<String, (String, AccessSecret)>,
}

/// A runtime without usable access; the text ends with the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// No Secret is labelled with the runtime's name.
    #[error(
        "no Secret leads to the runtime; create one with the label {LABEL_KYMA_NAME}={0} and a kubeconfig under the key `{KUBECONFIG_KEY}`"
    )]
    Missing(RuntimeName),
    /// Several Secrets are.
    #[error("{} Secrets claim to lead to the runtime ({}); leave one of them the label {LABEL_KYMA_NAME}", .0.len(), .0.join(", "))]
    Several(Vec<String>),
}

// === impl Access ===

impl Access {
    /// Notes a Secret as it is now.
    pub fn set(&mut self, kyma: String, secret: AccessSecret) {
        self.secrets.insert(secret.name.clone(), (kyma, secret));
    }

    /// Notes that a Secret is gone, or has lost its label.
    pub fn remove(&mut self, name: &str) {
        self.secrets.remove(name);
    }

    /// Returns the Secret of a runtime.
    ///
    /// # Errors
    ///
    /// When there is none, or more than one: which would be right cannot be told.
    pub fn of(&self, runtime: &RuntimeName) -> Result<&AccessSecret, AccessError> {
        let mut found = self
            .secrets
            .values()
            .filter(|(kyma, _)| kyma == runtime.as_str())
            .map(|(_, secret)| secret);
        match (found.next(), found.next()) {
            (None, _) => Err(AccessError::Missing(runtime.clone())),
            (Some(secret), None) => Ok(secret),
            (Some(first), Some(second)) => {
                let names = [first, second].into_iter().chain(found);
                Err(AccessError::Several(
                    names.map(|secret| secret.name.clone()).collect(),
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(name: &str) -> AccessSecret {
        AccessSecret {
            name: name.to_owned(),
            version: ("uid".to_owned(), "1".to_owned()),
            namespace: None,
        }
    }

    #[test]
    fn exactly_one_secret_leads_to_a_runtime() {
        let one = RuntimeName::new("one").unwrap();
        let mut access = Access::default();
        insta::assert_snapshot!(
            access.of(&one).unwrap_err(),
            @"no Secret leads to the runtime; create one with the label operator.kyma-project.io/kyma-name=one and a kubeconfig under the key `config`"
        );
        access.set("one".to_owned(), secret("kubeconfig-one"));
        access.set("two".to_owned(), secret("kubeconfig-two"));
        assert_eq!(access.of(&one).unwrap().name, "kubeconfig-one");
        access.set("one".to_owned(), secret("kubeconfig-two"));
        insta::assert_snapshot!(
            access.of(&one).unwrap_err(),
            @"2 Secrets claim to lead to the runtime (kubeconfig-one, kubeconfig-two); leave one of them the label operator.kyma-project.io/kyma-name"
        );
        access.remove("kubeconfig-one");
        assert_eq!(access.of(&one).unwrap().name, "kubeconfig-two");
    }
}
