//! Rules between two revisions: what a change may not do. In a pull request the base is the merge base.

use super::catalog::{Assignment, CatalogModule, CatalogRelease, CatalogVersion};
use super::channels::{Move, judge_move};
use super::output::{Desired, Removal};
use crate::model::{BlobId, ChannelName, Code, ComponentName, Diagnostic, ModuleName, Place};

/// Judges the change from one revision to another. `today` decides what is deprecated.
///
/// Findings are about `head` and sorted by place; what one revision says by itself is not repeated.
pub fn compare_with_base(
    base: &Desired,
    head: &Desired,
    today: jiff::civil::Date,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for component in base.components.keys() {
        found.extend(judge_removal(component, head));
    }
    found.extend(super::migrations::judge_removed(base, head));
    for (name, old) in &base.catalog.modules {
        let Some(new) = head.catalog.modules.get(name) else {
            continue;
        };
        let change = Change {
            name,
            old,
            new,
            head,
            today,
        };
        found.extend(change.judge_versions());
        found.extend(change.judge_channels());
    }
    found.sort_by(|one, two| (&one.place, one.code).cmp(&(&two.place, two.code)));
    found
}

/// Judges whether a component may be gone.
fn judge_removal(component: &ComponentName, head: &Desired) -> Option<Diagnostic> {
    let is_there = head.components.contains_key(component);
    let is_announced = head
        .settings
        .removals
        .iter()
        .any(|removal| matches!(removal, Removal::Component(name) if name == component));
    // A file that cannot be read may be all that is left of it.
    if is_there || is_announced || !head.unread.is_empty() {
        return None;
    }
    let place = Place::whole_file(component.to_string());
    let message = format!("{component} disappears, and its objects with it");
    Some(
        Diagnostic::error(Code::RemovalUnannounced, place, message).help(format!(
            "if that is meant, announce it in fairway.yaml:\nremovals:\n  - component: {component}"
        )),
    )
}

/// A module in two revisions.
struct Change<'a> {
    name: &'a ModuleName,
    old: &'a CatalogModule,
    new: &'a CatalogModule,
    head: &'a Desired,
    today: jiff::civil::Date,
}

impl Change<'_> {
    fn judge_versions(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (version, old) in &self.old.versions {
            match self.new.versions.get(version) {
                Some(new) if new.digest == old.digest => {}
                Some(new) => found.push(self.version_changed(version, old, new)),
                None => found.extend(self.version_deleted(version)),
            }
        }
        found
    }

    fn version_changed(
        &self,
        version: &str,
        old: &CatalogVersion,
        new: &CatalogVersion,
    ) -> Diagnostic {
        // Both lists are sorted, with each path once.
        let has_path = |files: &[(String, BlobId)], path: &str| {
            files
                .binary_search_by(|(other, _)| other.as_str().cmp(path))
                .is_ok()
        };
        let changed = new
            .files
            .iter()
            .find(|file| old.files.binary_search(file).is_err());
        let (path, what) = match changed {
            Some((path, _)) if has_path(&old.files, path) => (path.as_str(), "changed"),
            Some((path, _)) => (path.as_str(), "added"),
            None => {
                let mut old = old.files.iter().map(|(path, _)| path.as_str());
                let gone = old.find(|path| !has_path(&new.files, path));
                (gone.unwrap_or_default(), "removed")
            }
        };
        let name = self.name;
        let place = Place::whole_file(format!("modules/{name}/{version}/{path}"));
        let message = format!("{name} {version} is published, and this file of it is {what}");
        Diagnostic::error(Code::VersionChanged, place, message).help(format!(
            "take the change back, and publish it as a new version: modules/{name}/NEW-VERSION/"
        ))
    }

    fn version_deleted(&self, version: &str) -> Option<Diagnostic> {
        let uses = |module: &CatalogModule| -> Option<(Option<ChannelName>, Assignment)> {
            let releases = module.releases.values();
            let mut assignments = releases.flat_map(|release| release.assignments());
            let (channel, assignment) =
                assignments.find(|(_, assignment)| assignment.version == version)?;
            Some((channel.cloned(), assignment.clone()))
        };
        let (place, channel) = match (uses(self.new), uses(self.old)) {
            (Some((channel, assignment)), _) => (assignment.place, channel),
            (None, Some((channel, _))) => {
                let folder = format!("modules/{}/{version}", self.name);
                (Place::whole_file(folder), channel)
            }
            (None, None) => return None,
        };
        let what = channel.map_or_else(
            || "the mandatory version points at it".to_owned(),
            |channel| format!("channel `{channel}` points at it"),
        );
        let message = format!("{} {version} is deleted while {what}", self.name);
        Some(Diagnostic::error(Code::VersionInUse, place, message).help(
            "move the channel first, and delete the version in a later change, when no runtime has it any more",
        ))
    }

    fn judge_channels(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (landscape, new) in &self.new.releases {
            // A landscape that gets a ModuleReleaseMeta of its own had the common one before.
            let old = self
                .old
                .releases
                .get(landscape)
                .or_else(|| self.old.releases.get(&None));
            let Some(old) = old else { continue };
            if old.mandatory.is_some() != new.mandatory.is_some() {
                found.push(self.kind_changed(new));
                continue;
            }
            for (channel, assignment) in new.assignments() {
                let before = match channel {
                    Some(channel) => old.channels.get(channel),
                    None => old.mandatory.as_ref(),
                };
                let before = before.map(|before| before.version.as_str());
                if before != Some(&assignment.version) {
                    found.extend(self.judge_assignment(new, channel, before, assignment));
                }
            }
        }
        found
    }

    fn kind_changed(&self, release: &CatalogRelease) -> Diagnostic {
        let message = format!("{} changes between `channels` and `mandatory`", self.name);
        Diagnostic::error(Code::MandatoryConflict, release.place.clone(), message).help(
            "runtimes have the module by the other rule; retire it and publish it under another name",
        )
    }

    fn judge_assignment(
        &self,
        release: &CatalogRelease,
        channel: Option<&ChannelName>,
        before: Option<&str>,
        assignment: &Assignment,
    ) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let version = assignment.version.as_str();
        if let Some(before) = before
            && self.new.versions.contains_key(version)
        {
            let wanted = Move {
                module: self.name,
                channel,
                from: before,
                to: version,
            };
            let policy = self.head.settings.move_policy(channel);
            if let Err(refusal) = judge_move(wanted, self.new, policy) {
                found.push(
                    Diagnostic::error(refusal.code, assignment.place.clone(), refusal.message)
                        .help(refusal.help),
                );
            }
        }
        if let Some(deprecation) = release.deprecations.get(version)
            && deprecation.date < self.today
        {
            let message = format!(
                "{} {version} is deprecated since {}, and this assignment is new",
                self.name, deprecation.date
            );
            found.push(
                Diagnostic::error(Code::VersionDeprecated, assignment.place.clone(), message)
                    .help("choose a version that is not deprecated"),
            );
        }
        found
    }
}
