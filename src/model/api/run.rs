//! Run: the durable record of one migration (later also of one operation) on one cluster. Nobody writes it but the agent;
//! a person's word reaches it through the annotation `fairway.dev/command`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::limits::{RUN_COMMANDS_MAX, RUN_STEPS_MAX, RUN_TIMELINE_MAX};
use crate::model::migration::{Decision, DeployAction, DeployComponent, HookPhase, MigrationSpec};

/// What a run is of. It never changes: a definition that changes in git makes another run.
#[expect(
    clippy::duplicated_attributes,
    reason = "columns of the same type are not the same attribute"
)]
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "fairway.dev",
    version = "v1alpha1",
    kind = "Run",
    namespaced,
    status = "RunStatus",
    derive = "PartialEq",
    category = "fairway",
    doc = "One execution of a migration on one cluster: what it did, with evidence. Written by the agent alone.",
    printcolumn(name = "Component", type_ = "string", json_path = ".spec.component"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Step", type_ = "string", json_path = ".status.currentStep"),
    printcolumn(name = "Since", type_ = "date", json_path = ".status.since"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Owner",
        type_ = "string",
        json_path = ".spec.definition.owner",
        priority = "1"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.message",
        priority = "1"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct RunSpec {
    /// The ReleaseSource.
    #[schemars(length(max = 63))]
    pub source: String,
    /// The cluster it runs on: `home`, or a runtime's name.
    #[schemars(length(max = 253))]
    pub cluster: String,
    /// The identity of that cluster: the uid of its namespace kube-system.
    #[schemars(length(max = 64))]
    pub cluster_uid: String,
    /// The migration's name.
    #[schemars(length(max = 253))]
    pub migration: String,
    /// The component that it runs for; none for a global migration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub component: Option<String>,
    /// Before or after it is applied.
    pub phase: HookPhase,
    /// What the deploy does with the component; none for a global migration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<DeployAction>,
    /// The version that the component had, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub from: Option<String>,
    /// The version that the component is to have, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub to: Option<String>,
    /// The release that `fairway.yaml` names, for what has no version of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub release: Option<String>,
    /// The revision that asked for it, written `main@sha1:…`.
    #[schemars(length(max = 512))]
    pub revision: String,
    /// The author of the commit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 320))]
    pub author: String,
    /// Where the definition stands in git: `components/logging/migrations/grow.yaml:3:1`.
    #[schemars(length(max = 1024))]
    pub place: String,
    /// Which deploy: the digest of what the component, or the whole revision, is to become.
    #[schemars(length(max = 64))]
    pub deploy: String,
    /// The digest of the definition.
    #[schemars(length(max = 64))]
    pub definition_digest: String,
    /// The definition itself: a run ends as it began, whatever happens in git.
    #[schemars(schema_with = "any_object")]
    pub definition: MigrationSpec,
    /// What the revision would apply for each lookup that expressions name as `desired.NAME`. Never a Secret's values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "any_object")]
    pub desired: BTreeMap<String, Value>,
    /// The components that the deploy processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512), extend("x-kubernetes-list-type" = "atomic"))]
    pub components: Vec<DeployComponent>,
    /// Hosts that `http` steps may call, from `fairway.yaml`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 253)), extend("x-kubernetes-list-type" = "atomic"))]
    pub http_hosts: Vec<String>,
}

fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

fn any_value(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

/// How far a run is.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum RunPhase {
    /// It is written down, and nothing was done.
    #[default]
    Pending,
    /// A step is being done.
    Running,
    /// It waits for the cluster, a Job, or a delay after a failure; it goes on by itself.
    Waiting,
    /// A precondition is false; it goes on by itself once that is true.
    Blocked,
    /// A person has told it to stop before its next step.
    Paused,
    /// Nobody knows whether a step took effect, or a record was lost; a person must look and say: `fairway run resolve`.
    Manual,
    /// A person has cancelled it; what is under way may end.
    Cancelling,
    /// The guard proved that the work is done.
    Succeeded,
    /// It ended without success.
    Failed,
    /// A person has cancelled it.
    Cancelled,
    /// Before it had an effect, its definition or target changed; another run took its place.
    Superseded,
}

impl RunPhase {
    /// Returns whether the run has come to its end.
    pub fn is_over(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::Superseded
        )
    }

    /// Returns the word as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Waiting => "Waiting",
            Self::Blocked => "Blocked",
            Self::Paused => "Paused",
            Self::Manual => "Manual",
            Self::Cancelling => "Cancelling",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
            Self::Superseded => "Superseded",
        }
    }
}

