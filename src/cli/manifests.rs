//! What Fairway is installed from: the manifests of `deploy/`, as they were when this program was built.

use serde_json::{Value, json};

use super::failure::Failure;
use crate::cluster::Access;
use crate::model::{GroupKind, ObjectKey};

/// The namespace that the manifests are written for.
const SHIPPED_NAMESPACE: &str = "fairway-system";
/// The name of the Deployment, the ServiceAccount and the roles.
pub(super) const NAME: &str = "fairway";

const NAMESPACE: &str = include_str!("../../deploy/namespace.yaml");
const DEFINITIONS: [&str; 3] = [
    include_str!("../../deploy/crds/fairway.dev_releasesources.yaml"),
    include_str!("../../deploy/crds/fairway.dev_runs.yaml"),
    include_str!("../../deploy/crds/fairway.dev_targets.yaml"),
];
const KYMA_DEFINITIONS: [&str; 3] = [
    include_str!("../../deploy/kyma-crds/operator.kyma-project.io_kymas.yaml"),
    include_str!("../../deploy/kyma-crds/operator.kyma-project.io_modulereleasemetas.yaml"),
    include_str!("../../deploy/kyma-crds/operator.kyma-project.io_moduletemplates.yaml"),
];
const ACCOUNT: &str = include_str!("../../deploy/serviceaccount.yaml");
const ROLE: &str = include_str!("../../deploy/role.yaml");
const ROLE_APPLY: &str = include_str!("../../deploy/role-apply.yaml");
const DEPLOYMENT: &str = include_str!("../../deploy/deployment.yaml");
const SERVICE: &str = include_str!("../../deploy/service.yaml");

/// One object that Fairway is installed from.
#[derive(Debug, Clone)]
pub(super) struct Manifest {
    pub(super) key: ObjectKey,
    pub(super) body: Value,
}

/// The manifests in the order in which they are applied, for one namespace.
pub(super) struct Manifests {
    pub(super) namespace: Manifest,
    pub(super) definitions: Vec<Manifest>,
    pub(super) kyma_definitions: Vec<Manifest>,
    /// The account with its own role, and the role for what the repository holds.
    pub(super) rights: Vec<Manifest>,
    pub(super) deployment: Manifest,
    /// The port for webhooks.
    pub(super) service: Manifest,
}

// === impl Manifests ===

impl Manifests {
    /// Reads the manifests for a namespace.
    pub(super) fn of(namespace: &str) -> Result<Self, Failure> {
        let one = |text| Ok::<_, Failure>(read(text, namespace)?.remove(0));
        let definitions = |texts: &[&'static str]| {
            texts
                .iter()
                .copied()
                .map(one)
                .collect::<Result<Vec<_>, _>>()
        };
        let mut rights = read(ACCOUNT, namespace)?;
        rights.extend(read(ROLE, namespace)?);
        rights.extend(read(ROLE_APPLY, namespace)?);
        Ok(Self {
            namespace: one(NAMESPACE)?,
            definitions: definitions(&DEFINITIONS)?,
            kyma_definitions: definitions(&KYMA_DEFINITIONS)?,
            rights,
            deployment: one(DEPLOYMENT)?,
            service: one(SERVICE)?,
        })
    }

    /// Returns what the agent may do by its own role, one entry for each verb.
    pub(super) fn own_rights(namespace: &str) -> Result<Vec<Access>, Failure> {
        Ok(accesses(&read(ROLE, namespace)?))
    }

    /// Returns what the agent may do by the shipped role for what a repository holds.
    pub(super) fn shipped_rights(namespace: &str) -> Result<Vec<Access>, Failure> {
        Ok(accesses(&read(ROLE_APPLY, namespace)?))
    }
}

// === impl Manifest ===

impl Manifest {
    /// Returns whether the object is only a start, which the operator makes their own: the role for what the repository holds.
    pub(super) fn is_the_operators(&self) -> bool {
        self.key.kind.kind == "ClusterRole" && self.key.name == "fairway-apply"
    }

    /// Names the object as kubectl does: `deployment/fairway`.
    pub(super) fn short_name(&self) -> String {
        short_name(&self.key)
    }
}

/// Names an object as kubectl does.
pub(super) fn short_name(key: &ObjectKey) -> String {
    format!("{}/{}", key.kind.kind.to_ascii_lowercase(), key.name)
}

/// Returns whether everything that `wanted` says is so in `live`; what the server has added does not matter.
pub(super) fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, value)| live.get(key).is_some_and(|found| covers(found, value))),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len()
                && live
                    .iter()
                    .zip(wanted)
                    .all(|(live, wanted)| covers(live, wanted))
        }
        // The server writes `0` where a schema says `0.0`.
        (Value::Number(live), Value::Number(wanted)) => live.as_f64() == wanted.as_f64(),
        (live, wanted) => live == wanted,
    }
}

