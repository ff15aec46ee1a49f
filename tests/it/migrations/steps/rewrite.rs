//! rewrite: the storage version of a kind.

use fairway::runs::steps::StepResult;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::{Trial, done, message};
use crate::support::proxy::{Fault, Rule};

fn definition(group: &str, stored: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|name| {
            json!({
                "name": name, "served": true, "storage": *name == stored,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            })
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"}, "versions": versions,
        },
    })
}

struct Stored {
    trial: Trial,
    group: String,
    widgets: Api<DynamicObject>,
}

impl Stored {
    /// Makes widgets that are stored in v1, while v2 is the version to store.
    async fn new(count: usize) -> Self {
        let mut trial = Trial::new(json!({"wait": {"until": "true"}})).await;
        let group = format!("{}.example.com", trial.namespace);
        let client = trial.plane.client().await;
        trial
            .plane
            .apply_as(&client, "test", definition(&group, "v1", &["v1", "v2"]))
            .await;
        let kind = GroupVersionKind::gvk(&group, "v2", "Widget");
        let resource = ApiResource::from_gvk_with_plural(&kind, "widgets");
        let widgets = Api::namespaced_with(client.clone(), &trial.namespace, &resource);
        let begin = std::time::Instant::now();
        while widgets.list(&ListParams::default()).await.is_err() {
            assert!(begin.elapsed().as_secs() < 30, "it is never served");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        for number in 0..count {
            let widget = json!({
                "apiVersion": format!("{group}/v1"), "kind": "Widget",
                "metadata": {"name": format!("w{number}")}, "spec": {"size": number},
            });
            trial.put("test", widget).await;
        }
        trial
            .plane
            .apply_as(&client, "test", definition(&group, "v2", &["v1", "v2"]))
            .await;
        // The server takes the change of the version in with its next look at the definition.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let api_version = format!("{group}/v2");
        trial.set(json!({"rewrite": {
            "apiVersion": api_version, "kind": "Widget", "namespace": "NAMESPACE", "pageSize": 3,
        }}));
        Self {
            trial,
            group,
            widgets,
        }
    }

    async fn versions(&self) -> Vec<String> {
        let list = self.widgets.list(&ListParams::default()).await.unwrap();
        let versions = list.items.into_iter();
        versions
            .map(|one| one.metadata.resource_version.unwrap())
            .collect()
    }
}

#[tokio::test]
async fn every_object_is_stored_anew_once_and_its_old_version_can_go() {
    let mut stored = Stored::new(8).await;
    let before = stored.versions().await;
    let outcome = done(stored.trial.until_over().await);
    assert_eq!(outcome.result, json!({"objects": 8, "written": 8}));
    let after = stored.versions().await;
    assert!(
        before
            .iter()
            .zip(&after)
            .all(|(before, after)| before != after),
        "{before:?} {after:?}"
    );

    stored.trial.record.progress.clear();
    let outcome = done(stored.trial.until_over().await);
    assert_eq!(
        outcome.result,
        json!({"objects": 8, "written": 0}),
        "they are in their version"
    );
    assert_eq!(stored.versions().await, after);

    let definitions =
        GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let client = stored.trial.plane.client().await;
    let definitions: Api<DynamicObject> =
        Api::all_with(client.clone(), &ApiResource::from_gvk(&definitions));
    let only = Patch::Merge(json!({"status": {"storedVersions": ["v2"]}}));
    let name = format!("widgets.{}", stored.group);
    definitions
        .patch_status(&name, &PatchParams::default(), &only)
        .await
        .unwrap();
    stored
        .trial
        .plane
        .apply_as(&client, "test", definition(&stored.group, "v2", &["v2"]))
        .await;
    assert_eq!(stored.versions().await.len(), 8);
}

#[tokio::test]
async fn conflicts_lost_answers_expired_lists_and_restarts_leave_out_nothing() {
    let mut stored = Stored::new(8).await;
    let before = stored.versions().await;
    let proxy = &stored.trial.proxy;
    proxy.inject(Rule::first(1, "PUT", "widgets/w1", Fault::Status(409)));
    proxy.inject(Rule::first(1, "PUT", "widgets/w4", Fault::ResetAfter));
    proxy.inject(Rule::first(1, "PUT", "widgets/w5", Fault::ResetBefore));
    assert!(matches!(
        stored.trial.attempt().await,
        StepResult::Wait { .. }
    ));
    let kept = stored.trial.record.progress.clone();
    assert!(kept.contains_key("continue"));
    // The second page is written and the agent killed before it could say so.
    assert!(matches!(
        stored.trial.attempt().await,
        StepResult::Wait { .. }
    ));
    stored.trial.record.progress = kept;
    assert!(matches!(
        stored.trial.recover().await,
        StepResult::Wait { .. }
    ));
    stored
        .trial
        .proxy
        .inject(Rule::first(1, "GET", "/widgets", Fault::Status(410)));
    assert!(matches!(
        stored.trial.attempt().await,
        StepResult::Wait { .. }
    ));
    assert!(
        !stored.trial.record.progress.contains_key("continue"),
        "the list begins anew"
    );
    let outcome = done(stored.trial.until_over().await);
    assert_eq!(outcome.result["objects"], 8);
    let after = stored.versions().await;
    assert!(
        before
            .iter()
            .zip(&after)
            .all(|(before, after)| before != after)
    );
}

#[tokio::test]
async fn an_object_that_is_no_longer_valid_is_named() {
    let mut stored = Stored::new(2).await;
    stored
        .trial
        .proxy
        .inject(Rule::always("PUT", "widgets/w1", Fault::Status(422)));
    let result = stored.trial.until_over().await;
    assert!(matches!(result, StepResult::Fail { .. }), "{result:?}");
    assert!(
        message(&result).contains("Widget")
            && message(&result).contains("/w1 is not valid any more")
    );
}
