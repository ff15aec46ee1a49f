//! What a run may do to the world: one trait, with the cluster's door behind it in the agent and a map of objects behind it in
//! `fairway migration test`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::cluster::Access;
use crate::model::migration::{Lookup, PatchType, Propagation, SecretKeyReference};

/// A kind with its version, as definitions write it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKind {
    /// `v1`, `apps/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

/// How a cluster serves a kind in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serving {
    /// Under this plural name.
    As(String),
    /// Not at all.
    Not {
        /// What may have been meant instead, written `policy/v1 PodDisruptionBudget`, the most likely first.
        closest: Vec<String>,
    },
}

/// Objects that were listed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listing {
    /// The objects, whole, with `apiVersion` and `kind` on each.
    pub objects: Vec<Value>,
    /// Where the next page begins; none at the end.
    pub next: Option<String>,
    /// Whether the cluster serves the kind at all; without it there are no objects.
    pub is_served: bool,
}

/// A change to one object.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectPatch {
    /// The kind.
    pub kind: ResourceKind,
    /// The namespace, where the kind has them.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// `status` or another subresource.
    pub subresource: Option<String>,
    /// The form.
    pub form: PatchType,
    /// The patch.
    pub body: Value,
    /// The uid that the object must have.
    pub uid: String,
    /// The resourceVersion that the object must have; none where any will do.
    pub resource_version: Option<String>,
}

/// The deletion of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// The kind.
    pub kind: ResourceKind,
    /// The namespace, where the kind has them.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The uid that the object must have.
    pub uid: String,
    /// The resourceVersion that the object must have; none where any will do.
    pub resource_version: Option<String>,
    /// What happens to what it owns.
    pub propagation: Propagation,
}

/// What came of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// The server has taken it; finalizers may keep the object for a while.
    Accepted,
    /// There is no object with that uid.
    AlreadyGone,
}

/// An HTTP request.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpRequest {
    /// The method.
    pub method: String,
    /// The address.
    pub url: String,
    /// Headers.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Option<Value>,
    /// A token; its value is read where it is sent.
    pub bearer_token: Option<SecretKeyReference>,
    /// Time for the whole exchange.
    pub deadline: Duration,
}

/// An answer over HTTP.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// How long to wait before another try, if the server says so.
    pub retry_after: Option<Duration>,
    /// The body where it is JSON, else its text.
    pub body: Value,
}

/// Why something was not done, or may not have been. Messages are stable: no times, no counts that grow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EffectError {
    /// There is no such object.
    #[error("{0}")]
    NotFound(String),
    /// It is there already.
    #[error("{0}")]
    Exists(String),
    /// The object is no longer the one that was seen; nothing was done.
    #[error("{0}")]
    Conflict(String),
    /// The cluster does not serve the kind.
    #[error("{0}")]
    KindUnknown(String),
    /// The account may not do this.
    #[error("{0}")]
    Forbidden(String),
    /// The other side refuses, and will again.
    #[error("{0}")]
    Refused(String),
    /// The other side could not be reached or is busy; nothing was done.
    #[error("{message}")]
    Transient {
        /// What happened.
        message: String,
        /// How long the other side wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// The answer did not come: it may or may not have been done.
    #[error("{0}")]
    Lost(String),
    /// The claim to act has ended; whoever acts now goes on.
    #[error("{0}")]
    ClaimLost(String),
}

/// What a run may do to the world.
pub trait Effects: Send + Sync {
    /// Reads what a lookup names: one object or null, or all objects of a list.
    ///
    /// # Errors
    ///
    /// Also when a list has more objects than the lookup's limit.
    fn look(&self, lookup: &Lookup) -> impl Future<Output = Result<Value, EffectError>> + Send;

    /// Returns how the cluster serves a kind.
    ///
    /// # Errors
    ///
    /// When that is not known.
    fn serving(
        &self,
        kind: &ResourceKind,
    ) -> impl Future<Output = Result<Serving, EffectError>> + Send;

    /// Returns what the account may not do, of what is asked.
    fn refused(
        &self,
        asked: &[Access],
    ) -> impl Future<Output = Result<Vec<Access>, EffectError>> + Send;

    /// Returns the name of the account, as the cluster knows it.
    fn user(&self) -> impl Future<Output = Result<String, EffectError>> + Send;

    /// Reads one object; none where it, or its kind, is not there.
    fn get(
        &self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        name: &str,
    ) -> impl Future<Output = Result<Option<Value>, EffectError>> + Send;

    /// Reads one page of a list.
    fn list(
        &self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        selector: Option<&str>,
        page: (u32, Option<&str>),
    ) -> impl Future<Output = Result<Listing, EffectError>> + Send;

    /// Changes one object as manager `fairway-migration`, and returns it as it is then.
    fn patch(&self, patch: &ObjectPatch)
    -> impl Future<Output = Result<Value, EffectError>> + Send;

    /// Applies one object on the server's side as manager `fairway-migration`, without force, and returns it as it is then.
    fn apply(&self, manifest: &Value) -> impl Future<Output = Result<Value, EffectError>> + Send;

    /// Creates one object, and returns it. It is sent once.
    fn create(&self, manifest: &Value) -> impl Future<Output = Result<Value, EffectError>> + Send;

    /// Replaces one object by what is given, which carries the resourceVersion that it must have.
    fn replace(&self, manifest: &Value) -> impl Future<Output = Result<Value, EffectError>> + Send;

    /// Deletes one object.
    fn delete(
        &self,
        deletion: &Deletion,
    ) -> impl Future<Output = Result<Removed, EffectError>> + Send;

    /// Sends an HTTP request once.
    fn http(
        &self,
        request: &HttpRequest,
    ) -> impl Future<Output = Result<HttpAnswer, EffectError>> + Send;
}
