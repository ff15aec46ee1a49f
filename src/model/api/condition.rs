//! One condition, and the rules by which it changes.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conditions::{ConditionReason, ConditionType};

/// One aspect of the state of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about: `Ready`, `Valid`, …
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 64))]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// The stable word for why.
    #[schemars(length(min = 1, max = 64))]
    pub reason: String,
    /// Why, for people, with the way out.
    #[schemars(length(max = 4096))]
    pub message: String,
    /// The generation of the resource that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When `status` last changed; a new reason or message does not move it.
    pub last_transition_time: Time,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It is not known yet.
    Unknown,
}

/// Finds a condition by its type.
pub fn find(conditions: &[Condition], type_: ConditionType) -> Option<&Condition> {
    conditions
        .iter()
        .find(|condition| condition.type_ == type_.as_str())
}

/// Sets a condition. Its transition time moves only when its status does, and the list keeps the order of
/// [`ConditionType::ALL`], so that the same state is always written the same way.
pub fn set(
    conditions: &mut Vec<Condition>,
    type_: ConditionType,
    (status, reason, message): (ConditionStatus, ConditionReason, String),
    generation: Option<i64>,
    now: Timestamp,
) {
    let last_transition_time = match find(conditions, type_) {
        Some(before) if before.status == status => before.last_transition_time.clone(),
        _ => Time(now),
    };
    unset(conditions, type_);
    conditions.push(Condition {
        type_: type_.as_str().to_owned(),
        status,
        reason: reason.as_str().to_owned(),
        message,
        observed_generation: generation,
        last_transition_time,
    });
    conditions.sort_by_key(|condition| {
        ConditionType::ALL
            .iter()
            .position(|known| known.as_str() == condition.type_)
            .unwrap_or(usize::MAX)
    });
}

/// Removes a condition; `Reconciling` and `Stalled` are only there while they are true.
pub fn unset(conditions: &mut Vec<Condition>, type_: ConditionType) {
    conditions.retain(|condition| condition.type_ != type_.as_str());
}

/// Returns whether two statuses would be stored differently. Times count to the second, as they are stored, so that what
/// was read back equals what was written.
pub fn status_differs<S: Serialize>(before: &S, after: &S) -> bool {
    let stored = |status: &S| {
        serde_json::to_value(status).expect("a status has text keys and no non-finite numbers")
    };
    stored(before) != stored(after)
}
