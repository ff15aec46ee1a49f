//! Migrations for the tests of this room, and how their hooks end.

use std::collections::BTreeMap;

use super::{DueHook, HookState, MigrationStand, Stand};
use crate::desired::Desired;
use serde_json::json;

use crate::model::migration::{
    Binding, DeployAction, Guard, HookPhase, Lifecycle, Migration, MigrationSpec, Policy,
};
use crate::model::{Digest, Hold, Place};
use crate::plan::Plan;
use crate::plan::testing::{Cluster, component};

/// Makes a migration of a component, or a global one where the component is empty.
pub(in crate::plan) fn migration(name: &str, of: &str, phase: HookPhase) -> Migration {
    let components: Vec<String> = (!of.is_empty())
        .then(|| of.to_owned())
        .into_iter()
        .collect();
    let step =
        json!({"id": "do", "apply": {"manifest": {"apiVersion": "v1", "kind": "ConfigMap"}}});
    Migration {
        name: name.to_owned(),
        components: components.iter().map(|name| component(name)).collect(),
        digest: Digest::of_parts([name, of]),
        place: Place::new(format!("migrations/{name}.yaml"), 3, 1),
        spec: MigrationSpec {
            description: String::new(),
            owner: "team-a".to_owned(),
            bind: Binding {
                scope: None,
                components,
                phase,
                on: vec![DeployAction::Install, DeployAction::Upgrade],
            },
            lifecycle: Lifecycle {
                introduced_in: None,
                remove_in: None,
                never: Some("it is a test".to_owned()),
            },
            after: Vec::new(),
            params: BTreeMap::new(),
            lookups: BTreeMap::new(),
            guard: Guard {
                needed: "true".to_owned(),
                ..Guard::default()
            },
            steps: vec![serde_json::from_value(step).unwrap()],
            undo: Vec::new(),
            policy: Policy::default(),
            tests: Vec::new(),
        },
    }
}

/// Returns what each hook of a plan is.
pub(in crate::plan) fn hooks(plan: &Plan) -> Vec<String> {
    plan.hooks.iter().map(|due| due.hook.to_string()).collect()
}

/// Ends every migration of every hook of a plan well.
pub(in crate::plan) fn end_well(cluster: &mut Cluster, plan: &Plan) {
    for due in &plan.hooks {
        cluster
            .states
            .begun
            .insert(due.hook.clone(), HookState::default());
    }
}

/// Ends one migration without success, and the others well.
pub(in crate::plan) fn fail(cluster: &mut Cluster, plan: &Plan, name: &str) {
    for due in &plan.hooks {
        let mut state = HookState::default();
        if due.migrations.iter().any(|it| it.migration.name == name) {
            state.failed.push(stand(name, Stand::Failed));
        }
        cluster.states.begun.insert(due.hook.clone(), state);
    }
}

pub(in crate::plan) fn stand(name: &str, stand: Stand) -> MigrationStand {
    MigrationStand {
        migration: name.to_owned(),
        run: Some(format!("run-{name}")),
        stand,
        message: "it was not possible".to_owned(),
        since: None,
    }
}

/// Leaves every migration of a hook under way.
pub(in crate::plan) fn begin(cluster: &mut Cluster, due: &DueHook) {
    let open = due
        .migrations
        .iter()
        .map(|it| stand(&it.migration.name, Stand::Running));
    let state = HookState {
        open: open.collect(),
        failed: Vec::new(),
    };
    cluster.states.begun.insert(due.hook.clone(), state);
}

/// Plans and carries out until nothing changes any more.
pub(in crate::plan) fn converge(cluster: &mut Cluster, wanted: &Desired) -> Plan {
    for _ in 0..32 {
        let plan = cluster.plan(wanted);
        if plan.is_empty() && plan.hooks.is_empty() && plan.committed == cluster.committed {
            return plan;
        }
        end_well(cluster, &plan);
        cluster.carry_out(&plan);
    }
    panic!("it does not come to an end");
}

/// Asserts that a hold of migration `grow` names its owner, its place and a command.
pub(in crate::plan) fn names_the_way_out(hold: &Hold, command: &str) {
    assert!(hold.message.contains("owner team-a"), "{}", hold.message);
    assert!(hold.message.contains(command), "{}", hold.message);
    assert_eq!(
        hold.place.as_ref().unwrap().to_string(),
        "migrations/grow.yaml:3:1"
    );
}
