//! Laws that hold for every repository and every cluster, tried on generated ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::testing::*;
use super::{ActionKind, Plan};
use crate::desired::{Desired, Removal};
use crate::model::{DesiredObject, SourceName};
use crate::observe::{Health, ObservedObject, Ownership};

const COMPONENTS: [&str; 4] = [
    "components/a",
    "components/b",
    "components/c",
    "modules/telemetry",
];
const KINDS: [&str; 8] = [
    "ConfigMap shop/",
    "ConfigMap default/",
    "Secret shop/",
    "Namespace ",
    "PersistentVolumeClaim shop/",
    "Deployment.apps default/",
    "CustomResourceDefinition.apiextensions.k8s.io ",
    "ModuleTemplate.operator.kyma-project.io kcp-system/telemetry-",
];
const NAMES: [&str; 4] = ["shop", "one", "1.0.0", "carts.shop.dev"];

/// A repository as a generator draws it: objects by key with component and content, and what is held or unread.
#[derive(Debug, Clone)]
struct Repository {
    objects: BTreeMap<(usize, usize), (usize, u8)>,
    held: Vec<(usize, usize)>,
    is_unread: bool,
    dependencies: Vec<(usize, usize)>,
    announced: Option<usize>,
}

fn repositories() -> impl Strategy<Value = Repository> {
    let key = (0..KINDS.len(), 0..NAMES.len());
    let objects = prop::collection::btree_map(key.clone(), (0..COMPONENTS.len(), 0..3_u8), 0..14);
    let dependencies = prop::collection::vec((0..COMPONENTS.len(), 0..COMPONENTS.len()), 0..3);
    (
        objects,
        prop::collection::vec(key, 0..2),
        prop::bool::weighted(0.1),
        dependencies,
        prop::option::of(0..COMPONENTS.len()),
    )
        .prop_map(
            |(objects, held, is_unread, dependencies, announced)| Repository {
                objects,
                held,
                is_unread,
                // Only downwards: circles are refused by validation.
                dependencies: dependencies
                    .into_iter()
                    .filter(|(top, base)| top > base)
                    .collect(),
                announced,
            },
        )
}

fn key_text((kind, name): (usize, usize)) -> String {
    format!("{}{}", KINDS[kind], NAMES[name])
}

impl Repository {
    fn objects(&self) -> Vec<Arc<DesiredObject>> {
        let objects = self.objects.iter().map(|(at, (component, content))| {
            let body = json!({"data": {"content": content.to_string()}});
            object(COMPONENTS[*component], &key_text(*at), body)
        });
        objects.collect()
    }

    fn desired(&self) -> Desired {
        let mut wanted = desired(self.objects());
        self.mark(&mut wanted);
        wanted
    }

    /// The same repository, with its objects met in the opposite order.
    fn reversed(&self) -> Desired {
        let mut wanted = desired(self.objects().into_iter().rev());
        self.mark(&mut wanted);
        wanted
    }

    fn mark(&self, wanted: &mut Desired) {
        for at in &self.held {
            let (key, hold) = held(&key_text(*at), "components/a/bad.yaml");
            wanted.held.insert(key, hold);
        }
        if self.is_unread {
            wanted.unread.push(unread("components/b/bad.yaml"));
        }
        for (top, base) in &self.dependencies {
            let base = component(COMPONENTS[*base]);
            if wanted.components.contains_key(&base)
                && let Some(top) = wanted.components.get_mut(&component(COMPONENTS[*top]))
            {
                top.depends_on.push(base);
            }
        }
        if let Some(announced) = self.announced {
            let announced = Removal::Component(component(COMPONENTS[announced]));
            wanted.settings.removals.push(announced);
        }
    }

    /// The same repository without anything that holds something up for good.
    fn sound(mut self) -> Self {
        self.held.clear();
        self.is_unread = false;
        self
    }
}

/// Something that happens to an object on a cluster.
#[derive(Debug, Clone, Copy)]
enum Accident {
    OtherSource,
    Unowned,
    Deleting,
    Drifted,
    Disabled,
    Kept,
    Unhealthy,
    Contested,
    NoComponent,
}

fn accidents() -> impl Strategy<Value = Vec<(usize, Accident)>> {
    use Accident::*;
    let accident = prop::sample::select(vec![
        OtherSource,
        Unowned,
        Deleting,
        Drifted,
        Disabled,
        Kept,
        Unhealthy,
        Contested,
        NoComponent,
    ]);
    prop::collection::vec((0..16_usize, accident), 0..6)
}

