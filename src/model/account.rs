//! The account that acts for a source's repository.
//!
//! A name that is there and cannot be used is never the same as no name: who writes an account and gets it wrong must not get the
//! rights of the agent instead.

use std::fmt;

use super::ident::{NameError, is_dns_label, is_dns_part};

/// A ServiceAccount, by its namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account {
    namespace: String,
    name: String,
}

// === impl Account ===

impl Account {
    /// Makes the account of a namespace by its name.
    ///
    /// # Errors
    ///
    /// When either is no name that Kubernetes would take. An empty one is none.
    pub fn new(namespace: &str, name: &str) -> Result<Self, NameError> {
        // A `:` in either would lead to the account of another namespace.
        if !is_dns_label(namespace) {
            return Err(NameError {
                what: "namespace",
                name: namespace.to_owned(),
                rule: "lower-case letters, digits and `-`, at most 63, starting and ending with a letter or digit",
            });
        }
        if name.len() > 253 || !name.split('.').all(is_dns_part) {
            return Err(NameError {
                what: "name of a ServiceAccount",
                name: name.to_owned(),
                rule: "parts of lower-case letters, digits and `-`, joined by `.`, at most 253 characters",
            });
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Returns its namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name by which the API server knows it.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn an_account_is_known_by_its_namespace_and_name() {
        let account = Account::new("fairway-system", "releases.v2").unwrap();
        assert_eq!(
            account.user(),
            "system:serviceaccount:fairway-system:releases.v2"
        );
        assert_eq!(account.to_string(), "fairway-system/releases.v2");
    }

    #[rstest]
    #[case("")]
    #[case(" ")]
    #[case("Releases")]
    #[case("kube-system:admin")]
    #[case("releases\r\nImpersonate-Group: system:masters")]
    #[case("releases.")]
    #[case("-releases")]
    #[case("*")]
    fn what_is_no_name_is_refused(#[case] name: &str) {
        assert!(Account::new("fairway-system", name).is_err());
        assert!(Account::new(name, "releases").is_err());
    }

    #[test]
    fn a_name_is_bounded() {
        let longest = "a".repeat(253);
        assert!(Account::new("a", &longest).is_ok());
        assert!(Account::new("a", &format!("{longest}a")).is_err());
    }
}
