//! What a runtime needs before the first object of its catalog: Kyma's two kinds, and the namespace.
//!
//! None of it is ours to keep in step: on most runtimes somebody else has installed it. A definition that is missing is
//! created; one that we created with an older schema is brought up to date; every other one is left as it is.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::cluster::{Cluster, ClusterError};
use crate::model::names::{ANNOTATION_CRD_REVISION, KYMA_GROUP, RUNTIME_NAMESPACE};
use crate::model::{ComponentName, DesiredObject, Digest, GroupKind, ObjectKey, Place, limits};

/// The definitions, as they are also shipped for home.
const DEFINITIONS: [&str; 2] = [
    include_str!("../../deploy/kyma-crds/operator.kyma-project.io_moduletemplates.yaml"),
    include_str!("../../deploy/kyma-crds/operator.kyma-project.io_modulereleasemetas.yaml"),
];

/// What has to be done with something that a runtime needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Nothing,
    Create,
    Upgrade,
}

/// Makes a runtime ready for its catalog. Costs three small reads where nothing is missing.
///
/// # Errors
///
/// Why something could not be read or made. What somebody else has made in the meantime is no error.
pub async fn prepare(cluster: &Cluster, namespace: &str) -> Result<(), ClusterError> {
    let definitions = DEFINITIONS.map(definition);
    let kinds = definitions.each_ref().map(|definition| {
        let kind = &definition.body["spec"]["names"]["kind"];
        GroupKind::new(KYMA_GROUP, kind.as_str().unwrap_or_default())
    });
    let [templates, releases] = &definitions;
    let namespace = namespace_object(namespace);
    tokio::try_join!(
        ensure(cluster, templates),
        ensure(cluster, releases),
        ensure(cluster, &namespace),
    )?;
    let kinds: Vec<&GroupKind> = kinds.iter().collect();
    // An API server that has just started serves what was defined before a moment later, too. Not served in time is told by
    // the pass that follows, and tried again.
    cluster
        .until_served(&kinds, limits::CRD_SERVED_DEADLINE)
        .await?;
    Ok(())
}

async fn ensure(cluster: &Cluster, object: &DesiredObject) -> Result<(), ClusterError> {
    let live = cluster.get_metadata(&object.key).await?;
    match need(live.as_ref(), object) {
        Need::Nothing => {}
        Need::Create => match cluster.create_object(object).await {
            Ok(()) | Err(ClusterError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        },
        Need::Upgrade => {
            cluster.apply(object, &[]).await?;
        }
    }
    Ok(())
}

fn need(live: Option<&ObjectMeta>, object: &DesiredObject) -> Need {
    let Some(live) = live else {
        return Need::Create;
    };
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
    let annotations = live.annotations.as_ref();
    let installed = annotations.and_then(|all| all.get(ANNOTATION_CRD_REVISION));
    let (installed, ours) = (
        number(installed.map(String::as_str)),
        number(object.annotation(ANNOTATION_CRD_REVISION)),
    );
    if installed.is_some() && installed < ours {
        Need::Upgrade
    } else {
        Need::Nothing
    }
}

fn definition(text: &str) -> DesiredObject {
    let body: Value =
        serde_yaml::from_str(text).expect("the definitions that are shipped are valid YAML");
    object(
        body,
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
    )
}

/// With the labels that lifecycle-manager gives it.
fn namespace_object(name: &str) -> DesiredObject {
    let mut metadata = json!({"name": name});
    if name == RUNTIME_NAMESPACE {
        metadata["labels"] = json!({
            "operator.kyma-project.io/managed-by": "kyma",
            "istio-injection": "enabled",
            "namespaces.warden.kyma-project.io/validate": "enabled",
        });
    }
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    object(body, "", "v1", "Namespace")
}

fn object(body: Value, group: &str, version: &str, kind: &str) -> DesiredObject {
    let name = body["metadata"]["name"].as_str().unwrap_or_default();
    let key = ObjectKey::new(GroupKind::new(group, kind), None, name);
    DesiredObject {
        key,
        version: version.to_owned(),
        component: ComponentName::Folder("runtime".to_owned()),
        place: Place::whole_file("."),
        digest: Digest::of(&body),
        body: Arc::new(body),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn live(revision: Option<&str>) -> ObjectMeta {
        let entry = revision.map(|text| (ANNOTATION_CRD_REVISION.to_owned(), text.to_owned()));
        ObjectMeta {
            annotations: Some(BTreeMap::from_iter(entry)),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn only_what_is_missing_or_our_own_and_older_is_written() {
        let mut definition = definition(DEFINITIONS[0]);
        let mut body = definition.body.as_ref().clone();
        body["metadata"]["annotations"][ANNOTATION_CRD_REVISION] = json!("3");
        definition.body = Arc::new(body);
        assert_eq!(need(None, &definition), Need::Create);
        assert_eq!(need(Some(&live(None)), &definition), Need::Nothing);
        assert_eq!(need(Some(&live(Some("2"))), &definition), Need::Upgrade);
        assert_eq!(need(Some(&live(Some("3"))), &definition), Need::Nothing);
        assert_eq!(need(Some(&live(Some("10"))), &definition), Need::Nothing);
        assert_eq!(need(Some(&live(Some("x"))), &definition), Need::Nothing);
    }

    #[test]
    fn what_is_shipped_says_its_revision_and_its_kind() {
        for text in DEFINITIONS {
            let definition = definition(text);
            assert!(definition.annotation(ANNOTATION_CRD_REVISION).is_some());
            assert!(definition.body["spec"]["names"]["kind"].is_string());
        }
        assert!(namespace_object("elsewhere").body["metadata"]["labels"].is_null());
    }
}
