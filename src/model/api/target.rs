//! Target: what one source has done on one cluster. Nobody writes it but the agent, and it has no spec.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condition::Condition;
use crate::model::SourceName;
use crate::model::limits::{
    APPROVAL_OBJECTS_MAX, CLAIMS_MAX, COMMITTED_MAX, DEPLOY_COMPONENTS_MAX, JOBS_REMEMBERED_MAX,
    LEFT_OUT_LISTED_MAX, ONCE_REMEMBERED_MAX, PENDING_REASONS_MAX, PENDING_SAMPLE_MAX,
};
use crate::model::migration::{DeployAction, DeployComponent};

/// The name of the cluster that the agent runs in.
pub const HOME: &str = "home";

/// Returns the name of the Target of a source on a cluster. A source's name has no dot, so that names cannot collide.
pub fn target_name(source: &SourceName, cluster: &str) -> String {
    format!("{source}.{cluster}")
}

/// The fields of a Target beside its status: none, since everything about it is observed.
#[expect(
    clippy::duplicated_attributes,
    reason = "columns of the same type are not the same attribute"
)]
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "fairway.dev",
    version = "v1alpha1",
    kind = "Target",
    namespaced,
    no_spec,
    status = "TargetStatus",
    derive = "PartialEq",
    shortname = "tgt",
    category = "fairway",
    doc = "What one source has done on one cluster. Written by the agent alone; do not delete it: without this record nothing is pruned.",
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
    printcolumn(
        name = "Revision",
        type_ = "string",
        json_path = ".status.shortRevision"
    ),
    printcolumn(name = "Objects", type_ = "integer", json_path = ".status.objects"),
    printcolumn(
        name = "To prune",
        type_ = "integer",
        json_path = ".status.pendingPrune.count"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Since",
        type_ = "date",
        json_path = ".status.since",
        priority = "1"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = "1"
    )
)]
pub struct TargetFields {}

/// What one source has done on one cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetStatus {
    /// The uid of the cluster's namespace `kube-system`: a cluster that was built anew under the same address has another.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub cluster_uid: Option<String>,
    /// The uid of the cluster that the kubeconfig leads to now, while that is another one than `clusterUid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub found_cluster_uid: Option<String>,
    /// The ReleaseSource.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub source: Option<String>,
    /// The revision that is applied here with nothing held, written `main@sha1:…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// `revision`, shortened for reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_revision: Option<String>,
    /// Since when that revision is applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// What is known, one entry for each type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// Kinds that were ever applied here, written `Kind.group`; a kind is added before its first object is applied, so that
    /// nothing is forgotten when git drops the last one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512), inner(length(max = 320)), extend("x-kubernetes-list-type" = "set"))]
    pub kinds: Vec<String>,
    /// How many objects of this source are in step here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<i64>,
    /// What the catalog of this runtime does not have of home's, and why: the first of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = LEFT_OUT_LISTED_MAX), extend("x-kubernetes-list-type" = "atomic"))]
    pub left_out: Vec<LeftOut>,
    /// Deletions that wait for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_prune: Option<PendingPrune>,
    /// The deletions that a person has approved last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRecord>,
    /// Objects of this source that other sources of the same agent want as well. They stay as this one has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = CLAIMS_MAX), extend("x-kubernetes-list-type" = "atomic"))]
    pub claims: Vec<Claim>,
    /// Jobs that were created here. Each is created once for each content; that it is gone later is no drift.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = JOBS_REMEMBERED_MAX), extend("x-kubernetes-list-type" = "atomic"))]
    pub jobs: Vec<CreatedJob>,
    /// What was committed of each component that has migrations: a deploy that differs from it makes them due.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = COMMITTED_MAX),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub components: Vec<CommittedRecord>,
    /// How far the deploy as a whole is, where there are global migrations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deploy: Option<DeployRecord>,
    /// Components that said `onRemove: Undo` when git had them last: when one is removed, what its migrations have changed is taken
    /// back before its objects are deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = COMMITTED_MAX), inner(length(max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub undo_on_remove: Vec<String>,
    /// Runs that happen once and were begun here. One whose Run is gone is never run again by itself: a person is asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = ONCE_REMEMBERED_MAX),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["run"])
    )]
    pub once_runs: Vec<OnceRunRecord>,
    /// Migrations that happen once and of which nobody knows whether they ever ran here, since this record was lost, and their Run
    /// with it, if there was any. Such a one is never run by itself: a person is asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ONCE_REMEMBERED_MAX), inner(length(max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub once_doubts: Vec<String>,
}

