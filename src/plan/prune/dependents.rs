//! What stays and needs a candidate: channels that name a template, objects in a namespace, objects of a CRD's kind.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::model::{GroupKind, Hold, HoldReason, ObjectKey};
use crate::observe::{KindObservation, ObservedObject};
use crate::plan::channels;
use crate::plan::difference::{Difference, Verdict};
use crate::plan::kinds;
use crate::plan::output::TemplateUse;
use crate::plan::view::View;

use super::candidates::Candidate;

/// Takes out of the candidates what something that stays still needs, with a hold for each.
pub(super) fn keep_what_is_in_use<'a>(
    view: &View<'a>,
    differences: &[Difference<'a>],
    candidates: Vec<Candidate<'a>>,
) -> (Vec<Candidate<'a>>, Vec<Hold>) {
    let (candidates, mut holds) = keep_templates(view, differences, candidates);
    // What a hold keeps may itself live in a namespace that was to go, so that containers are judged last.
    let (candidates, more) = keep_containers(view, candidates);
    holds.extend(more);
    (candidates, holds)
}

/// Counts the objects that go with a candidate, as far as they carry our label.
pub(super) fn count_contents(view: &View<'_>, candidate: &Candidate<'_>) -> usize {
    let Some(container) = Container::of(view, &candidate.live.key) else {
        return 0;
    };
    view.live_objects()
        .filter(|live| container.contains(&live.key))
        .count()
}

