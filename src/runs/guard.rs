//! What a guard decides: whether there is work, and whether it may be done. Pure over what the lookups found.
//!
//! There are three answers to a question, and unknown is never taken for false: a lookup that failed, an expression that names what
//! is not there or takes too long make the decision [`Decision::Unknown`], whatever else holds, except that a precondition
//! which is certainly false blocks all the same.

use serde_json::Value;

use super::lookups::Scene;
use super::sight::Open;
use crate::expression::{EvaluationError, Expression, evidence};
use crate::model::ModuleVersion;
use crate::model::api::{Evidence, RunSpec};
use crate::model::migration::{Decision, Lifecycle, OnFalse, RunPolicy};

/// What a guard decided, and by what.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// Why, and what a person must do; empty where there is nothing to say.
    pub message: String,
    /// Where it is explained.
    pub runbook: Option<String>,
    /// The stable word for why it blocks; empty where it does not.
    pub reason: &'static str,
    /// Whether a person may say that it does not count: a precondition, for a limited time.
    pub may_be_overridden: bool,
}

/// One question and its answer.
struct Asked {
    holds: Result<bool, EvaluationError>,
    evidence: Evidence,
}

/// Returns the expressions of a guard: those that compile.
pub fn guard_expressions(spec: &RunSpec) -> Vec<Expression> {
    let guard = &spec.definition.guard;
    std::iter::once(&guard.needed)
        .chain(guard.requires.iter().map(|requirement| &requirement.cel))
        .filter_map(|text| Expression::compile(text).ok())
        .collect()
}

/// Decides. With `overridden`, preconditions that are false do not count; nor do those whose answer is not final, by `open`.
pub fn decide(spec: &RunSpec, scene: &Scene, overridden: bool, open: &Open) -> Verdict {
    let definition = &spec.definition;
    if let Some(message) = not_yet(spec) {
        return Verdict::new(Decision::NotNeeded, Vec::new(), message);
    }
    if let Some(message) = scene.unknown() {
        return Verdict::new(Decision::Unknown, Vec::new(), message);
    }
    let needed = ask("needed", &definition.guard.needed, scene);
    let mut found = vec![needed.evidence];
    match (needed.holds, definition.policy.run) {
        (Err(error), _) => {
            return Verdict::new(Decision::Unknown, found, format!("`needed`: {error}"));
        }
        (Ok(false), policy) if policy != RunPolicy::Always || expired(spec) => {
            return Verdict::new(Decision::NotNeeded, found, String::new());
        }
        _ => {}
    }
    if expired(spec) {
        if open.concerns(&definition.guard.needed) {
            return Verdict::new(Decision::NotNeeded, found, String::new());
        }
        return Verdict {
            reason: "HopSkipped",
            ..Verdict::new(Decision::Block, found, skipped_release(spec))
        };
    }
    require(spec, scene, (overridden, open), &mut found)
}

/// Asks the preconditions, all of them: one that is certainly false blocks even where another is unknown.
fn require(
    spec: &RunSpec,
    scene: &Scene,
    (overridden, open): (bool, &Open),
    found: &mut Vec<Evidence>,
) -> Verdict {
    let (mut block, mut skip, mut unknown) = (None, None, None);
    for (index, requirement) in spec.definition.guard.requires.iter().enumerate() {
        let asked = ask(&format!("requires[{index}]"), &requirement.cel, scene);
        found.push(asked.evidence);
        match asked.holds {
            Ok(true) => {}
            _ if open.concerns(&requirement.cel) => {}
            Ok(false) if requirement.on_false == OnFalse::Block => {
                block.get_or_insert(requirement);
            }
            Ok(false) => {
                skip.get_or_insert(requirement);
            }
            Err(error) => {
                unknown.get_or_insert_with(|| format!("`requires[{index}]`: {error}"));
            }
        }
    }
    let found = std::mem::take(found);
    let refused = |decision, requirement: &crate::model::migration::Requirement| Verdict {
        decision,
        evidence: found.clone(),
        message: requirement.message.clone(),
        runbook: requirement.runbook.clone(),
        reason: if decision == Decision::Block {
            "RequirementFalse"
        } else {
            ""
        },
        may_be_overridden: decision == Decision::Block,
    };
    match (block, unknown, skip) {
        (Some(requirement), _, _) if !overridden => refused(Decision::Block, requirement),
        (_, Some(message), _) => Verdict::new(Decision::Unknown, found, message),
        (_, None, Some(requirement)) if !overridden => refused(Decision::Skip, requirement),
        _ => Verdict::new(Decision::Run, found, String::new()),
    }
}

