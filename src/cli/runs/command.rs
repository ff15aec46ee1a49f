//! `fairway run`: what a person can do about one run.

use std::io::Write;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::SignedDuration;
use kube::ResourceExt as _;

use super::find::Known;
use super::logs::{self, LogsArguments};
use super::paste::{Paste, phase_of, verbs};
use super::wish::{PATIENCE, Wish, tell, until_taken, warn_about_replaced};
use super::words::{holds_back, status_of};
use crate::agent::clock;
use crate::cli::connection::runtime;
use crate::cli::context::Context;
use crate::cli::failure::{Exit, Failure};
use crate::cli::get::moment;
use crate::cli::identity::who_and_why;
use crate::cli::resources::{Home, parse_duration};
use crate::model::api::{Resolution, Run, RunVerb, StepState};
use crate::model::limits::OVERRIDE_MAX;

/// Arguments of `fairway run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show what a run has done, and with --follow what it does
    Logs(LogsArguments),
    /// Stop a run before its next step
    Pause(Common),
    /// Let a paused run go on
    Resume(Common),
    /// Start no step of a run any more, give what is under way a little time, and end it
    Cancel(Common),
    /// Try a failed or cancelled run again, with a new budget of attempts
    Retry(Common),
    /// Let a blocked run go on though a precondition is false, for a limited time
    Override(OverrideArguments),
    /// Say what became of a step of which nobody knows whether it took effect, or that what an undo could not take back stays
    Resolve(ResolveArguments),
}

#[derive(Debug, Args)]
struct Common {
    /// The run, or its migration where that has one run only
    name: String,
    /// Why; it is kept with the run
    #[arg(long)]
    reason: String,
    /// Who decides; otherwise the user of the kubeconfig's context
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// How long to wait for the agent to take it up
    #[arg(long, value_parser = parse_duration, default_value = PATIENCE)]
    timeout: Duration,
}

#[derive(Debug, Args)]
struct OverrideArguments {
    #[command(flatten)]
    common: Common,
    /// How long the precondition does not count, at most 24h
    #[arg(
        long = "for",
        value_name = "DURATION",
        value_parser = parse_override,
        default_value = "1h"
    )]
    duration: Duration,
}

#[derive(Debug, Args)]
struct ResolveArguments {
    /// The run, or its migration where that has one run only
    name: String,
    /// What you have seen: the step, and `done`, `again` or `fail`; without the step where the record of the whole run was lost. Or
    /// `keep`: what an undo could not take back stays as it is
    #[arg(required = true, num_args = 1..=2, value_names = ["STEP", "SEEN"])]
    seen: Vec<String>,
    /// Why; it is kept with the run
    #[arg(long)]
    reason: String,
    /// Who decides; otherwise the user of the kubeconfig's context
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// How long to wait for the agent to take it up
    #[arg(long, value_parser = parse_duration, default_value = PATIENCE)]
    timeout: Duration,
}

/// What is wanted of which run.
struct Wanted<'a> {
    name: &'a str,
    verb: RunVerb,
    reason: &'a str,
    by: Option<&'a str>,
    timeout: Duration,
    step: Option<&'a str>,
    resolution: Option<Resolution>,
    duration: Option<Duration>,
}

pub(in crate::cli) fn run(
    arguments: &RunArguments,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let wanted = match &arguments.action {
        Action::Logs(arguments) => return logs::run(arguments, context),
        Action::Pause(common) => Wanted::of(RunVerb::Pause, common),
        Action::Resume(common) => Wanted::of(RunVerb::Resume, common),
        Action::Cancel(common) => Wanted::of(RunVerb::Cancel, common),
        Action::Retry(common) => Wanted::of(RunVerb::Retry, common),
        Action::Override(arguments) => Wanted {
            duration: Some(arguments.duration),
            ..Wanted::of(RunVerb::Override, &arguments.common)
        },
        Action::Resolve(arguments) => Wanted {
            name: &arguments.name,
            verb: RunVerb::Resolve,
            reason: &arguments.reason,
            by: arguments.by.as_deref(),
            timeout: arguments.timeout,
            step: step_of(&arguments.seen),
            resolution: Some(resolution_of(&arguments.seen)?),
            duration: None,
        },
    };
    runtime()?.block_on(want(&wanted, context))
}

async fn want(wanted: &Wanted<'_>, context: &mut Context) -> Result<Exit, Failure> {
    let home = Home::connect(context).await?;
    let known = Known::read(&home).await?;
    let run = known.find(wanted.name)?;
    refuse_senseless(wanted, run, &known, &Paste::of(context))?;
    let wish = wanted.wish(context)?;
    warn_about_replaced(run, context)?;
    let name = run.name_any();
    writeln!(
        context.err,
        "{}: {name}\n  {}",
        wish.verb,
        outcome(&wish, run)
    )?;
    if matches!(wish.verb, RunVerb::Pause | RunVerb::Cancel) {
        writeln!(
            context.err,
            "  it still holds back {}",
            holds_back(run, &known)
        )?;
    }
    let command = wish.write(&home, run).await?;
    let taken = until_taken(&home, &name, &command, wanted.timeout).await?;
    let done = tell((&name, &command), taken.as_ref(), wanted.timeout, context)?;
    Ok(if done { Exit::Ok } else { Exit::Found })
}

