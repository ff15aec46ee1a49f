//! `fairway migration test`: tries the tests of migrations without a cluster.

use std::io::Write;

use clap::Args;
use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;

use super::arguments::OutputFormat;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::repository::{RepositoryArguments, warn_about};
use super::terminal::printable;
use crate::desired::Desired;
use crate::model::migration::{Decision, Migration};
use crate::runs::trial::{Trial, try_case};

/// The arguments of `fairway migration test`.
#[derive(Debug, Args)]
pub(super) struct TestArguments {
    #[command(flatten)]
    repository: RepositoryArguments,

    /// Only these migrations
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("there is no migration `{name}` in {}", directory.display())]
struct NoMigration {
    name: String,
    directory: std::path::PathBuf,
}

/// What a program gets.
#[derive(Serialize)]
struct Report<'a> {
    cases: Vec<Case<'a>>,
    passed: usize,
    failed: usize,
    untested: Vec<&'a str>,
    held: Vec<&'a str>,
}

#[derive(Serialize)]
struct Case<'a> {
    result: &'static str,
    #[serde(flatten)]
    trial: &'a Trial,
}

/// Exits with 1 when a case fails, or a migration cannot be tested since something is wrong with its definition.
pub(super) fn run(arguments: &TestArguments, context: &mut Context) -> Result<Exit, Failure> {
    crate::source::initialize()?;
    let repository = &arguments.repository;
    let desired = repository.evaluate(&repository.working_tree()?);
    for name in &arguments.names {
        check_name(name, &desired, arguments)?;
    }
    let is_wanted = |name: &str| {
        arguments.names.is_empty() || arguments.names.iter().any(|wanted| wanted == name)
    };
    let held: Vec<&str> = desired
        .held_migrations
        .iter()
        .map(|held| held.name.as_str())
        .filter(|name| is_wanted(name))
        .collect();
    if !held.is_empty() {
        warn_about(&desired, context)?;
    }
    let migrations: Vec<&Migration> = desired
        .migrations
        .iter()
        .map(AsRef::as_ref)
        .filter(|migration| is_wanted(&migration.name))
        .collect();
    let mut trials = Vec::new();
    for migration in &migrations {
        for fixture in &migration.spec.tests {
            let trial = try_case(migration, fixture, &desired.settings.http_hosts);
            if context.output == OutputFormat::Text {
                draw(&trial, context)?;
            }
            trials.push(trial);
        }
    }
    let untested: Vec<&str> = migrations
        .iter()
        .filter(|migration| migration.spec.tests.is_empty() && !migration.spec.steps.is_empty())
        .map(|migration| migration.name.as_str())
        .collect();
    let failed = trials.iter().filter(|trial| !trial.passed()).count();
    let report = Report {
        cases: trials.iter().map(case).collect(),
        passed: trials.len() - failed,
        failed,
        untested,
        held,
    };
    conclude(&report, migrations.len(), context)?;
    Ok(if failed == 0 && report.held.is_empty() {
        Exit::Ok
    } else {
        Exit::Found
    })
}

fn check_name(name: &str, desired: &Desired, arguments: &TestArguments) -> Result<(), Failure> {
    let is_there = desired.migrations.iter().any(|it| it.name == name)
        || desired.held_migrations.iter().any(|it| it.name == name);
    if is_there {
        return Ok(());
    }
    let names: Vec<&str> = desired
        .migrations
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let help = match names.as_slice() {
        [] => "no valid migration stands there; fairway validate says what is wrong".to_owned(),
        names => format!("there are {}", names.join(", ")),
    };
    Err(Failure::of(NoMigration {
        name: name.to_owned(),
        directory: arguments.repository.directory.clone(),
    })
    .help(help))
}

fn case(trial: &Trial) -> Case<'_> {
    let result = if trial.passed() { "passed" } else { "failed" };
    Case { result, trial }
}

/// Writes one line for a case, and below it what is not as it must be.
fn draw(trial: &Trial, context: &mut Context) -> Result<(), Failure> {
    let (word, color) = if trial.passed() {
        ("ok  ", AnsiColor::Green)
    } else {
        ("FAIL", AnsiColor::Red)
    };
    let style = Style::new().fg_color(Some(color.into())).bold();
    write!(
        context.out,
        "{style}{word}{style:#} {}: {}",
        printable(&trial.migration),
        printable(&trial.case)
    )?;
    if trial.passed() {
        writeln!(context.out, " ({})", outcome(trial))?;
        return Ok(());
    }
    writeln!(context.out, "\n     {}", printable(&trial.place))?;
    for difference in &trial.differences {
        writeln!(context.out, "     {}", printable(&difference.what))?;
        let mut label = "expected";
        for text in [&difference.expected, &difference.found] {
            for (index, line) in text.lines().enumerate() {
                let label = if index == 0 { label } else { "" };
                writeln!(context.out, "       {label:<9} {}", printable(line))?;
            }
            label = "found";
        }
    }
    Ok(())
}

/// Says in a few words what came of a case.
fn outcome(trial: &Trial) -> String {
    let decision = trial.decision.map_or_else(String::new, |it| it.to_string());
    if trial.decision != Some(Decision::Run) {
        return decision;
    }
    let steps = match trial.steps.as_slice() {
        [] => "no effect".to_owned(),
        steps => steps.join(", "),
    };
    let questions = match trial.questions {
        0 => String::new(),
        count => format!(", {count} of them a question to a person"),
    };
    format!(
        "{decision}: {steps}; killed {} times{questions}",
        trial.kills
    )
}

fn conclude(report: &Report<'_>, migrations: usize, context: &mut Context) -> Result<(), Failure> {
    if context.output != OutputFormat::Text {
        return context.write_value(report);
    }
    for name in &report.untested {
        writeln!(
            context.err,
            "{} has no tests; write some below spec.tests",
            printable(name)
        )?;
    }
    for name in &report.held {
        writeln!(
            context.err,
            "{} was not tested: its definition is not valid",
            printable(name)
        )?;
    }
    let counted = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    };
    writeln!(
        context.err,
        "{} of {}: {} passed, {} failed",
        counted(report.cases.len(), "test"),
        counted(migrations, "migration"),
        report.passed,
        report.failed
    )?;
    Ok(())
}
