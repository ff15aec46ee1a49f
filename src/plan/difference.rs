//! What each wanted object needs, by itself: nothing, an apply with its reason, or a hold with its reason.

use std::sync::Arc;

use crate::model::{
    DesiredObject, Digest, Hold, HoldReason, ObjectKey, Scope, SourceName, limits, names,
};
use crate::observe::{KindObservation, ObservedObject, Ownership};

use super::channels;
use super::jobs;
use super::kinds;
use super::output::{Deletion, PastFailure, Why};
use super::ownership::{Coverage, coverage};
use super::view::View;

/// One wanted object with what it needs.
pub(super) struct Difference<'a> {
    pub(super) object: &'a Arc<DesiredObject>,
    pub(super) live: Option<&'a ObservedObject>,
    pub(super) verdict: Verdict,
    /// Objects of this plan that must be applied first.
    pub(super) requires: Vec<ObjectKey>,
}

/// What a wanted object needs.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Nothing.
    InStep,
    /// An apply.
    Apply(Why),
    /// Deleting it and creating it anew.
    Replace(Deletion),
    /// It is held for a reason of its own.
    Held(Hold),
    /// The cluster does not serve its kind, or not in this version; the text says which. Its CRD may be in this plan.
    Unserved(String),
    /// The objects of its kind are not known; the text says why.
    Unobserved(String),
    /// It waits with its whole component, which has a hold of its own.
    Waiting,
    /// It is of a component that the plan was not asked for.
    OutOfScope,
}

/// Judges every wanted object; positions are those of the view.
pub(super) fn differences<'a>(view: &View<'a>) -> Vec<Difference<'a>> {
    view.objects
        .iter()
        .map(|&object| {
            let live = view.live(&object.key);
            Difference {
                object,
                live,
                verdict: judge(view, object, live),
                requires: Vec::new(),
            }
        })
        .collect()
}

/// Makes the hold of one object.
pub(super) fn hold(object: &DesiredObject, reason: HoldReason, message: String) -> Hold {
    Hold {
        what: object.key.to_string(),
        reason,
        message,
        place: Some(object.place.clone()),
    }
}

fn judge(view: &View<'_>, object: &DesiredObject, live: Option<&ObservedObject>) -> Verdict {
    if let Some(verdict) = unserved(view, object) {
        return verdict;
    }
    match view.input.observed.kinds.get(&object.key.kind) {
        None => return Verdict::Unobserved("they have not been listed yet".to_owned()),
        Some(KindObservation::Unlisted(reason)) => return Verdict::Unobserved(reason.clone()),
        Some(KindObservation::Listed(_)) => {}
    }
    match live {
        None => missing(view, object),
        Some(live) => present(view, object, live),
    }
}

/// Returns a verdict where the cluster does not serve the object as git writes it.
fn unserved(view: &View<'_>, object: &DesiredObject) -> Option<Verdict> {
    let served = view.input.observed.served.as_ref()?;
    let Some(kind) = served.get(&object.key.kind) else {
        let text = format!("the cluster does not serve {}", object.key.kind);
        return Some(Verdict::Unserved(text));
    };
    if !kind.versions.contains(&object.version) {
        let text = format!(
            "the cluster serves {} as {}, not as {}",
            object.key.kind,
            kind.versions.join(", "),
            object.version
        );
        return Some(Verdict::Unserved(text));
    }
    let message = match (kind.scope, object.key.namespace.is_some()) {
        (Scope::Cluster, true) => "its kind lives in no namespace; remove `metadata.namespace`",
        (Scope::Namespaced, false) => "its kind lives in a namespace; add `metadata.namespace`",
        _ => return None,
    };
    let held = hold(object, HoldReason::Invalid, message.to_owned());
    Some(Verdict::Held(held))
}

fn missing(view: &View<'_>, object: &DesiredObject) -> Verdict {
    if jobs::was_created(view, object) {
        return Verdict::InStep;
    }
    if let Some(hold) = jobs::unknown(view, object) {
        return Verdict::Held(hold);
    }
    let namespace = namespace_of(&object.key).and_then(|key| view.live(&key));
    if namespace.is_some_and(|namespace| namespace.deleting) {
        let message = "its namespace is being deleted; it is applied again when that is gone";
        return Verdict::Held(hold(object, HoldReason::Terminating, message.to_owned()));
    }
    match past_failure(view, object) {
        // The object that refused the change is gone, and with it the reason of the refusal.
        Some(failure) if !failure.due && !failure.immutable => back_off(object, failure),
        _ => Verdict::Apply(Why::Missing),
    }
}

fn present(view: &View<'_>, object: &DesiredObject, live: &ObservedObject) -> Verdict {
    let held = |reason, message: String| Verdict::Held(hold(object, reason, message));
    if live.deleting {
        if jobs::was_created(view, object) {
            return Verdict::InStep;
        }
        let message = "it is being deleted; it is applied again when it is gone. If that takes long, look at its finalizers";
        return held(HoldReason::Terminating, message.to_owned());
    }
    if let Some(owner) = other_owner(view, live) {
        return held(
            HoldReason::Conflict,
            format!(
                "source `{owner}` owns it and keeps it; remove it from one of the two repositories"
            ),
        );
    }
    let Some(why) = difference(view, object, live) else {
        return Verdict::InStep;
    };
    if live.reconcile_disabled {
        return held(
            HoldReason::Disabled,
            format!(
                "the live object has the annotation `{}: disabled`; remove it there to go on",
                names::ANNOTATION_RECONCILE
            ),
        );
    }
    if live.recent_applies >= limits::CONTESTED_APPLIES {
        return held(HoldReason::Contested, contested(live, &why));
    }
    if let Some(hold) = channels::refusal(view, object, live) {
        return Verdict::Held(hold);
    }
    match past_failure(view, object) {
        Some(failure) if failure.immutable && kinds::is_job(&object.key.kind) => {
            jobs::changed(object, live)
        }
        Some(failure) if failure.immutable => immutable(object, live, failure),
        Some(failure) if !failure.due => back_off(object, failure),
        _ => Verdict::Apply(why),
    }
}