/// Refuses what the agent would not act on, and says what it would.
fn refuse_senseless(
    wanted: &Wanted<'_>,
    run: &Run,
    known: &Known,
    paste: &Paste,
) -> Result<(), Failure> {
    let (phase, verb) = (phase_of(run), wanted.verb);
    let status = status_of(run);
    let is_possible = match wanted.resolution {
        Some(resolution) => status.resolutions().contains(&resolution),
        None => verbs(run).any(|possible| *possible == verb),
    };
    if !is_possible {
        let verb = match wanted.resolution {
            Some(resolution) => format!("{verb} {}", resolution.as_str()),
            None => verb.to_string(),
        };
        let offers = paste.offers(run, known);
        let mut text = format!(
            "{} is {phase}, so that {verb} makes no sense",
            run.name_any()
        );
        if offers.is_empty() {
            text += "; there is nothing to do about it";
        } else {
            text += "; possible now:";
            for offer in offers {
                text = format!("{text}\n  {}", offer.command);
            }
        }
        return Err(Failure::Misuse(text));
    }
    if wanted.resolution == Some(Resolution::Keep) {
        return match wanted.step {
            Some(step) => Err(Failure::Misuse(format!(
                "keep is said of all that is not taken back: leave `{step}` out"
            ))),
            None => Ok(()),
        };
    }
    if verb != RunVerb::Resolve {
        return Ok(());
    }
    let records = status.steps.iter().chain(&status.undone);
    let mut unknown: Vec<&str> = records
        .filter(|record| record.state == StepState::Unknown)
        .map(|record| record.id.as_str())
        .collect();
    unknown.dedup();
    let name = run.name_any();
    match wanted.step {
        Some(step) if unknown.contains(&step) => Ok(()),
        None if unknown.is_empty() => Ok(()),
        Some(step) if unknown.is_empty() => Err(Failure::Misuse(format!(
            "it is not a step of {name} that nobody knows of, but whether it was ever done: leave `{step}` out"
        ))),
        Some(step) => Err(Failure::Misuse(format!(
            "nobody asks about step `{step}` of {name}; what is not known is: {}",
            unknown.join(", ")
        ))),
        None => Err(Failure::Misuse(format!(
            "say which step of {name} you have looked at: {}",
            unknown.join(", ")
        ))),
    }
}

fn step_of(seen: &[String]) -> Option<&str> {
    match seen {
        [step, _] => Some(step),
        _ => None,
    }
}

fn resolution_of(seen: &[String]) -> Result<Resolution, Failure> {
    let all = [
        Resolution::Done,
        Resolution::Again,
        Resolution::Fail,
        Resolution::Keep,
    ];
    let word = seen.last().map(String::as_str).unwrap_or_default();
    let found = all.into_iter().find(|one| one.as_str() == word);
    found.ok_or_else(|| {
        Failure::Misuse(format!(
            "`{word}` is nothing that can be seen of a step; say done (it took effect), again (it did not), fail (give the run up) or keep (what an undo could not take back stays)"
        ))
    })
}

/// Says what will happen.
fn outcome(wish: &Wish, run: &Run) -> String {
    match wish.verb {
        RunVerb::Pause => format!(
            "it stops before its next step; what is under way ends. It goes on with fairway run resume {}",
            run.name_any()
        ),
        RunVerb::Resume => "it goes on with its next step, after its guard was judged anew".to_owned(),
        RunVerb::Cancel => format!(
            "no step is started any more; what is under way gets {} to end, and what was done stays",
            run.spec.definition.policy.cancel_grace
        ),
        RunVerb::Retry if !phase_of(run).is_over() => "what waits after a failure is tried at once".to_owned(),
        RunVerb::Retry => {
            "its guard is judged anew; steps that are done stay done, and what is still needed is tried again with new attempts and new time".to_owned()
        }
        RunVerb::Override => format!(
            "it goes on though a precondition is false, until {}; what the precondition protects is now in your hands",
            wish.until.map(moment).unwrap_or_default()
        ),
        RunVerb::Resolve => {
            let what = match &wish.step {
                Some(step) => format!("step {step}"),
                None => "all of it".to_owned(),
            };
            match wish.resolution {
                Some(Resolution::Keep) => {
                    "what is not taken back stays as it is, and what waits for the undo goes on".to_owned()
                }
                Some(Resolution::Done) => format!("{what} counts as done, and the run goes on after it"),
                Some(Resolution::Again) => format!("{what} is tried again"),
                Some(Resolution::Fail) | None => format!("{what} is given up, and the run ends as Failed"),
            }
        }
    }
}

fn parse_override(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text)?;
    if duration.is_zero() || duration > OVERRIDE_MAX {
        return Err("an override lasts for more than nothing and at most 24h".to_owned());
    }
    Ok(duration)
}

// === impl Wanted ===

impl<'a> Wanted<'a> {
    fn of(verb: RunVerb, common: &'a Common) -> Self {
        Self {
            name: &common.name,
            verb,
            reason: &common.reason,
            by: common.by.as_deref(),
            timeout: common.timeout,
            step: None,
            resolution: None,
            duration: None,
        }
    }

    fn wish(&self, context: &Context) -> Result<Wish, Failure> {
        let (by, reason) = who_and_why(context, self.reason, self.by)?;
        let duration = self
            .duration
            .and_then(|duration| SignedDuration::try_from(duration).ok());
        Ok(Wish {
            verb: self.verb,
            step: self.step.map(str::to_owned),
            resolution: self.resolution,
            until: duration.and_then(|duration| clock::now().checked_add(duration).ok()),
            by,
            reason,
        })
    }
}
