//! The deletions of one plan, from the candidates to actions, holds and the set that waits.

use std::collections::{BTreeMap, BTreeSet};

use crate::desired::Removal;
use crate::model::{ComponentName, Digest, Hold, HoldReason, ObjectKey, Place, limits};
use crate::observe::{ObservedObject, Ownership};
use crate::plan::difference::{Difference, Verdict};
use crate::plan::hooks::Removals;
use crate::plan::kinds;
use crate::plan::output::{Action, ActionKind, Deletion, Kept, PendingDeletion, Why};
use crate::plan::view::View;

use super::brake::{
    Braked, brake, follow, objects, still_there, templates_named, too_large_to_approve,
};
use super::candidates::{self, Candidate};
use super::dependents::keep_what_is_in_use;

/// What is deleted, and what is not.
#[derive(Debug, Default)]
pub(in crate::plan) struct Pruning {
    pub(in crate::plan) actions: Vec<Action>,
    pub(in crate::plan) holds: Vec<Hold>,
    pub(in crate::plan) pending: Option<PendingDeletion>,
    pub(in crate::plan) kept: Vec<Kept>,
    /// Components that wait for another one and would have lost objects; their own hold speaks for these.
    pub(in crate::plan) frozen: BTreeSet<ComponentName>,
    /// Removed components whose migrations are to be taken back now.
    pub(in crate::plan) undo: BTreeSet<ComponentName>,
}

/// Decides about everything that git does not want any more.
pub(in crate::plan) fn prune<'a>(
    view: &View<'a>,
    differences: &[Difference<'a>],
    is_frozen: impl Fn(&ComponentName) -> bool,
    removals: &Removals<'_>,
) -> Pruning {
    let sorted = candidates::sort(view);
    let mut pruning = Pruning {
        holds: sorted.holds,
        kept: sorted.kept,
        ..Pruning::default()
    };
    undo_without_objects(view, removals, &sorted.candidates, &mut pruning);
    // Without a whole record it is not known of which kinds there may be more, which the end of a source must not pass over.
    let blind = view.input.desired.withdrawn && view.input.record.is_err();
    if sorted.candidates.is_empty() && !blind {
        return pruning;
    }
    if let Some(hold) = unsafe_to_prune(view, &sorted.candidates) {
        pruning.holds.push(hold);
        return pruning;
    }
    let (frozen, candidates): (Vec<_>, Vec<_>) = sorted
        .candidates
        .into_iter()
        .partition(|candidate| is_frozen(&candidate.component));
    pruning.frozen = frozen.into_iter().map(|it| it.component).collect();
    let (candidates, holds) = wait_for_replacements(differences, candidates);
    pruning.holds.extend(holds);
    let (candidates, holds) = keep_what_is_in_use(view, differences, candidates);
    pruning.holds.extend(holds);

    let Braked {
        mut free,
        waiting,
        reasons,
    } = brake(view, candidates);
    let mut unreleased = BTreeSet::new();
    if waiting.is_empty() || approved(view, &waiting) {
        free.extend(waiting);
    } else {
        unreleased.extend(waiting.iter().map(|it| it.component.clone()));
        let pending = pending(&waiting, reasons);
        pruning.holds.push(approval_hold(view, &waiting, &pending));
        pruning.pending = Some(pending);
    }
    let free = undo_first(view, removals, (free, &unreleased), &mut pruning);
    let (free, holds) = back_off(view, free);
    pruning.holds.extend(holds);
    pruning.actions = actions(&free);
    pruning
}

/// The way out for a person who has deleted a source and finds that its objects had better stay.
const OR_ORPHAN: &str =
    ", or set `spec.deletionPolicy: Orphan`, which leaves everything where it is";

/// Leaves out the deletions of components where something that git wants could not be applied lately: what replaces an object
/// must be there before the object goes.
fn wait_for_replacements<'a>(
    differences: &[Difference<'_>],
    candidates: Vec<Candidate<'a>>,
) -> (Vec<Candidate<'a>>, Vec<Hold>) {
    let mut failing: BTreeMap<&ComponentName, &ObjectKey> = BTreeMap::new();
    for difference in differences {
        if let Verdict::Held(hold) = &difference.verdict
            && matches!(
                hold.reason,
                HoldReason::BackOff | HoldReason::Immutable | HoldReason::Requires
            )
        {
            let component = &difference.object.component;
            failing.entry(component).or_insert(&difference.object.key);
        }
    }
    let (waiting, free): (Vec<_>, Vec<_>) = candidates
        .into_iter()
        .partition(|candidate| failing.contains_key(&candidate.component));
    let mut counts: BTreeMap<ComponentName, usize> = BTreeMap::new();
    for candidate in waiting {
        *counts.entry(candidate.component).or_default() += 1;
    }
    let holds = counts.into_iter().map(|(component, count)| Hold {
        what: format!("{} in {component}", deletions(count)),
        reason: HoldReason::Requires,
        message: format!(
            "{} is not applied yet, and may be what replaces it; this goes on as soon as that is",
            failing[&component]
        ),
        place: None,
    });
    (free, holds.collect())
}

