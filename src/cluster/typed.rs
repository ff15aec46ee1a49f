//! Requests on kinds that this program knows by type: its own resources, leases, events, the Secrets that it is pointed at.

use http::Method;
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::core::ObjectList;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::connection::{Cluster, JSON, Outgoing, Repeat};
use super::error::{ClusterError, Words};
use super::path::segment;
use crate::model::limits;

/// A kind that is known by type and lives in namespaces.
pub trait Typed:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned
{
}

impl<K> Typed for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned
{
}

/// How a patch changes an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patch {
    /// RFC 7386: what is named is set, null removes. With `metadata.resourceVersion` in it, it is guarded.
    Merge,
    /// Server-side apply with force.
    Apply,
}

impl Cluster {
    /// Reads one object; none when it is not there.
    pub async fn get<K: Typed>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<K>, ClusterError> {
        let request = format!("read {}", describe::<K>(namespace, name));
        let words = words::<K>(&request);
        match self
            .send(Outgoing::get(target::<K>(namespace, name), words))
            .await
        {
            Ok(answer) => answer.json(words).map(Some),
            Err(ClusterError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads all objects of a namespace that `labels` selects (all, if it is empty), page by page.
    pub async fn list<K: Typed + Clone>(
        &self,
        namespace: &str,
        labels: &str,
    ) -> Result<Vec<K>, ClusterError> {
        let request = format!("list {}", describe::<K>(namespace, "*"));
        let words = words::<K>(&request);
        let collection = K::url_path(&(), Some(namespace));
        let mut objects = Vec::new();
        let mut page = String::new();
        loop {
            let query = format!(
                "limit={}&labelSelector={}",
                limits::PAGE_SIZE_WHOLE,
                segment(labels)
            );
            let mut outgoing =
                Outgoing::get(format!("{collection}?{query}&continue={page}"), words);
            outgoing.deadline = limits::LIST_DEADLINE;
            let list: ObjectList<K> = self.send(outgoing).await?.json(words)?;
            objects.extend(list.items);
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = segment(&token),
                None => return Ok(objects),
            }
        }
    }

    /// Creates one object. It is sent once: an answer that is lost leaves open whether the object was created.
    pub async fn create<K: Typed + Serialize>(
        &self,
        namespace: &str,
        object: &K,
    ) -> Result<K, ClusterError> {
        let name = object.meta().name.clone().unwrap_or_default();
        let request = format!("create {}", describe::<K>(namespace, &name));
        let target = K::url_path(&(), Some(namespace));
        self.write(
            Method::POST,
            target,
            JSON,
            object,
            words::<K>(&request),
            Repeat::Never,
        )
        .await
    }

    /// Replaces one object, or its subresource (`status`). Its `metadata.resourceVersion` guards it; sent twice after a
    /// lost answer it conflicts, and the caller reads what is there.
    pub async fn replace<K: Typed + Serialize>(
        &self,
        namespace: &str,
        object: &K,
        subresource: Option<&str>,
    ) -> Result<K, ClusterError> {
        let name = object.meta().name.clone().unwrap_or_default();
        let request = format!("replace {}", describe::<K>(namespace, &name));
        let target = with_subresource(target::<K>(namespace, &name), subresource);
        self.write(
            Method::PUT,
            target,
            JSON,
            object,
            words::<K>(&request),
            Repeat::Always,
        )
        .await
    }

    /// Patches one object, or its subresource (`status`), as the given field manager.
    pub async fn patch<K: Typed>(
        &self,
        namespace: &str,
        name: &str,
        subresource: Option<&str>,
        manager: &str,
        patch: (Patch, &Value),
    ) -> Result<K, ClusterError> {
        let request = format!("patch {}", describe::<K>(namespace, name));
        let path = with_subresource(target::<K>(namespace, name), subresource);
        let manager = segment(manager);
        let (target, content_type) = match patch.0 {
            Patch::Merge => (
                format!("{path}?fieldManager={manager}"),
                "application/merge-patch+json",
            ),
            Patch::Apply => (
                format!("{path}?fieldManager={manager}&force=true"),
                "application/apply-patch+yaml",
            ),
        };
        self.write(
            Method::PATCH,
            target,
            content_type,
            patch.1,
            words::<K>(&request),
            Repeat::Always,
        )
        .await
    }

    async fn write<K: Typed>(
        &self,
        method: Method,
        target: String,
        content_type: &'static str,
        body: &impl Serialize,
        words: Words<'_>,
        repeat: Repeat,
    ) -> Result<K, ClusterError> {
        let body = serde_json::to_vec(body).map_err(|error| ClusterError::Invalid {
            request: words.request.to_owned(),
            message: error.to_string(),
        })?;
        let deadline = limits::REQUEST_DEADLINE;
        let outgoing = Outgoing {
            method,
            target,
            accept: JSON,
            content_type,
            body,
            words,
            deadline,
            repeat,
        };
        self.send(outgoing).await?.json(words)
    }
}

fn target<K: Typed>(namespace: &str, name: &str) -> String {
    format!(
        "{}/{}",
        K::url_path(&(), Some(&segment(namespace))),
        segment(name)
    )
}

fn with_subresource(target: String, subresource: Option<&str>) -> String {
    match subresource {
        Some(subresource) => format!("{target}/{subresource}"),
        None => target,
    }
}

fn describe<K: Typed>(namespace: &str, name: &str) -> String {
    format!("{} {namespace}/{name}", K::kind(&()))
}

fn words<K: Typed>(request: &str) -> Words<'_> {
    let secret = K::group(&()).is_empty() && K::kind(&()) == "Secret";
    Words { request, secret }
}