/// Whether the work of a run is done, by the state of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum Proof {
    /// It is, by this evidence. There is none where the policy says that the record decides and nothing can be observed.
    Done(Option<Evidence>),
    /// It is not.
    NotDone(Evidence),
    /// Nobody knows now.
    Unknown(String),
}

/// Asks whether the work is done: `doneWhen`, or that it is not `needed` any more. Where the record decides and there is no
/// `doneWhen`, that every step is done is all that can be said.
pub fn prove(spec: &RunSpec, scene: &Scene) -> Proof {
    let guard = &spec.definition.guard;
    let (about, text, wanted) = match &guard.done_when {
        Some(text) => ("doneWhen", text, true),
        None if spec.definition.policy.run == RunPolicy::WhenNeeded => {
            ("needed", &guard.needed, false)
        }
        None => return Proof::Done(None),
    };
    if let Some(message) = scene.unknown() {
        return Proof::Unknown(message);
    }
    let asked = ask(about, text, scene);
    match asked.holds {
        Ok(holds) if holds == wanted => Proof::Done(Some(asked.evidence)),
        Ok(_) => Proof::NotDone(asked.evidence),
        Err(error) => Proof::Unknown(format!("`{about}`: {error}")),
    }
}

fn ask(about: &str, text: &str, scene: &Scene) -> Asked {
    match Expression::compile(text) {
        Ok(expression) => {
            let holds = expression.holds(&scene.bindings);
            let value = holds.clone().map(Value::Bool);
            Asked {
                holds,
                evidence: evidence(about, &expression, &scene.bindings, &value),
            }
        }
        // The definition was checked when it was read; a record that somebody has edited was not.
        Err(error) => Asked {
            holds: Err(EvaluationError {
                message: error.to_string(),
            }),
            evidence: Evidence {
                about: about.to_owned(),
                expression: text.to_owned(),
                result: format!("unknown: {error}"),
                values: std::collections::BTreeMap::new(),
                at: None,
            },
        },
    }
}

impl Verdict {
    pub(super) fn new(decision: Decision, evidence: Vec<Evidence>, message: String) -> Self {
        Self {
            decision,
            evidence,
            message,
            runbook: None,
            reason: "",
            may_be_overridden: false,
        }
    }
}

// === lifecycle ===

/// Returns the version that a lifecycle is measured on, where there is one.
fn measured(spec: &RunSpec) -> Option<ModuleVersion> {
    let text = spec.to.as_deref().or(spec.release.as_deref())?;
    ModuleVersion::parse(text).ok()
}

fn version(text: Option<&String>) -> Option<ModuleVersion> {
    ModuleVersion::parse(text?).ok()
}

/// Returns why a migration has no part in this deploy yet.
fn not_yet(spec: &RunSpec) -> Option<String> {
    let introduced = version(spec.definition.lifecycle.introduced_in.as_ref())?;
    let to = measured(spec)?;
    (to < introduced).then(|| format!("it takes part from {introduced} on, and this is {to}"))
}

/// Returns whether a migration never runs again: retired, or for releases before this one.
fn expired(spec: &RunSpec) -> bool {
    if spec.definition.steps.is_empty() {
        return true;
    }
    let removed = version(spec.definition.lifecycle.remove_in.as_ref());
    match (removed, measured(spec)) {
        (Some(removed), Some(to)) => to >= removed,
        _ => false,
    }
}

/// Says which release was skipped, and what to do.
fn skipped_release(spec: &RunSpec) -> String {
    let Lifecycle {
        introduced_in,
        remove_in,
        ..
    } = &spec.definition.lifecycle;
    let what = spec.component.as_deref().unwrap_or("the repository");
    let from = introduced_in.as_deref().unwrap_or("an earlier release");
    let range = match remove_in {
        Some(removed) => format!("{from}, or any release below {removed}"),
        None => from.to_owned(),
    };
    format!(
        "the cluster skipped a required hop: migration {} has ended and is still needed here; deploy {what} {range} first",
        spec.migration
    )
}