/// Returns the hold of all deletions where what git wants, or what is there, is not wholly known.
fn unsafe_to_prune(view: &View<'_>, candidates: &[Candidate<'_>]) -> Option<Hold> {
    let desired = view.input.desired;
    let hold = |place: Option<Place>, message: String| Hold {
        what: if desired.withdrawn {
            "deletion of all that the source has applied".to_owned()
        } else {
            deletions(candidates.len())
        },
        reason: HoldReason::PruneUnsafe,
        message,
        place,
    };
    if let Some(unread) = desired.unread.first() {
        let rest = match desired.unread.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more files)"),
        };
        return Some(hold(
            Some(unread.place.clone()),
            format!(
                "{} could not be read{rest}: {}. What seems to be gone may stand there; mend the file",
                unread.place, unread.reason
            ),
        ));
    }
    if view.objects.is_empty() && !desired.withdrawn {
        let message = format!(
            "revision {} wants nothing at all, which is never taken for a wish to delete everything; delete the ReleaseSource \
             if that is meant",
            desired.revision
        );
        return Some(hold(None, message));
    }
    if let Err(reason) = view.input.record {
        let message = format!(
            "the record of this cluster is not whole: {reason}. Confirm with `fairway adopt {}` that it is the right one{}",
            view.input.source,
            if desired.withdrawn { OR_ORPHAN } else { "" }
        );
        return Some(hold(None, message));
    }
    None
}

/// An approval covers every set that is part of the approved one.
fn approved(view: &View<'_>, waiting: &[Candidate<'_>]) -> bool {
    view.input.approval.is_some_and(|approval| {
        waiting.iter().all(|candidate| {
            approval
                .objects
                .contains(&candidate.deletion().fingerprint())
        })
    })
}

fn pending(waiting: &[Candidate<'_>], reasons: Vec<String>) -> PendingDeletion {
    let deletions: Vec<Deletion> = waiting.iter().map(Candidate::deletion).collect();
    let parts: Vec<(String, &str)> = deletions
        .iter()
        .map(|deletion| (deletion.key.to_string(), deletion.uid.as_str()))
        .collect();
    let digest = Digest::of_parts(parts.iter().flat_map(|(key, uid)| [key.as_str(), uid]));
    PendingDeletion {
        digest: digest.to_string(),
        deletions,
        reasons,
    }
}

fn approval_hold(view: &View<'_>, waiting: &[Candidate<'_>], pending: &PendingDeletion) -> Hold {
    let shown = pending.reasons.len().min(limits::NAMED_IN_MESSAGE_MAX);
    let reasons = pending.reasons[..shown].join("; ");
    let more = match pending.reasons.len() - shown {
        0 => String::new(),
        more => format!("; and {more} more reasons"),
    };
    if view.input.desired.withdrawn {
        let source = view.input.source;
        let approve = if too_large_to_approve(waiting.len()) {
            format!(
                "These are too many to approve at once; remove parts of them from git before{OR_ORPHAN}"
            )
        } else {
            format!("Approve with `fairway approve prune {source} --reason '…'`{OR_ORPHAN}")
        };
        return Hold {
            what: deletions(waiting.len()),
            reason: HoldReason::ApprovalNeeded,
            message: format!("{reasons}{more}. {approve}"),
            place: None,
        };
    }
    let approve = if too_large_to_approve(waiting.len()) {
        "These are too many to approve at once; announce them".to_owned()
    } else {
        let source = view.input.source;
        format!("Approve with `fairway approve prune {source} --reason '…'`, or announce them")
    };
    let lines = announcement(view, waiting);
    Hold {
        what: deletions(waiting.len()),
        reason: HoldReason::ApprovalNeeded,
        message: format!("{reasons}{more}. {approve} in fairway.yaml:\n{lines}"),
        place: None,
    }
}