fn read(text: &str, namespace: &str) -> Result<Vec<Manifest>, Failure> {
    let values: Vec<Value> = serde_yaml::from_multiple(text).map_err(Failure::of)?;
    Ok(values
        .into_iter()
        .map(|mut body| {
            move_to(&mut body, namespace);
            Manifest {
                key: key_of(&body),
                body,
            }
        })
        .collect())
}

/// Puts an object into another namespace than the one that it was written for.
fn move_to(body: &mut Value, namespace: &str) {
    let is_namespace = body["kind"] == "Namespace";
    if is_namespace {
        body["metadata"]["name"] = json!(namespace);
    }
    if body["metadata"]["namespace"] == SHIPPED_NAMESPACE {
        body["metadata"]["namespace"] = json!(namespace);
    }
    let subjects = body.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten() {
        if subject["namespace"] == SHIPPED_NAMESPACE {
            subject["namespace"] = json!(namespace);
        }
    }
}

fn key_of(body: &Value) -> ObjectKey {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&body["apiVersion"]);
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    ObjectKey::new(
        GroupKind::new(group, text(&body["kind"])),
        body["metadata"]["namespace"].as_str(),
        text(&body["metadata"]["name"]),
    )
}

fn accesses(manifests: &[Manifest]) -> Vec<Access> {
    let mut all = Vec::new();
    for manifest in manifests {
        let namespace = &manifest.key.namespace;
        let rules = manifest.body["rules"].as_array();
        for rule in rules.into_iter().flatten() {
            let names = texts(&rule["resourceNames"]);
            let names: Vec<Option<String>> = if names.is_empty() {
                vec![None]
            } else {
                names.into_iter().map(Some).collect()
            };
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    for verb in texts(&rule["verbs"]) {
                        all.extend(names.iter().map(|name| Access {
                            namespace: namespace.clone(),
                            group: group.clone(),
                            resource: resource.clone(),
                            name: name.clone(),
                            verb: verb.clone(),
                        }));
                    }
                }
            }
        }
    }
    all
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
    texts
        .filter_map(|text| text.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_manifests_can_be_read_and_moved() {
        let all = Manifests::of("elsewhere").unwrap();
        let text = all
            .rights
            .iter()
            .chain([&all.namespace, &all.deployment, &all.service])
            .map(|one| one.body.to_string())
            .collect::<String>();
        assert!(!text.contains(SHIPPED_NAMESPACE), "{text}");
        assert_eq!(all.namespace.key.name, "elsewhere");
        assert_eq!(all.deployment.short_name(), "deployment/fairway");
        assert_eq!((all.definitions.len(), all.kyma_definitions.len()), (3, 3));
    }

    #[test]
    fn what_kustomize_installs_is_what_this_program_installs() {
        let kustomization: Value =
            serde_yaml::from_str(include_str!("../../deploy/kustomization.yaml")).unwrap();
        assert_eq!(
            texts(&kustomization["resources"]),
            [
                "namespace.yaml",
                "crds/fairway.dev_releasesources.yaml",
                "crds/fairway.dev_runs.yaml",
                "crds/fairway.dev_targets.yaml",
                "serviceaccount.yaml",
                "role.yaml",
                "role-apply.yaml",
                "deployment.yaml",
                "service.yaml",
            ],
            "a new file in deploy/ must be embedded above, too"
        );
    }

    #[test]
    fn rights_are_one_for_each_verb_and_name() {
        let own = Manifests::own_rights("elsewhere").unwrap();
        assert!(own.contains(&Access {
            namespace: None,
            group: String::new(),
            resource: "namespaces".to_owned(),
            name: Some("kube-system".to_owned()),
            verb: "get".to_owned(),
        }));
        assert!(own.contains(&Access {
            namespace: Some("elsewhere".to_owned()),
            group: "fairway.dev".to_owned(),
            resource: "releasesources/status".to_owned(),
            name: None,
            verb: "patch".to_owned(),
        }));
    }

    #[test]
    fn what_the_server_adds_does_not_matter() {
        let wanted = json!({"a": {"b": 1}, "c": [{"d": 1}]});
        assert!(covers(
            &json!({"a": {"b": 1, "x": 2}, "c": [{"d": 1, "e": 2}]}),
            &wanted
        ));
        assert!(!covers(&json!({"a": {"b": 2}, "c": [{"d": 1}]}), &wanted));
        assert!(!covers(&json!({"a": {"b": 1}, "c": []}), &wanted));
    }
}
