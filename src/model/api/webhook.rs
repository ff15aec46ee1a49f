//! The webhook of a ReleaseSource: who announces changes, and what was heard of them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::release_source::SecretReference;
use crate::model::limits::WEBHOOK_RECENT_MAX;

/// Who announces changes of the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookSpec {
    /// The forge that sends the deliveries: it decides how they are signed and written.
    pub provider: WebhookProvider,
    /// The Secret with the token, in the namespace of this object. Keys: `token`, at least 16 characters, and optionally
    /// `tokenPrevious`, which stays valid beside it while the token is being changed at the forge.
    pub secret_ref: SecretReference,
}

/// A forge, by how it signs and writes its deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WebhookProvider {
    /// HMAC-SHA256 of the body in `X-Hub-Signature-256`.
    GitHub,
    /// A signing token (`whsec_…`) with the headers of Standard Webhooks, or a secret token in `X-Gitlab-Token`.
    GitLab,
    /// HMAC-SHA256 of the body in `X-Gitea-Signature`.
    Gitea,
    /// HMAC-SHA256 of the body in `X-Forgejo-Signature`.
    Forgejo,
    /// Cloud and Data Center: HMAC-SHA256 of the body in `X-Hub-Signature`.
    Bitbucket,
    /// Anything that can sign: HMAC-SHA256 of the body in `X-Signature: sha256=…`.
    Generic,
}

/// What was heard from the forge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookStatus {
    /// The path to register at the forge, behind the address of the agent's webhook port. It is derived from the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Why no delivery can be taken, and what to do; nothing while all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The last delivery with a valid signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_delivery: Option<WebhookDelivery>,
    /// The last change that the poll has found and no delivery has announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_missed: Option<MissedChange>,
    /// Digests of the last deliveries, by which a repeated one is recognised, also after a restart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = WEBHOOK_RECENT_MAX), extend("x-kubernetes-list-type" = "atomic"))]
    pub recent: Vec<String>,
}

/// One delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookDelivery {
    /// When it arrived.
    pub time: Time,
    /// The event, as the forge calls it.
    pub event: String,
    /// The first characters of the forge's id for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What became of it: `Announced`, `Suspended`, `Ping`, `OtherRepository`, `OtherReference`, `OtherEvent` or `Unreadable`.
    pub result: String,
}

/// A change that nobody has announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissedChange {
    /// When the poll found it.
    pub time: Time,
    /// The revision that it found, written `main@sha1:…`.
    pub revision: String,
}
