//! What a deploy comes by later: the hooks that are judged before its first change, and what of the cluster is not yet as they will
//! find it.
//!
//! A precondition that is false now keeps something from being changed, so it must not be one that this very change would make true. What a
//! post migration finds is what was applied, and what controllers made of that: all its lookups are open, but for kinds that nobody makes in
//! consequence of another object. A pre migration finds its component as it is now; only where its failure would hold the whole deploy,
//! what the components that its own depends on become is open for it too.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::desired::DesiredComponent;
use crate::model::migration::{FailurePolicy, Hook, HookPhase, HookScope, Lookup, Migration};
use crate::model::{ComponentName, DesiredObject, GroupKind};
use crate::plan::difference::{Difference, Verdict};
use crate::plan::kinds;
use crate::plan::view::View;

use super::deploy::in_phase;
use super::gate::{Gate, due_hook};
use super::input::{HookStates, MigrationStand, Preflight};
use super::values::fits;
use super::{DueHook, DueMigration, words};

/// A hook that was not begun, of a deploy that may not begin before its migrations were judged.
#[derive(Debug, Clone, PartialEq)]
pub struct AheadHook {
    /// The hook, as it would begin.
    pub due: DueHook,
    /// Whether its deploy has begun: it is not judged ahead any more, and what was said of it stays.
    pub is_under_way: bool,
    /// Whether nothing of this deploy comes before it but global migrations.
    pub comes_first: bool,
    /// Migrations that come after changes which their own failure would hold, each with the lookups whose answers those can change.
    pub late: BTreeMap<String, BTreeSet<String>>,
    /// Kinds that this deploy installs before the hook comes: `apiVersion` and `kind`.
    pub installs: BTreeSet<(String, String)>,
}

/// Kinds that people set up: nothing makes or changes them in consequence of another object.
const SET_UP: &[(&str, &str)] = &[
    ("", "Node"),
    ("networking.k8s.io", "IngressClass"),
    ("node.k8s.io", "RuntimeClass"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "StorageClass"),
];

/// What the deploy does to the cluster, each with the component.
struct Changes<'a> {
    components: &'a BTreeMap<ComponentName, DesiredComponent>,
    written: Vec<&'a DesiredObject>,
    /// Kinds of which objects are to be deleted.
    deleted: BTreeSet<&'a GroupKind>,
}

// === impl Gate ===

