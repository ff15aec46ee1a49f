//! What is worth an Event about a run: what has become of it since its record was written before, never a retry.

use super::events::{Notice, notice};
use crate::model::api::{EventReason, Run, RunPhase, RunStatus, StepRecord};

/// Returns what is worth an Event. `before` is the record as it was; none where it was just created.
pub fn run_notices(before: Option<&Run>, run: &Run) -> Vec<Notice> {
    let nothing = RunStatus::default();
    let was = before
        .and_then(|run| run.status.as_ref())
        .unwrap_or(&nothing);
    let status = run.status.as_ref().unwrap_or(&nothing);
    let of_what = of_what(run);
    let mut notices = Vec::new();
    if status.undoing && !was.undoing {
        let note = format!("what {of_what} has changed is being taken back");
        notices.push(notice(false, EventReason::RunBegun, "Undo", &note));
    } else if status.started_at.is_some() && was.started_at.is_none() {
        let note = format!("{of_what} has begun");
        notices.push(notice(false, EventReason::RunBegun, "Run", &note));
    }
    for record in first_failures(was, status) {
        let note = format!(
            "{of_what}: step {} has failed: {}",
            record.id,
            first_line(&record.message)
        );
        notices.push(notice(true, EventReason::RunStepFailed, "Run", &note));
    }
    // One that was cancelled before stays so when it is given up.
    let is_given_up = status.is_undo_given_up() && !was.is_undo_given_up();
    if status.phase != was.phase || is_given_up {
        notices.extend(entered(status, &of_what));
    }
    notices
}

/// Returns a run in words, for whoever reads the events of its source.
fn of_what(run: &Run) -> String {
    let migration = &run.spec.migration;
    match &run.spec.component {
        Some(component) => format!("migration {migration} of {component}"),
        None => format!("migration {migration}"),
    }
}

/// Returns steps that have failed for the first time, one record of each. That a `forEach` fails for many elements is one failure.
fn first_failures<'a>(was: &RunStatus, status: &'a RunStatus) -> Vec<&'a StepRecord> {
    let mut found: Vec<&StepRecord> = Vec::new();
    let pairs = [(&was.steps, &status.steps), (&was.undone, &status.undone)];
    for (before, after) in pairs {
        for record in after.iter().filter(|record| record.failures > 0) {
            let known = before
                .iter()
                .any(|known| known.id == record.id && known.failures > 0);
            if !known && found.iter().all(|other| other.id != record.id) {
                found.push(record);
            }
        }
    }
    found
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}