/// Returns whether one of `others` would go with a candidate.
pub(super) fn contains_any(
    view: &View<'_>,
    candidate: &Candidate<'_>,
    others: &[Candidate<'_>],
) -> bool {
    Container::of(view, &candidate.live.key)
        .is_some_and(|it| others.iter().any(|other| it.contains(&other.live.key)))
}

// === templates ===

fn keep_templates<'a>(
    view: &View<'a>,
    differences: &[Difference<'a>],
    candidates: Vec<Candidate<'a>>,
) -> (Vec<Candidate<'a>>, Vec<Hold>) {
    if !candidates
        .iter()
        .any(|it| kinds::is_module_template(&it.live.key.kind))
    {
        return (candidates, Vec::new());
    }
    let users = template_users(view, differences, &candidates);
    partition(candidates, |candidate| {
        let key = &candidate.live.key;
        if !kinds::is_module_template(&key.kind) {
            return None;
        }
        let user = users.named.get(key).cloned().or_else(|| {
            let unclear = users
                .unclear
                .iter()
                .find(|release| is_version_of(key, release))?;
            Some(format!("{unclear} may still name it"))
        });
        let user = match (user, view.input.templates) {
            (Some(user), _) => user,
            (None, TemplateUse::NotAsked) => return None,
            (None, TemplateUse::Known(users)) => {
                let namespace = key.namespace.as_deref().unwrap_or_default();
                users.get(&format!("{namespace}/{}", key.name))?.clone()
            }
            (None, TemplateUse::Unknown(reason)) => {
                let message = format!(
                    "git does not want it any more, but whether a Kyma or Manifest still uses it is not known: {reason}"
                );
                return Some((HoldReason::PruneUnsafe, message));
            }
        };
        let message =
            format!("git does not want it any more, but {user}; it goes when nothing names it");
        Some((HoldReason::InUse, message))
    })
}

/// What names ModuleTemplates and stays.
struct Users {
    /// Templates with who names them, in words.
    named: BTreeMap<ObjectKey, String>,
    /// ModuleReleaseMetas of which it is not known what they name on the cluster now.
    unclear: BTreeSet<ObjectKey>,
}

fn template_users(
    view: &View<'_>,
    differences: &[Difference<'_>],
    candidates: &[Candidate<'_>],
) -> Users {
    let mut users = Users {
        named: BTreeMap::new(),
        unclear: BTreeSet::new(),
    };
    for difference in differences {
        let release = &difference.object.key;
        if !kinds::is_module_release_meta(&release.kind) {
            continue;
        }
        for (channel, template) in channels::templates_named(difference.object) {
            let words = format!("channel {channel} of {release} names it in git");
            users.named.entry(template).or_insert(words);
        }
        let known = difference.live.is_none_or(|live| live.channels.is_some());
        if !known && !matches!(difference.verdict, Verdict::InStep) {
            users.unclear.insert(release.clone());
        }
    }
    let leaving: HashSet<&ObjectKey> = candidates.iter().map(|it| &it.live.key).collect();
    for live in view.live_objects() {
        if !kinds::is_module_release_meta(&live.key.kind) || leaving.contains(&live.key) {
            continue;
        }
        for (channel, version) in live.channels.iter().flatten() {
            let words = format!("channel {channel} of {} still names it", live.key);
            let template = channels::template(&live.key, version);
            users.named.entry(template).or_insert(words);
        }
        if live.channels.is_none() && view.position(&live.key).is_none() {
            users.unclear.insert(live.key.clone());
        }
    }
    users
}

fn is_version_of(template: &ObjectKey, release: &ObjectKey) -> bool {
    template.namespace == release.namespace
        && template
            .name
            .strip_prefix(release.name.as_str())
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
}

// === containers ===

/// What an object contains that goes when it goes.
enum Container {
    Namespace(String),
    Kind(GroupKind),
    /// A CRD of which it is not known which kind it brings.
    Unknown,
}

impl Container {
    fn of(view: &View<'_>, key: &ObjectKey) -> Option<Self> {
        if kinds::is_namespace(&key.kind) {
            return Some(Self::Namespace(key.name.clone()));
        }
        if !kinds::is_definition(&key.kind) {
            return None;
        }
        let Some(served) = view.input.observed.served.as_ref() else {
            return Some(Self::Unknown);
        };
        let (plural, group) = key.name.split_once('.').unwrap_or((&key.name, ""));
        served
            .iter()
            .find(|(kind, served)| kind.group == group && served.plural == plural)
            .map(|(kind, _)| Self::Kind(kind.clone()))
    }

    fn contains(&self, key: &ObjectKey) -> bool {
        match self {
            Self::Namespace(name) => key.namespace.as_ref() == Some(name),
            Self::Kind(kind) => key.kind == *kind,
            Self::Unknown => false,
        }
    }
}

fn keep_containers<'a>(
    view: &View<'a>,
    candidates: Vec<Candidate<'a>>,
) -> (Vec<Candidate<'a>>, Vec<Hold>) {
    let leaving: HashSet<ObjectKey> = candidates.iter().map(|it| it.live.key.clone()).collect();
    partition(candidates, |candidate| {
        let container = Container::of(view, &candidate.live.key)?;
        if let Some(reason) = unknown_contents(view, &container) {
            let message = format!(
                "git does not want it any more, but what would go with it is not known: {reason}"
            );
            return Some((HoldReason::PruneUnsafe, message));
        }
        let staying = staying_in(view, &container, &leaving)?;
        let message = format!(
            "git does not want it any more, but {staying} would go with it and is to stay; move that away, or keep this in git"
        );
        Some((HoldReason::InUse, message))
    })
}

/// Returns why it is not known what a container holds.
fn unknown_contents(view: &View<'_>, container: &Container) -> Option<String> {
    let unlisted = |kind: &GroupKind, observation: &KindObservation| match observation {
        KindObservation::Unlisted(reason) => Some(format!("{kind} could not be listed: {reason}")),
        KindObservation::Listed(_) => None,
    };
    let kinds = &view.input.observed.kinds;
    match container {
        Container::Unknown => Some("the kinds that the cluster serves are not known".to_owned()),
        Container::Kind(kind) => unlisted(kind, kinds.get(kind)?),
        Container::Namespace(_) => kinds
            .iter()
            .find_map(|(kind, observation)| unlisted(kind, observation)),
    }
}

/// Returns the first object, by key, that a container holds and that is to stay.
fn staying_in(
    view: &View<'_>,
    container: &Container,
    leaving: &HashSet<ObjectKey>,
) -> Option<ObjectKey> {
    let named = view.named_keys().filter(|key| container.contains(key));
    let living = view
        .live_objects()
        .filter(|live: &&ObservedObject| !live.deleting);
    living
        .map(|live| &live.key)
        .filter(|key| container.contains(key) && !leaving.contains(*key))
        .chain(named)
        .min()
        .cloned()
}

fn partition<'a>(
    candidates: Vec<Candidate<'a>>,
    reason: impl Fn(&Candidate<'a>) -> Option<(HoldReason, String)>,
) -> (Vec<Candidate<'a>>, Vec<Hold>) {
    let mut holds = Vec::new();
    let rest = candidates
        .into_iter()
        .filter(|candidate| match reason(candidate) {
            Some((reason, message)) => {
                holds.push(Hold {
                    what: candidate.live.key.to_string(),
                    reason,
                    message,
                    place: None,
                });
                false
            }
            None => true,
        })
        .collect();
    (rest, holds)
}

#[cfg(test)]
mod tests;
