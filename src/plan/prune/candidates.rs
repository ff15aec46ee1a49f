//! What git does not want any more and is ours to delete.

use crate::desired::Removal;
use crate::model::{ComponentName, Hold, HoldReason, names};
use crate::observe::{ObservedObject, Ownership};
use crate::plan::output::{Deletion, Kept};
use crate::plan::view::View;

/// An object of ours that git does not name.
#[derive(Debug, Clone)]
pub(super) struct Candidate<'a> {
    pub(super) live: &'a ObservedObject,
    pub(super) component: ComponentName,
    /// Whether `fairway.yaml` announces its removal, by itself or with its component.
    pub(super) announced: bool,
}

impl Candidate<'_> {
    pub(super) fn deletion(&self) -> Deletion {
        Deletion::of(self.live)
    }
}

/// What became of the objects that git does not name.
#[derive(Debug, Default)]
pub(super) struct Sorted<'a> {
    pub(super) candidates: Vec<Candidate<'a>>,
    pub(super) holds: Vec<Hold>,
    pub(super) kept: Vec<Kept>,
}

/// Finds the objects of this source that git does not name, sorted by key.
pub(super) fn sort<'a>(view: &View<'a>) -> Sorted<'a> {
    let mut unwanted: Vec<&ObservedObject> = view
        .live_objects()
        .filter(|live| live.source.as_ref() == Some(view.input.source))
        // One that is being deleted needs nothing more from us.
        .filter(|live| !live.deleting && !view.names(&live.key))
        .collect();
    unwanted.sort_by(|one, two| one.key.cmp(&two.key));

    let mut sorted = Sorted::default();
    for live in unwanted {
        if let Some(reason) = reason_to_keep(view, live) {
            sorted.kept.push(Kept {
                key: live.key.clone(),
                reason,
            });
            continue;
        }
        match component_of(live) {
            Ok(component) if view.input.only.is_some_and(|only| *only != component) => {}
            Ok(component) => sorted.candidates.push(Candidate {
                live,
                announced: announced(view, live, &component),
                component,
            }),
            Err(hold) => sorted.holds.push(hold),
        }
    }
    sorted
}

/// Returns why an object stays for good. These are states that somebody chose, so that they hold nothing up.
fn reason_to_keep(view: &View<'_>, live: &ObservedObject) -> Option<String> {
    let reason = match live.ownership {
        Ownership::None => format!(
            "it has the label `{}` but was never applied by us",
            names::LABEL_SOURCE
        ),
        Ownership::Unsupported => {
            "its API keeps no field managers, so that nobody can tell whether we made it".to_owned()
        }
        Ownership::Ours { .. } if live.prune_disabled => {
            format!(
                "it has the annotation `{}: disabled`",
                names::ANNOTATION_PRUNE
            )
        }
        Ownership::Ours { .. } if !view.input.prune.enabled => {
            "the source has `spec.prune.enabled: false`".to_owned()
        }
        Ownership::Ours { .. } => return None,
    };
    Some(reason)
}

/// Reads the component that an object belonged to. Without it nobody can tell whether a whole component disappears.
fn component_of(live: &ObservedObject) -> Result<ComponentName, Hold> {
    let hold = |reason, message| Hold {
        what: live.key.to_string(),
        reason,
        message,
        place: None,
    };
    if live.reconcile_disabled {
        let message = format!(
            "git does not want it any more, but it has the annotation `{}: disabled`; remove the annotation, or delete the \
             object by hand",
            names::ANNOTATION_RECONCILE
        );
        return Err(hold(HoldReason::Disabled, message));
    }
    let component = live.component.as_deref().and_then(|text| text.parse().ok());
    component.ok_or_else(|| {
        let message = format!(
            "git does not want it any more, but its annotation `{}` is missing or damaged, so that it is not known what \
             disappears with it; delete it by hand",
            names::ANNOTATION_COMPONENT
        );
        hold(HoldReason::PruneUnsafe, message)
    })
}

fn announced(view: &View<'_>, live: &ObservedObject, component: &ComponentName) -> bool {
    let removals = &view.input.desired.settings.removals;
    removals.iter().any(|removal| match removal {
        Removal::Component(name) => name == component,
        Removal::Object(key) => *key == live.key,
    })
}
