//! Since when and until when a migration is needed, measured on what the repository still offers.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::desired::catalog::Catalog;
use crate::desired::output::{Desired, DesiredComponent, RepositorySettings};
use crate::model::migration::{Lifecycle, Migration};
use crate::model::{Code, ComponentName, Diagnostic, ModuleVersion};

/// A version that a cluster can have by this repository.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offer {
    /// The version.
    pub(super) version: ModuleVersion,
    /// What offers it, with the version: `channel regular of modules/telemetry is at 1.41.2`.
    pub(super) what: String,
}

/// What versions are read from.
#[derive(Clone, Copy)]
pub(super) struct Offers<'a> {
    pub(super) settings: &'a RepositorySettings,
    pub(super) components: &'a BTreeMap<ComponentName, DesiredComponent>,
    pub(super) catalog: &'a Catalog,
}

/// Where a lifecycle stands.
#[derive(Debug, Clone, PartialEq)]
pub enum LifecycleState {
    /// A version below `removeIn` is still offered, in words; or it can never go, with the reason.
    Needed(String),
    /// Nobody can come to this from a version that needs it.
    Over {
        /// `removeIn`.
        remove_in: String,
        /// What is offered now, in words.
        offered: String,
    },
    /// There is nothing to measure it on, in words; for instance a module that no channel offers.
    Unmeasured(String),
}

impl Offers<'_> {
    /// Returns where a lifecycle stands for something that belongs to these components, or to the deploy as a whole.
    pub(super) fn judge(
        self,
        components: &[ComponentName],
        lifecycle: &Lifecycle,
    ) -> LifecycleState {
        if let Some(reason) = &lifecycle.never {
            return LifecycleState::Needed(format!("it can never go: {reason}"));
        }
        let offers = match self.of(components) {
            Ok(offers) => offers,
            Err(why) => return LifecycleState::Unmeasured(why),
        };
        let Some(remove_in) = lifecycle
            .remove_in
            .as_deref()
            .and_then(|text| ModuleVersion::parse(text).ok())
        else {
            return LifecycleState::Unmeasured("there is no `removeIn`".to_owned());
        };
        // Where the order of two versions is unknown, the migration is kept: a cluster may need it.
        let is_below = |offer: &&Offer| {
            offer
                .version
                .partial_cmp(&remove_in)
                .is_none_or(Ordering::is_lt)
        };
        match (offers.iter().find(is_below), offers.first()) {
            (Some(offer), _) => LifecycleState::Needed(offer.what.clone()),
            (None, Some(offer)) => LifecycleState::Over {
                remove_in: remove_in.to_string(),
                offered: offer.what.clone(),
            },
            (None, None) => {
                LifecycleState::Unmeasured("no channel offers a version of it".to_owned())
            }
        }
    }

    /// Returns the highest version that is offered, and in words what offers it, where all are certainly below `introducedIn`.
    pub(super) fn all_below_beginning(
        self,
        components: &[ComponentName],
        lifecycle: &Lifecycle,
    ) -> Option<(ModuleVersion, String)> {
        let first = ModuleVersion::parse(lifecycle.introduced_in.as_deref()?).ok()?;
        let offers = self.of(components).ok()?;
        let is_below = |offer: &Offer| offer.version.partial_cmp(&first) == Some(Ordering::Less);
        if !offers.iter().all(is_below) {
            return None;
        }
        offers
            .into_iter()
            .next_back()
            .map(|it| (it.version, it.what))
    }

    /// Returns the lowest version that is offered.
    fn lowest(self, components: &[ComponentName]) -> Option<ModuleVersion> {
        let offers = self.of(components).ok()?;
        offers.into_iter().next().map(|it| it.version)
    }

    /// Returns every version that is offered for these components; an error is what has no version.
    fn of(self, components: &[ComponentName]) -> Result<Vec<Offer>, String> {
        let mut offers = Vec::new();
        for name in components {
            match name {
                ComponentName::Module(module) => {
                    let releases = self.catalog.modules.get(module).map(|it| &it.releases);
                    for release in releases.into_iter().flat_map(BTreeMap::values) {
                        for (channel, assignment) in release.assignments() {
                            let what = match channel {
                                Some(channel) => format!("channel `{channel}` of {name}"),
                                None => format!("the mandatory version of {name}"),
                            };
                            offers.extend(offer(&assignment.version, &what));
                        }
                    }
                }
                ComponentName::Folder(_) => {
                    let version = self.components.get(name).and_then(|it| it.version.as_ref());
                    match version {
                        Some(version) => offers.extend(offer(version, &name.to_string())),
                        None => offers.extend(self.release(&format!("{name} has no version"))?),
                    }
                }
            }
        }
        if components.is_empty() {
            offers.extend(self.release("a global migration is measured on the release")?);
        }
        offers.sort_by(|one, two| {
            one.version
                .partial_cmp(&two.version)
                .unwrap_or(Ordering::Equal)
        });
        Ok(offers)
    }

    fn release(self, why: &str) -> Result<Option<Offer>, String> {
        match &self.settings.release {
            Some(release) => Ok(offer(release, "the release in fairway.yaml")),
            None => Err(format!("{why}, and fairway.yaml names no `release`")),
        }
    }
}

fn offer(version: &str, what: &str) -> Option<Offer> {
    let version = ModuleVersion::parse(version).ok()?;
    let what = format!("{what} is at {version}");
    Some(Offer { version, what })
}

impl Desired {
    /// Returns where the lifecycle of a migration stands by what this revision offers.
    pub fn lifecycle_of(&self, migration: &Migration) -> LifecycleState {
        Offers {
            settings: &self.settings,
            components: &self.components,
            catalog: &self.catalog,
        }
        .judge(&migration.components, &migration.spec.lifecycle)
    }

    /// Returns the lowest version that this revision offers of what a migration belongs to.
    pub fn lowest_offer(&self, migration: &Migration) -> Option<ModuleVersion> {
        Offers {
            settings: &self.settings,
            components: &self.components,
            catalog: &self.catalog,
        }
        .lowest(&migration.components)
    }
}

/// Judges migrations that one revision has and the next has not any more. One that is only retired is judged by itself.
pub(in crate::desired) fn judge_removed(base: &Desired, head: &Desired) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for old in &base.migrations {
        if old.spec.steps.is_empty() {
            continue;
        }
        let mut held = head.held_migrations.iter();
        if held.any(|it| it.name == old.name || it.place.file == old.place.file)
            || head.migrations.iter().any(|it| it.name == old.name)
        {
            continue;
        }
        let is_gone = |name: &ComponentName| !head.components.contains_key(name);
        if !old.is_global() && old.components.iter().all(is_gone) {
            continue;
        }
        let LifecycleState::Needed(why) = head.lifecycle_of(old) else {
            continue;
        };
        let message = match &old.spec.lifecycle.remove_in {
            Some(remove_in) => {
                format!(
                    "migration {} is deleted before {remove_in}: {why}",
                    old.name
                )
            }
            None => format!("migration {} is deleted, but {why}", old.name),
        };
        let help = match &old.spec.lifecycle.remove_in {
            Some(_) => "put it back; a cluster that comes from below would go without it",
            None => {
                "put it back; if it may go after all, merge `removeIn` in place of `never` first"
            }
        };
        let place = old.place.clone();
        found.push(Diagnostic::error(Code::MigrationRemovedEarly, place, message).help(help));
    }
    found
}
