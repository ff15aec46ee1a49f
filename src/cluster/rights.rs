//! What the account of this connection may do: many questions at once, by the rules of a namespace, and who the account is.

use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::connection::{Cluster, JSON, Outgoing, Repeat};
use super::error::{ClusterError, Words};
use super::questions::Access;
use crate::model::limits;

/// The rules that hold for an account in one namespace. They only ever say yes: what they do not allow may be allowed by something
/// else than roles, or in another namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rules {
    #[serde(default)]
    resource_rules: Vec<Rule>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

#[derive(Deserialize)]
struct RulesReview {
    #[serde(default)]
    status: Rules,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SubjectReview {
    status: SubjectStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SubjectStatus {
    user_info: UserInfo,
}

#[derive(Deserialize)]
struct UserInfo {
    username: String,
}

impl Rules {
    /// Returns whether a rule allows this in the namespace that the rules are of.
    pub fn allow(&self, access: &Access) -> bool {
        let has =
            |listed: &[String], wanted: &str| listed.iter().any(|it| it == "*" || it == wanted);
        self.resource_rules.iter().any(|rule| {
            let named = rule.resource_names.is_empty()
                || access
                    .name
                    .as_ref()
                    .is_some_and(|name| rule.resource_names.contains(name));
            named
                && has(&rule.verbs, &access.verb)
                && has(&rule.api_groups, &access.group)
                && has(&rule.resources, &access.resource)
        })
    }
}

impl Cluster {
    /// Asks which rules hold for the account of this connection in a namespace.
    ///
    /// # Errors
    ///
    /// When the request fails.
    pub async fn rules(&self, namespace: &str) -> Result<Rules, ClusterError> {
        let spec = json!({"namespace": namespace});
        let review: RulesReview = self
            .review("authorization.k8s.io", "SelfSubjectRulesReview", &spec)
            .await?;
        Ok(review.status)
    }

    /// Asks as whom the account of this connection is known: `system:serviceaccount:fairway-system:fairway`.
    ///
    /// # Errors
    ///
    /// When the request fails.
    pub async fn user(&self) -> Result<String, ClusterError> {
        let review: SubjectReview = self
            .review("authentication.k8s.io", "SelfSubjectReview", &json!({}))
            .await?;
        Ok(review.status.user_info.username)
    }

    async fn review<T: serde::de::DeserializeOwned>(
        &self,
        group: &str,
        kind: &str,
        spec: &serde_json::Value,
    ) -> Result<T, ClusterError> {
        let words = Words {
            request: "ask what the account may do",
            secret: false,
        };
        let review = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "spec": spec});
        let answer = self.send(Outgoing {
            method: Method::POST,
            target: format!("/apis/{group}/v1/{}s", kind.to_ascii_lowercase()),
            accept: JSON,
            content_type: JSON,
            body: review.to_string().into_bytes(),
            words,
            deadline: limits::REQUEST_DEADLINE,
            repeat: Repeat::Always,
        });
        answer.await?.json(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(verb: &str, resource: &str, name: Option<&str>) -> Access {
        Access {
            namespace: Some("shop".to_owned()),
            group: "apps".to_owned(),
            resource: resource.to_owned(),
            name: name.map(str::to_owned),
            verb: verb.to_owned(),
        }
    }

    #[test]
    fn a_rule_allows_what_it_names_and_nothing_else() {
        let rules: Rules = serde_json::from_value(json!({"resourceRules": [
            {"verbs": ["get"], "apiGroups": ["apps"], "resources": ["statefulsets"], "resourceNames": ["db"]},
            {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["deployments/status"]},
        ]}))
        .unwrap();
        assert!(rules.allow(&access("get", "statefulsets", Some("db"))));
        assert!(!rules.allow(&access("get", "statefulsets", Some("other"))));
        assert!(!rules.allow(&access("get", "statefulsets", None)));
        assert!(!rules.allow(&access("patch", "statefulsets", Some("db"))));
        assert!(rules.allow(&access("patch", "deployments/status", None)));
        assert!(!rules.allow(&access("patch", "deployments", None)));
    }
}
