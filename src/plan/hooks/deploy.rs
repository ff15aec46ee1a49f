//! What a deploy is: its digest, what it does with a component, and which migrations take part in it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::desired::{Desired, DesiredComponent, HeldMigration, OnRemove};
use crate::model::migration::{DeployAction, DeployComponent, HookPhase, Migration};
use crate::model::{ComponentName, Digest, ModuleVersion};
use crate::plan::view::View;

use super::input::{Committed, CommittedComponent, CommittedGlobal};

/// One migration that takes part in a deploy.
#[derive(Debug, Clone)]
pub(super) struct Participant<'a> {
    pub(super) migration: &'a Arc<Migration>,
    pub(super) expired: Option<String>,
}

/// What is deployed of one component that has migrations.
#[derive(Debug)]
pub(super) struct Deploy<'a> {
    pub(super) digest: Digest,
    pub(super) component: DeployComponent,
    pub(super) participants: Vec<Participant<'a>>,
    pub(super) held: Vec<&'a HeldMigration>,
    /// Whether it differs from what is committed.
    pub(super) is_changed: bool,
}

/// The deploy of a target as a whole.
#[derive(Debug)]
pub(super) struct GlobalDeploy<'a> {
    pub(super) digest: Digest,
    pub(super) action: DeployAction,
    pub(super) participants: Vec<Participant<'a>>,
}

/// Returns since which release a migration must not run any more in a deploy to `version`, or `Err` where it does not take part at all.
/// A retired one has no steps and never runs.
///
/// # Errors
///
/// When the version is below `introducedIn`.
fn expired_at(migration: &Migration, version: Option<&str>) -> Result<Option<String>, ()> {
    let lifecycle = &migration.spec.lifecycle;
    if is_below(version, lifecycle.introduced_in.as_deref()) {
        return Err(());
    }
    let remove_in = lifecycle.remove_in.as_deref();
    let is_over = remove_in.is_some() && !is_below(version, remove_in) && version.is_some();
    if is_over || migration.spec.steps.is_empty() {
        return Ok(Some(remove_in.unwrap_or("its retirement").to_owned()));
    }
    Ok(None)
}

/// Returns whether a version is known to be below a bound.
fn is_below(version: Option<&str>, bound: Option<&str>) -> bool {
    let (Some(version), Some(bound)) = (version, bound) else {
        return false;
    };
    match (ModuleVersion::parse(version), ModuleVersion::parse(bound)) {
        (Ok(version), Ok(bound)) => version.partial_cmp(&bound) == Some(Ordering::Less),
        _ => false,
    }
}

fn participants<'a>(
    migrations: impl Iterator<Item = &'a Arc<Migration>>,
    version: Option<&str>,
) -> Vec<Participant<'a>> {
    let mut found: Vec<Participant<'a>> = migrations
        .filter_map(|migration| {
            let expired = expired_at(migration, version).ok()?;
            Some(Participant { migration, expired })
        })
        .collect();
    found.sort_by(|one, two| one.migration.name.cmp(&two.migration.name));
    found
}

/// Returns the deploy of each component that has migrations, by the component.
pub(super) fn of_components<'a>(
    view: &View<'a>,
    committed: &Committed,
) -> BTreeMap<&'a ComponentName, Deploy<'a>> {
    let desired = view.input.desired;
    let concerned = desired.migrations.iter().flat_map(|it| &it.components);
    let held = desired.held_migrations.iter().flat_map(|it| &it.components);
    let mut deploys = BTreeMap::new();
    for name in concerned.chain(held) {
        let Some((name, component)) = desired.components.get_key_value(name) else {
            continue;
        };
        if view.input.only.is_none_or(|only| only == name) && !deploys.contains_key(name) {
            deploys.insert(name, of_component(view, committed, name, component));
        }
    }
    deploys.retain(|_, deploy: &mut Deploy<'_>| {
        !deploy.participants.is_empty() || !deploy.held.is_empty()
    });
    deploys
}

fn of_component<'a>(
    view: &View<'a>,
    committed: &Committed,
    name: &'a ComponentName,
    component: &'a DesiredComponent,
) -> Deploy<'a> {
    let desired = view.input.desired;
    let participants = participants_of(desired, name, component);
    let held = desired.held_migrations.iter();
    let held: Vec<&HeldMigration> = held
        .filter(|it| !it.is_global && it.components.contains(name))
        .collect();
    let digest = digest_of(desired, name, component, &participants);
    let before = committed.components.get(name);
    let begun = before.and_then(|it| it.begun.as_ref());
    let was = before.and_then(|it| it.digest.as_ref());
    let action = match begun {
        Some(begun) if begun.digest == digest => begun.action,
        _ if was.is_none() && !is_there(view, name) => DeployAction::Install,
        _ => DeployAction::Upgrade,
    };
    Deploy {
        // What was begun and given up has left something half done, even where git is back at what is committed.
        is_changed: was != Some(&digest) || begun.is_some() || !held.is_empty(),
        component: DeployComponent {
            name: name.to_string(),
            from: before.and_then(|it| it.version.clone()),
            to: component.version.clone(),
            action,
        },
        digest,
        participants,
        held,
    }
}

