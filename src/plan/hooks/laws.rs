//! What holds for every deploy, however its migrations end: tried on generated repositories and endings.

use std::sync::Arc;

use proptest::prelude::*;

use super::testing::*;
use super::{DueHook, HookState, Stand};
use crate::desired::Desired;
use crate::model::migration::{FailurePolicy, HookPhase, HookScope, Migration};
use crate::plan::Plan;
use crate::plan::testing::*;

const COMPONENTS: [&str; 3] = ["components/a", "components/b", "components/c"];

/// One migration as a generator draws it: of which component (the last is none: a global one), in which phase, and what its
/// failure means.
type Drawn = (usize, bool, Option<FailurePolicy>);

fn migrations() -> impl Strategy<Value = Vec<Drawn>> {
    let policy = prop::sample::select(vec![
        None,
        Some(FailurePolicy::BlockComponent),
        Some(FailurePolicy::BlockDeploy),
        Some(FailurePolicy::Warn),
    ]);
    prop::collection::vec((0..=COMPONENTS.len(), any::<bool>(), policy), 0..6)
}

/// How a migration stands after a pass: not begun, under way, done, or failed.
fn endings() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..4_u8, 24)
}

fn wanted(drawn: &[Drawn], dependencies: &[(usize, usize)], content: u8) -> Desired {
    let objects = COMPONENTS.iter().enumerate().map(|(number, name)| {
        let key = format!("ConfigMap default/{number}");
        object(
            name,
            &key,
            serde_json::json!({"data": {"key": content.to_string()}}),
        )
    });
    let mut wanted = desired(objects);
    for (top, base) in dependencies.iter().filter(|(top, base)| top > base) {
        let top = wanted
            .components
            .get_mut(&component(COMPONENTS[*top]))
            .unwrap();
        top.depends_on.push(component(COMPONENTS[*base]));
    }
    wanted.migrations = drawn
        .iter()
        .enumerate()
        .map(|(number, one)| Arc::new(drawn_one(number, *one)))
        .collect();
    wanted
}

fn drawn_one(number: usize, (of, is_pre, policy): Drawn) -> Migration {
    let phase = if is_pre {
        HookPhase::Pre
    } else {
        HookPhase::Post
    };
    let of = COMPONENTS.get(of).copied().unwrap_or_default();
    let mut migration = migration(&format!("m{number}"), of, phase);
    migration.spec.policy.on_failure = policy;
    migration
}

/// Lets the migrations of due hooks come to what is drawn.
fn proceed(cluster: &mut Cluster, plan: &Plan, endings: &mut impl Iterator<Item = u8>) {
    for due in plan.hooks.iter().filter(|due| due.may_begin) {
        let state = cluster.states.begun.entry(due.hook.clone()).or_default();
        if *state != HookState::default() {
            continue;
        }
        match endings.next().unwrap_or(2) {
            0 => {
                cluster.states.begun.remove(&due.hook);
            }
            1 => begin(cluster, due),
            3 => {
                let name = &due.migrations[0].migration.name;
                state.failed.push(stand(name, Stand::Failed));
            }
            _ => {}
        }
    }
}

fn is_done(cluster: &Cluster, due: &DueHook) -> bool {
    cluster.states.get(&due.hook).is_some_and(|state| {
        let is_warning = |name: &str| {
            let mut of_it = due.migrations.iter();
            of_it.any(|it| {
                it.migration.name == name && it.failure_policy(&due.hook) == FailurePolicy::Warn
            })
        };
        state.open.is_empty() && state.failed.iter().all(|it| is_warning(&it.migration))
    })
}

