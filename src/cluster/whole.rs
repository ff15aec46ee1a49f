//! Requests on whole objects as JSON, of any kind and version: what Fairway itself is installed from, and what migrations look
//! at and change.

use std::fmt::Write as _;

use http::Method;
use kube::core::ObjectList;
use serde_json::Value;

use super::connection::{Cluster, JSON, Outgoing, Repeat};
use super::error::ClusterError;
use super::objects::{is_unserved, wire_text, words};
use super::path::{collection_path, segment};
use super::watch::Page;
use crate::model::{GroupKind, ObjectKey, limits};

/// The form of a patch of a whole object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchForm {
    /// RFC 7386.
    Merge,
    /// RFC 6902.
    Json,
    /// Kubernetes' own, for built-in kinds.
    Strategic,
}

/// How a whole object is applied.
#[derive(Debug, Clone, Copy)]
pub struct ApplyManner<'a> {
    /// The field manager.
    pub manager: &'a str,
    /// Whether fields of other managers are taken; otherwise they are a [`ClusterError::Conflict`] that names the manager.
    pub force: bool,
    /// Whether the server only answers what would come of it.
    pub dry_run: bool,
}

/// Which objects of a kind are listed.
#[derive(Debug, Clone, Copy)]
pub struct WholeSelection<'a> {
    /// The kind.
    pub kind: &'a GroupKind,
    /// The version; the preferred one where it is missing.
    pub version: Option<&'a str>,
    /// The namespace; all of them where it is missing.
    pub namespace: Option<&'a str>,
    /// The label selector.
    pub labels: Option<&'a str>,
    /// Objects of one page.
    pub limit: u32,
}

