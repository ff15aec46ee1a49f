//! Requests on objects of any kind.

use std::fmt::Write as _;

use http::{Method, StatusCode};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::answer::{Answer, Deleted, Envelope, Removal};
use super::connection::{Cluster, JSON, METADATA_JSON, Outgoing, Repeat};
use super::error::{ClusterError, Words};
use super::path::object_path;
use super::takeover;
use crate::model::{DesiredObject, GroupKind, ObjectKey, limits, names};

impl Cluster {
    /// Applies an object on the server's side as manager `fairway`, with force and strict validation of fields.
    ///
    /// That is one request, unless the object has fields that one of the managers in `takeover` has set by updates: those
    /// become ours, and the object is applied again, so that what git does not have goes away.
    pub async fn apply(
        &self,
        object: &DesiredObject,
        takeover: &[String],
    ) -> Result<Answer, ClusterError> {
        let body = wire_text(&object.body);
        let mut answer = self.apply_once(object, body.clone()).await?;
        for _ in 0..limits::TAKEOVER_ROUNDS {
            let Some(patch) = takeover::patch(&answer.metadata, &object.api_version(), takeover)
            else {
                return Ok(answer);
            };
            match self.patch_managers(object, &patch).await {
                // Somebody has written in between; our next answer shows what.
                Ok(()) | Err(ClusterError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
            let created = answer.created;
            answer = self.apply_once(object, body.clone()).await?;
            answer.created |= created;
        }
        match takeover::patch(&answer.metadata, &object.api_version(), takeover) {
            None => Ok(answer),
            Some(_) => Err(ClusterError::Conflict {
                request: format!("take over {}", object.key),
                message: "somebody else keeps writing it".to_owned(),
            }),
        }
    }

    async fn apply_once(
        &self,
        object: &DesiredObject,
        body: Vec<u8>,
    ) -> Result<Answer, ClusterError> {
        let request = format!("apply {}", object.key);
        let words = words(&request, &object.key);
        let path = self.object_path(&object.key, Some(&object.version)).await?;
        let sent = self.send(Outgoing {
            method: Method::PATCH,
            target: format!(
                "{path}?fieldManager={}&force=true&fieldValidation=Strict",
                names::MANAGER
            ),
            // A Secret's contents have no reason to come back.
            accept: if words.secret { METADATA_JSON } else { JSON },
            content_type: "application/apply-patch+yaml",
            body,
            words,
            deadline: limits::REQUEST_DEADLINE,
            repeat: Repeat::Always,
        });
        let answer = match sent.await {
            Err(error) if is_unserved(&error) => {
                return Err(self.unserved(&object.key.kind, Some(&object.version)));
            }
            answer => answer?,
        };
        let Envelope { metadata } = answer.json(words)?;
        // Whoever answers without them may not be the API server, and the object may not be there.
        if metadata.uid.is_none() || metadata.name.as_deref() != Some(object.key.name.as_str()) {
            return Err(ClusterError::AnswerInvalid {
                request,
                message: "it is not this object".to_owned(),
            });
        }
        Ok(Answer {
            key: object.key.clone(),
            metadata,
            created: answer.status == StatusCode::CREATED,
            body: answer.body,
        })
    }

    /// The patch carries the resourceVersion that it was made from, so it is not repeatable: sent twice, it conflicts.
    async fn patch_managers(
        &self,
        object: &DesiredObject,
        patch: &Value,
    ) -> Result<(), ClusterError> {
        let request = format!("take over {}", object.key);
        let path = self.object_path(&object.key, Some(&object.version)).await?;
        self.send(Outgoing {
            method: Method::PATCH,
            target: format!("{path}?fieldManager={}", names::MANAGER),
            accept: METADATA_JSON,
            content_type: "application/json-patch+json",
            body: patch.to_string().into_bytes(),
            words: words(&request, &object.key),
            deadline: limits::REQUEST_DEADLINE,
            repeat: Repeat::Always,
        })
        .await?;
        Ok(())
    }

    /// Creates one object that must not be there yet. It is sent once: an answer that is lost leaves open whether it was created.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Conflict`] when an object of its name is there.
    pub async fn create_object(&self, object: &DesiredObject) -> Result<(), ClusterError> {
        let request = format!("create {}", object.key);
        let path = self.object_path(&object.key, Some(&object.version)).await?;
        let (collection, _) = path.rsplit_once('/').unwrap_or((&path, ""));
        self.send(Outgoing {
            method: Method::POST,
            target: format!("{collection}?fieldManager={}", names::MANAGER),
            accept: METADATA_JSON,
            content_type: JSON,
            body: object.body.to_string().into_bytes(),
            words: words(&request, &object.key),
            deadline: limits::REQUEST_DEADLINE,
            repeat: Repeat::Never,
        })
        .await
        .map(drop)
    }

    /// Deletes one object if it is still the one that was observed, by its uid and resourceVersion. What depends on it is
    /// collected in the background.
    pub async fn delete(
        &self,
        key: &ObjectKey,
        uid: &str,
        resource_version: &str,
    ) -> Result<Deleted, ClusterError> {
        self.delete_as(key, (uid, Some(resource_version)), "Background")
            .await
    }

    /// Does the same; the resourceVersion counts where there is one, and `propagation` says what becomes of what depends on it.
    pub async fn delete_as(
        &self,
        key: &ObjectKey,
        (uid, resource_version): (&str, Option<&str>),
        propagation: &str,
    ) -> Result<Deleted, ClusterError> {
        let request = format!("delete {key}");
        let target = match self.object_path(key, None).await {
            Ok(path) => path,
            // With its kind every object of the kind has gone.
            Err(ClusterError::KindUnknown { .. }) => return Ok(Deleted::AlreadyGone),
            Err(error) => return Err(error),
        };
        let mut preconditions = json!({"uid": uid});
        if let Some(resource_version) = resource_version {
            preconditions["resourceVersion"] = resource_version.into();
        }
        let options = json!({
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": propagation,
            "preconditions": preconditions,
        });
        let outcome = self.send(Outgoing {
            method: Method::DELETE,
            target,
            accept: METADATA_JSON,
            content_type: JSON,
            body: options.to_string().into_bytes(),
            words: words(&request, key),
            deadline: limits::REQUEST_DEADLINE,
            repeat: Repeat::Always,
        });
        match outcome.await {
            // Whoever says 200 without these words may not be the API server, and the object may still be there.
            Ok(answer) => {
                let removal: Removal = answer.json(words(&request, key))?;
                if removal.confirms(uid) {
                    return Ok(Deleted::Deleted);
                }
                Err(ClusterError::AnswerInvalid {
                    request,
                    message: "it confirms no deletion of this object".to_owned(),
                })
            }
            Err(ClusterError::NotFound { .. }) => Ok(Deleted::AlreadyGone),
            Err(ClusterError::Conflict { .. }) => Ok(Deleted::Replaced),
            Err(error) => Err(error),
        }
    }

    /// Reads the metadata of one object; none when it is not there.
    pub async fn get_metadata(&self, key: &ObjectKey) -> Result<Option<ObjectMeta>, ClusterError> {
        let request = format!("read {key}");
        let words = words(&request, key);
        let mut outgoing = Outgoing::get(self.object_path(key, None).await?, words);
        outgoing.accept = METADATA_JSON;
        match self.send(outgoing).await {
            Ok(answer) => Ok(Some(answer.json::<Envelope>(words)?.metadata)),
            Err(ClusterError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes the error for a path that has shown not to be served, and forgets what discovery has said.
    pub(super) fn unserved(&self, kind: &GroupKind, version: Option<&str>) -> ClusterError {
        self.forget_served();
        ClusterError::KindUnknown {
            kind: kind.clone(),
            version: version.unwrap_or("any").to_owned(),
        }
    }

    pub(super) async fn object_path(
        &self,
        key: &ObjectKey,
        version: Option<&str>,
    ) -> Result<String, ClusterError> {
        let served = self.resolve(&key.kind, version).await?;
        let preferred = served.versions.first().map_or("", String::as_str);
        object_path(key, &served, version.unwrap_or(preferred))
    }
}

/// Tells a path that is not served (any more) from an object or a namespace that is not there.
pub fn is_unserved(error: &ClusterError) -> bool {
    let ClusterError::NotFound { message, .. } = error else {
        return false;
    };
    message.starts_with("the server could not find the requested resource")
        || message.starts_with("404 page not found")
}

pub(super) fn words<'a>(request: &'a str, key: &ObjectKey) -> Words<'a> {
    let secret = key.kind.is_secret();
    Words { request, secret }
}

/// Writes an object as JSON that is YAML too: the server reads an apply as YAML, which forbids some characters that JSON
/// allows. They can only stand inside strings, where an escape means the same.
pub(super) fn wire_text(object: &Value) -> Vec<u8> {
    let text = object.to_string();
    if !text.chars().any(forbidden_in_yaml) {
        return text.into_bytes();
    }
    let mut escaped = String::with_capacity(text.len() + 64);
    for character in text.chars() {
        if forbidden_in_yaml(character) {
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped.into_bytes()
}

/// What YAML 1.2, section 5.1, does not count as printable, and the byte order mark. Below U+0020 JSON escapes by itself.
fn forbidden_in_yaml(character: char) -> bool {
    matches!(
        character,
        '\u{7f}'..='\u{9f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{2028}' | '\u{2029}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_reads_back_the_same_and_holds_nothing_that_yaml_forbids() {
        let text: String = (0..=0x1_1000).filter_map(char::from_u32).collect();
        let object = json!({"data": {"all": text, "\u{7f}key": 1}});
        let sent = wire_text(&object);
        assert_eq!(serde_json::from_slice::<Value>(&sent).unwrap(), object);
        let sent = String::from_utf8(sent).unwrap();
        assert!(!sent.chars().any(|c| c.is_control() || forbidden_in_yaml(c)));
    }
}