/// Returns what came of the last attempt at exactly this object, where it failed.
fn past_failure<'a>(view: &View<'a>, object: &DesiredObject) -> Option<&'a PastFailure> {
    let failure = view.input.failures.get(&object.key)?;
    (failure.digest.as_deref() == Some(object.digest.as_str())).then_some(failure)
}

fn back_off(object: &DesiredObject, failure: &PastFailure) -> Verdict {
    let message = format!(
        "the last attempt failed: {}. It is tried again after a delay",
        failure.message
    );
    Verdict::Held(hold(object, HoldReason::BackOff, message))
}

/// Decides about a change that the cluster refuses to make in place.
fn immutable(object: &DesiredObject, live: &ObservedObject, failure: &PastFailure) -> Verdict {
    let refused = &failure.message;
    let held = |message| Verdict::Held(hold(object, HoldReason::Immutable, message));
    let is_forced = object.annotation(names::ANNOTATION_FORCE) == Some("enabled");
    let is_kept =
        live.prune_disabled || object.annotation(names::ANNOTATION_PRUNE) == Some("disabled");
    if kinds::takes_others_along(&object.key.kind) {
        return held(format!(
            "the change cannot be made in place: {refused}. Replacing it would take data or other objects along; revert the \
             change, or move to an object of another name"
        ));
    }
    match (is_forced, is_kept) {
        (true, false) => Verdict::Replace(Deletion::of(live)),
        (true, true) => held(format!(
            "the change cannot be made in place: {refused}. It is not replaced while it has the annotation `{}: disabled`",
            names::ANNOTATION_PRUNE
        )),
        // Trying again cannot mend it, but the other side may have changed its mind.
        (false, _) if failure.due => Verdict::Apply(Why::Changed),
        (false, _) => held(format!(
            "the change cannot be made in place: {refused}. Revert it, or set the annotation `{}: enabled` in git to have the \
             object deleted and created anew",
            names::ANNOTATION_FORCE
        )),
    }
}

/// Returns the source that owns an object, where that is not the one that is planned for.
pub(super) fn other_owner<'a>(view: &View<'_>, live: &'a ObservedObject) -> Option<&'a SourceName> {
    let owner = live.source.as_ref()?;
    let owned = matches!(live.ownership, Ownership::Ours { .. });
    (owned && owner != view.input.source).then_some(owner)
}

fn contested(live: &ObservedObject, why: &Why) -> String {
    let fields = match why {
        Why::Drifted(fields) => format!(" ({})", fields.join(", ")),
        _ => String::new(),
    };
    let others: Vec<&str> = live
        .writers
        .iter()
        .chain(&live.rivals)
        .map(AsRef::as_ref)
        .take(limits::NAMED_IN_MESSAGE_MAX)
        .collect();
    let somebody = match others.as_slice() {
        [] => "somebody".to_owned(),
        [one] => format!("`{one}`"),
        several => format!("one of `{}`", several.join("`, `")),
    };
    format!(
        "{somebody} keeps changing what git sets{fields}: applied {} times within {} seconds. Stop the other writer, or remove \
         the fields from git; it is tried again after a pause",
        live.recent_applies,
        limits::CONTESTED_WINDOW.as_secs()
    )
}

/// Returns why the object must be applied, or nothing where it is in step.
fn difference(view: &View<'_>, object: &DesiredObject, live: &ObservedObject) -> Option<Why> {
    if live.source.as_ref() != Some(view.input.source) {
        return Some(Why::Adopted);
    }
    // A takeover that has failed half-way: our apply is there, and so are the fields of the manager that we replace.
    let takeover = view.input.takeover;
    if live
        .writers
        .iter()
        .any(|writer| takeover.iter().any(|one| **one == **writer))
    {
        return Some(Why::Adopted);
    }
    let (entry_version, fields) = match &live.ownership {
        Ownership::None => return Some(Why::Adopted),
        // Without managed fields nobody can see a drift; what was last applied is all there is to go by.
        Ownership::Unsupported if live.digest.as_ref() == Some(&object.digest) => return None,
        Ownership::Unsupported => return Some(Why::Changed),
        Ownership::Ours {
            api_version,
            fields,
        } => (api_version, fields),
    };
    let is_unknown = object.digest == Digest::unknown();
    if !is_unknown && live.digest.as_ref() != Some(&object.digest) {
        return Some(Why::Changed);
    }
    if live.answered.as_ref() == Some(&object.digest) {
        return None;
    }
    if *entry_version != object.api_version() {
        return Some(Why::Unclear(format!(
            "our fields are recorded for {entry_version}"
        )));
    }
    match coverage(&object.body, fields) {
        Coverage::Covered if is_unknown => Some(Why::Unclear(
            "the key of its digest cannot be read here, so that a change in git would not show"
                .to_owned(),
        )),
        Coverage::Covered => None,
        Coverage::Uncovered(fields) => Some(Why::Drifted(fields)),
        Coverage::Unclear(reason) => Some(Why::Unclear(reason)),
    }
}

/// Returns the key of the namespace that an object lives in.
pub(super) fn namespace_of(key: &ObjectKey) -> Option<ObjectKey> {
    let name = key.namespace.as_deref()?;
    Some(ObjectKey::new(kinds::namespace(), None, name))
}

#[cfg(test)]
mod tests;