fn participants_of<'a>(
    desired: &'a Desired,
    name: &ComponentName,
    component: &DesiredComponent,
) -> Vec<Participant<'a>> {
    let release = desired.settings.release.as_deref();
    let of_it = desired
        .migrations
        .iter()
        .filter(|it| it.components.contains(name));
    participants(of_it, component.version.as_deref().or(release))
}

/// Returns what is committed where `base` was deployed as a whole, for planning without a cluster.
pub fn committed_from(base: &Desired) -> Committed {
    let mut committed = Committed::default();
    for (name, component) in &base.components {
        let participants = participants_of(base, name, component);
        if !participants.is_empty() {
            let digest = digest_of(base, name, component, &participants);
            let entry = CommittedComponent {
                digest: Some(digest),
                version: component.version.clone(),
                begun: None,
            };
            committed.components.insert(name.clone(), entry);
        }
        if component.on_remove == OnRemove::Undo {
            committed.undo_on_remove.insert(name.clone());
        }
    }
    committed
}

fn digest_of(
    desired: &Desired,
    name: &ComponentName,
    component: &DesiredComponent,
    participants: &[Participant<'_>],
) -> Digest {
    let version = component.version.clone().unwrap_or_default();
    let mut objects: Vec<(String, &Digest)> = component
        .objects
        .iter()
        .filter(|object| !desired.held.contains_key(&object.key))
        .map(|object| (object.key.to_string(), &object.digest))
        .collect();
    objects.sort();
    let mut parts = vec![name.to_string(), version];
    for (key, digest) in objects {
        parts.extend([key, digest.to_string()]);
    }
    parts.extend(of_participants(participants));
    Digest::of_parts(parts.iter().map(String::as_str))
}

fn of_participants(participants: &[Participant<'_>]) -> Vec<String> {
    let each = participants.iter();
    each.flat_map(|it| {
        let expired = it.expired.clone().unwrap_or_default();
        [
            it.migration.name.clone(),
            it.migration.digest.to_string(),
            expired,
        ]
    })
    .collect()
}

/// Returns whether any object of a component is on the cluster.
pub(super) fn is_there(view: &View<'_>, name: &ComponentName) -> bool {
    let component = view.input.desired.components.get(name);
    let mut objects = component.iter().flat_map(|it| &it.objects);
    objects.any(|object| view.live(&object.key).is_some())
}

/// Returns the deploy of the target as a whole; none where it has no global migrations, or only one component was asked for.
pub(super) fn of_target<'a>(view: &View<'a>, desired: &'a Desired) -> Option<GlobalDeploy<'a>> {
    if view.input.only.is_some() || desired.withdrawn {
        return None;
    }
    let global = desired.migrations.iter().filter(|it| it.is_global());
    let participants = participants(global, desired.settings.release.as_deref());
    if participants.is_empty() {
        return None;
    }
    let mut parts = vec![desired.revision.digest.clone()];
    parts.extend(of_participants(&participants));
    // The same commit can mean something else: the landscape of the source was changed.
    let mut objects: Vec<(String, &Digest)> = desired
        .objects()
        .map(|object| (object.key.to_string(), &object.digest))
        .collect();
    objects.sort();
    for (key, digest) in objects {
        parts.extend([key, digest.to_string()]);
    }
    let committed = view.input.migrations.committed;
    let is_new = committed.global == CommittedGlobal::default()
        && committed.components.is_empty()
        && !view
            .live_objects()
            .any(|live| live.source.as_ref() == Some(view.input.source));
    Some(GlobalDeploy {
        digest: Digest::of_parts(parts.iter().map(String::as_str)),
        action: if is_new {
            DeployAction::Install
        } else {
            DeployAction::Upgrade
        },
        participants,
    })
}

/// Returns the participants of one phase, on what the deploy does.
pub(super) fn in_phase<'a, 'p>(
    participants: &'p [Participant<'a>],
    phase: HookPhase,
    action: DeployAction,
) -> Vec<&'p Participant<'a>> {
    let bound = |it: &&Participant<'a>| {
        let bind = &it.migration.spec.bind;
        bind.phase == phase && bind.on.contains(&action)
    };
    participants.iter().filter(bound).collect()
}
