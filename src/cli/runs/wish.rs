//! Writing what a person wants of a run, and waiting until the agent has taken it up.

use std::io::Write;
use std::time::Duration;

use kube::runtime::wait::await_condition;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::paste::{Paste, phase_of};
use crate::agent::clock;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::get::{age, moment};
use crate::cli::resources::{Home, MANAGER};
use crate::cli::terminal::printable;
use crate::cluster::Patch;
use crate::model::api::{Resolution, Run, RunCommand, RunVerb};
use crate::model::names;

/// How long is waited for the agent, where nothing else was said: its watch tells it within milliseconds.
pub(super) const PATIENCE: &str = "10s";

/// What is wanted, before it is dated.
pub(super) struct Wish {
    pub(super) verb: RunVerb,
    pub(super) step: Option<String>,
    pub(super) resolution: Option<Resolution>,
    pub(super) until: Option<jiff::Timestamp>,
    pub(super) by: String,
    pub(super) reason: String,
}

// === impl Wish ===

impl Wish {
    /// Writes the wish into a run, and returns it as it stands there. One that the agent has not taken up yet is replaced.
    pub(super) async fn write(&self, home: &Home, run: &Run) -> Result<RunCommand, Failure> {
        let command = RunCommand {
            verb: self.verb,
            step: self.step.clone(),
            resolution: self.resolution,
            by: self.by.clone(),
            reason: self.reason.clone(),
            at: RunCommand::next_date(run, clock::now()),
            until: self.until,
        };
        let text = serde_json::to_string(&command).map_err(Failure::of)?;
        let patch = json!({"metadata": {"annotations": {names::ANNOTATION_COMMAND: text}}});
        let name = run.name_any();
        let patched = home.cluster.patch::<Run>(
            &home.namespace,
            &name,
            None,
            MANAGER,
            (Patch::Merge, &patch),
        );
        patched.await.map_err(Failure::of)?;
        Ok(command)
    }
}

/// Says that a wish which nobody has taken up is replaced by the next.
pub(super) fn warn_about_replaced(run: &Run, context: &mut Context) -> Result<(), Failure> {
    if let Some(wish) = RunCommand::wished(run).filter(|wish| !wish.is_taken(run)) {
        writeln!(
            context.err,
            "this replaces what {} wanted {} ago and no agent has taken up: {}",
            wish.by,
            age(wish.at),
            wish.verb
        )?;
    }
    Ok(())
}

/// Waits until the agent has taken a command up; returns the run as it is then, or none when the time is over.
pub(super) async fn until_taken(
    home: &Home,
    name: &str,
    command: &RunCommand,
    patience: Duration,
) -> Result<Option<Run>, Failure> {
    let api: Api<Run> = Api::namespaced(home.cluster.client(), &home.namespace);
    // A run that is gone waits for nothing any more.
    let taken = |run: Option<&Run>| run.is_none_or(|run| command.is_taken(run));
    match tokio::time::timeout(patience, await_condition(api, name, taken)).await {
        Ok(Ok(Some(run))) => Ok(Some(run)),
        Ok(Ok(None)) => Err(Failure::Misuse(format!("the run {name} was deleted"))),
        Ok(Err(error)) => Err(Failure::of(error)),
        Err(_) => Ok(None),
    }
}

/// Says what became of a command, and returns whether the agent has taken it up.
pub(super) fn tell(
    (name, command): (&str, &RunCommand),
    taken: Option<&Run>,
    patience: Duration,
    context: &mut Context,
) -> Result<bool, Failure> {
    let Some(run) = taken else {
        let check = Paste::of(context).command("check");
        let at = moment(command.at);
        writeln!(
            context.err,
            "no agent has taken this up within {patience:?}: {name}\n  it stays written there, dated {at}, and counts as soon as an \
             agent looks, or fairway sync runs again where there is none\n  is one running? {check}"
        )?;
        return Ok(false);
    };
    let status = run.status.clone().unwrap_or_default();
    let of_this = format!("{} by {}", command.verb, command.by);
    let heard = status
        .timeline
        .iter()
        .rfind(|entry| entry.what.starts_with(&of_this));
    if let Some(entry) = heard.filter(|entry| entry.what.contains("has no meaning")) {
        // It was in another phase by the time that the agent looked.
        writeln!(
            context.err,
            "the agent did nothing: {}",
            printable(&entry.what)
        )?;
        return Ok(false);
    }
    let message = match status.message.lines().next() {
        Some(message) => format!(": {message}"),
        None => String::new(),
    };
    writeln!(
        context.err,
        "the agent has taken this up: {name} is {}{}",
        phase_of(run),
        printable(&message)
    )?;
    Ok(true)
}
