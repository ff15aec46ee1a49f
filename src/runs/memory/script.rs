//! What steps that leave the model come to.

use serde_json::Value;

use crate::runs::ResourceKind;

/// What the Job or the request of a step comes to, and what is different in the cluster afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// The exit code of a Job.
    pub exit_code: i32,
    /// The status of an answer over HTTP.
    pub status: u16,
    /// What a Job writes as its termination message, or the body of an answer.
    pub result: Value,
    /// Objects that are there, or gone, after the step's first effect, or after its first look where it only waits. It happens
    /// once, however often the step is tried.
    pub leaves: Vec<Leaves>,
    /// Whether the step only waits.
    pub by_waiting: bool,
}

/// One object that a step leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaves {
    /// The kind.
    pub kind: ResourceKind,
    /// The namespace.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// What is merged into it; null where it is gone.
    pub object: Value,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            exit_code: 0,
            status: 200,
            result: Value::Null,
            leaves: Vec::new(),
            by_waiting: false,
        }
    }
}
