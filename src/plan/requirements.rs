//! What must come before what, between the objects of one plan.
//!
//! The phases order kinds; this room names the objects that an action cannot do without, so that one failure is reported
//! once and not by everything behind it.

use crate::model::{ComponentName, HoldReason};

use super::channels;
use super::difference::{Difference, Verdict, hold, namespace_of};
use super::kinds;
use super::output::Why;
use super::view::View;

/// Takes out what the plan was not asked for; what is in step stays in step.
pub(super) fn narrow(differences: &mut [Difference<'_>], only: Option<&ComponentName>) {
    let Some(only) = only else { return };
    for difference in differences {
        if difference.object.component != *only && !matches!(difference.verdict, Verdict::InStep) {
            difference.verdict = Verdict::OutOfScope;
        }
    }
}

/// Freezes the components that must wait; what is in step stays in step.
pub(super) fn freeze(
    differences: &mut [Difference<'_>],
    is_frozen: impl Fn(&ComponentName) -> bool,
) {
    for difference in differences {
        if is_frozen(&difference.object.component)
            && matches!(
                difference.verdict,
                Verdict::Apply(_) | Verdict::Replace(_) | Verdict::Unserved(_)
            )
        {
            difference.verdict = Verdict::Waiting;
        }
    }
}

/// Settles what needs other objects of the plan: kinds that a CRD of this plan brings, new namespaces, and the
/// ModuleTemplates that a ModuleReleaseMeta names.
pub(super) fn settle(view: &View<'_>, differences: &mut [Difference<'_>]) {
    settle_kinds(view, differences);
    settle_namespaces(view, differences);
    settle_releases(view, differences);
}

fn settle_kinds(view: &View<'_>, differences: &mut [Difference<'_>]) {
    for position in 0..differences.len() {
        let difference = &differences[position];
        let Verdict::Unserved(text) = &difference.verdict else {
            continue;
        };
        let definition = view
            .definition(&difference.object.key.kind)
            .map(|definition| &differences[definition]);
        let (verdict, requires) = match definition {
            Some(definition) if matches!(definition.verdict, Verdict::Apply(_)) => (
                // An object of a version that is not served yet may exist under another one.
                Verdict::Apply(if difference.live.is_some() {
                    Why::Changed
                } else {
                    Why::Missing
                }),
                vec![definition.object.key.clone()],
            ),
            Some(definition) => {
                let message = format!(
                    "{text}; its definition is {}. It is tried again when that is served",
                    definition.object.key
                );
                (unknown(difference, message), Vec::new())
            }
            None => {
                let message = format!(
                    "{text}; add its CustomResourceDefinition to the repository, or install what brings it"
                );
                (unknown(difference, message), Vec::new())
            }
        };
        differences[position].verdict = verdict;
        differences[position].requires = requires;
    }
}

fn unknown(difference: &Difference<'_>, message: String) -> Verdict {
    Verdict::Held(hold(difference.object, HoldReason::KindUnknown, message))
}

fn settle_namespaces(view: &View<'_>, differences: &mut [Difference<'_>]) {
    for position in 0..differences.len() {
        if !matches!(differences[position].verdict, Verdict::Apply(Why::Missing)) {
            continue;
        }
        let Some(namespace) = namespace_of(&differences[position].object.key) else {
            continue;
        };
        let is_new = view
            .position(&namespace)
            .is_some_and(|it| matches!(differences[it].verdict, Verdict::Apply(Why::Missing)));
        if is_new {
            differences[position].requires.push(namespace);
        }
    }
}

/// A ModuleReleaseMeta must not point at what is not there: each template that it names is confirmed on the cluster, or
/// applied before it.
fn settle_releases(view: &View<'_>, differences: &mut [Difference<'_>]) {
    for position in 0..differences.len() {
        let difference = &differences[position];
        if !kinds::is_module_release_meta(&difference.object.key.kind)
            || !matches!(difference.verdict, Verdict::Apply(_) | Verdict::Replace(_))
        {
            continue;
        }
        let mut requires = Vec::new();
        let mut absent = None;
        for (channel, template) in channels::templates_named(difference.object) {
            let applied = view
                .position(&template)
                .is_some_and(|position| matches!(differences[position].verdict, Verdict::Apply(_)));
            if applied {
                if !requires.contains(&template) {
                    requires.push(template);
                }
            } else if view.live(&template).is_none_or(|live| live.deleting) {
                absent = Some(format!(
                    "channel {channel} names {template}, which is not on the cluster and not applied now; \
                     it is applied as soon as the template is there"
                ));
                break;
            }
        }
        match absent {
            Some(message) => {
                differences[position].verdict =
                    Verdict::Held(hold(difference.object, HoldReason::Requires, message));
            }
            None => differences[position].requires.extend(requires),
        }
    }
}
