//! `fairway get runs`: those that are open, and those that ended lately.

use std::io::Write;
use std::time::Duration;

use jiff::Timestamp;

use super::find::{Known, is_over};
use super::paste::phase_of;
use super::waiting::asks_a_person;
use super::words::{since_of, waits_for};
use crate::agent::clock;
use crate::cli::arguments::OutputFormat;
use crate::cli::connection::runtime;
use crate::cli::context::Context;
use crate::cli::failure::{Exit, Failure};
use crate::cli::get::{age, table};
use crate::cli::resources::Home;
use crate::cli::terminal::printable;
use crate::model::api::{Run, RunPhase};

/// Runs that ended within this time are shown beside the open ones.
const RECENT: Duration = Duration::from_secs(24 * 60 * 60);
const COLUMNS: &[&str] = &["NAME", "COMPONENT", "PHASE", "SINCE", "OWNER", "MESSAGE"];

/// Lists runs: with `all` every one that is kept.
pub(in crate::cli) fn list(all: bool, context: &mut Context) -> Result<Exit, Failure> {
    let known = runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        Known::read(&home).await
    })?;
    let now = clock::now();
    let shown = |run: &&Run| all || matters(run, &known, now);
    let mut runs: Vec<&Run> = known.by_name().into_iter().filter(shown).collect();
    runs.sort_by_key(|run| urgency(run, &known));
    if context.output != OutputFormat::Text {
        context.write_value(&runs)?;
        return Ok(Exit::Ok);
    }
    if !runs.is_empty() {
        let rows = runs.iter().map(|run| row(run, &known));
        writeln!(context.out, "{}", table(COLUMNS, rows).trim_fmt())?;
    }
    match (runs.len(), known.runs.len()) {
        (_, 0) => writeln!(
            context.err,
            "no runs: a migration that is not needed leaves none"
        )?,
        (0, older) => writeln!(
            context.err,
            "no open or recent runs; {older} older: fairway get runs --all"
        )?,
        (shown, known) if shown < known => {
            writeln!(
                context.err,
                "{} older: fairway get runs --all",
                known - shown
            )?;
        }
        _ => {}
    }
    Ok(Exit::Ok)
}

/// Returns whether a run is open, holds something back still, or ended lately.
fn matters(run: &Run, known: &Known, now: Timestamp) -> bool {
    let ended = run
        .status
        .as_ref()
        .and_then(|status| status.ended_at.as_ref());
    let recent = ended.is_some_and(|ended| now.duration_since(ended.0).unsigned_abs() < RECENT);
    let unsuccessful = matches!(phase_of(run), RunPhase::Failed | RunPhase::Cancelled);
    !is_over(run) || recent || (unsuccessful && known.is_last(run))
}

/// Sorts what waits for a person first, the longest wait before the others, then what is under way, then what is over, the newest
/// first.
fn urgency(run: &Run, known: &Known) -> (u8, i64) {
    let since = since_of(run).map_or(i64::MAX, Timestamp::as_second);
    if asks_a_person(run, known) {
        (0, since)
    } else if is_over(run) {
        (2, since.saturating_neg())
    } else {
        (1, since)
    }
}

fn row(run: &Run, known: &Known) -> Vec<String> {
    let phase = phase_of(run);
    let quiet = matches!(phase, RunPhase::Succeeded | RunPhase::Superseded);
    let message = if quiet
        && run
            .status
            .as_ref()
            .is_some_and(|status| status.message.is_empty())
    {
        String::new()
    } else {
        waits_for(run)
    };
    let first_line = message.lines().next().unwrap_or_default();
    let cells = [
        known.short_name(run),
        run.spec
            .component
            .clone()
            .unwrap_or_else(|| "whole deploy".to_owned()),
        phase.to_string(),
        since_of(run).map_or_else(|| "-".to_owned(), age),
        run.spec.definition.owner.clone(),
        first_line.to_owned(),
    ];
    cells.map(|cell| printable(&cell).into_owned()).to_vec()
}
