//! ReleaseSource: a repository to follow, and how far the agent has come with it.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::webhook::{WebhookSpec, WebhookStatus};
use crate::model::limits::{
    APPROVAL_OBJECTS_MAX, HISTORY_MAX, HOLDS_LISTED_MAX, RUN_HISTORY_DAYS, RUN_HISTORY_DAYS_MAX,
    RUN_HISTORY_RUNS, RUN_HISTORY_RUNS_MAX,
};

/// A git repository, what to follow in it, and how to treat what was found there.
#[expect(
    clippy::duplicated_attributes,
    reason = "columns of the same type are not the same attribute"
)]
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "fairway.dev",
    version = "v1alpha1",
    kind = "ReleaseSource",
    namespaced,
    status = "ReleaseSourceStatus",
    derive = "PartialEq",
    shortname = "rsrc",
    category = "fairway",
    doc = "A git repository whose modules and components this agent keeps the cluster in step with.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(name = "Revision", type_ = "string", json_path = ".status.revision"),
    printcolumn(
        name = "Runtimes",
        type_ = "integer",
        json_path = ".status.runtimes.synced",
        priority = "1"
    ),
    printcolumn(name = "Held", type_ = "integer", json_path = ".status.holdCount"),
    printcolumn(name = "Suspended", type_ = "boolean", json_path = ".spec.suspend"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "URL",
        type_ = "string",
        json_path = ".spec.url",
        priority = "1"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = "1"
    )
)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.url.startsWith('/') || [has(self.ref.branch), has(self.ref.tag), has(self.ref.semver), has(self.ref.commit)].exists(given, given)",
    "message": "one of branch, tag, semver and commit must be given; only a local directory may leave them out, to be followed as it is edited"
}, {
    "rule": "!has(self.verify) || [has(self.ref.branch), has(self.ref.tag), has(self.ref.semver), has(self.ref.commit)].exists(given, given)",
    "message": "verify needs one of branch, tag, semver and commit: files that are followed as they are edited carry no signature"
}]))]
pub struct ReleaseSourceSpec {
    /// The repository: an `https://` or `ssh://` URL without credentials, `user@host:path`, or an absolute path for tests and the
    /// command line.
    #[schemars(
        length(max = 2048),
        regex(
            pattern = r"^(https://[^\s/@?#]+(/[^\s?#]*)?|ssh://([\w.][\w.-]*@)?[\w.\[:\]-]+/[^\s?#'!\\]+|[\w.][\w.-]*@(\w[\w.-]*|\[[0-9A-Fa-f:.]+\]):[^\s?#'!\\-][^\s?#'!\\]*|/\S*)$"
        )
    )]
    pub url: String,
    /// What to follow: one of branch, tag, semver and commit. A local directory may leave it out: its files are then followed as they
    /// are edited.
    #[serde(rename = "ref", default)]
    pub reference: GitReference,
    /// The folder of the repository to read, relative to its root.
    #[serde(default = "root")]
    #[schemars(
        length(min = 1, max = 512),
        regex(pattern = r"^[^/\s][^\s]*$"),
        extend("x-kubernetes-validations" = [{
            "rule": r"!self.matches('(^|/)\\.\\.(/|$)')",
            "message": "the path must stay inside the repository"
        }])
    )]
    pub path: String,
    /// The landscape; files below `landscapes/NAME/` of a module replace those beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"))]
    pub landscape: Option<String>,
    /// How often to look for a new revision, written `90s`, `5m` or `1h30m`: between ten seconds and a day.
    #[serde(default = "five_minutes")]
    #[schemars(
        length(min = 2, max = 16),
        regex(pattern = r"^([0-9]{1,4}h)?([0-9]{1,4}m)?([0-9]{1,5}s)?$"),
        extend("x-kubernetes-validations" = [{
            "rule": "duration(self) >= duration('10s') && duration(self) <= duration('24h')",
            "message": "the interval must be between 10s and 24h"
        }])
    )]
    pub interval: String,
    /// The Secret with the credentials, in the namespace of this object. Keys: `username` and `password`, or `bearerToken`;
    /// optionally `ca.crt`. For ssh: `identity` and `known_hosts`; optionally `identity.pub` and the passphrase as `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretReference>,
    /// Who announces changes, so that they need not wait for the next poll. What is announced is only looked for: the poll
    /// goes on beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookSpec>,
    /// Who has to have signed what is applied; without it, nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<VerifySpec>,
    /// While true, nothing is fetched, applied or deleted for this source.
    #[serde(default)]
    pub suspend: bool,
    /// How deletions are limited.
    #[serde(default)]
    pub prune: PruneSpec,
    /// What becomes of what this source has applied when the source is deleted. `Orphan` leaves all of it; `Delete` deletes it
    /// first, with the limits and approvals of any deletion, and keeps the source until that is done.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// How long the Runs of its migrations are kept.
    #[serde(default)]
    pub history: HistorySpec,
    /// Field managers whose fields are taken over when an object is applied for the first time, so that what git drops later
    /// really goes.
    #[serde(default = "former_managers")]
    #[schemars(
        length(max = 16),
        inner(length(min = 1, max = 128)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub takeover: Vec<String>,
    /// Where the catalog goes on this cluster.
    #[serde(default)]
    pub catalog: CatalogSpec,
    /// What becomes of the catalogs of runtime clusters.
    #[serde(default)]
    pub runtimes: RuntimesSpec,
    /// The ServiceAccount, in the namespace of this object, as which everything that the repository says is read and done on this
    /// cluster, migrations included. Without it, that is the agent's own.
    #[serde(
        default,
        deserialize_with = "super::source_account::said",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(
        with = "String",
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub service_account_name: Option<String>,
}

impl ReleaseSourceSpec {
    /// Returns the field managers whose fields are taken over where `spec.takeover` says nothing.
    pub fn default_takeover() -> Vec<String> {
        former_managers()
    }

    /// Returns the interval; what cannot be read (the schema lets nothing such through) counts as the default.
    pub fn interval(&self) -> Duration {
        self.interval
            .parse::<SignedDuration>()
            .ok()
            .and_then(|interval| Duration::try_from(interval).ok())
            .unwrap_or(Duration::from_secs(300))
    }
}

/// What to follow in a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "[has(self.branch), has(self.tag), has(self.semver), has(self.commit)].filter(given, given).size() <= 1",
    "message": "at most one of branch, tag, semver and commit may be given"
}]))]
pub struct GitReference {
    /// A branch, followed as it moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 255),
        regex(pattern = r"^[^-\s~^:?*\[\\][^\s~^:?*\[\\]*$")
    )]
    pub branch: Option<String>,
    /// A tag. When it moves, what it pointed at stays until a person approves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 255),
        regex(pattern = r"^[^-\s~^:?*\[\\][^\s~^:?*\[\\]*$")
    )]
    pub tag: Option<String>,
    /// A range of versions over the tags, as `^1.4` or `>=1.4.0, <2.0.0`: the highest tag inside it is followed. A tag may have
    /// a leading `v`; a pre-release counts only where the range names one of the same version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 255),
        regex(pattern = r"^[0-9A-Za-z.+*<>=~^, -]+$")
    )]
    pub semver: Option<String>,
    /// One commit, with all forty digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9a-f]{40}$"))]
    pub commit: Option<String>,
}

