//! `fairway describe run`: what it waits for, whose it is and what can be done come first; then everything that is recorded.

use std::io::Write;

use kube::ResourceExt as _;
use serde_json::Value;

use super::find::{Known, is_over};
use super::paste::{Paste, phase_of};
use super::waiting::runbook;
use super::words::{
    holds_back, hop, since, since_of, status_of, step_name, step_state, took, waits_for, when,
};
use crate::cli::arguments::OutputFormat;
use crate::cli::connection::runtime;
use crate::cli::context::Context;
use crate::cli::failure::{Exit, Failure};
use crate::cli::get::moment;
use crate::cli::resources::Home;
use crate::cli::terminal::printable;
use crate::model::api::{Evidence, Run, RunCommand, RunStatus, StepRecord};
use crate::model::migration::{RunPolicy, Step, StepAction};

/// Longest value of evidence that is drawn on its line; `--output yaml` has all of it.
const VALUE_WIDTH: usize = 160;

/// Describes the run of a name.
pub(in crate::cli) fn describe(name: &str, context: &mut Context) -> Result<Exit, Failure> {
    let known = runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        Known::read(&home).await
    })?;
    let run = known.find(name)?;
    if context.output == OutputFormat::Text {
        let paste = Paste::of(context);
        let text = page(run, &known, &paste)?;
        context.out.write_all(printable(&text).as_bytes())?;
    } else {
        context.write_value(run)?;
    }
    Ok(Exit::Ok)
}

fn page(run: &Run, known: &Known, paste: &Paste) -> Result<String, Failure> {
    let mut out = Vec::new();
    let status = status_of(run);
    write_summary(&mut out, run, known, paste)?;
    writeln!(out)?;
    write_definition(&mut out, run, &status)?;
    if !status.evidence.is_empty() {
        writeln!(out, "Guard:")?;
        write_evidence(&mut out, &status.evidence, "  ")?;
    }
    write_steps(
        &mut out,
        run,
        ("Steps", &run.spec.definition.steps, &status.steps),
    )?;
    if !run.spec.definition.undo.is_empty() || !status.undone.is_empty() {
        write_steps(
            &mut out,
            run,
            ("Undo", &run.spec.definition.undo, &status.undone),
        )?;
    }
    if !status.timeline.is_empty() {
        writeln!(out, "Timeline:")?;
        for entry in &status.timeline {
            writeln!(out, "  {}  {}", moment(entry.at.0), entry.what)?;
        }
    }
    write_people(&mut out, run, &status)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// What somebody wants to know who was woken up.
fn write_summary(
    out: &mut Vec<u8>,
    run: &Run,
    known: &Known,
    paste: &Paste,
) -> Result<(), Failure> {
    let phase = phase_of(run);
    writeln!(out, "Run:        {}", run.name_any())?;
    writeln!(out, "Phase:      {phase}")?;
    let label = if is_over(run) {
        "Ended:      "
    } else {
        "Waits for:  "
    };
    for (index, line) in waits_for(run).lines().enumerate() {
        writeln!(
            out,
            "{}{line}",
            if index == 0 { label } else { "            " }
        )?;
    }
    if let Some(at) = since_of(run) {
        writeln!(out, "Since:      {}", since(at))?;
    }
    writeln!(out, "Owner:      {}", run.spec.definition.owner)?;
    writeln!(out, "Holds back: {}", holds_back(run, known))?;
    if let Some(runbook) = runbook(run) {
        writeln!(out, "How to:     {runbook}")?;
    }
    let offers = paste.offers(run, known);
    if offers.is_empty() {
        return Ok(());
    }
    writeln!(out, "You can:")?;
    for offer in offers {
        writeln!(out, "  {}\n      {}", offer.command, offer.purpose)?;
    }
    Ok(())
}

fn write_definition(out: &mut Vec<u8>, run: &Run, status: &RunStatus) -> Result<(), Failure> {
    let spec = &run.spec;
    let definition = &spec.definition;
    writeln!(out, "Migration:  {}, {}", spec.migration, when(run))?;
    if !definition.description.is_empty() {
        for line in definition.description.lines() {
            writeln!(out, "            {line}")?;
        }
    }
    writeln!(out, "Defined at: {}", spec.place)?;
    let author = match spec.author.as_str() {
        "" => String::new(),
        author => format!(" by {author}"),
    };
    writeln!(out, "Revision:   {}{author}", spec.revision)?;
    writeln!(out, "Digest:     {}", spec.definition_digest)?;
    writeln!(out, "Cluster:    {} ({})", spec.cluster, spec.cluster_uid)?;
    if definition.policy.run != RunPolicy::WhenNeeded {
        writeln!(out, "Policy:     {:?}", definition.policy.run)?;
    }
    if let Some(began) = &status.started_at {
        let ended = status
            .ended_at
            .as_ref()
            .map(|ended| format!(", ended {}", moment(ended.0)))
            .unwrap_or_default();
        writeln!(out, "Began:      {}{ended}", moment(began.0))?;
    }
    let rounds = match status.rounds {
        0 | 1 => String::new(),
        rounds => format!(", in round {rounds}"),
    };
    writeln!(
        out,
        "Active:     {} of {}{rounds}",
        took(status.active_milliseconds),
        definition.policy.timeout
    )?;
    let others = spec
        .components
        .iter()
        .filter(|one| Some(&one.name) != spec.component.as_ref());
    let others: Vec<&str> = others.map(|one| one.name.as_str()).collect();
    if !others.is_empty() {
        writeln!(out, "Deployed too: {}", others.join(", "))?;
    }
    Ok(())
}

fn write_evidence(out: &mut Vec<u8>, evidence: &[Evidence], indent: &str) -> Result<(), Failure> {
    for one in evidence {
        let at = one
            .at
            .as_ref()
            .map(|at| format!(", {}", moment(at.0)))
            .unwrap_or_default();
        writeln!(out, "{indent}{}: {}{at}", one.about, one.result)?;
        for line in one.expression.lines() {
            writeln!(out, "{indent}    {line}")?;
        }
        for (path, value) in &one.values {
            // What is named below it says the same in fewer words.
            let below = |other: &String| {
                let rest = other.strip_prefix(path.as_str());
                rest.is_some_and(|rest| rest.starts_with(['.', '[']))
            };
            if value.is_object() && one.values.keys().any(below) {
                continue;
            }
            writeln!(out, "{indent}      {path} = {}", shortened(value))?;
        }
    }
    Ok(())
}

/// Writes the steps in the order of the definition: those that were begun with what is recorded, the others as they are defined.
fn write_steps(
    out: &mut Vec<u8>,
    run: &Run,
    (title, defined, records): (&str, &[Step], &[StepRecord]),
) -> Result<(), Failure> {
    if defined.is_empty() && records.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}:")?;
    for step in defined {
        let mut begun = records
            .iter()
            .filter(|record| record.id == step.id)
            .peekable();
        if begun.peek().is_none() {
            writeln!(out, "  {} ({}): not begun", step.id, kind(step))?;
        }
        for record in begun {
            writeln!(
                out,
                "  {} ({}): {}",
                step_name(record),
                kind(step),
                step_state(run, record)
            )?;
            write_record(out, record)?;
        }
    }
    Ok(())
}

