//! Effects on a real cluster, through the one door to it, and on the hosts that `http` steps may call.
//!
//! Every write is sent once unless it is certain that nothing came of it; what is not certain is said so
//! ([`EffectError::Lost`]), and the step finds out. Where the connection is under a claim, nothing is sent without it.

mod errors;
mod http;
mod rights;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use self::errors::{of_creation, of_read, of_write};
use self::http::HttpDoor;
use self::rights::RightsDoor;
use super::effects::{
    Deletion, EffectError, Effects, HttpAnswer, HttpRequest, Listing, ObjectPatch, Removed,
    ResourceKind, Serving,
};
use crate::cluster::{
    Access, Acting, ApplyManner, Cluster, ClusterError, Deleted, PatchForm, WholeSelection,
};
use crate::model::migration::{Lookup, MissingKind, PatchType, Propagation, SecretKeyReference};
use crate::model::{GroupKind, ObjectKey, limits, names};

/// Effects on one cluster. Cloning is cheap.
#[derive(Clone)]
pub struct ClusterEffects {
    cluster: Cluster,
    /// Where Secrets are that a definition names without a namespace.
    namespace: String,
    http: HttpDoor,
    rights: RightsDoor,
}

// === impl ClusterEffects ===

impl ClusterEffects {
    /// Makes them, with the rights of whom `acting` is for. `namespace` is the agent's, where a Secret is looked for that a definition names without one.
    pub fn new(acting: &Acting, namespace: impl Into<String>) -> Self {
        Self {
            cluster: acting.cluster().clone(),
            namespace: namespace.into(),
            http: HttpDoor::default(),
            rights: RightsDoor::default(),
        }
    }

    async fn token(&self, reference: &SecretKeyReference) -> Result<String, EffectError> {
        let namespace = reference.namespace.as_ref().unwrap_or(&self.namespace);
        let kind = GroupKind::new("", "Secret");
        let key = ObjectKey::new(kind, Some(namespace), reference.name.as_str());
        let secret = self
            .cluster
            .read_whole(&key, Some("v1"))
            .await
            .map_err(of_read)?;
        let missing = || {
            EffectError::NotFound(format!(
                "{key} with the key `{}` is not there",
                reference.key
            ))
        };
        let secret = secret.ok_or_else(missing)?;
        let encoded = secret["data"][&reference.key]
            .as_str()
            .ok_or_else(missing)?;
        let bytes = STANDARD.decode(encoded).unwrap_or_default();
        let token = String::from_utf8(bytes).unwrap_or_default();
        match token.trim() {
            "" => Err(EffectError::Refused(format!(
                "{key}: the key `{}` holds no token",
                reference.key
            ))),
            token => Ok(token.to_owned()),
        }
    }
}

impl Effects for ClusterEffects {
    async fn look(&self, lookup: &Lookup) -> Result<Value, EffectError> {
        let kind = ResourceKind {
            api_version: lookup.api_version.clone(),
            kind: lookup.kind.clone(),
        };
        let namespace = lookup.namespace.as_deref();
        if !lookup.list {
            let Some(name) = &lookup.name else {
                return Err(EffectError::Refused(format!(
                    "the lookup of a {} names no object",
                    kind.kind
                )));
            };
            let key = key(&kind, namespace, name);
            let found = self.cluster.read_whole(&key, Some(version(&kind))).await;
            return match found {
                Ok(found) => Ok(found.unwrap_or_default()),
                Err(ClusterError::KindUnknown { .. })
                    if lookup.missing_kind == MissingKind::Null =>
                {
                    Ok(Value::Null)
                }
                Err(error) => Err(of_read(error)),
            };
        }
        let limit = lookup.limit.unwrap_or(limits::LOOKUP_OBJECTS_DEFAULT);
        // One more than is allowed, so that one request is enough to know.
        let page = (limit.saturating_add(1), None);
        let listing = self
            .list(&kind, namespace, lookup.selector.as_deref(), page)
            .await;
        let listing = match listing {
            Err(EffectError::KindUnknown(_)) if lookup.missing_kind == MissingKind::Null => {
                return Ok(json!([]));
            }
            listing => listing?,
        };
        if listing.next.is_some() || listing.objects.len() > limit as usize {
            return Err(EffectError::Refused(format!(
                "there are more than {limit} objects of kind {}; raise the lookup's limit or select fewer",
                kind.kind
            )));
        }
        Ok(Value::Array(listing.objects))
    }

