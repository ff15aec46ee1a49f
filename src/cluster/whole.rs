//! Requests on whole objects that are no part of a repository: what Fairway itself is installed from, and questions to the
//! server about itself and about rights.

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::connection::{Cluster, JSON, Outgoing};
use super::error::{ClusterError, Words};
use super::path::{object_path, segment};
use crate::model::{ObjectKey, limits};

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

    /// Reads a whole object; none when it is not there.
    pub async fn read_whole(&self, key: &ObjectKey) -> Result<Option<Value>, ClusterError> {
        let request = format!("read {key}");
        let words = words(&request);
        let path = self.whole_path(key, None).await?;
        match self.send(Outgoing::get(path, words)).await {
            Ok(answer) => answer.json(words).map(Some),
            Err(ClusterError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Applies a whole object on the server's side with force, as the given manager. With `dry_run` the server answers what
    /// would come of it and writes nothing.
    pub async fn apply_whole(
        &self,
        key: &ObjectKey,
        body: &Value,
        manager: &str,
        dry_run: bool,
    ) -> Result<Value, ClusterError> {
        let request = format!("apply {key}");
        let words = words(&request);
        let api_version = body["apiVersion"].as_str().unwrap_or_default();
        let version = api_version.rsplit('/').next();
        let path = self.whole_path(key, version).await?;
        let dry_run = if dry_run { "&dryRun=All" } else { "" };
        let manager = segment(manager);
        let answer = self.send(Outgoing {
            method: Method::PATCH,
            target: format!(
                "{path}?fieldManager={manager}&force=true&fieldValidation=Strict{dry_run}"
            ),
            accept: JSON,
            content_type: "application/apply-patch+yaml",
            body: body.to_string().into_bytes(),
            words,
            deadline: limits::REQUEST_DEADLINE,
            repeatable: true,
        });
        answer.await?.json(words)
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
            repeatable: true,
        });
        let answer = answer.await?;
        debug_assert_eq!(answer.status, StatusCode::CREATED);
        Ok(answer.json::<Review>(words)?.status.allowed)
    }

    async fn whole_path(
        &self,
        key: &ObjectKey,
        version: Option<&str>,
    ) -> Result<String, ClusterError> {
        let served = self.resolve(&key.kind, version).await?;
        let preferred = served.versions.first().map_or("", String::as_str);
        object_path(key, &served, version.unwrap_or(preferred))
    }
}

fn words(request: &str) -> Words<'_> {
    Words {
        request,
        secret: false,
    }
}
