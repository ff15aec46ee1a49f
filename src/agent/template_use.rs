//! Who uses the ModuleTemplates of this cluster: asked only when one is about to be deleted.
//!
//! A Kyma and a Manifest refer to the template that their module was installed from, also when no channel names it any more. Neither
//! carries our label, and there may be thousands, so they are listed when it matters instead of being watched. Absent kinds
//! mean that there is nobody; a list that cannot be had means that nothing is known, and the templates stay.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;

use crate::cluster::{Acting, Cluster, ClusterError, Selection};
use crate::model::{GroupKind, limits, names};

/// Label of a Manifest with the name of its module.
const LABEL_MODULE_NAME: &str = "operator.kyma-project.io/module-name";

/// The parts of a Kyma or Manifest that name templates.
#[derive(Debug, Clone, Deserialize)]
struct User {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
}

/// Returns who uses which template, in words, by the template written `NAMESPACE/NAME` (one user for each). Templates stand in the
/// namespace of their user, unless that says otherwise.
///
/// # Errors
///
/// When somebody could not be listed; the text is a lowercase fragment that says why.
pub async fn template_users(acting: &Acting) -> Result<BTreeMap<String, String>, String> {
    let asked = tokio::time::timeout(limits::TEMPLATE_USE_DEADLINE, ask(acting.cluster())).await;
    match asked {
        Ok(answer) => answer.map_err(|error| {
            format!("{error}; the account needs the verb list on kymas and manifests")
        }),
        Err(_) => Err(format!(
            "kymas and manifests could not be listed within {} s",
            limits::TEMPLATE_USE_DEADLINE.as_secs()
        )),
    }
}

async fn ask(cluster: &Cluster) -> Result<BTreeMap<String, String>, ClusterError> {
    let mut users = BTreeMap::new();
    for (kind, templates) in [
        ("Kyma", templates_of_kyma as fn(&User) -> Vec<String>),
        ("Manifest", templates_of_manifest),
    ] {
        let kind = GroupKind::new(names::KYMA_GROUP, kind);
        let served = match cluster.resolve(&kind, None).await {
            Ok(served) => served,
            Err(ClusterError::KindUnknown { .. }) => continue,
            Err(error) => return Err(error),
        };
        let selection = Selection {
            kind: &kind,
            served: &served,
            labels: "",
            whole: true,
        };
        let mut next: Option<String> = None;
        loop {
            let page = cluster
                .list_page::<User>(selection, next.as_deref())
                .await?;
            for user in &page.items {
                for template in templates(user) {
                    users.entry(template).or_insert_with(|| words(&kind, user));
                }
            }
            next = page.next;
            if next.is_none() {
                break;
            }
        }
    }
    Ok(users)
}

fn words(kind: &GroupKind, user: &User) -> String {
    let name = user.metadata.name.as_deref().unwrap_or_default();
    let namespace = user.metadata.namespace.as_deref().unwrap_or_default();
    format!("{} {namespace}/{name} uses it", kind.kind)
}

/// What `status.modules` says: the template by name, and by module and version.
fn templates_of_kyma(kyma: &User) -> Vec<String> {
    let own = kyma.metadata.namespace.as_deref().unwrap_or_default();
    let modules = kyma.status["modules"].as_array().into_iter().flatten();
    let named = modules.flat_map(|module| {
        let template = &module["template"]["metadata"];
        let namespace = template["namespace"].as_str().unwrap_or(own);
        let name = template["name"].as_str();
        let version = match (module["name"].as_str(), module["version"].as_str()) {
            (Some(module), Some(version)) => Some(format!("{own}/{module}-{version}")),
            _ => None,
        };
        let name = name.map(|name| format!("{namespace}/{name}"));
        name.into_iter().chain(version)
    });
    named.collect()
}

/// A Manifest names module and version; that of a mandatory module does so, too.
fn templates_of_manifest(manifest: &User) -> Vec<String> {
    let namespace = manifest.metadata.namespace.as_deref().unwrap_or_default();
    let labels = manifest.metadata.labels.as_ref();
    let module = labels.and_then(|labels| labels.get(LABEL_MODULE_NAME));
    match (module, manifest.spec["version"].as_str()) {
        (Some(module), Some(version)) => vec![format!("{namespace}/{module}-{version}")],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(value: Value) -> User {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn templates_are_found_by_reference_and_by_version() {
        let kyma = user(
            json!({"metadata": {"namespace": "kcp-system"}, "status": {"modules": [
                {"name": "telemetry", "version": "1.41.2"},
                {"name": "serverless", "template": {"metadata": {"name": "serverless-fast", "namespace": "other"}}},
                {"name": "broken"},
            ]}}),
        );
        assert_eq!(
            templates_of_kyma(&kyma),
            ["kcp-system/telemetry-1.41.2", "other/serverless-fast"]
        );
        let labels = json!({"operator.kyma-project.io/module-name": "warden"});
        let manifest = user(json!({
            "metadata": {"namespace": "kcp-system", "labels": labels}, "spec": {"version": "1.0.0"},
        }));
        assert_eq!(
            templates_of_manifest(&manifest),
            ["kcp-system/warden-1.0.0"]
        );
        assert!(templates_of_kyma(&user(json!({}))).is_empty());
        assert!(templates_of_manifest(&user(json!({"spec": null}))).is_empty());
    }
}
