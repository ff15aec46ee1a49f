//! The steps of a migration, one type for each kind.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Lookup, OnUnknown, Retry, Span};

/// One step. In its texts `${…}` is CEL; a text that is one such expression becomes the expression's value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Its name, unique in the migration: lower-case letters, digits and `-`.
    pub id: String,
    /// CEL; the step is left out where it is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Does the step once for each element of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_each: Option<ForEach>,
    /// What it does.
    #[serde(flatten)]
    pub action: StepAction,
    /// What later steps may use as `steps["ID"].outputs.NAME`: CEL over `result`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
    /// How it is tried again; the policy's where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Time for one attempt; the policy's where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_timeout: Option<Span>,
    /// What is done when nobody knows whether an attempt took effect. Without it: `Retry` for what can be repeated, `Manual` else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_unknown: Option<OnUnknown>,
}

/// A list that a step is done for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForEach {
    /// The name of the element in expressions; also for `ref`, where it is an object.
    #[serde(rename = "as")]
    pub name: String,
    /// CEL that gives the list.
    #[serde(rename = "in")]
    pub list: String,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StepAction {
    /// Changes one object.
    Patch(PatchStep),
    /// Applies one object on the server's side, as manager `fairway-migration` and without force.
    Apply(ApplyStep),
    /// Deletes objects.
    Delete(DeleteStep),
    /// Waits until the cluster is as it should be.
    Wait(WaitStep),
    /// Runs a Kubernetes Job.
    Job(JobStep),
    /// Sends an HTTP request.
    Http(HttpStep),
    /// Writes every object of a kind unchanged, so that it is stored in the present version.
    Rewrite(RewriteStep),
    /// Calls a helper of Fairway that is no data.
    Builtin(BuiltinStep),
    /// Runs logic that is compiled into Fairway.
    Compiled(CompiledStep),
}

impl StepAction {
    /// Returns the word that git writes.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Patch(_) => "patch",
            Self::Apply(_) => "apply",
            Self::Delete(_) => "delete",
            Self::Wait(_) => "wait",
            Self::Job(_) => "job",
            Self::Http(_) => "http",
            Self::Rewrite(_) => "rewrite",
            Self::Builtin(_) => "builtin",
            Self::Compiled(_) => "compiled",
        }
    }

    /// The words that git may write.
    pub const KINDS: &'static [&'static str] = &[
        "patch", "apply", "delete", "wait", "job", "http", "rewrite", "builtin", "compiled",
    ];
}

/// One object by its name; texts may hold `${…}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectReference {
    /// `v1`, `apps/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

/// Changes one object. It carries the uid and the resourceVersion of what `when` and `needed` were judged by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PatchStep {
    /// The lookup, or the element of `forEach`, that is the object. Either this or `object`.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectReference>,
    /// The form of the patch.
    #[serde(default, rename = "type")]
    pub form: PatchType,
    /// `status` or another subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
    /// The patch. For `json` a list of operations.
    pub body: Value,
}

/// The form of a patch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PatchType {
    /// RFC 7386.
    #[default]
    Merge,
    /// RFC 6902.
    Json,
    /// Kubernetes' own, for built-in kinds.
    Strategic,
}

/// Applies one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApplyStep {
    /// The object.
    pub manifest: Value,
}

/// Deletes objects; each with the uid that was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteStep {
    /// The lookup, or the element of `forEach`: an object or a list. Either this or `select`.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<Selection>,
    /// What happens to what they own.
    #[serde(default)]
    pub propagation: Propagation,
    /// Whether the step ends only when they are gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait_gone: bool,
}

/// Objects of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Selection {
    /// `v1`, `apps/v1`.
    pub api_version: String,
    /// The kind. One that the cluster does not serve selects nothing.
    pub kind: String,
    /// The namespace. Without it a kind with namespaces needs `allNamespaces`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Whether objects of all namespaces are meant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_namespaces: bool,
    /// The names; all where this is empty and a selector is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Labels, as kubectl writes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}

/// What happens to what a deleted object owns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Propagation {
    /// It goes afterwards.
    #[default]
    Background,
    /// It goes first.
    Foreground,
    /// It stays.
    Orphan,
}

/// Waits until the cluster is as it should be. `retry.interval` is the time between looks, `attemptTimeout` the patience.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WaitStep {
    /// Lookups beside those of the migration.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lookups: BTreeMap<String, Lookup>,
    /// CEL; true when waiting is over.
    pub until: String,
    /// CEL; true when waiting is in vain, which fails the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_when: Option<String>,
}

/// Runs one container to its end as a Kubernetes Job. Exit 0 is done, 75 try again later, 78 never, everything else a failure that
/// counts. What it writes to `/dev/termination-log` as JSON is `result`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobStep {
    /// Where it runs.
    pub namespace: String,
    /// The image, with its digest.
    pub image: String,
    /// The program; the image's where it is missing. No shell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its environment. `FAIRWAY_RUN`, `FAIRWAY_STEP`, `FAIRWAY_ATTEMPT` and `FAIRWAY_IDEMPOTENCY_KEY` are there too.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Environment from Secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env_from_secrets: BTreeMap<String, SecretKeyReference>,
    /// The account that it acts as; without it, it gets no token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Requests and limits, as a container has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Value>,
}

/// One key of a Secret; its value never shows anywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretKeyReference {
    /// The namespace; for a Job it is the Job's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The key.
    pub key: String,
}

/// Sends one HTTP request; hosts must be allowed in `fairway.yaml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpStep {
    /// The method.
    pub method: String,
    /// The address.
    pub url: String,
    /// Headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body, sent as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Sent as `Idempotency-Key`, the same with each attempt. Without it an answer that was lost leaves the step unknown,
    /// unless the method may be repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Statuses that are a success; 200 to 299 where it is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<u16>,
    /// Statuses after which it is tried again, beside 408, 425, 429 and 500 to 599.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry_on: Vec<u16>,
    /// A token from a Secret, sent as `Authorization: Bearer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer_token: Option<SecretKeyReference>,
}

/// Writes every object of a kind unchanged, in pages. It goes on after the last finished page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RewriteStep {
    /// `v1`, `apps/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; all of them where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Objects of one page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_size: Option<u32>,
}

/// Calls a helper of Fairway that is no data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuiltinStep {
    /// Which: `generate-secret`, `find-node-port`, `ensure-credentials`.
    pub name: String,
    /// What it is given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with: BTreeMap<String, Value>,
}

/// Runs logic that is compiled into Fairway, see `src/runs/compiled/`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompiledStep {
    /// The name under which it is registered.
    pub name: String,
    /// What it is given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with: BTreeMap<String, Value>,
}
