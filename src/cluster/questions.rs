//! Questions to the server about itself and about rights.

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::connection::{Cluster, JSON, Outgoing, Repeat};
use super::error::{ClusterError, Words};
use crate::model::limits;

/// Something that an account may or may not do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// The namespace; none means in all of them, or a kind without namespaces.
    pub namespace: Option<String>,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name, with a subresource behind a slash.
    pub resource: String,
    /// The one object that is meant; none for all.
    pub name: Option<String>,
    /// The verb.
    pub verb: String,
}

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "gitVersion")]
    git_version: String,
}

#[derive(Deserialize)]
struct Review {
    #[serde(default)]
    status: ReviewStatus,
}

#[derive(Default, Deserialize)]
struct ReviewStatus {
    #[serde(default)]
    allowed: bool,
}

impl Cluster {
    /// Returns the version of the API server, written `v1.36.3`.
    pub async fn server_version(&self) -> Result<String, ClusterError> {
        let words = words("read the server's version");
        let answer = self.send(Outgoing::get("/version", words)).await?;
        Ok(answer.json::<Version>(words)?.git_version)
    }

    /// Asks whether an account may do something: the one that asks, or a ServiceAccount by `namespace:name`.
    pub async fn may(
        &self,
        access: &Access,
        account: Option<(&str, &str)>,
    ) -> Result<bool, ClusterError> {
        let (resource, subresource) = access
            .resource
            .split_once('/')
            .unwrap_or((&access.resource, ""));
        let mut spec = json!({"resourceAttributes": {
            "namespace": access.namespace.clone().unwrap_or_default(),
            "group": access.group,
            "resource": resource,
            "subresource": subresource,
            "name": access.name.clone().unwrap_or_default(),
            "verb": access.verb,
        }});
        let kind = match account {
            None => "SelfSubjectAccessReview",
            Some((namespace, name)) => {
                spec["user"] = json!(format!("system:serviceaccount:{namespace}:{name}"));
                spec["groups"] = json!([
                    "system:serviceaccounts",
                    format!("system:serviceaccounts:{namespace}"),
                    "system:authenticated",
                ]);
                "SubjectAccessReview"
            }
        };
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
        let words = words("ask what an account may do");
        let answer = self.send(Outgoing {
            method: Method::POST,
            target: format!(
                "/apis/authorization.k8s.io/v1/{}s",
                kind.to_ascii_lowercase()
            ),
            accept: JSON,
            content_type: JSON,
            body: review.to_string().into_bytes(),
            words,
            deadline: limits::REQUEST_DEADLINE,
            repeat: Repeat::Always,
        });
        let answer = answer.await?;
        debug_assert_eq!(answer.status, StatusCode::CREATED);
        Ok(answer.json::<Review>(words)?.status.allowed)
    }
}

fn words(request: &str) -> Words<'_> {
    Words {
        request,
        secret: false,
    }
}