impl Cluster {
    /// Reads a whole object, in the preferred version where none is named; none when it is not there.
    pub async fn read_whole(
        &self,
        key: &ObjectKey,
        version: Option<&str>,
    ) -> Result<Option<Value>, ClusterError> {
        let request = format!("read {key}");
        let words = words(&request, key);
        let path = self.object_path(key, version).await?;
        match self.send(Outgoing::get(path, words)).await {
            Ok(answer) => answer.json(words).map(Some),
            Err(error) if is_unserved(&error) => Err(self.unserved(&key.kind, version)),
            Err(ClusterError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads one page of whole objects, each with its `apiVersion` and `kind`.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Expired`] when the list has to begin anew.
    pub async fn list_whole(
        &self,
        selection: WholeSelection<'_>,
        next: Option<&str>,
    ) -> Result<Page<Value>, ClusterError> {
        let kind = selection.kind;
        let request = format!("list {kind}");
        let words = words(&request, &ObjectKey::new(kind.clone(), None, ""));
        let served = self.resolve(kind, selection.version).await?;
        let preferred = served.versions.first().map_or("", String::as_str);
        let version = selection.version.unwrap_or(preferred);
        let path = collection_path(kind, &served, version, selection.namespace)?;
        let mut target = format!("{path}?limit={}", selection.limit);
        if let Some(labels) = selection.labels {
            let _ = write!(target, "&labelSelector={}", segment(labels));
        }
        if let Some(next) = next {
            let _ = write!(target, "&continue={}", segment(next));
        }
        let mut outgoing = Outgoing::get(target, words);
        outgoing.deadline = limits::LIST_DEADLINE;
        let answer = match self.send(outgoing).await {
            Err(error) if is_unserved(&error) => {
                return Err(self.unserved(kind, selection.version));
            }
            answer => answer?,
        };
        let list: ObjectList<Value> = answer.json(words)?;
        let api_version = match kind.group.as_str() {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        let mut items = list.items;
        for item in &mut items {
            item["apiVersion"] = api_version.clone().into();
            item["kind"] = kind.kind.clone().into();
        }
        Ok(Page {
            items,
            resource_version: list.metadata.resource_version.unwrap_or_default(),
            next: list.metadata.continue_.filter(|token| !token.is_empty()),
        })
    }

    /// Applies a whole object on the server's side, with strict validation of fields.
    pub async fn apply_whole(
        &self,
        key: &ObjectKey,
        body: &Value,
        manner: ApplyManner<'_>,
    ) -> Result<Value, ClusterError> {
        let request = format!("apply {key}");
        let version = version_of(body);
        let path = self.object_path(key, Some(version)).await?;
        let manager = segment(manner.manager);
        let (force, dry_run) = (
            manner.force,
            if manner.dry_run { "&dryRun=All" } else { "" },
        );
        let target =
            format!("{path}?fieldManager={manager}&force={force}&fieldValidation=Strict{dry_run}");
        let content_type = "application/apply-patch+yaml";
        let write = Write::new(Method::PATCH, target, content_type, wire_text(body));
        self.write_whole(key, Some(version), &request, write.repeated(Repeat::Always))
            .await
    }

    /// Patches a whole object, or its subresource. The patch should carry the resourceVersion that it was made from: it is sent
    /// again only where nothing can have come of it.
    pub async fn patch_whole(
        &self,
        (key, version): (&ObjectKey, &str),
        subresource: Option<&str>,
        (form, body): (PatchForm, &Value),
        manager: &str,
    ) -> Result<Value, ClusterError> {
        let request = format!("patch {key}");
        let mut path = self.object_path(key, Some(version)).await?;
        if let Some(subresource) = subresource {
            let _ = write!(path, "/{}", segment(subresource));
        }
        let content_type = match form {
            PatchForm::Merge => "application/merge-patch+json",
            PatchForm::Json => "application/json-patch+json",
            PatchForm::Strategic => "application/strategic-merge-patch+json",
        };
        let target = strict(&path, manager);
        let body = body.to_string().into_bytes();
        let write = Write::new(Method::PATCH, target, content_type, body);
        self.write_whole(key, Some(version), &request, write).await
    }

    /// Creates a whole object that must not be there yet. It is sent again only where nothing can have come of it.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Conflict`] when an object of its name is there.
    pub async fn create_whole(
        &self,
        key: &ObjectKey,
        body: &Value,
        manager: &str,
    ) -> Result<Value, ClusterError> {
        let request = format!("create {key}");
        let version = version_of(body);
        let path = self.object_path(key, Some(version)).await?;
        let (collection, _) = path.rsplit_once('/').unwrap_or((&path, ""));
        let target = strict(collection, manager);
        let write = Write::new(Method::POST, target, JSON, body.to_string().into_bytes());
        self.write_whole(key, Some(version), &request, write).await
    }

    /// Replaces a whole object; its resourceVersion guards it. It is sent again only where nothing can have come of it. Fields
    /// that the schema does not have (any more) are dropped by the server, as they would be when it stores the object itself.
    pub async fn replace_whole(
        &self,
        key: &ObjectKey,
        body: &Value,
        manager: &str,
    ) -> Result<Value, ClusterError> {
        let request = format!("replace {key}");
        let version = version_of(body);
        let path = self.object_path(key, Some(version)).await?;
        let target = format!("{path}?fieldManager={}", segment(manager));
        let write = Write::new(Method::PUT, target, JSON, body.to_string().into_bytes());
        self.write_whole(key, Some(version), &request, write).await
    }

    async fn write_whole(
        &self,
        key: &ObjectKey,
        version: Option<&str>,
        request: &str,
        write: Write,
    ) -> Result<Value, ClusterError> {
        let words = words(request, key);
        let sent = self.send(Outgoing {
            method: write.method,
            target: write.target,
            accept: JSON,
            content_type: write.content_type,
            body: write.body,
            words,
            deadline: limits::REQUEST_DEADLINE,
            repeat: write.repeat,
        });
        match sent.await {
            Err(error) if is_unserved(&error) => Err(self.unserved(&key.kind, version)),
            answer => answer?.json(words),
        }
    }
}

/// A request that writes one object.
struct Write {
    method: Method,
    target: String,
    content_type: &'static str,
    body: Vec<u8>,
    repeat: Repeat,
}

impl Write {
    fn new(method: Method, target: String, content_type: &'static str, body: Vec<u8>) -> Self {
        Self {
            method,
            target,
            content_type,
            body,
            repeat: Repeat::Unsent,
        }
    }

    fn repeated(self, repeat: Repeat) -> Self {
        Self { repeat, ..self }
    }
}

fn strict(path: &str, manager: &str) -> String {
    format!(
        "{path}?fieldManager={}&fieldValidation=Strict",
        segment(manager)
    )
}

fn version_of(body: &Value) -> &str {
    let api_version = body["apiVersion"].as_str().unwrap_or_default();
    api_version.rsplit('/').next().unwrap_or_default()
}