/// Who has to have signed what is applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifySpec {
    /// What has to be signed.
    #[serde(default)]
    pub mode: VerifyMode,
    /// The Secret that says who may sign, in the namespace of this object. Keys: `allowed_signers` and `revoked_keys` for SSH keys,
    /// `*.asc` and `*.pub` for OpenPGP certificates.
    pub secret_ref: SecretReference,
}

/// What has to be signed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VerifyMode {
    /// The tag, where it is signed; else the commit that is applied.
    #[default]
    Head,
    /// Every commit since the last one that was read, too.
    EachCommit,
}

/// A Secret in the namespace of the object that names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// The name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// How deletions are limited. What goes beyond waits for an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PruneSpec {
    /// Whether what git drops is deleted at all.
    pub enabled: bool,
    /// Deletions in one pass beyond which all of them are held; no approval covers more than the largest value.
    #[schemars(range(min = 0, max = APPROVAL_OBJECTS_MAX))]
    pub max_objects: u32,
    /// Share of the target's objects in percent beyond which deletions are held, where there are more than two of them.
    #[schemars(range(min = 0, max = 100))]
    pub max_percent: u32,
}

/// How long Runs that are over are kept: the newest so many, and none for longer than so many days. One whose record decides, whose
/// effects can still be taken back, or that a deploy still asks for is kept however old it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HistorySpec {
    /// The newest so many of each cluster.
    #[schemars(range(min = 1, max = RUN_HISTORY_RUNS_MAX))]
    pub runs: u32,
    /// Days after their end.
    #[schemars(range(min = 1, max = RUN_HISTORY_DAYS_MAX))]
    pub days: u32,
}

impl Default for HistorySpec {
    fn default() -> Self {
        Self {
            runs: RUN_HISTORY_RUNS,
            days: RUN_HISTORY_DAYS,
        }
    }
}

