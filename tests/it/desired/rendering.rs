//! What is sent: normalised, labelled, and the same each time.

use std::sync::Arc;

use fairway::desired::{Cache, Desired, evaluate};
use fairway::model::{Digest, ObjectKey};
use serde_json::Value;

use super::{Tree, findings, options, release_meta};

fn body<'a>(desired: &'a Desired, key: &str) -> &'a Value {
    let object = desired
        .objects()
        .find(|object| object.key.to_string() == key);
    &object
        .unwrap_or_else(|| panic!("no {key}:\n{}", findings(desired)))
        .body
}

#[test]
fn what_git_may_not_hold_is_gone() {
    let tree = Tree::default().file(
        "components/shop/secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: token\n  namespace: shop\n  uid: abc\n  resourceVersion: '7'\n  \
         creationTimestamp: null\n  labels: null\n  annotations:\n    fairway.dev/digest: stale\n    \
         kubectl.kubernetes.io/last-applied-configuration: '{}'\n    note: kept\n  managedFields: []\n\
         data: {a: b2xk, b: b2xk}\nstringData: {a: new}\nstatus: {}\n",
    );
    insta::assert_json_snapshot!(body(&tree.evaluate(), "Secret shop/token"));
}

#[test]
fn a_cluster_scoped_object_loses_its_namespace() {
    let tree = Tree::default().file(
        "components/shop/all.yaml",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'shop:reader', namespace: shop}\n---\n\
         apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n\
         spec: {group: example.com, scope: Cluster, names: {kind: Widget, plural: widgets}}\n---\n\
         apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: round, namespace: shop}\n",
    );
    let desired = tree.evaluate();
    assert_eq!(findings(&desired), "");
    for object in desired.objects() {
        assert_eq!(object.key.namespace, None);
        assert_eq!(object.body.pointer("/metadata/namespace"), None);
    }
}

#[test]
fn the_digest_is_of_the_body_without_it() {
    let desired = Tree::default()
        .config_map("shop", "a")
        .version("keda", "1.0.0")
        .evaluate();
    for object in desired.objects() {
        let mut body = Value::clone(&object.body);
        let annotations = body["metadata"]["annotations"].as_object_mut().unwrap();
        let digest = annotations.remove("fairway.dev/digest").unwrap();
        assert_eq!(digest, object.digest.as_str());
        assert_eq!(Digest::of(&body), object.digest);
    }
}

#[test]
fn a_module_becomes_templates_and_channels() {
    let meta = release_meta("keda", &[("regular", "1.0.0")]).replace(
        "  channels:\n",
        "  versions:\n    - {version: 0.9.0, deprecationDate: 2026-01-31}\n  channels:\n",
    );
    let desired = Tree::default()
        .version("keda", "1.0.0")
        .file("modules/keda/module-release-meta.yaml", &meta)
        .evaluate();
    assert_eq!(findings(&desired), "");
    let bodies: Vec<_> = desired
        .objects()
        .map(|object| object.body.as_ref())
        .collect();
    insta::assert_json_snapshot!(bodies);
}

#[test]
fn the_short_form_is_the_long_one() {
    let short = "targetLandscapes: [stage, prod]\nocmComponentName: kyma-project.io/module/keda\n\
                 channels:\n  - {channel: regular, version: 1.0.0}\n";
    let base = Tree::default().version("keda", "1.0.0");
    let short = base
        .clone()
        .file("modules/keda/module-releases.yaml", short);
    let long = base.channels("keda", &[("regular", "1.0.0")]);
    let key = "ModuleReleaseMeta.operator.kyma-project.io kcp-system/keda";
    let long = long.evaluate();
    for landscape in [None, Some("stage"), Some("prod")] {
        assert_eq!(body(&short.evaluate_for(landscape), key), body(&long, key));
    }
    let elsewhere = short.evaluate_for(Some("dev"));
    assert_eq!(findings(&elsewhere), "");
    assert_eq!(elsewhere.objects().count(), 1, "only the ModuleTemplate");
}

#[test]
fn a_landscape_replaces_the_channels_and_a_bad_one_is_held() {
    let base = ["1.0.0", "1.1.0"]
        .iter()
        .fold(Tree::default(), |tree, version| {
            tree.version("keda", version)
        })
        .channels("keda", &[("regular", "1.0.0")]);
    let path = "modules/keda/landscapes/stage/module-release-meta.yaml";
    let good = base
        .clone()
        .file(path, &release_meta("keda", &[("regular", "1.1.0")]));
    let bad = base.file(path, "a: 'open\n");
    let key = "ModuleReleaseMeta.operator.kyma-project.io kcp-system/keda";
    let version = |desired: &Desired| body(desired, key)["spec"]["channels"][0]["version"].clone();
    assert_eq!(version(&good.evaluate_for(Some("stage"))), "1.1.0");
    assert_eq!(version(&good.evaluate_for(Some("prod"))), "1.0.0");
    assert_eq!(version(&bad.evaluate_for(Some("prod"))), "1.0.0");
    let held = bad.evaluate_for(Some("stage"));
    assert!(held.held.keys().any(|held| held.to_string() == key));
    assert!(held.objects().all(|object| object.key.to_string() != key));
}

#[test]
fn unknown_settings_freeze_channels_and_nothing_else() {
    let tree = Tree::default()
        .config_map("shop", "a")
        .version("keda", "1.0.0")
        .channels("keda", &[("regular", "1.0.0")])
        .settings("chanels: {}\n");
    let desired = tree.evaluate();
    let held: Vec<_> = desired.held.keys().map(ObjectKey::to_string).collect();
    assert_eq!(
        held,
        ["ModuleReleaseMeta.operator.kyma-project.io kcp-system/keda"]
    );
    assert_eq!(desired.objects().count(), 2);
}

#[test]
fn unchanged_files_give_the_same_objects_in_memory() {
    let tree = Tree::default()
        .config_map("shop", "a")
        .version("keda", "1.0.0")
        .channels("keda", &[("regular", "1.0.0")]);
    let mut cache = Cache::new();
    let one = evaluate(&tree.snapshot(), &options(None), &mut cache);
    let two = evaluate(
        &tree.config_map("shop", "b").snapshot(),
        &options(None),
        &mut cache,
    );
    let shared = one
        .objects()
        .filter(|object| two.objects().any(|other| Arc::ptr_eq(object, other)));
    assert_eq!(shared.count(), 3);
}
