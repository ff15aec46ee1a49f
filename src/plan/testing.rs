//! What the tests of this stage build their inputs from.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::desired::{Desired, Unread};
use crate::model::{
    ComponentName, DesiredObject, Digest, GroupKind, Hold, HoldReason, ObjectKey, Place, Revision,
    Scope, ServedKind, SourceName, names,
};
use crate::observe::{KindObservation, Observed, ObservedObject, Ownership};

use super::hooks::{Committed, HookStates, MigrationInput, Preflight};
use super::{
    ActionKind, Approval, Deletion, Jobs, PastFailure, Plan, PlanInput, PruneSettings, TemplateUse,
    check, observed_from, plan,
};

pub(super) fn source() -> SourceName {
    SourceName::new("modules").unwrap()
}

pub(super) fn component(text: &str) -> ComponentName {
    text.parse().unwrap()
}

/// Reads a key from `Kind[.group] [namespace/]name`.
pub(super) fn key(text: &str) -> ObjectKey {
    let (kind, name) = text.split_once(' ').unwrap();
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, name),
    };
    ObjectKey::new(kind.parse().unwrap(), namespace, name)
}

/// Makes an object of a component with a body beside what every object has.
pub(super) fn object(component_name: &str, key_text: &str, body: Value) -> Arc<DesiredObject> {
    let key = key(key_text);
    let version = match key.kind.group.as_str() {
        names::KYMA_GROUP => names::KYMA_VERSION,
        _ => "v1",
    };
    let mut whole = json!({
        "kind": key.kind.kind,
        "metadata": {
            "name": key.name,
            "labels": {names::LABEL_SOURCE: "modules"},
            "annotations": {names::ANNOTATION_COMPONENT: component_name},
        },
    });
    if let Some(namespace) = &key.namespace {
        whole["metadata"]["namespace"] = json!(namespace);
    }
    merge(&mut whole, body);
    let digest = Digest::of(&whole);
    whole["metadata"]["annotations"][names::ANNOTATION_DIGEST] = json!(digest.as_str());
    let mut object = DesiredObject {
        place: Place::new(format!("{component_name}/{}.yaml", key.name), 1, 1),
        key,
        version: version.to_owned(),
        component: component(component_name),
        digest,
        body: Arc::new(Value::Null),
    };
    whole["apiVersion"] = json!(object.api_version());
    object.body = Arc::new(whole);
    Arc::new(object)
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

pub(super) fn config_map(component_name: &str, name: &str) -> Arc<DesiredObject> {
    let key = format!("ConfigMap default/{name}");
    object(component_name, &key, json!({"data": {"key": "value"}}))
}

pub(super) fn template(version: &str) -> Arc<DesiredObject> {
    let key = format!(
        "ModuleTemplate.{} kcp-system/telemetry-{version}",
        names::KYMA_GROUP
    );
    let body = json!({
        "metadata": {"annotations": {names::ANNOTATION_VERSION_DIGEST: format!("v1:{version}")}},
        "spec": {"version": version, "moduleName": "telemetry"},
    });
    object("modules/telemetry", &key, body)
}

pub(super) fn release(channels: &[(&str, &str)]) -> Arc<DesiredObject> {
    let key = format!(
        "ModuleReleaseMeta.{} kcp-system/telemetry",
        names::KYMA_GROUP
    );
    let channels: Vec<Value> = channels
        .iter()
        .map(|(channel, version)| json!({"channel": channel, "version": version}))
        .collect();
    let body = json!({"spec": {"moduleName": "telemetry", "channels": channels}});
    object("modules/telemetry", &key, body)
}

pub(super) fn desired(objects: impl IntoIterator<Item = Arc<DesiredObject>>) -> Desired {
    let revision = Revision::commit("main", "0123456789012345678901234567890123456789");
    let mut desired = Desired::nothing(revision);
    for object in objects {
        let component = desired.components.entry(object.component.clone());
        component.or_default().objects.push(object);
    }
    desired
}

pub(super) fn held(key_text: &str, file: &str) -> (ObjectKey, Hold) {
    let hold = Hold {
        what: key_text.to_owned(),
        reason: HoldReason::Invalid,
        message: "it does not pass validation".to_owned(),
        place: Some(Place::new(file, 3, 7)),
    };
    (key(key_text), hold)
}

pub(super) fn unread(file: &str) -> Unread {
    Unread {
        place: Place::new(file, 2, 1),
        reason: "mapping values are not allowed here".to_owned(),
    }
}

/// A cluster with everything that an input needs beside git.
pub(super) struct Cluster {
    pub(super) observed: Observed,
    pub(super) prune: PruneSettings,
    pub(super) approval: Option<Approval>,
    pub(super) record: Result<(), &'static str>,
    pub(super) failures: BTreeMap<ObjectKey, PastFailure>,
    pub(super) jobs: Jobs,
    pub(super) template_users: Option<Result<BTreeMap<String, String>, String>>,
    pub(super) only: Option<ComponentName>,
    pub(super) committed: Committed,
    pub(super) states: HookStates,
}

impl Cluster {
    /// A cluster on which `base` was applied and is healthy; the kinds of `wanted` are listed too.
    pub(super) fn with(base: &Desired, wanted: &Desired) -> Self {
        Self {
            observed: observed_from(base, wanted, &source()),
            prune: PruneSettings::default(),
            approval: None,
            record: Ok(()),
            failures: BTreeMap::new(),
            jobs: Jobs::new(),
            template_users: None,
            only: None,
            committed: Committed::default(),
            states: HookStates::default(),
        }
    }

    /// Changes one observed object.
    pub(super) fn change(&mut self, key_text: &str, change: impl FnOnce(&mut ObservedObject)) {
        let key = key(key_text);
        self.listing(&key.kind, |objects| {
            let mut live = objects[&key].as_ref().clone();
            change(&mut live);
            objects.insert(key.clone(), Arc::new(live));
        });
    }

    pub(super) fn forget(&mut self, key: &ObjectKey) {
        self.listing(&key.kind, |objects| {
            objects.remove(key);
        });
    }

    pub(super) fn unlist(&mut self, kind: &str) {
        let reason = "the request was forbidden".to_owned();
        let kind = kind.parse().unwrap();
        self.observed
            .kinds
            .insert(kind, KindObservation::Unlisted(reason));
    }

    fn listing(
        &mut self,
        kind: &GroupKind,
        change: impl FnOnce(&mut HashMap<ObjectKey, Arc<ObservedObject>>),
    ) {
        match self.observed.kinds.get_mut(kind) {
            Some(KindObservation::Listed(objects)) => change(Arc::make_mut(objects)),
            other => panic!("{kind} is not listed: {other:?}"),
        }
    }

    /// Plans as soon as every migration was judged, which finds nothing, and has the plan checked.
    pub(super) fn plan(&self, desired: &Desired) -> Plan {
        let plan = self.plan_unjudged(desired);
        let judged = Preflight::Judged {
            findings: Vec::new(),
            is_clear: false,
        };
        let mut states = self.states.clone();
        for ahead in &plan.ahead {
            let known = states.preflight.entry(ahead.due.hook.clone());
            known.or_insert_with(|| judged.clone());
        }
        if states == self.states {
            return plan;
        }
        self.plan_with(desired, &states)
    }

    /// Plans with what preflight is said to know, and has the plan checked.
    pub(super) fn plan_unjudged(&self, desired: &Desired) -> Plan {
        self.plan_with(desired, &self.states)
    }

    fn plan_with(&self, desired: &Desired, states: &HookStates) -> Plan {
        let source = source();
        let input = PlanInput {
            source: &source,
            desired,
            observed: &self.observed,
            prune: &self.prune,
            approval: self.approval.as_ref(),
            record: self.record,
            failures: &self.failures,
            jobs: &self.jobs,
            templates: match &self.template_users {
                None => TemplateUse::NotAsked,
                Some(Ok(users)) => TemplateUse::Known(users),
                Some(Err(reason)) => TemplateUse::Unknown(reason),
            },
            only: self.only.as_ref(),
            takeover: &[],
            migrations: MigrationInput {
                committed: &self.committed,
                states: Some(states),
            },
        };
        let plan = plan(input);
        assert_eq!(check(&plan, &input), []);
        plan
    }

    /// Carries a plan out, as if every request succeeded and everything became healthy.
    pub(super) fn carry_out(&mut self, plan: &Plan) {
        self.committed = plan.committed.clone();
        let mut applied = Vec::new();
        for action in plan.actions() {
            match &action.kind {
                ActionKind::Apply(object) => applied.push(object.clone()),
                ActionKind::Delete(deletion) => self.forget(&deletion.key),
                ActionKind::Replace(..) => panic!("nothing plans a replacement yet"),
            }
        }
        let applied = desired(applied);
        for (kind, observation) in observed_from(&applied, &applied, &source()).kinds {
            let KindObservation::Listed(new) = observation else {
                unreachable!("what is assumed is listed")
            };
            self.listing(&kind, |objects| {
                objects.extend(new.iter().map(|(key, live)| (key.clone(), live.clone())));
            });
        }
    }
}

/// Returns `change key` for each action, in order.
pub(super) fn changes(plan: &Plan) -> Vec<String> {
    plan.actions()
        .map(|action| format!("{} {}", action.explain().change, action.key))
        .collect()
}

/// Returns `reason what` for each hold.
pub(super) fn holds(plan: &Plan) -> Vec<String> {
    plan.holds
        .iter()
        .map(|hold| format!("{} {}", hold.reason, hold.what))
        .collect()
}

pub(super) fn no_fields_of_ours(live: &mut ObservedObject) {
    live.ownership = Ownership::None;
}

// === what tests of deletions share ===

pub(super) const GONE: &str = "ConfigMap default/gone";
pub(super) const DELETED: [&str; 1] = ["deleted ConfigMap default/gone"];
pub(super) const NOTHING: [&str; 0] = [];

/// What stays in git in most tests: many enough that one deletion is below every limit.
pub(super) fn staying() -> Desired {
    desired((0..20).map(|n| config_map("components/a", &format!("c{n}"))))
}

pub(super) fn and(
    mut base: Desired,
    objects: impl IntoIterator<Item = Arc<DesiredObject>>,
) -> Desired {
    for object in objects {
        let component = base.components.entry(object.component.clone()).or_default();
        component.objects.push(object);
    }
    base
}

/// A cluster that has one more object than git wants, and git.
pub(super) fn one_gone() -> (Cluster, Desired) {
    let wanted = staying();
    let base = and(staying(), [config_map("components/a", "gone")]);
    (Cluster::with(&base, &wanted), wanted)
}

pub(super) fn approve(plan: &Plan) -> Approval {
    let pending = plan.pending.as_ref().unwrap();
    Approval {
        digest: pending.digest.clone(),
        objects: pending
            .deletions
            .iter()
            .map(Deletion::fingerprint)
            .collect(),
    }
}

pub(super) fn pending(plan: &Plan) -> Vec<String> {
    let deletions = plan.pending.iter().flat_map(|pending| &pending.deletions);
    deletions.map(|deletion| deletion.key.to_string()).collect()
}

/// Has the cluster serve every kind that was listed.
pub(super) fn serve_all(cluster: &mut Cluster) {
    let kinds = cluster.observed.kinds.keys().map(|kind| {
        let served = ServedKind {
            scope: match kind.kind.as_str() {
                "ConfigMap" | "Cart" | "PersistentVolumeClaim" => Scope::Namespaced,
                _ => Scope::Cluster,
            },
            plural: format!("{}s", kind.kind.to_lowercase()),
            versions: vec!["v1".to_owned()],
        };
        (kind.clone(), served)
    });
    cluster.observed.served = Some(Arc::new(kinds.collect()));
}
