//! One object as git wants it.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{ComponentName, Digest, ObjectKey, Place, names};

/// One object as git wants it, complete: what is sent is `body`, nothing is added later.
///
/// The body carries the source label, the component annotation and the digest annotation. It never holds `status`,
/// `metadata.managedFields`, `metadata.creationTimestamp`, `metadata.resourceVersion`, `metadata.uid` or `stringData`.
#[derive(Clone, PartialEq)]
pub struct DesiredObject {
    /// Identity on the cluster.
    pub key: ObjectKey,
    /// The version part of `apiVersion`: `v1`, `v1beta2`.
    pub version: String,
    /// The component that it belongs to.
    pub component: ComponentName,
    /// Where it stands in git.
    pub place: Place,
    /// Digest of `body` without the digest annotation; of a Secret the keyed one, once its key is known.
    pub digest: Digest,
    /// What is sent, with the digest annotation. Shared, since the same object is in many plans.
    pub body: Arc<Value>,
}

/// Without the body, which may be that of a Secret.
impl fmt::Debug for DesiredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "DesiredObject({} {} at {})",
            self.key, self.digest, self.place
        )
    }
}

impl DesiredObject {
    /// Makes the object of a body that is complete but for the digest annotation, which is added.
    pub fn sealed(
        mut body: Value,
        version: String,
        key: ObjectKey,
        component: ComponentName,
        place: Place,
    ) -> Self {
        let digest = Digest::of(&body);
        body["metadata"]["annotations"][names::ANNOTATION_DIGEST] = json!(digest.as_str());
        Self {
            key,
            version,
            component,
            place,
            digest,
            body: Arc::new(body),
        }
    }

    /// Returns the value of a label that git sets on the object.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.body
            .get("metadata")?
            .get("labels")?
            .get(name)?
            .as_str()
    }

    /// Returns whether it is a Secret.
    pub fn is_secret(&self) -> bool {
        self.key.kind.group.is_empty() && self.key.kind.kind == "Secret"
    }

    /// Returns the `apiVersion` as it is written in a manifest.
    pub fn api_version(&self) -> String {
        if self.key.kind.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.key.kind.group, self.version)
        }
    }

    /// Returns an annotation that git sets on the object.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.body
            .get("metadata")?
            .get("annotations")?
            .get(name)?
            .as_str()
    }
}