/// Writes the lines of `fairway.yaml` that announce a set: whole components where all of one goes, objects otherwise.
fn announcement(view: &View<'_>, waiting: &[Candidate<'_>]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for candidate in waiting {
        let line = if still_there(view, &candidate.component) {
            format!("\n  - object: {}", announced_object(candidate.live))
        } else {
            format!("\n  - component: {}", candidate.component)
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
        if lines.len() > limits::NAMED_IN_MESSAGE_MAX {
            lines.pop();
            lines.push("\n  # and so on, one line for each".to_owned());
            break;
        }
    }
    format!("removals:{}", lines.concat())
}

/// Writes an object as `fairway.yaml` names it.
fn announced_object(live: &ObservedObject) -> String {
    let key = &live.key;
    let api_version = match &live.ownership {
        Ownership::Ours { api_version, .. } => api_version.as_str(),
        Ownership::None | Ownership::Unsupported => key.kind.group.as_str(),
    };
    let namespace = key.namespace.as_ref();
    let namespace = namespace.map_or(String::new(), |name| format!(", namespace: {name}"));
    format!(
        "{{apiVersion: {api_version}, kind: {}, name: {}{namespace}}}",
        key.kind.kind, key.name
    )
}

/// Takes out what goes only after what the migrations of its component have changed was taken back.
fn undo_first<'a>(
    view: &View<'a>,
    removals: &Removals<'_>,
    (mut free, unreleased): (Vec<Candidate<'a>>, &BTreeSet<ComponentName>),
    pruning: &mut Pruning,
) -> Vec<Candidate<'a>> {
    let held = |candidate: &mut Candidate<'_>| removals.holds(&candidate.component);
    let mut late: Vec<_> = free.extract_if(.., held).collect();
    let names: BTreeSet<ComponentName> = late.iter().map(|it| it.component.clone()).collect();
    for name in names {
        let is_released = !unreleased.contains(&name);
        pruning.holds.push(removals.hold(&name, is_released));
        if is_released {
            pruning.undo.insert(name);
        }
    }
    follow(view, &mut free, &mut late);
    free
}

/// Of a removed component nothing may be left that could be approved: then it is taken back only where git announces the removal.
fn undo_without_objects(
    view: &View<'_>,
    removals: &Removals<'_>,
    candidates: &[Candidate<'_>],
    pruning: &mut Pruning,
) {
    for name in removals.open() {
        if candidates.iter().any(|it| it.component == *name) {
            continue;
        }
        let announced = view.input.desired.settings.removals.iter();
        let mut announced = announced.filter_map(Removal::as_component);
        if announced.any(|it| it == name) {
            pruning.holds.push(removals.hold(name, true));
            pruning.undo.insert(name.clone());
        } else {
            pruning.holds.push(Removals::unannounced(name));
        }
    }
}

/// Takes out what failed to be deleted a short while ago, and what must go after it.
fn back_off<'a>(view: &View<'a>, free: Vec<Candidate<'a>>) -> (Vec<Candidate<'a>>, Vec<Hold>) {
    let failure = |candidate: &Candidate<'_>| {
        let failure = view.input.failures.get(&candidate.live.key)?;
        (failure.digest.is_none() && !failure.due).then_some(failure)
    };
    let mut free = free;
    let mut late: Vec<_> = free.extract_if(.., |it| failure(it).is_some()).collect();
    let holds = late
        .iter()
        .filter_map(|candidate| {
            Some(Hold {
                what: format!("deletion of {}", candidate.live.key),
                reason: HoldReason::BackOff,
                message: format!(
                    "the last attempt failed: {}. It is tried again after a delay",
                    failure(candidate)?.message
                ),
                place: None,
            })
        })
        .collect();
    follow(view, &mut free, &mut late);
    (free, holds)
}

fn actions(free: &[Candidate<'_>]) -> Vec<Action> {
    // A template goes only after the ModuleReleaseMeta that names it has gone.
    let mut first: BTreeMap<ObjectKey, Vec<ObjectKey>> = BTreeMap::new();
    for candidate in free {
        if kinds::is_module_release_meta(&candidate.live.key.kind) {
            for template in templates_named(candidate) {
                first
                    .entry(template)
                    .or_default()
                    .push(candidate.live.key.clone());
            }
        }
    }
    free.iter()
        .map(|candidate| Action {
            key: candidate.live.key.clone(),
            component: candidate.component.clone(),
            kind: ActionKind::Delete(candidate.deletion()),
            why: Why::Removed,
            requires: first.remove(&candidate.live.key).unwrap_or_default(),
        })
        .collect()
}

fn deletions(count: usize) -> String {
    format!("deletion of {}", objects(count))
}