/// Asserts the order of a deploy, from the definitions alone.
fn in_order(cluster: &Cluster, plan: &Plan, wanted: &Desired) -> Result<(), TestCaseError> {
    for due in plan.hooks.iter().filter(|due| !is_done(cluster, due)) {
        for action in plan.actions().filter(|_| due.hook.phase == HookPhase::Pre) {
            let concerned = match &due.hook.scope {
                HookScope::Global => true,
                HookScope::Component(name) => *name == action.component,
            };
            prop_assert!(!concerned, "{} before {}", action.key, due.hook);
        }
        if let HookScope::Component(name) = &due.hook.scope {
            let committed = plan
                .committed
                .components
                .get(name)
                .and_then(|it| it.digest.as_ref());
            prop_assert!(
                committed != Some(&due.hook.deploy),
                "{name} before {}",
                due.hook
            );
        }
        let global = (&due.hook.scope, due.hook.phase) == (&HookScope::Global, HookPhase::Post);
        prop_assert!(!global || plan.committed.global.post.as_ref() != Some(&due.hook.deploy));
    }
    // A component with a pre migration that was never begun and is not committed is not touched.
    for migration in wanted
        .migrations
        .iter()
        .filter(|it| it.spec.bind.phase == HookPhase::Pre)
    {
        for name in &migration.components {
            let begun = cluster
                .states
                .begun
                .keys()
                .any(|hook| hook.scope == HookScope::Component(name.clone()));
            let committed = cluster.committed.components.contains_key(name);
            let touched = plan.actions().any(|action| action.component == *name);
            prop_assert!(
                begun || committed || !touched,
                "{name} without {}",
                migration.name
            );
        }
    }
    // The global post hook comes when everything else is committed.
    let post = plan
        .hooks
        .iter()
        .find(|due| due.hook.scope == HookScope::Global && due.hook.phase == HookPhase::Post);
    if post.is_some() {
        for migration in &wanted.migrations {
            for name in &migration.components {
                let committed = plan.committed.components.get(name);
                prop_assert!(
                    committed.is_some_and(|it| it.digest.is_some()),
                    "{name} before global post"
                );
            }
        }
    }
    Ok(())
}

proptest! {
    /// `Cluster::plan` has every plan checked as well, by rules of its own.
    #[test]
    fn nothing_comes_before_what_must_come_first(
        drawn in migrations(),
        dependencies in prop::collection::vec((0..COMPONENTS.len(), 0..COMPONENTS.len()), 0..3),
        endings in endings(),
    ) {
        let wanted = wanted(&drawn, &dependencies, 0);
        let mut cluster = Cluster::with(&desired([]), &wanted);
        let mut endings = endings.into_iter();
        for _ in 0..12 {
            let plan = cluster.plan(&wanted);
            in_order(&cluster, &plan, &wanted)?;
            cluster.carry_out(&plan);
            proceed(&mut cluster, &plan, &mut endings);
        }
    }

    /// However it was disturbed: once every migration ends well, everything is applied and committed, and then nothing is due.
    #[test]
    fn a_deploy_comes_to_its_end(
        drawn in migrations(), before in endings(), is_changed in any::<bool>()
    ) {
        let mut first = wanted(&drawn, &[], 0);
        let mut cluster = Cluster::with(&desired([]), &first);
        let mut before = before.into_iter();
        for _ in 0..3 {
            let plan = cluster.plan(&first);
            cluster.carry_out(&plan);
            proceed(&mut cluster, &plan, &mut before);
        }
        // A retry, or a restart that has forgotten everything.
        cluster.states.begun.clear();
        if is_changed {
            first = wanted(&drawn, &[], 1);
        }
        let last = converge(&mut cluster, &first);
        prop_assert!(last.holds.is_empty(), "{}", last.explain());
        prop_assert_eq!(last.unchanged, COMPONENTS.len());
        // A second deploy of the same has nothing to judge, whatever is known of hooks.
        cluster.states.begun.clear();
        prop_assert!(cluster.plan(&first).hooks.is_empty());
    }

    #[test]
    fn the_order_of_migrations_in_git_does_not_matter(drawn in migrations()) {
        let one = wanted(&drawn, &[], 0);
        let mut two = one.clone();
        two.migrations.reverse();
        let cluster = Cluster::with(&desired([]), &one);
        prop_assert_eq!(cluster.plan(&one).identity, cluster.plan(&two).identity);
    }
}
