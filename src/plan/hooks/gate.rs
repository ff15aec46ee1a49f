//! What must be done before anything is applied: the hooks that come first, and what they freeze.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::migration::{
    DeployAction, DeployComponent, FailurePolicy, Hook, HookPhase, HookScope,
};
use crate::model::{ComponentName, Hold, limits};
use crate::plan::difference::{Difference, Verdict};
use crate::plan::output::Why;
use crate::plan::view::View;

use super::deploy::{self, Deploy, GlobalDeploy, Participant, in_phase};
use super::input::{BegunDeploy, Committed, HookState, HookStates};
use super::values::desired_values;
use super::{
    AheadHook, DueHook, DueMigration, Gated, PlannedMigration, failure_policy, removal, words,
};

/// What hooks mean for a plan: first for what may be applied, and in the end, see [`super::settle`], for what may be committed.
pub(in crate::plan) struct Gate<'a> {
    pub(super) deploys: BTreeMap<&'a ComponentName, Deploy<'a>>,
    pub(super) global: Option<GlobalDeploy<'a>>,
    /// Whether nothing of the target may be applied or deleted.
    pub(in crate::plan) freezes_all: bool,
    /// Components of which nothing may be applied or deleted.
    pub(in crate::plan) frozen: BTreeSet<&'a ComponentName>,
    /// Whether nobody judges hooks, and the plan shows what would be done if they ended well.
    pub(super) is_assumed: bool,
    pub(super) due: Vec<DueHook>,
    pub(super) ahead: Vec<AheadHook>,
    pub(super) holds: Vec<Hold>,
    pub(super) committed: Committed,
    pub(super) planned: Vec<PlannedMigration>,
}

/// How a hook stands for what comes after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    NotBegun,
    Open,
    Failed(FailurePolicy),
    Done,
}

impl<'a> Gate<'a> {
    /// Finds out what is deployed. Nothing is frozen yet.
    pub(in crate::plan) fn new(view: &View<'a>) -> Self {
        let input = view.input.migrations;
        let desired = view.input.desired;
        let deploys = deploy::of_components(view, input.committed);
        let mut committed = input.committed.clone();
        if let Some(runs) = input.states.and_then(|states| states.once.as_ref()) {
            let once = desired
                .migrations
                .iter()
                .filter(|it| view.input.record.is_err() && it.spec.policy.run.is_once());
            let doubtful = once.map(|it| it.name.as_str());
            committed.once.learn(runs, doubtful);
        }
        if view.input.only.is_none() && desired.unread.is_empty() {
            committed
                .components
                .retain(|name, _| deploys.contains_key(name));
        }
        let holds = removal::remember(view, &mut committed);
        Self {
            global: deploy::of_target(view, desired),
            deploys,
            freezes_all: false,
            frozen: BTreeSet::new(),
            is_assumed: input.states.is_none(),
            due: Vec::new(),
            ahead: Vec::new(),
            holds: holds.into_iter().collect(),
            committed,
            planned: Vec::new(),
        }
    }

    /// Returns why a component is not ready for those that depend on it: its migrations belong to its deploy.
    pub(in crate::plan) fn obstacle(&self, name: &ComponentName) -> Option<String> {
        let is_open = !self.is_assumed && self.deploys.get(name).is_some_and(|it| it.is_changed);
        is_open.then(|| "its migrations are not done".to_owned())
    }

    /// Returns whether a component is deployed anew.
    pub(in crate::plan) fn is_changed(&self, name: &ComponentName) -> bool {
        self.deploys.get(name).is_some_and(|it| it.is_changed)
    }

    /// Returns the hooks that are due and those ahead, the holds, what is to be committed, and every migration of the deploy.
    pub(in crate::plan) fn finish(mut self) -> Gated {
        // What is committed by this very plan is over.
        let committed = &self.committed;
        self.due.retain(|due| {
            let stored = match (&due.hook.scope, due.hook.phase) {
                (HookScope::Global, HookPhase::Pre) => committed.global.pre.as_ref(),
                (HookScope::Global, HookPhase::Post) => committed.global.post.as_ref(),
                (HookScope::Component(name), _) => {
                    let component = committed.components.get(name);
                    component.and_then(|it| it.digest.as_ref())
                }
            };
            stored != Some(&due.hook.deploy)
        });
        Gated {
            due: self.due,
            ahead: self.ahead,
            holds: self.holds,
            committed: self.committed,
            planned: self.planned,
        }
    }