fn write_record(out: &mut Vec<u8>, record: &StepRecord) -> Result<(), Failure> {
    for line in record.message.lines() {
        writeln!(out, "    {line}")?;
    }
    match (&record.started_at, &record.ended_at, &record.next_at) {
        (Some(began), Some(ended), _) => {
            writeln!(out, "    from {} to {}", moment(began.0), moment(ended.0))?;
        }
        (Some(began), None, Some(next)) => {
            writeln!(
                out,
                "    since {}, looked at again at {}",
                moment(began.0),
                moment(next.0)
            )?;
        }
        (Some(began), None, None) => writeln!(out, "    since {}", moment(began.0))?,
        _ => {}
    }
    for (name, value) in &record.progress {
        writeln!(out, "    {name}: {}", shortened(value))?;
    }
    for (name, value) in &record.outputs {
        writeln!(out, "    output {name} = {}", shortened(value))?;
    }
    if !record.effect.is_null() {
        writeln!(out, "    changed: {}", shortened(&record.effect))?;
    }
    write_evidence(out, &record.evidence, "    ")
}

/// Writes what people have decided, and what they want and the agent has not taken up yet.
fn write_people(out: &mut Vec<u8>, run: &Run, status: &RunStatus) -> Result<(), Failure> {
    let wish = RunCommand::wished(run).filter(|wish| !wish.is_taken(run));
    if status.commands.is_empty() && wish.is_none() {
        return Ok(());
    }
    writeln!(out, "People:")?;
    for command in &status.commands {
        writeln!(out, "  {}", decided(command))?;
    }
    if let Some(wish) = wish {
        writeln!(out, "  {} (no agent has taken this up yet)", decided(&wish))?;
    }
    Ok(())
}

fn decided(command: &RunCommand) -> String {
    let step = command
        .step
        .as_deref()
        .map(|step| format!(" {step}"))
        .unwrap_or_default();
    let resolution = command
        .resolution
        .map(|one| format!(" {}", one.as_str()))
        .unwrap_or_default();
    let until = command
        .until
        .map(|until| format!(" until {}", moment(until)))
        .unwrap_or_default();
    format!(
        "{}  {}: {}{step}{resolution}{until}: {}",
        moment(command.at),
        command.by,
        command.verb,
        command.reason
    )
}

fn kind(step: &Step) -> String {
    match &step.action {
        StepAction::Builtin(builtin) => format!("builtin {}", builtin.name),
        StepAction::Compiled(compiled) => format!("compiled {}", compiled.name),
        action => action.kind().to_owned(),
    }
}

/// Writes a value on one line, and cuts what is too long for it.
fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE_WIDTH) {
        Some((end, _)) => format!("{}… (--output yaml has all of it)", &text[..end]),
        None => text,
    }
}

/// Says which versions a run was between, for lists; `-` where none is known.
pub(super) fn versions(run: &Run) -> String {
    match hop(run).trim() {
        "" => "-".to_owned(),
        hop => hop.to_owned(),
    }
}