impl std::fmt::Display for RunPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a run stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RunStatus {
    /// How far it is.
    pub phase: RunPhase,
    /// Why it is there, as a stable word; empty where the phase says it all.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub reason: String,
    /// What it waits for or what went wrong, with the way out.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 4096))]
    pub message: String,
    /// Since when it is in this phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// The step that is done or waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub current_step: Option<String>,
    /// When it is looked at again by itself, where it waits or is blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Time>,
    /// How often the guard was unknown since it last was not.
    #[serde(skip_serializing_if = "is_none_yet")]
    pub unknown_guards: u32,
    /// How often the proof of success was asked for in this round and did not hold.
    #[serde(skip_serializing_if = "is_none_yet")]
    pub open_proofs: u32,
    /// Whether the effects are being taken back, or were.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub undoing: bool,
    /// Who wrote this last: the Lease's uid and its count of transitions. Compared for equality, never ordered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub claim: Option<String>,
    /// When the first effect was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it came to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// Active time so far, in milliseconds: without waiting for people, and without the time while no agent was there.
    #[serde(skip_serializing_if = "is_zero")]
    pub active_milliseconds: u64,
    /// How often the whole run was begun: once, and once more for each `fairway run retry`.
    #[serde(skip_serializing_if = "is_zero")]
    pub rounds: u64,
    /// What the guard decided, before and after.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub evidence: Vec<Evidence>,
    /// The steps that were begun or left out, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = RUN_STEPS_MAX), extend("x-kubernetes-list-type" = "atomic"))]
    pub steps: Vec<StepRecord>,
    /// The steps that took the effects back, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = RUN_STEPS_MAX), extend("x-kubernetes-list-type" = "atomic"))]
    pub undone: Vec<StepRecord>,
    /// What happened, the newest last; the oldest go first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = RUN_TIMELINE_MAX), extend("x-kubernetes-list-type" = "atomic"))]
    pub timeline: Vec<TimelineEntry>,
    /// What people have decided about this run, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = RUN_COMMANDS_MAX), extend("x-kubernetes-list-type" = "atomic"))]
    pub commands: Vec<RunCommand>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_none_yet(count: &u32) -> bool {
    *count == 0
}

/// What an expression came to, and by what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// What was asked: `needed`, `requires[0]`, `doneWhen`, `when`, `until`.
    #[schemars(length(max = 64))]
    pub about: String,
    /// The expression.
    #[schemars(length(max = 4096))]
    pub expression: String,
    /// `true`, `false`, or `unknown: WHY`.
    #[schemars(length(max = 1024))]
    pub result: String,
    /// The values of the paths that it names. Of a Secret only its metadata, type and the names of its keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "any_object")]
    pub values: BTreeMap<String, Value>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

/// How a step stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StepState {
    /// An attempt was written down, and its result was not: it may or may not have had its effect.
    #[default]
    Running,
    /// An attempt ended without the end of the step: it is looked at, or tried, again.
    Waiting,
    /// It is done.
    Done,
    /// `when` was false.
    Skipped,
    /// It failed for good.
    Failed,
    /// Nobody knows.
    Unknown,
}

/// One step of a run, or one element of a `forEach`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StepRecord {
    /// The step.
    #[schemars(length(max = 63))]
    pub id: String,
    /// The element of `forEach`: its namespace and name, or its position.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub item: Option<String>,
    /// What the element is, so that an attempt is gone on with when the list does not have it any more: of an object its kind, name
    /// and uid, otherwise itself.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "any_value")]
    pub element: Value,
    /// How it stands.
    pub state: StepState,
    /// Attempts so far, the present one included. It only rises: names of Jobs are derived from it.
    pub attempts: u32,
    /// Attempts that do not count against the limit: those of earlier rounds, and those that failed before anything was sent.
    #[serde(skip_serializing_if = "is_none_yet")]
    pub free_attempts: u32,
    /// Failures one after another; the delay before the next attempt grows with them.
    #[serde(skip_serializing_if = "is_none_yet")]
    pub failures: u32,
    /// Whether the last attempt failed and another is to be made; otherwise what waits is looked at again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub retrying: bool,
    /// Active time of all attempts, in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub active_milliseconds: u64,
    /// Active time of the present attempt, in milliseconds: it survives restarts, so that none gets more than its time.
    #[serde(skip_serializing_if = "is_zero")]
    pub attempt_milliseconds: u64,
    /// How often this was found `Running` by an agent that had not begun it.
    #[serde(skip_serializing_if = "is_none_yet")]
    pub restarts: u32,
    /// When it was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// When it is tried or looked at again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Time>,
    /// What went wrong last, or what is waited for.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
    /// What the kind of step needs to go on after a restart: the Job's name and uid, the last finished page. No secrets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "any_object")]
    pub progress: BTreeMap<String, Value>,
    /// What later steps may use.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "any_object")]
    pub outputs: BTreeMap<String, Value>,
    /// What was found and what was done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "atomic"))]
    pub evidence: Vec<Evidence>,
    /// Objects that were changed, with the values before and after that an undo is guarded by; bounded.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "any_value")]
    pub effect: Value,
    /// What an attempt was about to change, in the same form, written before it: what a killed process has changed is known by this.
    /// Only where the definition has an `undo`, and until `effect` says the same.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "any_value")]
    pub intended: Value,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// When.
    pub at: Time,
    /// What.
    #[schemars(length(max = 512))]
    pub what: String,
}

/// What a person wants of a run. In the annotation `fairway.dev/command` it is a wish; in `status.commands` it is acted on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunCommand {
    /// What.
    pub verb: RunVerb,
    /// For `resolve`: which step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub step: Option<String>,
    /// For `resolve`: what the person has seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
    /// Who.
    #[schemars(length(max = 256))]
    pub by: String,
    /// Why.
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// When; it tells commands apart.
    #[schemars(with = "Time")]
    pub at: Timestamp,
    /// For `override`: until when the precondition does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub until: Option<Timestamp>,
}

/// What can be wanted of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunVerb {
    /// Stop before the next step.
    Pause,
    /// Go on.
    Resume,
    /// Start no step any more, give running ones a little time, and end.
    Cancel,
    /// Try again what has failed, with a new budget.
    Retry,
    /// Go on though a precondition is false, for a limited time.
    Override,
    /// Say what became of a step of which nobody knows.
    Resolve,
}

/// What a person has seen of a step of which nobody knew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Resolution {
    /// It took effect.
    Done,
    /// It did not; try again.
    Again,
    /// Give the run up.
    Fail,
    /// Leave what is not taken back as it is: the undo ends.
    Keep,
}

/// What a guard decided, for a status or a message.
impl std::fmt::Display for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotNeeded => "NotNeeded",
            Self::Run => "Run",
            Self::Block => "Block",
            Self::Skip => "Skip",
            Self::Unknown => "Unknown",
        })
    }
}