    async fn serving(&self, kind: &ResourceKind) -> Result<Serving, EffectError> {
        rights::serving(&self.cluster, &group_kind(kind), version(kind)).await
    }

    async fn refused(&self, asked: &[Access]) -> Result<Vec<Access>, EffectError> {
        self.rights.refused(&self.cluster, asked).await
    }

    async fn user(&self) -> Result<String, EffectError> {
        self.cluster.user().await.map_err(of_read)
    }

    async fn get(
        &self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>, EffectError> {
        let key = key(kind, namespace, name);
        match self.cluster.read_whole(&key, Some(version(kind))).await {
            Err(ClusterError::KindUnknown { .. }) => Ok(None),
            found => found.map_err(of_read),
        }
    }

    async fn list(
        &self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        selector: Option<&str>,
        (limit, next): (u32, Option<&str>),
    ) -> Result<Listing, EffectError> {
        let group_kind = group_kind(kind);
        let selection = WholeSelection {
            kind: &group_kind,
            version: Some(version(kind)),
            namespace,
            labels: selector,
            limit,
        };
        let page = self
            .cluster
            .list_whole(selection, next)
            .await
            .map_err(of_read)?;
        Ok(Listing {
            objects: page.items,
            next: page.next,
            is_served: true,
        })
    }

    async fn patch(&self, patch: &ObjectPatch) -> Result<Value, EffectError> {
        let key = key(&patch.kind, patch.namespace.as_deref(), &patch.name);
        let form = match patch.form {
            PatchType::Merge => PatchForm::Merge,
            PatchType::Json => PatchForm::Json,
            PatchType::Strategic => PatchForm::Strategic,
        };
        let body = guarded(patch)?;
        let sent = self.cluster.patch_whole(
            (&key, version(&patch.kind)),
            patch.subresource.as_deref(),
            (form, &body),
            names::MANAGER_MIGRATION,
        );
        sent.await.map_err(of_write)
    }

    async fn apply(&self, manifest: &Value) -> Result<Value, EffectError> {
        let key = key_of(manifest)?;
        let manner = ApplyManner {
            manager: names::MANAGER_MIGRATION,
            force: false,
            dry_run: false,
        };
        let sent = self.cluster.apply_whole(&key, manifest, manner);
        sent.await.map_err(of_write)
    }

    async fn create(&self, manifest: &Value) -> Result<Value, EffectError> {
        let key = key_of(manifest)?;
        let sent = self
            .cluster
            .create_whole(&key, manifest, names::MANAGER_MIGRATION);
        sent.await.map_err(of_creation)
    }

    async fn replace(&self, manifest: &Value) -> Result<Value, EffectError> {
        let key = key_of(manifest)?;
        let sent = self
            .cluster
            .replace_whole(&key, manifest, names::MANAGER_MIGRATION);
        sent.await.map_err(of_write)
    }

    async fn delete(&self, deletion: &Deletion) -> Result<Removed, EffectError> {
        let key = key(
            &deletion.kind,
            deletion.namespace.as_deref(),
            &deletion.name,
        );
        let propagation = match deletion.propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        let precondition = (deletion.uid.as_str(), deletion.resource_version.as_deref());
        match self
            .cluster
            .delete_as(&key, precondition, propagation)
            .await
        {
            Ok(Deleted::Deleted) => Ok(Removed::Accepted),
            Ok(Deleted::AlreadyGone) => Ok(Removed::AlreadyGone),
            // Without a version it can only be the uid that differs.
            Ok(Deleted::Replaced) if deletion.resource_version.is_none() => {
                Ok(Removed::AlreadyGone)
            }
            Ok(Deleted::Replaced) => Err(EffectError::Conflict(format!(
                "{key} is not the object any more that was seen"
            ))),
            Err(error) => Err(of_write(error)),
        }
    }

    async fn http(&self, request: &HttpRequest) -> Result<HttpAnswer, EffectError> {
        let token = match &request.bearer_token {
            Some(reference) => Some(self.token(reference).await?),
            None => None,
        };
        let words = format!("send {} {}", request.method, request.url);
        let sent = self.http.send(request, token.as_deref());
        match self.cluster.while_claimed(&words, sent).await {
            Ok(answer) => answer,
            Err(error) => Err(of_write(error)),
        }
    }
}

/// Puts what the object must still be into the patch: another uid or resourceVersion is a conflict then, in every form.
fn guarded(patch: &ObjectPatch) -> Result<Value, EffectError> {
    let mut body = patch.body.clone();
    let versions = [
        ("uid", Some(&patch.uid)),
        ("resourceVersion", patch.resource_version.as_ref()),
    ];
    let versions = versions
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    match (&mut body, patch.form) {
        (Value::Array(operations), PatchType::Json) => {
            for (name, value) in versions {
                operations.push(
                    json!({"op": "add", "path": format!("/metadata/{name}"), "value": value}),
                );
            }
        }
        (Value::Object(fields), PatchType::Merge | PatchType::Strategic) => {
            let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
            for (name, value) in versions {
                metadata[name] = value.as_str().into();
            }
        }
        _ => {
            return Err(EffectError::Refused(
                "the body of the patch does not have the form of its type".to_owned(),
            ));
        }
    }
    Ok(body)
}

fn group_kind(kind: &ResourceKind) -> GroupKind {
    let group = kind
        .api_version
        .rsplit_once('/')
        .map_or("", |(group, _)| group);
    GroupKind::new(group, kind.kind.as_str())
}

fn version(kind: &ResourceKind) -> &str {
    let api_version = kind.api_version.as_str();
    api_version
        .rsplit_once('/')
        .map_or(api_version, |(_, version)| version)
}

fn key(kind: &ResourceKind, namespace: Option<&str>, name: &str) -> ObjectKey {
    ObjectKey::new(group_kind(kind), namespace, name)
}

fn key_of(manifest: &Value) -> Result<ObjectKey, EffectError> {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
    let (Some(api_version), Some(kind), Some(name)) =
        (text("/apiVersion"), text("/kind"), text("/metadata/name"))
    else {
        return Err(EffectError::Refused(
            "the object lacks apiVersion, kind or metadata.name".to_owned(),
        ));
    };
    let kind = ResourceKind {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    };
    Ok(key(&kind, text("/metadata/namespace"), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(form: PatchType, body: Value) -> ObjectPatch {
        ObjectPatch {
            kind: ResourceKind {
                api_version: "apps/v1".to_owned(),
                kind: "Deployment".to_owned(),
            },
            namespace: None,
            name: "a".to_owned(),
            subresource: None,
            form,
            body,
            uid: "u".to_owned(),
            resource_version: Some("7".to_owned()),
        }
    }

    #[test]
    fn every_form_of_patch_carries_what_the_object_must_be() {
        let merge = guarded(&patch(PatchType::Merge, json!({"spec": {}}))).unwrap();
        assert_eq!(
            merge,
            json!({"spec": {}, "metadata": {"uid": "u", "resourceVersion": "7"}})
        );
        let labels = json!({"metadata": {"labels": {"a": "b"}}});
        let strategic = guarded(&patch(PatchType::Strategic, labels)).unwrap();
        assert_eq!(strategic["metadata"]["labels"]["a"], "b");
        assert_eq!(strategic["metadata"]["resourceVersion"], "7");
        let operations = guarded(&patch(PatchType::Json, json!([]))).unwrap();
        assert_eq!(
            operations[1],
            json!({"op": "add", "path": "/metadata/resourceVersion", "value": "7"})
        );
        assert!(guarded(&patch(PatchType::Json, json!({}))).is_err());
        assert!(guarded(&patch(PatchType::Merge, json!([]))).is_err());
    }

    #[test]
    fn a_kind_has_its_group_and_version() {
        let kind = patch(PatchType::Merge, json!({})).kind;
        assert_eq!(
            (group_kind(&kind).group.as_str(), version(&kind)),
            ("apps", "v1")
        );
        let core = ResourceKind {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
        };
        assert_eq!(
            (group_kind(&core).group.as_str(), version(&core)),
            ("", "v1")
        );
    }
}