    /// Freezes what must wait for hooks, and names the hooks that are due before anything is applied.
    pub(in crate::plan) fn close(
        &mut self,
        view: &View<'a>,
        differences: &[Difference<'a>],
        waiting: &BTreeMap<&'a ComponentName, Hold>,
    ) {
        let empty = HookStates::default();
        let states = view.input.migrations.states.unwrap_or(&empty);
        self.plan_ahead();
        self.hold_held(view);
        self.wait_for_undo(view, states);
        let is_waiting = |name: &ComponentName| waiting.contains_key(name);
        self.look_ahead(view, differences, states, is_waiting);
        self.close_globally(view, differences, states);
        self.block_deploy(states);
        self.limit();
        let changed: Vec<&ComponentName> = self
            .deploys
            .iter()
            .filter(|(_, deploy)| deploy.is_changed)
            .map(|(name, _)| *name)
            .collect();
        for name in changed {
            self.close_component(view, states, name, waiting.contains_key(name));
        }
    }

    /// Migrations that cannot run hold what they belong to.
    fn hold_held(&mut self, view: &View<'a>) {
        if view.input.only.is_none() {
            let held = view.input.desired.held_migrations.iter();
            for migration in held.filter(|it| it.is_global) {
                self.holds.push(words::held("the whole deploy", migration));
                self.freezes_all |= !self.is_assumed;
            }
        }
        for (name, deploy) in &self.deploys {
            for migration in &deploy.held {
                self.holds.push(words::held(&name.to_string(), migration));
                self.frozen.insert(name);
            }
        }
    }

    /// A component that has come back while it is taken back waits for the end of that.
    fn wait_for_undo(&mut self, view: &View<'a>, states: &HookStates) {
        let under_way = states.undo.iter().flatten();
        for (name, state) in under_way.filter(|(_, state)| state.is_under_way()) {
            let found = view.input.desired.components.get_key_value(name);
            if let Some((name, _)) = found {
                self.frozen.insert(name);
                self.holds.push(words::back_too_early(name, state));
            }
        }
    }

    fn close_globally(
        &mut self,
        view: &View<'a>,
        differences: &[Difference<'a>],
        states: &HookStates,
    ) {
        let Some(global) = &self.global else { return };
        if self.committed.global.pre.as_ref() == Some(&global.digest) {
            return;
        }
        let components = self.processed(view, differences);
        let hook = Hook {
            scope: HookScope::Global,
            phase: HookPhase::Pre,
            deploy: global.digest.clone(),
        };
        let participants = in_phase(&global.participants, HookPhase::Pre, global.action);
        let due = due_hook(view, hook, &participants, (None, components.clone()));
        let (digest, action) = (global.digest.clone(), global.action);
        let is_remembered = !in_phase(&global.participants, HookPhase::Post, action).is_empty();
        let may_begin = !self.freezes_all;
        if self.put(due, states, may_begin) == Standing::Done && may_begin {
            self.committed.global.pre = Some(digest);
            self.committed.global.action = Some(action);
            self.committed.global.components = if is_remembered {
                components
            } else {
                Vec::new()
            };
        } else {
            self.freezes_all = true;
        }
    }

    /// A failure that blocks the deploy does so wherever its migration belongs.
    fn block_deploy(&mut self, states: &HookStates) {
        let blocking = self.deploys.iter().any(|(name, deploy)| {
            [HookPhase::Pre, HookPhase::Post].into_iter().any(|phase| {
                let hook = hook_of(name, deploy, phase);
                let participants = in_phase(&deploy.participants, phase, deploy.component.action);
                standing(&hook, &participants, states.get(&hook))
                    == Standing::Failed(FailurePolicy::BlockDeploy)
            })
        });
        self.freezes_all |= blocking;
    }

    /// What is committed has to fit into the target's record.
    fn limit(&mut self) {
        let mut room = limits::COMMITTED_MAX.saturating_sub(self.committed.components.len());
        for (name, deploy) in &self.deploys {
            if self.committed.components.contains_key(*name) || !deploy.is_changed {
                continue;
            }
            if room > 0 {
                room -= 1;
            } else {
                self.holds.push(words::too_many(name));
                self.frozen.insert(name);
            }
        }
    }

    fn close_component(
        &mut self,
        view: &View<'a>,
        states: &HookStates,
        name: &'a ComponentName,
        is_waiting: bool,
    ) {
        let deploy = &self.deploys[name];
        let begun = BegunDeploy {
            digest: deploy.digest.clone(),
            action: deploy.component.action,
        };
        let has_begun = self
            .committed
            .components
            .get(name)
            .is_some_and(|it| it.begun.as_ref() == Some(&begun));
        if has_begun {
            return;
        }
        let may_begin = !self.freezes_all && !is_waiting && !self.frozen.contains(name);
        let action = deploy.component.action;
        let has_post = !in_phase(&deploy.participants, HookPhase::Post, action).is_empty();
        let due = self.due_of(view, name, HookPhase::Pre);
        if self.put(due, states, may_begin) != Standing::Done {
            self.frozen.insert(name);
        } else if has_post && may_begin && !self.is_assumed {
            let entry = self.committed.components.entry(name.clone());
            entry.or_default().begun = Some(begun);
        }
    }

    /// Makes the hook of a component.
    pub(super) fn due_of(
        &self,
        view: &View<'a>,
        name: &ComponentName,
        phase: HookPhase,
    ) -> DueHook {
        let deploy = &self.deploys[name];
        let hook = hook_of(name, deploy, phase);
        let participants = in_phase(&deploy.participants, phase, deploy.component.action);
        let components = vec![deploy.component.clone()];
        due_hook(
            view,
            hook,
            &participants,
            (Some(deploy.component.clone()), components),
        )
    }

    /// Takes a hook up as it stands: one that may not begin and has not begun is left out. One that begins and of which preflight has
    /// just seen that there is nothing to do is done.
    pub(super) fn put(
        &mut self,
        mut due: DueHook,
        states: &HookStates,
        may_begin: bool,
    ) -> Standing {
        if due.migrations.is_empty() || self.is_assumed {
            return Standing::Done;
        }
        let state = states.get(&due.hook);
        let is_clear = state.is_none() && may_begin && states.is_clear(&due.hook);
        let standing = if is_clear {
            Standing::Done
        } else {
            standing_of(&due, state)
        };
        match state {
            None if is_clear => {}
            None if !may_begin => return standing,
            None => self.holds.push(words::not_begun(&due)),
            Some(state) => self.holds.extend(words::stands(&due, state)),
        }
        due.may_begin = may_begin;
        self.due.push(due);
        standing
    }

    /// Returns what the deploy is about to do with each component.
    pub(super) fn processed(
        &self,
        view: &View<'a>,
        differences: &[Difference<'a>],
    ) -> Vec<DeployComponent> {
        let mut touched: BTreeSet<&ComponentName> = differences
            .iter()
            .filter(|it| match &it.verdict {
                Verdict::Apply(why) => !matches!(why, Why::Drifted(_)),
                Verdict::Replace(_) | Verdict::Unserved(_) => true,
                _ => false,
            })
            .map(|it| &it.object.component)
            .collect();
        touched.extend(
            self.deploys
                .iter()
                .filter(|(_, deploy)| deploy.is_changed)
                .map(|(name, _)| *name),
        );
        let components = touched
            .into_iter()
            .map(|name| match self.deploys.get(name) {
                Some(deploy) => deploy.component.clone(),
                None => DeployComponent {
                    name: name.to_string(),
                    from: None,
                    to: view.input.desired.components[name].version.clone(),
                    action: if deploy::is_there(view, name) {
                        DeployAction::Upgrade
                    } else {
                        DeployAction::Install
                    },
                },
            });
        components.take(limits::DEPLOY_COMPONENTS_MAX).collect()
    }

    /// Lists every migration that this deploy comes by.
    fn plan_ahead(&mut self) {
        let mut planned = Vec::new();
        let mut add = |scope: HookScope, participant: &Participant<'_>| {
            let migration = participant.migration;
            planned.push(PlannedMigration {
                scope,
                phase: migration.spec.bind.phase,
                name: migration.name.clone(),
                owner: migration.spec.owner.clone(),
                place: migration.place.clone(),
            });
        };
        if let Some(global) = &self.global {
            for phase in [HookPhase::Pre, HookPhase::Post] {
                let done = match phase {
                    HookPhase::Pre => &self.committed.global.pre,
                    HookPhase::Post => &self.committed.global.post,
                };
                if done.as_ref() != Some(&global.digest) {
                    let of_it = in_phase(&global.participants, phase, global.action);
                    for it in of_it {
                        add(HookScope::Global, it);
                    }
                }
            }
        }
        for (name, deploy) in self.deploys.iter().filter(|(_, it)| it.is_changed) {
            for phase in [HookPhase::Pre, HookPhase::Post] {
                let of_it = in_phase(&deploy.participants, phase, deploy.component.action);
                for it in of_it {
                    add(HookScope::Component((*name).clone()), it);
                }
            }
        }
        planned.sort();
        self.planned = planned;
    }
}

pub(super) fn hook_of(name: &ComponentName, deploy: &Deploy<'_>, phase: HookPhase) -> Hook {
    Hook {
        scope: HookScope::Component(name.clone()),
        phase,
        deploy: deploy.digest.clone(),
    }
}

pub(super) fn due_hook(
    view: &View<'_>,
    hook: Hook,
    participants: &[&Participant<'_>],
    (component, components): (Option<DeployComponent>, Vec<DeployComponent>),
) -> DueHook {
    let migrations = participants.iter().map(|it| DueMigration {
        migration: it.migration.clone(),
        desired: desired_values(view.input.desired, it.migration),
    });
    let committed = view.input.migrations.committed;
    let previous = match &hook.scope {
        HookScope::Global => committed.global.post.clone(),
        HookScope::Component(name) => {
            let component = committed.components.get(name);
            component.and_then(|it| it.digest.clone())
        }
    };
    DueHook {
        previous,
        migrations: migrations.collect(),
        hook,
        component,
        components,
        may_begin: true,
    }
}

fn standing_of(due: &DueHook, state: Option<&HookState>) -> Standing {
    let policy = |name: &str| {
        let mut migrations = due.migrations.iter();
        let found = migrations.find(|it| it.migration.name == name);
        found.map_or(FailurePolicy::BlockComponent, |it| {
            it.failure_policy(&due.hook)
        })
    };
    judge(state, policy)
}

fn standing(hook: &Hook, participants: &[&Participant<'_>], state: Option<&HookState>) -> Standing {
    let policy = |name: &str| {
        let mut migrations = participants.iter();
        let found = migrations.find(|it| it.migration.name == name);
        found.map_or(FailurePolicy::BlockComponent, |it| {
            failure_policy(it.migration, hook)
        })
    };
    judge(state, policy)
}

fn judge(state: Option<&HookState>, policy: impl Fn(&str) -> FailurePolicy) -> Standing {
    let Some(state) = state else {
        return Standing::NotBegun;
    };
    let failed = state.failed.iter().map(|it| policy(&it.migration));
    let blocking = failed.filter(|it| *it != FailurePolicy::Warn);
    // The worst is what counts.
    let worst = blocking.max_by_key(|it| *it == FailurePolicy::BlockDeploy);
    match worst {
        Some(policy) => Standing::Failed(policy),
        None if !state.open.is_empty() => Standing::Open,
        None => Standing::Done,
    }
}
