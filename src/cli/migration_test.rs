//! `fairway migration test`: tries the tests of migrations without a cluster.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;

use super::arguments::OutputFormat;
use super::context::Context;
use super::draw::{counted, draw_diagnostics};
use super::failure::{Exit, Failure};
use super::repository::{RepositoryArguments, split_migration, warn_about};
use super::terminal::printable;
use crate::desired::migrations::place_in;
use crate::desired::yaml::PointerPart;
use crate::desired::{Desired, HeldMigration};
use crate::model::migration::{Decision, Migration};
use crate::model::{Diagnostic, Place, Severity, Snapshot, limits};
use crate::runs::trial::{About, Trial, try_case};

/// The arguments of `fairway migration test`.
#[derive(Debug, Args)]
pub(super) struct TestArguments {
    #[command(flatten)]
    repository: RepositoryArguments,

    /// Only these migrations; DIR may be a component's folder or one file, too
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
enum TestFailure {
    #[error("there is no migration `{name}` in {place}")]
    NoMigration { name: String, place: String },
    #[error("there is no migration in {place}")]
    None { place: String },
    #[error("{} {} no tests", .names.join(", "), if .names.len() == 1 { "has" } else { "have" })]
    Untested { names: Vec<String> },
}

/// How cases are written.
const CASES: &str = "write cases below spec.tests, at least: a fresh install, work to do, already done; see docs/write-a-migration.md";
/// Where migrations are found.
const FOLDERS: &str = "migrations stand in components/NAME/migrations/, modules/NAME/migrations/ or migrations/ of a repository; name its root, or the file of one migration";

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

/// What is meant: a repository, and which of its migrations.
struct Wanted<'a> {
    repository: RepositoryArguments,
    /// The only file or folder that is meant, by its path inside the repository.
    inside: Option<String>,
    names: &'a [String],
    /// What was asked for, for messages.
    place: String,
}

/// Exits with 1 when a case fails, or a migration cannot be tested since something is wrong with its definition; with 2 when there is
/// nothing to try, or a migration that was asked for has no cases.
pub(super) fn run(arguments: &TestArguments, context: &mut Context) -> Result<Exit, Failure> {
    crate::source::initialize()?;
    let wanted = Wanted::of(arguments);
    let snapshot = wanted.repository.working_tree()?;
    let desired = wanted.repository.evaluate(&snapshot);
    wanted.check_names(&desired)?;
    let held: Vec<&HeldMigration> = desired
        .held_migrations
        .iter()
        .filter(|held| wanted.has(&held.name, &held.place))
        .collect();
    tell_held(&held, &desired, &snapshot, context)?;
    let migrations: Vec<&Migration> = desired
        .migrations
        .iter()
        .map(AsRef::as_ref)
        .filter(|migration| wanted.has(&migration.name, &migration.place))
        .collect();
    let mut trials = Vec::new();
    for migration in &migrations {
        trials.extend(try_all(migration, &desired, &snapshot, context)?);
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
        held: held.iter().map(|held| held.name.as_str()).collect(),
    };
    let nothing = wanted.nothing_tried(&report, migrations.len());
    conclude(&report, migrations.len(), nothing.is_some(), context)?;
    match nothing {
        Some(failure) => Err(failure),
        None if failed == 0 && report.held.is_empty() => Ok(Exit::Ok),
        None => Ok(Exit::Found),
    }
}

// === impl Wanted ===

impl<'a> Wanted<'a> {
    fn of(arguments: &'a TestArguments) -> Self {
        let mut repository = arguments.repository.clone();
        let place = repository.directory.display().to_string();
        let mut inside = None;
        let full = repository.directory.canonicalize().ok();
        if let Some((root, path)) = full.as_deref().and_then(part_of_repository) {
            repository.directory = root;
            inside = Some(path);
        }
        Self {
            repository,
            inside,
            names: &arguments.names,
            place,
        }
    }

    fn has(&self, name: &str, place: &Place) -> bool {
        self.is_inside(place)
            && (self.names.is_empty() || self.names.iter().any(|wanted| wanted == name))
    }