impl<'a> Gate<'a> {
    /// Has nothing of the target changed before every migration that this deploy comes by was judged, and freezes what those may
    /// not begin for. A deploy that is under way is not looked at again: each hook of it judges itself.
    pub(super) fn look_ahead(
        &mut self,
        view: &View<'a>,
        differences: &[Difference<'a>],
        states: &HookStates,
        is_waiting: impl Fn(&ComponentName) -> bool,
    ) {
        if self.is_assumed {
            return;
        }
        let hooks = self.hooks_ahead(view, differences, states);
        if hooks.is_empty() {
            return;
        }
        let changes = Changes::of(view, differences);
        let ahead = hooks.into_iter().map(|(due, is_under_way)| {
            let comes_first = due.hook.phase == HookPhase::Pre
                && match &due.hook.scope {
                    HookScope::Global => true,
                    HookScope::Component(name) => !is_waiting(name),
                };
            AheadHook {
                is_under_way,
                ..changes.ahead(due, comes_first)
            }
        });
        self.ahead = ahead.collect();
        let mut pending = Vec::new();
        let mut found = Vec::new();
        for (index, ahead) in self.ahead.iter().enumerate() {
            if ahead.is_under_way {
                continue;
            }
            match states.preflight.get(&ahead.due.hook) {
                Some(Preflight::Judged { findings, .. }) => {
                    found.extend(findings.iter().map(|stand| (index, stand)));
                }
                Some(Preflight::Judging(message)) => pending.push((index, message.as_str())),
                None => pending.push((index, "")),
            }
        }
        if !pending.is_empty() {
            let hooks: Vec<(&DueHook, &str)> = pending
                .into_iter()
                .map(|(index, message)| (&self.ahead[index].due, message))
                .collect();
            self.holds.push(words::preflight(&hooks));
            self.freezes_all = true;
        }
        for (index, stand) in found {
            self.freeze_for(index, stand);
        }
    }

    /// Freezes what the policy of a migration says that may not begin.
    fn freeze_for(&mut self, index: usize, stand: &MigrationStand) {
        let due = &self.ahead[index].due;
        let mut migrations = due.migrations.iter();
        let Some(migration) = migrations.find(|it| it.migration.name == stand.migration) else {
            return;
        };
        let policy = migration.failure_policy(&due.hook);
        if policy == FailurePolicy::Warn {
            return;
        }
        self.holds.push(words::found(due, stand, migration));
        match (&due.hook.scope, policy) {
            (_, FailurePolicy::BlockDeploy) => self.freezes_all = true,
            (HookScope::Component(name), _) => {
                let known = self.deploys.keys().copied().find(|known| *known == name);
                self.frozen.extend(known);
            }
            // It comes last: the deploy is not complete without it, and nothing else waits for it.
            (HookScope::Global, _) => {}
        }
    }

    /// Returns the hooks with migrations that are still to come, and whether their deploy has changed something already.
    fn hooks_ahead(
        &self,
        view: &View<'a>,
        differences: &[Difference<'a>],
        states: &HookStates,
    ) -> Vec<(DueHook, bool)> {
        let mut hooks = Vec::new();
        let record = &self.committed.global;
        if let Some(global) = &self.global
            && record.post.as_ref() != Some(&global.digest)
        {
            let has_begun = record.pre.as_ref() == Some(&global.digest);
            // What it does was written down when it began.
            let (components, action) = if has_begun {
                let action = record.action.unwrap_or(global.action);
                (record.components.clone(), action)
            } else {
                (self.processed(view, differences), global.action)
            };
            for phase in [HookPhase::Pre, HookPhase::Post] {
                let hook = Hook {
                    scope: HookScope::Global,
                    phase,
                    deploy: global.digest.clone(),
                };
                let participants = in_phase(&global.participants, phase, action);
                if phase == HookPhase::Post || !has_begun {
                    let due = due_hook(view, hook, &participants, (None, components.clone()));
                    hooks.push((due, has_begun));
                }
            }
        }
        for (name, deploy) in self.deploys.iter().filter(|(_, deploy)| deploy.is_changed) {
            let committed = self.committed.components.get(*name);
            let begun = committed.and_then(|it| it.begun.as_ref());
            let has_begun = begun.is_some_and(|begun| begun.digest == deploy.digest);
            if !deploy.held.is_empty() {
                continue;
            }
            for phase in [HookPhase::Pre, HookPhase::Post] {
                if phase == HookPhase::Post || !has_begun {
                    hooks.push((self.due_of(view, name, phase), has_begun));
                }
            }
        }
        hooks.retain(|(due, _)| !due.migrations.is_empty() && states.get(&due.hook).is_none());
        hooks
    }
}

// === impl Changes ===

impl<'a> Changes<'a> {
    fn of(view: &View<'a>, differences: &[Difference<'a>]) -> Self {
        let is_written = |it: &&Difference<'a>| {
            matches!(
                it.verdict,
                Verdict::Apply(_) | Verdict::Replace(_) | Verdict::Unserved(_) | Verdict::Waiting
            )
        };
        let written = differences.iter().filter(is_written);
        let ours = view
            .live_objects()
            .filter(|live| live.source.as_ref() == Some(view.input.source));
        let deleted = ours.filter(|live| view.input.only.is_none() && !view.names(&live.key));
        Self {
            components: &view.input.desired.components,
            written: written.map(|it| it.object.as_ref()).collect(),
            deleted: deleted.map(|live| &live.key.kind).collect(),
        }
    }

