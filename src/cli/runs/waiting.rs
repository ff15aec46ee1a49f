//! Runs that wait for a person, beside all else that does.

use super::find::Known;
use super::paste::{Paste, phase_of};
use super::words::{holds_back, since_of, waits_for};
use crate::cli::waiting::Waiting;
use crate::model::api::{Run, RunPhase};

/// Returns what runs ask of a person.
pub(in crate::cli) fn waiting_runs(known: &Known, paste: &Paste) -> Vec<Waiting> {
    let runs = known.by_name().into_iter();
    runs.filter_map(|run| waiting_run(run, known, paste))
        .collect()
}

/// Returns whether a run goes on, or lets others go on, only once a person says something.
pub(super) fn asks_a_person(run: &Run, known: &Known) -> bool {
    match phase_of(run) {
        RunPhase::Blocked | RunPhase::Manual | RunPhase::Paused => true,
        RunPhase::Failed | RunPhase::Cancelled => {
            known.is_last(run) && !holds_back(run, known).starts_with("nothing")
        }
        _ => false,
    }
}

/// Returns what a run asks of a person; none where it goes on by itself, or has ended and holds nothing back.
fn waiting_run(run: &Run, known: &Known, paste: &Paste) -> Option<Waiting> {
    if !asks_a_person(run, known) {
        return None;
    }
    let phase = phase_of(run);
    let is_undoing = run.status.as_ref().is_some_and(|status| status.undoing);
    let (asks, does) = match phase {
        RunPhase::Blocked if is_undoing => {
            ("a right to take it back is missing", "leave it as it is")
        }
        RunPhase::Blocked => ("a precondition is false", "go on regardless"),
        RunPhase::Manual => (
            "nobody knows what became of a step",
            "say what you have seen",
        ),
        RunPhase::Paused => ("it is paused", "go on"),
        RunPhase::Failed => ("it has failed", "try it again"),
        RunPhase::Cancelled => ("it was cancelled", "begin it again"),
        _ => return None,
    };
    let held = holds_back(run, known);
    let offer = paste.offers(run, known).into_iter().next()?;
    let mut why = vec![waits_for(run)];
    if let Some(runbook) = runbook(run) {
        why.push(format!("how to: {runbook}"));
    }
    why.push(format!("owner: {}", run.spec.definition.owner));
    why.push(format!("holds back: {held}"));
    why.push(format!("more: {}", paste.describe(run, known)));
    Some(Waiting {
        kind: "run",
        source: run.spec.source.clone(),
        what: format!("{} is {phase}: {asks}", known.short_name(run)),
        since: since_of(run),
        why,
        command: offer.command,
        does,
    })
}

/// Returns where the precondition is explained that is false.
pub(super) fn runbook(run: &Run) -> Option<&str> {
    let evidence = &run.status.as_ref()?.evidence;
    let last = |about: &str| evidence.iter().rfind(|one| one.about == about);
    let requirements = run.spec.definition.guard.requires.iter().enumerate();
    let mut unmet = requirements.filter(|(index, _)| {
        last(&format!("requires[{index}]")).is_some_and(|found| found.result != "true")
    });
    unmet.find_map(|(_, requirement)| requirement.runbook.as_deref())
}