    fn is_inside(&self, place: &Place) -> bool {
        self.inside.as_ref().is_none_or(|inside| {
            let rest = place.file.strip_prefix(inside.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    fn check_names(&self, desired: &Desired) -> Result<(), Failure> {
        let valid = desired.migrations.iter().map(|it| (&it.name, &it.place));
        let held = desired.held_migrations.iter();
        let names: BTreeSet<&str> = valid
            .chain(held.map(|it| (&it.name, &it.place)))
            .filter(|(_, place)| self.is_inside(place))
            .map(|(name, _)| name.as_str())
            .collect();
        let Some(name) = self
            .names
            .iter()
            .find(|name| !names.contains(name.as_str()))
        else {
            return Ok(());
        };
        let help = if names.is_empty() {
            FOLDERS.to_owned()
        } else {
            let names: Vec<&str> = names.into_iter().collect();
            format!("there are {}", names.join(", "))
        };
        Err(Failure::of(TestFailure::NoMigration {
            name: name.clone(),
            place: self.place.clone(),
        })
        .help(help))
    }

    /// Returns why a check that passes would say nothing: no case was tried, or one that was asked for has none.
    fn nothing_tried(&self, report: &Report<'_>, migrations: usize) -> Option<Failure> {
        // A folder is asked for as a repository is; a file is meant by itself.
        let is_file = |path: &String| Path::new(path).extension().is_some();
        let is_asked_for = self.inside.as_ref().is_some_and(is_file) || !self.names.is_empty();
        if !report.untested.is_empty() && (is_asked_for || report.cases.is_empty()) {
            let names = report
                .untested
                .iter()
                .map(|name| printable(name).to_string());
            let names = names.collect();
            return Some(Failure::of(TestFailure::Untested { names }).help(CASES));
        }
        let place = self.place.clone();
        (migrations == 0 && report.held.is_empty())
            .then(|| Failure::of(TestFailure::None { place }).help(FOLDERS))
    }
}

/// Returns the root of the repository that a file of migrations, or a folder of a component, is a part of, and the path inside it. A
/// folder that looks like a repository is one.
fn part_of_repository(full: &Path) -> Option<(PathBuf, String)> {
    if full.is_file() {
        return split_migration(full);
    }
    let parts = ["fairway.yaml", "components", "modules"];
    if parts.iter().any(|part| full.join(part).exists()) {
        return None;
    }
    let is_folder = |path: &Path, names: &[&str]| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| names.contains(&name))
    };
    let folders = ["components", "modules"];
    let component = full
        .ancestors()
        .take(2)
        .find(|path| path.parent().is_some_and(|it| is_folder(it, &folders)))?;
    if component != full && !is_folder(full, &["migrations"]) {
        return None;
    }
    let root = component.parent()?.parent()?;
    let inside = full.strip_prefix(root).ok()?.to_str()?.to_owned();
    Some((root.to_owned(), inside))
}

/// Draws what is wrong with definitions that cannot be tested, as `fairway validate` does.
fn tell_held(
    held: &[&HeldMigration],
    desired: &Desired,
    snapshot: &Snapshot,
    context: &mut Context,
) -> Result<(), Failure> {
    if held.is_empty() {
        return Ok(());
    }
    if context.output != OutputFormat::Text {
        return warn_about(desired, context);
    }
    let is_meant = |found: &&Diagnostic| {
        found.severity == Severity::Error
            && held.iter().any(|held| held.place.file == found.place.file)
    };
    let found: Vec<Diagnostic> = desired
        .diagnostics
        .iter()
        .filter(is_meant)
        .cloned()
        .collect();
    draw_diagnostics(context, &found, 0, &|path| read(snapshot, path))
}

fn read(snapshot: &Snapshot, path: &str) -> Option<Vec<u8>> {
    let entry = snapshot.files.get(path)?;
    snapshot.blobs.read(entry.blob, limits::FILE_SIZE_MAX).ok()
}

/// Tries every case of a migration.
fn try_all(
    migration: &Migration,
    desired: &Desired,
    snapshot: &Snapshot,
    context: &mut Context,
) -> Result<Vec<Trial>, Failure> {
    let bytes = read(snapshot, &migration.place.file).unwrap_or_default();
    let mut trials = Vec::new();
    for (number, fixture) in migration.spec.tests.iter().enumerate() {
        let place = |about: &About| place_in(&bytes, &migration.place, &pointer(about, number));
        let trial = try_case(migration, fixture, &desired.settings.http_hosts, &place);
        if context.output == OutputFormat::Text {
            draw(&trial, context)?;
        }
        trials.push(trial);
    }
    Ok(trials)
}

/// Returns the way from the start of a definition to what is meant.
fn pointer(about: &About, case: usize) -> Vec<PointerPart> {
    let mut pointer: Vec<PointerPart> = vec!["spec".into()];
    match about {
        About::Needed => pointer.extend(["guard".into(), "needed".into()]),
        About::Case(path) => {
            pointer.extend(["tests".into(), case.into()]);
            pointer.extend(path.iter().cloned());
        }
    }
    pointer
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
    writeln!(context.out)?;
    for difference in &trial.differences {
        let (place, what) = (printable(&difference.place), printable(&difference.what));
        writeln!(context.out, "     {place}: {what}")?;
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

/// Writes the summary. `is_refused` says that what has no tests is the failure of the command itself.
fn conclude(
    report: &Report<'_>,
    migrations: usize,
    is_refused: bool,
    context: &mut Context,
) -> Result<(), Failure> {
    if context.output != OutputFormat::Text {
        return context.write_value(report);
    }
    if !is_refused && !report.untested.is_empty() {
        let verb = if report.untested.len() == 1 {
            "has"
        } else {
            "have"
        };
        let names: Vec<String> = report
            .untested
            .iter()
            .map(|name| printable(name).to_string())
            .collect();
        writeln!(
            context.err,
            "warning: {} {verb} no tests: {}\nhelp: {CASES}",
            counted(names.len(), "migration"),
            names.join(", ")
        )?;
    }
    for name in &report.held {
        writeln!(
            context.err,
            "{} was not tested: its definition is not valid",
            printable(name)
        )?;
    }
    if report.cases.is_empty() && report.untested.is_empty() && report.held.is_empty() {
        if migrations > 0 {
            let retired = counted(migrations, "migration");
            writeln!(context.err, "nothing to test: {retired}, retired")?;
        }
        return Ok(());
    }
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
