//! The raw limit: the same requests in a bare loop with the same client, sixteen in flight.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use http::Request;
use serde_json::json;

/// A value of one kibibyte that differs by its version.
pub(crate) fn value(version: &str) -> String {
    format!("{version}{}", "x".repeat(1024 - version.len()))
}

/// Applies so many ConfigMaps of one kibibyte, as the agent would write them, and returns the time from the first request to
/// the last answer.
pub(crate) async fn apply(
    client: &kube::Client,
    namespace: &str,
    count: usize,
    version: &str,
) -> Duration {
    let requests: Vec<(String, Vec<u8>)> = (0..count)
        .map(|number| {
            let body = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": format!("settings-{number}"),
                    "namespace": namespace,
                    "labels": {"raw": "raw"},
                    "annotations": {"raw/digest": format!("v1:{version}"), "raw/component": "components/web"},
                },
                "data": {"value": value(version)},
            });
            let path = format!(
                "/api/v1/namespaces/{namespace}/configmaps/settings-{number}?fieldManager=raw&force=true&fieldValidation=Strict"
            );
            (path, body.to_string().into_bytes())
        })
        .collect();
    let begun = Instant::now();
    let mut answers = futures::stream::iter(requests)
        .map(|(path, body)| {
            let client = client.clone();
            async move {
                let request =
                    Request::patch(path).header("Content-Type", "application/apply-patch+yaml");
                client
                    .request_text(request.body(body).unwrap())
                    .await
                    .unwrap();
            }
        })
        .buffer_unordered(16);
    while answers.next().await.is_some() {}
    begun.elapsed()
}
