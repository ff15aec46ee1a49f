//! `fairway cancel`: all open runs of a source at once.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use futures::future::try_join_all;
use kube::ResourceExt as _;

use super::find::{Known, is_over};
use super::paste::{Paste, phase_of};
use super::wish::{PATIENCE, Wish, tell, until_taken};
use super::words::holds_back;
use crate::cli::connection::runtime;
use crate::cli::context::Context;
use crate::cli::failure::{Exit, Failure};
use crate::cli::identity::who_and_why;
use crate::cli::resources::{Home, parse_duration};
use crate::model::SourceName;
use crate::model::api::{Run, RunPhase, RunVerb};

/// Arguments of `fairway cancel`.
#[derive(Debug, Args)]
pub struct CancelArguments {
    /// The ReleaseSource
    source: SourceName,
    /// Why; it is kept with each run
    #[arg(long)]
    reason: String,
    /// Who decides; otherwise the user of the kubeconfig's context
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// How long to wait for the agent to take it up
    #[arg(long, value_parser = parse_duration, default_value = PATIENCE)]
    timeout: Duration,
}

pub(in crate::cli) fn cancel(
    arguments: &CancelArguments,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let (by, reason) = who_and_why(context, &arguments.reason, arguments.by.as_deref())?;
    let wish = Wish {
        verb: RunVerb::Cancel,
        step: None,
        resolution: None,
        until: None,
        by,
        reason,
    };
    runtime()?.block_on(cancel_all(arguments, &wish, context))
}

async fn cancel_all(
    arguments: &CancelArguments,
    wish: &Wish,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let home = Home::connect(context).await?;
    let name = &arguments.source;
    home.source(name).await?;
    let known = Known::read(&home).await?;
    let of_source = |run: &&Run| run.spec.source == name.as_str() && !is_over(run);
    let runs = known.by_name().into_iter().filter(of_source);
    let (ending, open): (Vec<&Run>, Vec<&Run>) =
        runs.partition(|run| phase_of(run) == RunPhase::Cancelling);
    for run in ending {
        writeln!(context.err, "{} is being cancelled already", run.name_any())?;
    }
    if open.is_empty() {
        writeln!(
            context.err,
            "no open run of {name}: there is nothing to cancel. What the source applies goes on; {} ends that",
            Paste::of(context).command(&format!("suspend {name}"))
        )?;
        return Ok(Exit::Ok);
    }
    writeln!(
        context.err,
        "no step of {name} is started any more; what is under way gets a little time to end, and what was done stays"
    )?;
    for run in &open {
        writeln!(context.err, "  {} is {}", run.name_any(), phase_of(run))?;
        writeln!(
            context.err,
            "      it still holds back {}",
            holds_back(run, &known)
        )?;
    }
    let commands = try_join_all(open.iter().map(|run| wish.write(&home, run))).await?;
    let names: Vec<String> = open.iter().map(|run| run.name_any()).collect();
    let waits = names.iter().zip(&commands);
    let waits = waits.map(|(name, command)| until_taken(&home, name, command, arguments.timeout));
    let taken = try_join_all(waits).await?;
    let mut all = true;
    for ((name, command), run) in names.iter().zip(&commands).zip(&taken) {
        all &= tell((name, command), run.as_ref(), arguments.timeout, context)?;
    }
    Ok(if all { Exit::Ok } else { Exit::Found })
}
