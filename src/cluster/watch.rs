//! Lists and watches of all objects of a kind that carry a label.

use std::fmt::Write as _;

use futures::{Stream, StreamExt as _};
use http::{Request, header};
use kube::core::{ObjectList, PartialObjectMeta, WatchEvent};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::connection::{Cluster, JSON, METADATA_JSON, Outgoing};
use super::error::{ClusterError, Words};
use super::path::{collection_path, segment};
use super::typed::Typed;
use crate::model::{GroupKind, ServedKind, limits};

/// Which objects are listed and watched, over all namespaces.
#[derive(Debug, Clone, Copy)]
pub struct Selection<'a> {
    /// Their kind.
    pub kind: &'a GroupKind,
    /// The kind as it is served; its preferred version is read.
    pub served: &'a ServedKind,
    /// The label selector.
    pub labels: &'a str,
    /// Whether whole objects are wanted; otherwise nothing but metadata crosses the wire.
    pub whole: bool,
}

/// One page of a list.
#[derive(Debug)]
pub struct Page<T> {
    /// The objects of this page.
    pub items: Vec<T>,
    /// The version of the whole list.
    pub resource_version: String,
    /// What asks for the next page; none on the last one.
    pub next: Option<String>,
}

/// One event of a watch.
#[derive(Debug)]
pub enum Change<T> {
    /// An object was added or modified, or fits the selector now.
    Set(T),
    /// An object is gone, or does not fit the selector any more.
    Removed(T),
    /// Nothing has changed up to this resourceVersion.
    Bookmark(String),
}

impl Cluster {
    /// Reads one page of a list: the first, or the one that `next` of the page before asks for.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Expired`] when the list has to begin anew.
    pub async fn list_page<T: DeserializeOwned + Clone>(
        &self,
        selection: Selection<'_>,
        next: Option<&str>,
    ) -> Result<Page<T>, ClusterError> {
        let request = format!("list {}", selection.kind);
        let words = selection.words(&request);
        let size = if selection.whole {
            limits::PAGE_SIZE_WHOLE
        } else {
            limits::PAGE_SIZE
        };
        let mut target = format!("{}&limit={size}", selection.target()?);
        if let Some(next) = next {
            let _ = write!(target, "&continue={}", segment(next));
        }
        let mut outgoing = Outgoing::get(target, words);
        outgoing.accept = selection.accept_list();
        outgoing.deadline = limits::LIST_DEADLINE;
        let list: ObjectList<T> = self.send(outgoing).await?.json(words)?;
        let resource_version = list.metadata.resource_version.unwrap_or_default();
        if resource_version.is_empty() {
            return Err(ClusterError::AnswerInvalid {
                request,
                message: "a list without a resourceVersion".to_owned(),
            });
        }
        let next = list.metadata.continue_.filter(|token| !token.is_empty());
        Ok(Page {
            items: list.items,
            resource_version,
            next,
        })
    }

    /// Watches from a resourceVersion on. The stream ends when the server ends it, with an error, or when nothing was heard
    /// for [`limits::WATCH_SILENCE_MAX`]. A watch takes no turn: it lasts.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Expired`], here or in the stream, when the objects have to be listed anew.
    pub async fn watch<T: DeserializeOwned + Clone + Send + 'static>(
        &self,
        selection: Selection<'_>,
        resource_version: &str,
    ) -> Result<impl Stream<Item = Result<Change<T>, ClusterError>> + use<T>, ClusterError> {
        let request = format!("watch {}", selection.kind);
        let secret = selection.words(&request).secret;
        let target = format!(
            "{}&watch=true&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}",
            selection.target()?,
            limits::WATCH_SECONDS,
            segment(resource_version),
        );
        self.events(target, selection.accept_item(), request, secret)
            .await
    }

    /// Watches the metadata of one object by its name, beginning with how it is now, where it is there. Needs no more than the
    /// verb `watch` on that one name. The stream ends as that of [`Cluster::watch`] does.
    ///
    /// # Errors
    ///
    /// When the server refuses or cannot be reached.
    pub async fn watch_one<K: Typed + Clone + Send + 'static>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<
        impl Stream<Item = Result<Change<PartialObjectMeta<K>>, ClusterError>> + use<K>,
        ClusterError,
    > {
        let kind = K::kind(&());
        let target = format!(
            "{}?fieldSelector={}&watch=true&allowWatchBookmarks=true&timeoutSeconds={}",
            K::url_path(&(), Some(namespace)),
            segment(&format!("metadata.name={name}")),
            limits::WATCH_SECONDS,
        );
        let request = format!("watch {kind} {namespace}/{name}");
        self.events(target, METADATA_JSON, request, kind == "Secret")
            .await
    }

    async fn events<T: DeserializeOwned + Clone + Send + 'static>(
        &self,
        target: String,
        accept: &'static str,
        request: String,
        secret: bool,
    ) -> Result<impl Stream<Item = Result<Change<T>, ClusterError>> + use<T>, ClusterError> {
        let outgoing = Request::get(target)
            .header(header::ACCEPT, accept)
            .body(Vec::new())
            .map_err(|error| ClusterError::Invalid {
                request: request.clone(),
                message: error.to_string(),
            })?;
        let client = self.client();
        let started = timeout(
            limits::REQUEST_DEADLINE,
            client.request_events::<T>(outgoing),
        );
        let events = match started.await {
            Ok(Ok(events)) => events,
            Ok(Err(error)) => {
                let words = Words {
                    request: &request,
                    secret,
                };
                return Err(ClusterError::from_transport(words, &error));
            }
            Err(_) => {
                return Err(ClusterError::Timeout {
                    request,
                    after: limits::REQUEST_DEADLINE,
                });
            }
        };
        let events = events.boxed();
        Ok(futures::stream::unfold(events, |mut events| async {
            let silence = timeout(limits::WATCH_SILENCE_MAX, events.next());
            let event = silence.await.ok().flatten()?;
            Some((event, events))
        })
        .map(move |event| {
            let words = Words {
                request: &request,
                secret,
            };
            match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    Ok(Change::Set(object))
                }
                Ok(WatchEvent::Deleted(object)) => Ok(Change::Removed(object)),
                Ok(WatchEvent::Bookmark(mark)) => {
                    Ok(Change::Bookmark(mark.metadata.resource_version))
                }
                Ok(WatchEvent::Error(status)) => {
                    Err(ClusterError::from_status(words, status.code, None, &status))
                }
                Err(error) => Err(ClusterError::from_transport(words, &error)),
            }
        }))
    }
}

impl Selection<'_> {
    fn target(&self) -> Result<String, ClusterError> {
        let version = self.served.versions.first().map_or("", String::as_str);
        let path = collection_path(self.kind, self.served, version, None)?;
        Ok(format!("{path}?labelSelector={}", segment(self.labels)))
    }

    fn accept_list(&self) -> &'static str {
        if self.whole {
            JSON
        } else {
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
        }
    }

    fn accept_item(&self) -> &'static str {
        if self.whole { JSON } else { METADATA_JSON }
    }

    fn words<'a>(&self, request: &'a str) -> Words<'a> {
        let secret = self.kind.group.is_empty() && self.kind.kind == "Secret";
        Words { request, secret }
    }
}
