//! The raw limit: the very bodies that the agent sends, in a bare loop with the same client and account, sixteen in flight.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fairway::desired::{Cache, EvaluateOptions, evaluate};
use fairway::model::{DesiredObject, SourceName, limits, names};
use fairway::source::WorkingTree;
use futures::StreamExt as _;
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};

use crate::support::world::World;

/// A value of one kibibyte that differs by its version.
pub(crate) fn value(version: &str) -> String {
    format!("{version}{}", "x".repeat(1024 - version.len()))
}

/// Returns the file of one ConfigMap.
pub(crate) fn file(namespace: &str, number: usize, version: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings-{number}, namespace: {namespace}}}\ndata: {{value: {}}}\n",
        value(version)
    )
}

/// Returns what the agent would send for so many ConfigMaps, with its labels and annotations.
pub(crate) fn desired(
    source: &str,
    namespace: &str,
    count: usize,
    version: &str,
) -> Vec<Arc<DesiredObject>> {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("components/c0");
    std::fs::create_dir_all(&folder).unwrap();
    for number in 0..count {
        let path = folder.join(format!("settings-{number}.yaml"));
        std::fs::write(path, file(namespace, number, version)).unwrap();
    }
    let options = EvaluateOptions {
        source: SourceName::new(source).unwrap(),
        landscape: None,
        catalog_namespace: namespace.to_owned(),
    };
    let snapshot = WorkingTree::open(directory.path())
        .unwrap()
        .snapshot()
        .unwrap();
    let found = evaluate(&snapshot, &options, &mut Cache::default());
    assert!(found.is_valid());
    found.objects().cloned().collect()
}

/// Makes a client with the account and the settings of a world's agent.
pub(crate) async fn client(world: &World) -> kube::Client {
    let mut config = world.plane.config().await;
    config.auth_info = world.proxy.config().auth_info;
    config.default_retry = false;
    config.connect_timeout = Some(limits::CONNECT_DEADLINE);
    kube::Client::try_from(config).unwrap()
}

/// Applies ConfigMaps as the agent does, and returns the time from the first request to the last answer.
pub(crate) async fn apply(client: &kube::Client, objects: &[Arc<DesiredObject>]) -> Duration {
    let requests: Vec<(String, Vec<u8>)> = objects
        .iter()
        .map(|object| {
            let path = format!(
                "/api/v1/namespaces/{}/configmaps/{}?fieldManager={}&force=true&fieldValidation=Strict",
                object.key.namespace.as_deref().unwrap(),
                object.key.name,
                names::MANAGER
            );
            (path, serde_json::to_vec(&*object.body).unwrap())
        })
        .collect();
    // The agent has connected before its first apply as well.
    client
        .request_text(Request::get("/version").body(Vec::new()).unwrap())
        .await
        .unwrap();
    let begun = Instant::now();
    let mut answers = futures::stream::iter(requests)
        .map(|(path, body)| {
            let request = Request::patch(path)
                .header(ACCEPT, "application/json")
                .header(CONTENT_TYPE, "application/apply-patch+yaml")
                .body(body)
                .unwrap();
            client.request_text(request)
        })
        .buffer_unordered(limits::CLUSTER_CONCURRENCY);
    while let Some(answer) = answers.next().await {
        answer.unwrap();
    }
    begun.elapsed()
}
