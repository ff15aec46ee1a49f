//! What a pass amounts to: the reason and message of `Ready`, and whether the agent goes on by itself.

use super::pass::PassReport;
use super::runtimes::{RuntimesReport, Words};
use super::text::{counted, failed_to, first_line, short, some_of, with_author};
use crate::model::api::ConditionReason as Reason;
use crate::model::api::ConditionStatus::{self, False, True, Unknown};
use crate::model::{Diagnostic, Hold, HoldReason, Severity};

/// What a pass amounts to.
pub(super) struct Verdict {
    /// Status of `Ready`.
    pub(super) status: ConditionStatus,
    /// Reason of `Ready`.
    pub(super) reason: Reason,
    /// Message of `Ready`.
    pub(super) message: String,
    /// What the agent does next, if it is not done.
    pub(super) next: Next,
}

/// What the agent does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing: all is as git wants it.
    Rest,
    /// It waits for something that is on its way.
    Proceed,
    /// It tries again what failed.
    Retry,
    /// Nothing before a person does something.
    WaitForPerson,
}

impl Verdict {
    /// Judges a pass. What is wrong with the clock changes nothing but the message.
    pub(super) fn of(report: &PassReport<'_>) -> Self {
        let mut verdict = Self::of_state(report);
        if let Some(clock) = report.clock {
            verdict.message = format!("{}; {clock}", verdict.message);
        }
        verdict
    }

    fn of_state(report: &PassReport<'_>) -> Self {
        let (status, reason) = reason(report);
        if reason == Reason::Synced
            && let Some(spoiled) = report.runtimes.and_then(RuntimesReport::spoils_ready)
        {
            return Self::of_runtimes(report, spoiled);
        }
        let next = if reason == Reason::Synced {
            Next::Rest
        } else {
            next(report)
        };
        Self {
            status,
            reason,
            message: message(report, reason),
            next,
        }
    }

    /// Home is in step, and the runtimes are not.
    fn of_runtimes(report: &PassReport<'_>, (status, reason, message): Words) -> Self {
        let next = match reason {
            Reason::Held => Next::WaitForPerson,
            Reason::Unreachable => Next::Retry,
            _ => Next::Proceed,
        };
        let message = match report.revision {
            Some(revision) => format!("applied {} on home; {message}", short(revision)),
            None => message,
        };
        Self {
            status,
            reason,
            message,
            next,
        }
    }
}

fn reason(report: &PassReport<'_>) -> (ConditionStatus, Reason) {
    if let Err(failure) = report.fetched {
        return (False, failure.reason());
    }
    if report.is_of_account {
        return (False, Reason::AccountRefused);
    }
    let (Some(desired), Some(plan), None) = (report.desired, report.plan, report.failed) else {
        return (Unknown, Reason::Retrying);
    };
    let pending = plan.pending.is_some();
    if desired.withdrawn {
        let reason = if pending {
            Reason::ApprovalNeeded
        } else {
            Reason::Deleting
        };
        return (False, reason);
    }
    if desired.is_valid() && is_under_way(report, pending) {
        (Unknown, Reason::Progressing)
    } else if !desired.is_valid() || holds(report, pending).next().is_some() {
        (False, Reason::PartiallyApplied)
    } else if failed(report).next().is_some() {
        (False, Reason::ApplyFailed)
    } else if pending {
        (False, Reason::ApprovalNeeded)
    } else if !plan.unhealthy.is_empty() || report.unfinished() > 0 {
        (Unknown, Reason::Progressing)
    } else if report.claims.is_empty() {
        (True, Reason::Synced)
    } else {
        (False, Reason::Conflict)
    }
}

/// Returns whether nothing is held but what waits for migrations that are under way.
pub(super) fn is_under_way(report: &PassReport<'_>, pending: bool) -> bool {
    let mut held = holds(report, pending).peekable();
    held.peek().is_some() && held.all(|hold| hold.reason == HoldReason::MigrationPending)
}

fn next(report: &PassReport<'_>) -> Next {
    if report.is_of_account {
        return Next::WaitForPerson;
    }
    let fetch_retries = report.fetched.is_err_and(|failure| failure.retryable);
    let mut holds = report.plan.into_iter().flat_map(|plan| &plan.holds);
    if fetch_retries
        || report.failed.is_some()
        || holds.clone().any(|hold| hold.reason == HoldReason::BackOff)
    {
        Next::Retry
    } else if holds.any(|hold| !needs_person(hold))
        || report.plan.is_some_and(|plan| !plan.unhealthy.is_empty())
    {
        Next::Proceed
    } else {
        Next::WaitForPerson
    }
}

/// Returns whether a hold stays until somebody changes something in git or on the cluster. The others go by themselves.
pub fn needs_person(hold: &Hold) -> bool {
    match hold.reason {
        // With a place it is a file in git that could not be read; else something on the cluster.
        HoldReason::PruneUnsafe => hold.place.is_some(),
        HoldReason::Invalid
        | HoldReason::Conflict
        | HoldReason::Immutable
        | HoldReason::Disabled
        | HoldReason::Channel
        | HoldReason::VersionChanged
        | HoldReason::ApprovalNeeded
        | HoldReason::InUse
        | HoldReason::Rewound
        | HoldReason::MigrationManual
        | HoldReason::MigrationFailed
        | HoldReason::MigrationHeld
        | HoldReason::Suspended => true,
        HoldReason::KindUnknown
        | HoldReason::Unobserved
        | HoldReason::DependencyNotReady
        | HoldReason::Requires
        | HoldReason::Contested
        | HoldReason::Terminating
        | HoldReason::MigrationPending
        | HoldReason::MigrationBlocked
        | HoldReason::MigrationSuppressed
        | HoldReason::BackOff => false,
    }
}

