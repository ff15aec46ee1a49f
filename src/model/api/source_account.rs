//! The account of a ReleaseSource: read so that nothing which is said about it, and wrong, counts as not said.

use serde::{Deserialize, Deserializer};

use super::release_source::ReleaseSourceSpec;
use crate::model::{Account, NameError};

impl ReleaseSourceSpec {
    /// Returns the account that acts for the repository, where one is named; `namespace` is that of the ReleaseSource.
    ///
    /// # Errors
    ///
    /// When one is named that cannot be: the schema lets nothing such through, and it must not count as none.
    pub fn account(&self, namespace: &str) -> Result<Option<Account>, NameError> {
        let name = self.service_account_name.as_deref();
        name.map(|name| Account::new(namespace, name)).transpose()
    }
}

/// Reads a name that is there but `null` as the empty one, which is refused, and never as one that was left out.
pub(super) fn said<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    Ok(Some(name.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn spec(account: &Value) -> ReleaseSourceSpec {
        let mut spec = json!({"url": "/r", "ref": {"tag": "v1"}});
        spec["serviceAccountName"] = account.clone();
        serde_json::from_value(spec).unwrap()
    }

    #[rstest]
    #[case(json!(null))]
    #[case(json!(""))]
    #[case(json!("kube-system:admin"))]
    fn what_is_said_and_wrong_is_never_the_account_of_the_agent(#[case] account: Value) {
        assert!(spec(&account).account("fairway-system").is_err());
    }

    #[test]
    fn what_is_not_said_is_the_account_of_the_agent() {
        let left_out = json!({"url": "/r", "ref": {"tag": "v1"}});
        let left_out: ReleaseSourceSpec = serde_json::from_value(left_out.clone()).unwrap();
        assert_eq!(left_out.account("fairway-system"), Ok(None));
        let stored = serde_json::to_value(&left_out).unwrap();
        assert!(stored.get("serviceAccountName").is_none());
        let named = spec(&json!("releases")).account("fairway-system").unwrap();
        assert_eq!(
            named.unwrap().user(),
            "system:serviceaccount:fairway-system:releases"
        );
    }
}