impl Default for PruneSpec {
    fn default() -> Self {
        Self {
            enabled: true,
            max_objects: 10,
            max_percent: 20,
        }
    }
}

/// What becomes of what a source has applied when the source is deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// It stays, with its labels.
    #[default]
    Orphan,
    /// It is deleted first.
    Delete,
}

/// Where the catalog goes on the cluster that the agent runs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CatalogSpec {
    /// The namespace of ModuleReleaseMetas and ModuleTemplates.
    #[schemars(regex(pattern = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"))]
    pub namespace: String,
}

impl Default for CatalogSpec {
    fn default() -> Self {
        Self {
            namespace: "kcp-system".to_owned(),
        }
    }
}

/// What becomes of the catalogs of runtime clusters: the Kymas in the catalog's namespace, each reached through the kubeconfig
/// Secret beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimesSpec {
    /// `Off`: runtimes are not looked at. `Observe`: lifecycle-manager syncs the catalogs; the agent watches when each runtime
    /// shows a revision, and writes nothing there. `Sync`: the agent syncs the catalogs; nobody else may.
    pub catalog: CatalogMode,
    /// How many runtimes may be unreachable before `Ready` says so: a number, or a share such as `10%`.
    #[schemars(
        length(min = 1, max = 8),
        regex(pattern = r"^([0-9]{1,6}|[0-9]{1,3}%)$")
    )]
    pub tolerate: String,
}

impl Default for RuntimesSpec {
    fn default() -> Self {
        Self {
            catalog: CatalogMode::Off,
            tolerate: "10%".to_owned(),
        }
    }
}

impl RuntimesSpec {
    /// Returns how many of so many runtimes may be unreachable; a share is rounded down.
    pub fn tolerated(&self, total: usize) -> usize {
        let number = |text: &str| text.parse::<usize>().unwrap_or(0);
        match self.tolerate.strip_suffix('%') {
            Some(percent) => total * number(percent).min(100) / 100,
            None => number(&self.tolerate),
        }
    }
}

/// Who keeps the catalogs of runtimes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CatalogMode {
    /// Nobody that we know of; runtimes are not looked at.
    #[default]
    Off,
    /// Somebody else; it is only watched.
    Observe,
    /// The agent.
    Sync,
}

/// How the runtimes of a source stand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimesStatus {
    /// All runtimes.
    pub total: i64,
    /// Those whose catalog is as the last revision wants it.
    pub synced: i64,
    /// Those that can be reached and are not there yet, or are held.
    pub behind: i64,
    /// Those that cannot be reached.
    pub unreachable: i64,
}

/// How far the agent has come with a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReleaseSourceStatus {
    /// The generation of the spec that the rest of this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The last value of the annotation `fairway.dev/requestedAt` that was acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub last_handled_reconcile_at: Option<String>,
    /// The last revision that was read, written `main@sha1:…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision: Option<String>,
    /// The last revision that was applied with nothing held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_revision: Option<String>,
    /// `lastAppliedRevision`, shortened for reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// What is known, one entry for each type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// What is wanted but held, the first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = HOLDS_LISTED_MAX), extend("x-kubernetes-list-type" = "atomic"))]
    pub holds: Vec<HeldItem>,
    /// How many things are held in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_count: Option<i64>,
    /// How the runtimes stand, where the source has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtimes: Option<RuntimesStatus>,
    /// The last revisions, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = HISTORY_MAX), extend("x-kubernetes-list-type" = "atomic"))]
    pub history: Vec<HistoryEntry>,
    /// What was heard through the webhook. Another task writes it than the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookStatus>,
}

/// Something wanted that is not done yet on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldItem {
    /// What is held: an object, a component, a deletion, a revision.
    pub what: String,
    /// The stable word for why.
    pub reason: String,
    /// Why, and what lifts the hold.
    pub message: String,
    /// The place in git that caused it, written `file:line:column`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// What became of one revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// The revision, written `main@sha1:…`.
    pub revision: String,
    /// When its first pass started.
    pub started: Time,
    /// From then until it had this result, written `1m30s`.
    pub duration: String,
    /// Objects that were applied or deleted for it.
    pub changed: i64,
    /// The reason of `Ready` that it ended with.
    pub result: String,
}

fn root() -> String {
    ".".to_owned()
}

fn five_minutes() -> String {
    "5m".to_owned()
}

fn former_managers() -> Vec<String> {
    [
        "catalog-sync",
        "kubectl-client-side-apply",
        "before-first-apply",
    ]
    .map(str::to_owned)
    .to_vec()
}