    /// Returns what is written before a hook comes.
    fn before(&self, hook: &Hook) -> Vec<&'a DesiredObject> {
        let written = self.written.iter().copied();
        match (&hook.scope, hook.phase) {
            (HookScope::Global, HookPhase::Pre) => Vec::new(),
            (HookScope::Component(name), HookPhase::Pre) => {
                written.filter(|object| object.component != *name).collect()
            }
            (_, HookPhase::Post) => written.collect(),
        }
    }

    /// Returns what a component depends on, directly or not.
    fn dependencies(&self, name: &ComponentName) -> BTreeSet<&'a ComponentName> {
        let mut found = BTreeSet::new();
        let mut open: Vec<&ComponentName> = vec![name];
        while let Some(name) = open.pop() {
            let component = self.components.get(name);
            for next in component.into_iter().flat_map(|it| &it.depends_on) {
                if found.insert(next) {
                    open.push(next);
                }
            }
        }
        found
    }

    /// Returns the lookups of a late migration whose answers are not final.
    fn open(&self, hook: &Hook, migration: &Migration) -> BTreeSet<String> {
        let mut before = self.before(hook);
        let mut deleted = &self.deleted;
        let nothing = BTreeSet::new();
        if let (HookScope::Component(name), HookPhase::Pre) = (&hook.scope, hook.phase) {
            let dependencies = self.dependencies(name);
            before.retain(|object| dependencies.contains(&object.component));
            // Deletions come last.
            deleted = &nothing;
        }
        let lookups = migration.spec.lookups.iter();
        let open = lookups.filter(|(_, lookup)| is_open(&before, deleted, lookup));
        open.map(|(name, _)| name.clone()).collect()
    }

    fn ahead(&self, due: DueHook, comes_first: bool) -> AheadHook {
        let before = self.before(&due.hook);
        let is_late = |it: &&DueMigration| {
            due.hook.phase == HookPhase::Post
                || (due.hook.scope != HookScope::Global
                    && it.failure_policy(&due.hook) == FailurePolicy::BlockDeploy)
        };
        let late = due.migrations.iter().filter(is_late).map(|it| {
            let open = self.open(&due.hook, &it.migration);
            (it.migration.name.clone(), open)
        });
        AheadHook {
            late: late.collect(),
            installs: before.iter().flat_map(|object| installed(object)).collect(),
            comes_first,
            is_under_way: false,
            due,
        }
    }
}

/// Returns whether what a lookup finds may be another thing once all of this was written, and objects of these kinds deleted.
fn is_open(before: &[&DesiredObject], deleted: &BTreeSet<&GroupKind>, lookup: &Lookup) -> bool {
    if before.is_empty() && deleted.is_empty() {
        return false;
    }
    let group = lookup.api_version.rsplit_once('/').map_or("", |it| it.0);
    let kind = GroupKind::new(group, lookup.kind.as_str());
    !SET_UP.contains(&(group, lookup.kind.as_str()))
        || before.iter().any(|object| fits(object, lookup))
        || deleted.contains(&kind)
}

/// Returns the kinds that an object installs, where it is a definition.
fn installed(object: &DesiredObject) -> Vec<(String, String)> {
    if !kinds::is_definition(&object.key.kind) {
        return Vec::new();
    }
    let text = |pointer: &str| object.body.pointer(pointer).and_then(Value::as_str);
    let (Some(group), Some(kind)) = (text("/spec/group"), text("/spec/names/kind")) else {
        return Vec::new();
    };
    let versions = object.body.pointer("/spec/versions");
    let versions = versions.and_then(Value::as_array).into_iter().flatten();
    versions
        .filter(|version| version["served"].as_bool() != Some(false))
        .filter_map(|version| version["name"].as_str())
        .map(|version| (format!("{group}/{version}"), kind.to_owned()))
        .collect()
}