fn entered(status: &RunStatus, of_what: &str) -> Option<Notice> {
    let message = first_line(&status.message);
    let because = if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    };
    let (warning, reason, note) = match status.phase {
        RunPhase::Blocked => (
            true,
            EventReason::RunBlocked,
            format!("{of_what} is blocked{because}"),
        ),
        RunPhase::Manual => (
            true,
            EventReason::RunWaitsForPerson,
            format!("{of_what} waits for a person{because}"),
        ),
        RunPhase::Succeeded if status.undoing => (
            !message.is_empty(),
            EventReason::RunUndone,
            format!("what {of_what} had changed was taken back{because}"),
        ),
        RunPhase::Succeeded => (
            false,
            EventReason::RunSucceeded,
            format!("{of_what} has ended well"),
        ),
        RunPhase::Failed if status.undoing => (
            true,
            EventReason::RunFailed,
            format!("what {of_what} has changed could not be taken back{because}"),
        ),
        RunPhase::Failed => (
            true,
            EventReason::RunFailed,
            format!("{of_what} has failed{because}"),
        ),
        RunPhase::Cancelled if status.is_undo_given_up() => (
            true,
            EventReason::RunUndoGivenUp,
            format!("what {of_what} has changed is not taken back{because}"),
        ),
        RunPhase::Cancelled if status.undoing => (
            false,
            EventReason::RunCancelled,
            format!("taking back what {of_what} has changed was cancelled{because}"),
        ),
        RunPhase::Cancelled => (
            false,
            EventReason::RunCancelled,
            format!("{of_what} was cancelled{because}"),
        ),
        RunPhase::Pending
        | RunPhase::Running
        | RunPhase::Waiting
        | RunPhase::Paused
        | RunPhase::Cancelling
        | RunPhase::Superseded => return None,
    };
    Some(notice(warning, reason, "Run", &note))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::api::{StepState, UNDO_GIVEN_UP};
    use crate::runs::spec_of_a_test;

    fn run(status: RunStatus) -> Run {
        let spec = spec_of_a_test(serde_json::json!({"guard": {"needed": "true"}}));
        let mut run = Run::new("modules.home.grow-1", spec);
        run.status = Some(status);
        run
    }

    fn in_phase(phase: RunPhase, message: &str) -> RunStatus {
        RunStatus {
            phase,
            message: message.to_owned(),
            ..RunStatus::default()
        }
    }

    fn failing(failures: &[(&str, u32)]) -> RunStatus {
        let records = failures.iter().map(|(id, failures)| StepRecord {
            id: (*id).to_owned(),
            state: StepState::Waiting,
            failures: *failures,
            message: format!("failure {failures}"),
            ..StepRecord::default()
        });
        RunStatus {
            steps: records.collect(),
            ..in_phase(RunPhase::Waiting, "step two: failure")
        }
    }

    fn said(before: RunStatus, after: RunStatus) -> Vec<(EventReason, bool, String)> {
        let notices = run_notices(Some(&run(before)), &run(after));
        let words = notices.into_iter();
        words.map(|it| (it.reason, it.warning, it.note)).collect()
    }

    #[test]
    fn the_way_of_a_run_is_told_once() {
        let pending = RunStatus::default();
        let mut running = in_phase(RunPhase::Running, "");
        running.started_at = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            jiff::Timestamp::UNIX_EPOCH,
        ));
        let of = |text: &str| format!("migration grow of components/logging{text}");
        assert_eq!(
            said(pending.clone(), running.clone()),
            [(EventReason::RunBegun, false, of(" has begun"))]
        );
        assert_eq!(said(running.clone(), running.clone()), []);
        let blocked = in_phase(RunPhase::Blocked, "the gate is closed\nrunbook");
        assert_eq!(
            said(pending, blocked.clone()),
            [(
                EventReason::RunBlocked,
                true,
                of(" is blocked: the gate is closed")
            )]
        );
        assert_eq!(said(blocked.clone(), blocked), []);
        let manual = in_phase(RunPhase::Manual, "look");
        assert_eq!(
            said(
                running.clone(),
                RunStatus {
                    started_at: running.started_at.clone(),
                    ..manual
                }
            ),
            [(
                EventReason::RunWaitsForPerson,
                true,
                of(" waits for a person: look")
            )]
        );
        let mut ended = running.clone();
        ended.phase = RunPhase::Succeeded;
        assert_eq!(
            said(running, ended.clone()),
            [(EventReason::RunSucceeded, false, of(" has ended well"))]
        );
        let mut undoing = ended.clone();
        (undoing.undoing, undoing.phase) = (true, RunPhase::Running);
        assert_eq!(
            said(ended, undoing.clone()),
            [(
                EventReason::RunBegun,
                false,
                "what migration grow of components/logging has changed is being taken back"
                    .to_owned()
            )]
        );
        let mut given_up = undoing.clone();
        (given_up.phase, given_up.message) = (RunPhase::Cancelled, "it may stay".to_owned());
        let cancelled = said(undoing.clone(), given_up.clone());
        assert_eq!(
            (cancelled[0].0, cancelled[0].1, cancelled.len()),
            (EventReason::RunCancelled, false, 1)
        );
        let before = given_up.clone();
        UNDO_GIVEN_UP.clone_into(&mut given_up.reason);
        let kept =
            "what migration grow of components/logging has changed is not taken back: it may stay";
        assert_eq!(
            said(before, given_up),
            [(EventReason::RunUndoGivenUp, true, kept.to_owned())]
        );
        let mut undone = undoing.clone();
        (undone.phase, undone.message) = (RunPhase::Succeeded, "step back: left".to_owned());
        let told = said(undoing, undone);
        assert_eq!(
            (told[0].0, told[0].1, told.len()),
            (EventReason::RunUndone, true, 1)
        );
    }

    #[test]
    fn a_step_that_fails_is_told_once_however_often_and_for_however_many_elements() {
        let first = said(
            RunStatus::default(),
            failing(&[("one", 0), ("two", 1), ("two", 1)]),
        );
        assert_eq!(
            first,
            [(
                EventReason::RunStepFailed,
                true,
                "migration grow of components/logging: step two has failed: failure 1".to_owned()
            )]
        );
        let again = said(failing(&[("two", 1)]), failing(&[("two", 2), ("two", 1)]));
        assert_eq!(again, []);
    }
}
