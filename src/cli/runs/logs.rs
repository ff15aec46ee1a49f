//! `fairway run logs`: what a run has done, in the order of time, and with `--follow` what it does.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;

use clap::Args;
use futures::StreamExt as _;
use indicatif::ProgressBar;
use jiff::Timestamp;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde::Serialize;

use super::find::{Known, is_over};
use super::paste::{Paste, phase_of};
use super::words::waits_for;
use crate::agent::clock;
use crate::cli::arguments::OutputFormat;
use crate::cli::connection::runtime;
use crate::cli::context::Context;
use crate::cli::failure::{Exit, Failure};
use crate::cli::get::moment;
use crate::cli::resources::Home;
use crate::cli::terminal::printable;
use crate::model::api::{Run, RunPhase};

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(100);
/// How long nothing may be said while a run is followed and nobody watches a spinner.
const SILENCE: Duration = Duration::from_secs(30);

/// Arguments of `fairway run logs`.
#[derive(Debug, Args)]
pub(super) struct LogsArguments {
    /// The run, or its migration where that has one run only
    name: String,
    /// Go on until the run has come to its end; the exit code is then 0 if it has succeeded
    #[arg(long, short)]
    follow: bool,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Happened {
    at: Timestamp,
    what: String,
}

/// What was told already.
#[derive(Default)]
pub(super) struct Told {
    entries: BTreeSet<Happened>,
    stands: Option<(RunPhase, String)>,
}

pub(super) fn run(arguments: &LogsArguments, context: &mut Context) -> Result<Exit, Failure> {
    if arguments.follow && context.output != OutputFormat::Text {
        return Err(Failure::Misuse(
            "--follow writes lines of text; `kubectl get run NAME --watch --output json` follows the record itself".to_owned(),
        ));
    }
    runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        let known = Known::read(&home).await?;
        let run = known.find(&arguments.name)?;
        let mut told = Told::default();
        let news = told.news(run, clock::now());
        if context.output != OutputFormat::Text {
            context.write_value(&news)?;
            return Ok(Exit::Ok);
        }
        write_lines(&news, context)?;
        if !arguments.follow {
            let paste = Paste::of(context);
            return conclude(run, &paste.describe(run, &known), context);
        }
        let last = follow(&home, &run.name_any(), told, context).await?;
        let describe = Paste::of(context).describe(run, &known);
        conclude(&last, &describe, context)?;
        Ok(match phase_of(&last) {
            RunPhase::Succeeded => Exit::Ok,
            _ => Exit::Found,
        })
    })
}

/// Says where a run stands after its lines, and what shows the rest.
fn conclude(run: &Run, describe: &str, context: &mut Context) -> Result<Exit, Failure> {
    writeln!(context.err, "{}; all of it: {describe}", phase_of(run))?;
    Ok(Exit::Ok)
}

/// Tells what happens until the run has come to its end, and returns it as it is then.
async fn follow(
    home: &Home,
    name: &str,
    mut told: Told,
    context: &mut Context,
) -> Result<Run, Failure> {
    let api: Api<Run> = Api::namespaced(home.cluster.client(), &home.namespace);
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = std::pin::pin!(watcher(api, config).default_backoff());
    let spinner = context.interactive.then(ProgressBar::new_spinner);
    if let Some(spinner) = &spinner {
        spinner.enable_steady_tick(TICK);
    }
    let mut now = String::new();
    loop {
        let event = match tokio::time::timeout(SILENCE, events.next()).await {
            Ok(event) => event,
            Err(_) if spinner.is_none() => {
                writeln!(context.err, "still {now}")?;
                continue;
            }
            Err(_) => continue,
        };
        let run = match event {
            Some(Ok(watcher::Event::Apply(run) | watcher::Event::InitApply(run))) => run,
            Some(Ok(watcher::Event::Delete(_))) => {
                return Err(Failure::Misuse(format!("the run {name} was deleted")));
            }
            Some(Ok(_)) => continue,
            // The watch goes on by itself; what has happened meanwhile is in the run.
            Some(Err(error)) => {
                now = format!("trying to reach the API server: {error}");
                continue;
            }
            None => return Err(Failure::Misuse(format!("the watch of {name} has ended"))),
        };
        let news = told.news(&run, clock::now());
        now = progress(&run);
        match &spinner {
            Some(spinner) => {
                spinner.suspend(|| write_lines(&news, context))?;
                spinner.set_message(printable(&now).into_owned());
            }
            None => write_lines(&news, context)?,
        }
        if is_over(&run) {
            if let Some(spinner) = &spinner {
                spinner.finish_and_clear();
            }
            return Ok(run);
        }
    }
}

/// Says in one line how far a run is.
pub(super) fn progress(run: &Run) -> String {
    let (phase, steps) = (phase_of(run), &run.spec.definition.steps);
    let status = run.status.as_ref();
    let current = status.and_then(|status| status.current_step.as_deref());
    let position = current.and_then(|id| steps.iter().position(|step| step.id == id));
    match (position, current) {
        (Some(position), Some(step)) => {
            let waits = waits_for(run);
            let why = waits.lines().next().unwrap_or_default();
            format!(
                "{phase} at step {} of {}, {step}: {why}",
                position + 1,
                steps.len()
            )
        }
        _ => format!(
            "{phase}: {}",
            waits_for(run).lines().next().unwrap_or_default()
        ),
    }
}

fn write_lines(news: &[Happened], context: &mut Context) -> Result<(), Failure> {
    for one in news {
        for (index, line) in printable(&one.what).lines().enumerate() {
            match index {
                0 => writeln!(context.out, "{}  {line}", moment(one.at))?,
                _ => writeln!(context.out, "                      {line}")?,
            }
        }
    }
    context.out.flush()?;
    Ok(())
}

// === impl Told ===

impl Told {
    /// Returns what has happened since the last look, in the order of time. What has no time of its own has happened just now.
    pub(super) fn news(&mut self, run: &Run, now: Timestamp) -> Vec<Happened> {
        let Some(status) = &run.status else {
            return Vec::new();
        };
        let mut news = Vec::new();
        for entry in &status.timeline {
            let entry = Happened {
                at: entry.at.0,
                what: entry.what.clone(),
            };
            if self.entries.insert(entry.clone()) {
                news.push(entry);
            }
        }
        // The timeline tells steps and their failures; what is waited for stands in the message.
        let stands = (status.phase, status.message.clone());
        let is_told = |text: &str| {
            status
                .timeline
                .iter()
                .any(|entry| entry.what.contains(text))
        };
        if self.stands.as_ref() != Some(&stands) {
            let first_line = status.message.lines().next().unwrap_or_default();
            if !first_line.is_empty() && !is_told(first_line) {
                news.push(Happened {
                    at: status.since.as_ref().map_or(now, |since| since.0),
                    what: format!("{}: {}", status.phase, status.message),
                });
            }
            self.stands = Some(stands);
        }
        news.sort_by_key(|one| one.at);
        news
    }
}