/// A run that happens once and was begun.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnceRunRecord {
    /// The name of the Run.
    #[schemars(length(max = 253))]
    pub run: String,
    /// Its uid: a Run of this name with another one does not say all that was done.
    #[schemars(length(max = 64))]
    pub uid: String,
}

/// What was committed of one component that has migrations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommittedRecord {
    /// The component, written `components/NAME` or `modules/NAME`.
    #[schemars(length(max = 253))]
    pub name: String,
    /// The digest of the deploy that was committed: applied, healthy, and its migrations done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub digest: Option<String>,
    /// The version that was committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub version: Option<String>,
    /// The deploy whose pre migrations are done and that is not committed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub begun: Option<String>,
    /// What that deploy does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_as: Option<DeployAction>,
}

/// How far the deploy as a whole is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DeployRecord {
    /// The digest of the deploy whose global pre migrations are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub pre: Option<String>,
    /// The digest of the deploy whose global post migrations are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub post: Option<String>,
    /// What the deploy `pre` does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<DeployAction>,
    /// What it does with each component, until its global post migrations are done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = DEPLOY_COMPONENTS_MAX), extend("x-kubernetes-list-type" = "atomic"))]
    pub components: Vec<DeployComponent>,
}

/// An object of this source that another one wants as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The object, written `Kind.group namespace/name`.
    #[schemars(length(max = 1024))]
    pub object: String,
    /// The other source.
    #[schemars(length(max = 63))]
    pub by: String,
}

/// A Job that was created, or is about to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatedJob {
    /// Its namespace.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// The digest of its `spec`.
    #[schemars(length(max = 64))]
    pub digest: String,
    /// The uid of the Job that was created; none as long as it was only begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub uid: Option<String>,
}

/// Something of home's catalog that a runtime does not get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// The module, and the channel where it is only that.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// A set of deletions that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingPrune {
    /// The digest of the set; an approval names it.
    pub digest: String,
    /// How many objects it has.
    pub count: i64,
    /// Since when this set waits.
    pub since: Time,
    /// Why it is held.
    #[schemars(length(max = PENDING_REASONS_MAX), extend("x-kubernetes-list-type" = "atomic"))]
    pub reasons: Vec<String>,
    /// The first of the objects.
    #[schemars(length(max = PENDING_SAMPLE_MAX), extend("x-kubernetes-list-type" = "atomic"))]
    pub sample: Vec<String>,
}

/// A person's decision to let deletions happen. It stays valid while the set only shrinks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRecord {
    /// The digest of the set that was approved.
    pub digest: String,
    /// A short hash of each object (key and uid) of that set, in hexadecimal.
    #[schemars(
        length(max = APPROVAL_OBJECTS_MAX),
        inner(regex(pattern = "^[0-9a-f]{16}$")),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub objects: Vec<String>,
    /// Who approved.
    #[schemars(length(max = 256))]
    pub by: String,
    /// Why.
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// When.
    pub at: Time,
}

impl ApprovalRecord {
    /// Returns the hashes; one that is no hexadecimal number approves nothing.
    pub fn fingerprints(&self) -> BTreeSet<u64> {
        self.objects
            .iter()
            .filter_map(|text| u64::from_str_radix(text, 16).ok())
            .collect()
    }

    /// Returns hashes in their stored form.
    pub fn stored(fingerprints: &BTreeSet<u64>) -> Vec<String> {
        fingerprints
            .iter()
            .map(|hash| format!("{hash:016x}"))
            .collect()
    }
}
