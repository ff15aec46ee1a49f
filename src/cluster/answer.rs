//! What requests answer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::model::ObjectKey;

/// The part of an object that every request needs; the rest is skipped while reading.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope {
    #[serde(default)]
    pub(super) metadata: ObjectMeta,
}

/// What a deletion answers: `Success`, or the object where a finalizer or a grace period still holds it.
#[derive(Debug, Deserialize)]
pub(super) struct Removal {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    status: serde_json::Value,
    #[serde(default)]
    metadata: ObjectMeta,
}

impl Removal {
    /// Returns whether this says that the object with this uid is deleted, or will be.
    pub(super) fn confirms(&self, uid: &str) -> bool {
        match self.kind.as_str() {
            "Status" => self.status == "Success",
            _ => self.metadata.uid.as_deref() == Some(uid),
        }
    }
}

/// The object as the server has it after our apply.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Identity on the cluster.
    pub key: ObjectKey,
    /// Its metadata, managed fields included.
    pub metadata: ObjectMeta,
    /// Whether the apply has created it. An answer that was lost and asked for again says no.
    pub created: bool,
    /// The whole object as text, so that who needs more than metadata can read it.
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// Returns whether the object is another than the one last observed, by its resourceVersion. An apply without a
    /// difference leaves that as it is.
    pub fn changed_since(&self, observed: Option<&str>) -> bool {
        self.created || observed.is_none() || self.metadata.resource_version.as_deref() != observed
    }

    /// Reads more of the object than its metadata; none when it cannot be read so.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// How a deletion went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// The server has accepted it; a finalizer may still hold the object.
    Deleted,
    /// The object was not there any more.
    AlreadyGone,
    /// The object there is another one, or has changed since: nothing was deleted.
    Replaced,
}