fn happen(accident: Accident, live: &mut ObservedObject) {
    match accident {
        Accident::OtherSource => live.source = Some(SourceName::new("other").unwrap()),
        Accident::Unowned => live.ownership = Ownership::None,
        Accident::Deleting => live.deleting = true,
        Accident::Drifted => {
            if let Ownership::Ours { fields, .. } = &mut live.ownership {
                Arc::make_mut(fields).children.remove("f:data");
            }
        }
        Accident::Disabled => live.reconcile_disabled = true,
        Accident::Kept => live.prune_disabled = true,
        Accident::Unhealthy => live.health = Health::Failed("it crashed".to_owned()),
        Accident::Contested => live.recent_applies = 3,
        Accident::NoComponent => live.component = None,
    }
}

fn cluster(base: &Desired, wanted: &Desired, accidents: &[(usize, Accident)]) -> Cluster {
    let mut cluster = Cluster::with(base, wanted);
    let keys: Vec<String> = base
        .objects()
        .map(|object| object.key.to_string())
        .collect();
    for (position, accident) in accidents {
        if let Some(key) = keys.get(*position) {
            cluster.change(key, |live| happen(*accident, live));
        }
    }
    cluster
}

fn deleted(plan: &Plan) -> usize {
    let pending = plan
        .pending
        .as_ref()
        .map_or(0, |pending| pending.deletions.len());
    let actions = plan.actions();
    pending
        + actions
            .filter(|action| matches!(action.kind, ActionKind::Delete(_)))
            .count()
}

proptest! {
    /// The checker runs on every plan that `Cluster::plan` makes: order, requirements, nothing foreign or named deleted.
    #[test]
    fn every_plan_passes_the_check(
        base in repositories(), head in repositories(), accidents in accidents()
    ) {
        let (base, head) = (base.desired(), head.desired());
        cluster(&base, &head, &accidents).plan(&head);
    }

    #[test]
    fn a_converged_cluster_needs_nothing(repository in repositories()) {
        let wanted = repository.sound().desired();
        let plan = Cluster::with(&wanted, &wanted).plan(&wanted);
        prop_assert!(plan.is_empty());
        prop_assert!(plan.holds.is_empty() && plan.pending.is_none());
    }

    /// Each pass does all it can: after as many passes as there are components, nothing is left but what waits for a person.
    #[test]
    fn passes_come_to_an_end(base in repositories(), head in repositories()) {
        let (base, wanted) = (base.desired(), head.sound().desired());
        let mut cluster = Cluster::with(&base, &wanted);
        for _ in 0..=COMPONENTS.len() + 1 {
            let plan = cluster.plan(&wanted);
            cluster.carry_out(&plan);
        }
        let last = cluster.plan(&wanted);
        prop_assert!(last.is_empty(), "{}", last.explain());
        prop_assert_eq!(last.unchanged, wanted.objects().count());
    }

    #[test]
    fn the_order_of_the_input_does_not_matter(
        base in repositories(), head in repositories(), accidents in accidents()
    ) {
        let base = base.desired();
        let one = cluster(&base, &head.desired(), &accidents).plan(&head.desired());
        let two = cluster(&base, &head.reversed(), &accidents).plan(&head.reversed());
        prop_assert_eq!(one.explain().to_string(), two.explain().to_string());
        prop_assert_eq!(one.identity, two.identity);
    }

    #[test]
    fn nothing_is_deleted_while_something_is_unread(
        base in repositories(), head in repositories(), accidents in accidents()
    ) {
        let (base, mut wanted) = (base.desired(), head.desired());
        wanted.unread.push(unread("components/c/bad.yaml"));
        prop_assert_eq!(deleted(&cluster(&base, &wanted, &accidents).plan(&wanted)), 0);
    }

    /// Whatever the limits say, they hold the sum of what nobody announced.
    #[test]
    fn no_more_than_max_objects_go_unannounced(
        base in repositories(), head in repositories(), max_objects in 0..6_u32
    ) {
        let (base, mut wanted) = (base.desired(), head.desired());
        wanted.settings.removals.clear();
        let mut cluster = cluster(&base, &wanted, &[]);
        cluster.prune.max_objects = max_objects;
        let plan = cluster.plan(&wanted);
        let gone = plan.actions().filter(|it| matches!(it.kind, ActionKind::Delete(_))).count();
        prop_assert!(gone <= max_objects as usize);
    }
}