fn message(report: &PassReport<'_>, reason: Reason) -> String {
    if report.is_withdrawal() {
        let problems = problems(report).unwrap_or_else(|| "deleting what was applied".to_owned());
        let runtimes = report.runtimes.map_or(0, |runtimes| runtimes.states.len());
        let stays = match runtimes {
            0 => String::new(),
            1 => "; the catalog of its runtime stays as it is".to_owned(),
            more => format!("; the catalogs of its {more} runtimes stay as they are"),
        };
        return format!("the source is being deleted: {problems}{stays}");
    }
    let Some(revision) = report.revision else {
        return problems(report).unwrap_or_else(|| "no revision was read yet".to_owned());
    };
    let objects = report.objects_in_step();
    match reason {
        Reason::Synced => format!(
            "applied {}: {} in step",
            short(revision),
            counted(objects.unwrap_or_default(), "object")
        ),
        Reason::Progressing => format!(
            "{} {}: {}",
            if report.is_applied_in_full() {
                "applied"
            } else {
                "applying"
            },
            short(revision),
            problems(report).unwrap_or_default()
        ),
        _ => format!(
            "{}: {}",
            with_author(revision, report.commit),
            problems(report).unwrap_or_default()
        ),
    }
}

/// Returns everything that stands in the way, the cause before what follows from it.
fn problems(report: &PassReport<'_>) -> Option<String> {
    let mut parts = Vec::new();
    if let Err(failure) = report.fetched {
        parts.push(format!("failed to fetch: {failure}"));
    }
    if let Some(failed) = report.failed {
        parts.push(failed_to(failed));
    }
    parts.extend(invalid(report));
    if let Some(plan) = report.plan {
        let listed: Vec<&Hold> = holds(report, plan.pending.is_some()).collect();
        if !listed.is_empty() {
            let each = listed.iter().map(|hold| hold_words(hold));
            parts.push(format!(
                "{} held: {}",
                listed.len(),
                some_of(listed.len(), each)
            ));
        }
    }
    let failures: Vec<String> = failed(report).map(hold_words).collect();
    if !failures.is_empty() {
        let count = failures.len();
        parts.push(format!(
            "{count} failed: {}",
            some_of(count, failures.into_iter())
        ));
    }
    if let Some(plan) = report.plan {
        if let Some(pending) = &plan.pending {
            parts.push(format!(
                "{} {} for approval: {}",
                counted(pending.deletions.len(), "deletion"),
                if pending.deletions.len() == 1 {
                    "waits"
                } else {
                    "wait"
                },
                some_of(pending.reasons.len(), pending.reasons.iter().cloned())
            ));
        }
        if !report.claims.is_empty() {
            let each = report
                .claims
                .iter()
                .map(|claim| format!("{} (source `{}`)", claim.object, claim.by));
            parts.push(format!(
                "{} wanted by another source as well: {}; it stays as this one has it, until one of the two repositories \
                 gives it up",
                counted(report.claims.len(), "object"),
                some_of(report.claims.len(), each)
            ));
        }
        if report.unfinished() > 0 {
            parts.push(format!("{} to go", counted(report.unfinished(), "action")));
        }
        if !plan.unhealthy.is_empty() {
            let each = plan
                .unhealthy
                .iter()
                .map(|(component, why)| format!("{component}: {why}"));
            parts.push(format!(
                "waiting for {}",
                some_of(plan.unhealthy.len(), each)
            ));
        }
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns the errors of the revision in words, with place, code and way out.
pub(super) fn invalid(report: &PassReport<'_>) -> Option<String> {
    let desired = report.desired?;
    let errors: Vec<&Diagnostic> = desired
        .diagnostics
        .iter()
        .filter(|found| found.severity == Severity::Error)
        .collect();
    let unread = desired.unread.iter().filter(|unread| {
        !errors
            .iter()
            .any(|error| error.place.file == unread.place.file)
    });
    let words: Vec<String> = errors
        .iter()
        .map(|error| match &error.help {
            Some(help) => format!("{error} ({})", first_line(help)),
            None => error.to_string(),
        })
        .chain(unread.map(|unread| format!("{}: {}", unread.place, unread.reason)))
        .collect();
    let count = words.len();
    (count > 0).then(|| {
        format!(
            "{}: {}",
            counted(count, "error"),
            some_of(count, words.into_iter())
        )
    })
}

/// Returns the holds that are not told in other words already: errors by their diagnostics, a deletion by its set, and what
/// failed by [`failed`].
pub(super) fn holds<'a>(
    report: &PassReport<'a>,
    pending: bool,
) -> impl Iterator<Item = &'a Hold> + use<'a> {
    let errors = report.desired.is_some_and(|desired| !desired.is_valid());
    report
        .plan
        .into_iter()
        .flat_map(|plan| &plan.holds)
        .filter(move |hold| match hold.reason {
            HoldReason::Invalid => !errors,
            HoldReason::ApprovalNeeded => !pending,
            HoldReason::BackOff => false,
            _ => true,
        })
}

/// Returns what failed and waits to be tried again.
pub(super) fn failed<'a>(report: &PassReport<'a>) -> impl Iterator<Item = &'a Hold> + use<'a> {
    let holds = report.plan.into_iter().flat_map(|plan| &plan.holds);
    holds.filter(|hold| hold.reason == HoldReason::BackOff)
}

/// Returns a hold in words.
pub(super) fn hold_words(hold: &Hold) -> String {
    let message = first_line(&hold.message);
    match &hold.place {
        Some(place) => format!("{} ({place}): {message}", hold.what),
        None => format!("{}: {message}", hold.what),
    }
}
