//! The key of the digests of Secrets.
//!
//! A digest tells what was last wanted; that of a Secret stands in an annotation, in plans and in audit lines, where a value of
//! few possibilities could be guessed from it. So it is keyed. The key stands in a Secret of the agent's namespace, is made once,
//! and leaves this module only inside digests.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::cluster::{Cluster, ClusterError, Patch};
use crate::model::{SecretKey, names};

/// The Secret with the key, and its one entry. It is shipped empty, so that the agent needs no right to create Secrets.
const NAME: &str = "fairway-digest-key";
const ENTRY: &str = "key";

/// Reads the key; none where it was not made yet, or is damaged.
///
/// # Errors
///
/// When the Secret cannot be read.
pub async fn read_secret_key(
    cluster: &Cluster,
    namespace: &str,
) -> Result<Option<SecretKey>, ClusterError> {
    let found = cluster.get::<Secret>(namespace, NAME).await?;
    Ok(found.as_ref().and_then(key_of))
}

/// Returns the key, made where there is none yet. Where that cannot be done it is one that lasts as long as the process: the
/// Secrets of the repository are then applied once more after each start, and nothing else suffers.
pub(super) async fn secret_key(cluster: &Cluster, namespace: &str) -> SecretKey {
    match stored_or_made(cluster, namespace).await {
        Ok(key) => key,
        Err(error) => {
            tracing::warn!(
                %error,
                "failed to keep the key of the digests of Secrets in the Secret {namespace}/{NAME}; they are applied again after \
                 each start. Apply the manifests below deploy/ again"
            );
            fresh_key()
        }
    }
}

async fn stored_or_made(cluster: &Cluster, namespace: &str) -> Result<SecretKey, ClusterError> {
    let found = cluster.get::<Secret>(namespace, NAME).await?;
    if let Some(key) = found.as_ref().and_then(key_of) {
        return Ok(key);
    }
    let key = fresh_key();
    // Guarded by what was read: of two agents that make a key at the same time, one finds the other's.
    let version = found.and_then(|secret| secret.metadata.resource_version);
    let data = BTreeMap::from([(ENTRY, ByteString(key.bytes().to_vec()))]);
    let patch = json!({"metadata": {"resourceVersion": version}, "data": data});
    let manager = names::MANAGER_STATUS;
    let written = cluster
        .patch::<Secret>(namespace, NAME, None, manager, (Patch::Merge, &patch))
        .await;
    match written {
        Ok(_) => Ok(key),
        Err(error @ ClusterError::Conflict { .. }) => {
            let found = cluster.get::<Secret>(namespace, NAME).await?;
            found.as_ref().and_then(key_of).ok_or(error)
        }
        Err(error) => Err(error),
    }
}

fn key_of(secret: &Secret) -> Option<SecretKey> {
    let bytes = &secret.data.as_ref()?.get(ENTRY)?.0;
    Some(SecretKey::new(bytes.as_slice().try_into().ok()?))
}

fn fresh_key() -> SecretKey {
    let mut bytes = [0; SecretKey::SIZE];
    rustls::crypto::aws_lc_rs::default_provider()
        .secure_random
        .fill(&mut bytes)
        .expect("the operating system has random numbers");
    SecretKey::new(bytes)
}
