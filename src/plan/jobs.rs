//! Jobs: each is created once for each content, and its later absence is not drift.
//!
//! Kubernetes removes a Job that has ended (`ttlSecondsAfterFinished`), people do so too, and a Job that is made anew runs anew.
//! So what has been created is remembered in the target's record, by the content of its `spec`: that is what runs. A Job whose
//! labels or component change is none that has to run again.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::{DesiredObject, Digest, Hold, HoldReason, ObjectKey, limits, names};
use crate::observe::{Health, ObservedObject};

use super::difference::{Difference, Verdict, hold};
use super::kinds;
use super::output::Deletion;
use super::view::View;

/// The Jobs that a target has created, by object.
pub type Jobs = BTreeMap<ObjectKey, JobRecord>;

/// What is remembered of one Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    /// The digest of its `spec`.
    pub digest: Digest,
    /// The uid of the Job that was created for it; none as long as that was only begun.
    pub uid: Option<String>,
}

/// Returns the digest of what a Job runs.
fn content(object: &DesiredObject) -> Digest {
    Digest::of(object.body.get("spec").unwrap_or(&Value::Null))
}

/// Returns whether a Job was created with just this content before.
pub(super) fn was_created(view: &View<'_>, object: &DesiredObject) -> bool {
    kinds::is_job(&object.key.kind)
        && view
            .input
            .jobs
            .get(&object.key)
            .is_some_and(|record| record.uid.is_some() && record.digest == content(object))
}

/// Returns the hold of a Job that is not there while nobody knows whether it has run already.
pub(super) fn unknown(view: &View<'_>, object: &DesiredObject) -> Option<Hold> {
    let reason = view.input.record.err()?;
    kinds::is_job(&object.key.kind).then(|| {
        let message = format!(
            "whether this Job has run here already is not known: {reason}. With that it runs (again)"
        );
        hold(object, HoldReason::Unobserved, message)
    })
}

/// Decides about a Job whose changed content the cluster refuses to take in place: it is a new Job, once the one there has
/// ended.
pub(super) fn changed(object: &DesiredObject, live: &ObservedObject) -> Verdict {
    let is_kept =
        live.prune_disabled || object.annotation(names::ANNOTATION_PRUNE) == Some("disabled");
    let message = match (&live.health, is_kept) {
        (_, true) => format!(
            "its content has changed, so that it has to run anew, but it is not replaced while it has the annotation `{}: \
             disabled`",
            names::ANNOTATION_PRUNE
        ),
        (Health::Current | Health::Failed(_), false) => {
            return Verdict::Replace(Deletion::of(live));
        }
        (Health::InProgress(_) | Health::Terminating, false) => {
            "its content has changed while it runs; it is left to end, and replaced then. Delete it to have that at once"
                .to_owned()
        }
    };
    Verdict::Held(hold(object, HoldReason::Immutable, message))
}

/// Holds the Jobs that are more than a record can remember; one that might run twice is not started.
pub(super) fn bound(view: &View<'_>, differences: &mut [Difference<'_>]) {
    let known = remembered_before(view);
    let mut room = limits::JOBS_REMEMBERED_MAX.saturating_sub(known.len());
    let mut new: Vec<usize> = (0..differences.len())
        .filter(|at| {
            let difference = &differences[*at];
            kinds::is_job(&difference.object.key.kind)
                && matches!(difference.verdict, Verdict::Apply(_) | Verdict::InStep)
                && !known.contains_key(&difference.object.key)
        })
        .collect();
    // Those that are there take a place before those that would be created.
    new.sort_by_key(|at| {
        (
            differences[*at].live.is_none(),
            &differences[*at].object.key,
        )
    });
    for at in new {
        if room > 0 {
            room -= 1;
        } else if differences[at].live.is_none() {
            let message = format!(
                "this source has more than {} Jobs, and of more nobody would know whether they have run; remove those from \
                 git that are done",
                limits::JOBS_REMEMBERED_MAX
            );
            differences[at].verdict =
                Verdict::Held(hold(differences[at].object, HoldReason::Invalid, message));
        }
    }
}

/// Returns what is to be remembered before the plan is begun: what it creates, as begun, and what is there, as created.
pub(super) fn remembered(view: &View<'_>, differences: &[Difference<'_>]) -> Jobs {
    let mut jobs = remembered_before(view);
    let mut found: Vec<&Difference<'_>> = differences
        .iter()
        .filter(|difference| kinds::is_job(&difference.object.key.kind))
        .collect();
    found.sort_by_key(|difference| (difference.live.is_none(), &difference.object.key));
    for difference in found {
        let digest = content(difference.object);
        let uid = match (&difference.verdict, difference.live) {
            (Verdict::InStep, Some(live)) => Some(live.uid.clone()),
            (Verdict::Apply(_) | Verdict::Replace(_), _) => None,
            _ => continue,
        };
        let key = &difference.object.key;
        let known = jobs.get(key);
        // An apply that brings labels back does not make the Job one that was never created.
        if uid.is_none() && known.is_some_and(|it| it.digest == digest && it.uid.is_some()) {
            continue;
        }
        if known.is_some() || jobs.len() < limits::JOBS_REMEMBERED_MAX {
            jobs.insert(key.clone(), JobRecord { digest, uid });
        }
    }
    jobs
}

/// Returns what the record remembers of Jobs that git still names; with a file that could not be read, of all.
fn remembered_before(view: &View<'_>) -> Jobs {
    let mut jobs = view.input.jobs.clone();
    if view.input.desired.unread.is_empty() {
        jobs.retain(|key, _| view.names(key));
    }
    jobs
}

#[cfg(test)]
mod tests;
