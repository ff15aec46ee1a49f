//! `fairway history`: what became of the last revisions of a source.

use std::io::Write;

use clap::Args;

use super::arguments::OutputFormat;
use super::connection::runtime;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::get::{moment, table};
use super::resources::Home;
use crate::model::SourceName;

/// Arguments of `fairway history`.
#[derive(Debug, Args)]
pub struct HistoryArguments {
    /// The ReleaseSource
    source: SourceName,
}

const COLUMNS: &[&str] = &["STARTED", "REVISION", "TOOK", "CHANGED", "RESULT"];

pub(super) fn run(arguments: &HistoryArguments, context: &mut Context) -> Result<Exit, Failure> {
    let name = &arguments.source;
    let source = runtime()?.block_on(async { Home::connect(context).await?.source(name).await })?;
    let history = source.status.unwrap_or_default().history;
    if context.output != OutputFormat::Text {
        context.write_value(&history)?;
    } else if history.is_empty() {
        writeln!(context.err, "no revision of {name} was read yet")?;
    } else {
        let rows = history.iter().map(|entry| {
            vec![
                moment(entry.started.0),
                entry.revision.clone(),
                entry.duration.clone(),
                entry.changed.to_string(),
                entry.result.clone(),
            ]
        });
        writeln!(context.out, "{}", table(COLUMNS, rows).trim_fmt())?;
    }
    Ok(Exit::Ok)
}
