//! From arguments to an exit code.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use clap::CommandFactory;

use super::arguments::{Arguments, Command};
use super::context::Context;
use super::failure::{Exit, Failure};
use super::terminal::printable;
use super::{
    agent, approve, check, create, describe, explain, generate, get, history, install, migration,
    plan, reconcile, runs, suspend, sync, uninstall, validate, webhook,
};

/// Runs the command and returns the exit code: 0 all is well, 1 something was found, 2 it could not be done.
pub fn run(arguments: Arguments) -> ExitCode {
    let Arguments {
        command,
        output,
        color,
        cluster,
    } = arguments;
    let mut context = Context::of_process(output, color.into(), cluster);
    let done = dispatch(command, &mut context).and_then(|exit| {
        context.out.flush()?;
        Ok(exit)
    });
    match done {
        Ok(exit) => exit.code().into(),
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            // Where stderr is gone as well, the code still says it.
            let _ = writeln!(context.err, "{}", full_message(&failure));
            2.into()
        }
    }
}

fn dispatch(command: Option<Command>, context: &mut Context) -> Result<Exit, Failure> {
    match command {
        None => overview(context),
        Some(Command::Validate(arguments)) => validate::run(&arguments, context),
        Some(Command::Plan(arguments)) => plan::run(&arguments, context),
        Some(Command::Sync(arguments)) => sync::run(&arguments, context),
        Some(Command::Agent(arguments)) => agent::run(arguments, context),
        Some(Command::Get(arguments)) => get::run(&arguments, context),
        Some(Command::Describe(arguments)) => describe::run(&arguments, context),
        Some(Command::Reconcile(arguments)) => reconcile::reconcile(&arguments, context),
        Some(Command::Wait(arguments)) => reconcile::wait(&arguments, context),
        Some(Command::Suspend(arguments)) => suspend::run(&arguments, true, context),
        Some(Command::Resume(arguments)) => suspend::run(&arguments, false, context),
        Some(Command::Run(arguments)) => runs::run(&arguments, context),
        Some(Command::Cancel(arguments)) => runs::cancel(&arguments, context),
        Some(Command::Approve(arguments)) => approve::approve(&arguments, context),
        Some(Command::Adopt(arguments)) => approve::adopt(&arguments, context),
        Some(Command::Webhook(arguments)) => webhook::run(&arguments, context),
        Some(Command::Install(arguments)) => install::run(&arguments, context),
        Some(Command::Uninstall(arguments)) => uninstall::run(&arguments, context),
        Some(Command::Check(arguments)) => check::run(&arguments, context),
        Some(Command::Create(arguments)) => create::run(&arguments, context),
        Some(Command::History(arguments)) => history::run(&arguments, context),
        Some(Command::Migration(arguments)) => migration::run(&arguments, context),
        Some(Command::Explain(arguments)) => explain::run(&arguments, context),
        Some(Command::Generate(arguments)) => generate::run(&arguments, context),
    }
}

/// Prints what there is, for somebody who typed only the name.
fn overview(context: &mut Context) -> Result<Exit, Failure> {
    let help = Arguments::command().render_help();
    write!(context.out, "{}", help.ansi())?;
    Ok(Exit::Ok)
}

/// Writes an error with its chain of causes, each on its own line, and what to do about it.
fn full_message(failure: &Failure) -> String {
    let command = Arguments::command();
    let style = command.get_styles().get_error();
    let mut text = format!("{style}error:{style:#} {}", printable(&failure.to_string()));
    let (mut source, help) = match failure {
        Failure::Command { error, help } => (error.source(), help.as_deref()),
        other => (other.source(), None),
    };
    while let Some(cause) = source {
        let _ = write!(text, "\n  caused by: {}", printable(&cause.to_string()));
        source = cause.source();
    }
    if let Some(help) = help {
        let _ = write!(text, "\n  help: {}", printable(help));
    }
    text
}
