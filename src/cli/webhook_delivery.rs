//! Sends one delivery to the webhook port: straight, or through the API server.

use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Collected, Full, Limited};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;

use super::failure::Failure;
use super::resources::Home;
use crate::server::webhook::SignedDelivery;

/// The Service in front of the webhook port, as `deploy/` names it, and the name of its port.
pub(super) const SERVICE: &str = "fairway-webhook";
const PORT: &str = "webhook";
/// Bytes of an answer that are read; the agent's is one line.
const ANSWER_MAX: usize = 64 * 1024;

/// How a delivery was answered.
pub(super) struct Sent {
    pub(super) status: StatusCode,
    pub(super) text: String,
}

/// Appends the path to where the port is reached, unless it is there already.
pub(super) fn full_url(base: &str, path: &str) -> String {
    let base = base.trim_end_matches('/');
    if base.ends_with(path) {
        base.to_owned()
    } else {
        format!("{base}{path}")
    }
}

/// Sends it to a URL.
pub(super) async fn send(url: &str, delivery: SignedDelivery) -> Result<Sent, Failure> {
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_native_roots()?
        .https_or_http()
        .enable_http1()
        .build();
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let request = request(
        url,
        &delivery,
        Full::new(Bytes::from(delivery.body.clone())),
    )?;
    let answer = client.request(request).await.map_err(|error| {
        Failure::of(error).help(format!(
            "nothing answers at {url}: check the address, the ingress and its certificate"
        ))
    })?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
    Ok(sent(status, body.map(Collected::to_bytes).ok()))
}

/// Sends it to the Service, through the API server: for somebody who has rights in the cluster and no way into its network.
pub(super) async fn through_api_server(
    home: &Home,
    path: &str,
    delivery: SignedDelivery,
) -> Result<Sent, Failure> {
    let target = format!(
        "/api/v1/namespaces/{}/services/http:{SERVICE}:{PORT}/proxy{path}",
        home.namespace
    );
    let request = request(&target, &delivery, delivery.body.clone().into())?;
    let answer = home
        .cluster
        .client()
        .send(request)
        .await
        .map_err(Failure::of)?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
    let mut sent = sent(status, body.map(Collected::to_bytes).ok());
    // The API server itself answers with an object; the agent never does.
    if let Ok(refused) = serde_json::from_str::<Status>(&sent.text) {
        sent.text = refused.message;
    }
    Ok(sent)
}

/// An answer of the API server itself.
#[derive(Deserialize)]
struct Status {
    message: String,
}

fn request<B>(target: &str, delivery: &SignedDelivery, body: B) -> Result<Request<B>, Failure> {
    let mut request = Request::post(target);
    for (name, value) in &delivery.headers {
        request = request.header(*name, value);
    }
    request
        .body(body)
        .map_err(|_| Failure::Misuse("the URL is not one: write https://HOST".to_owned()))
}

fn sent(status: StatusCode, body: Option<Bytes>) -> Sent {
    let text = body.map(|body| String::from_utf8_lossy(&body).into_owned());
    Sent {
        status,
        text: text.unwrap_or_default(),
    }
}
