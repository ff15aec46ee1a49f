//! A forge, as the agent sees it: signed deliveries over plain sockets, so that each byte and each pause is the test's own.

use std::fmt::Write as _;
use std::time::Duration;

use aws_lc_rs::hmac;
use fairway::model::api::{ReleaseSource, WebhookStatus};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::world::{Agent, World};

/// The token of the forge, which must never be told anywhere.
pub(super) const TOKEN: &str = "canary-token-of-the-forge";

/// A world whose source has a webhook, and the agent that listens for it.
pub(super) struct Hooked {
    pub(super) world: World,
    pub(super) agent: Agent,
    pub(super) address: String,
    pub(super) path: String,
}

/// An answer of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) text: String,
}

// === impl Hooked ===

impl Hooked {
    /// Starts a world with one ConfigMap in step, and waits until the webhook has its path.
    pub(super) async fn new(provider: &str) -> Self {
        Self::with(provider, json!({})).await
    }

    /// Does the same with more in the source's spec.
    pub(super) async fn with(provider: &str, spec: Value) -> Self {
        Self::start(provider, LOOPBACK, spec).await
    }

    /// Does the same with the webhook port on another address.
    pub(super) async fn listening(provider: &str, address: &str) -> Self {
        Self::start(provider, address, json!({})).await
    }

    async fn start(provider: &str, address: &str, mut spec: Value) -> Self {
        let world = World::new().await;
        world.config_map("web", "settings", "one");
        world.repository.publish("Add settings");
        token(&world, json!({"token": TOKEN})).await;
        let agent = start(&world, address);
        spec["webhook"] = json!({"provider": provider, "secretRef": {"name": "hook"}});
        world.declare(spec).await;
        world.until_reason("Synced").await;
        let path = until_path(&world, |_| true).await;
        let address = webhook_address(&agent);
        Self {
            world,
            agent,
            address,
            path,
        }
    }

    /// Kills the agent and starts it anew.
    pub(super) async fn restart(&mut self) {
        self.agent.kill();
        self.agent = start(&self.world, LOOPBACK);
        // The log goes on, so that the last address is the one that counts.
        self.world.reconcile().await;
        self.address = webhook_address(&self.agent);
    }

    /// Sends a push to `main`, as GitHub does.
    pub(super) async fn push(&self, id: &str) -> Answer {
        let body = self.body("refs/heads/main");
        self.send(&github(id, &body), &body).await
    }

    /// A payload of GitHub's that names the source's repository.
    pub(super) fn body(&self, reference: &str) -> String {
        json!({"ref": reference, "repository": {"clone_url": self.world.server.url()}}).to_string()
    }

    /// Sends a delivery to the source's path.
    pub(super) async fn send(
        &self,
        headers: &[(String, String)],
        body: impl AsRef<[u8]>,
    ) -> Answer {
        deliver(&self.address, &self.path, headers, body.as_ref()).await
    }

    /// Returns how often the references of the repository were listed.
    pub(super) fn fetches(&self) -> usize {
        let requests = self.world.server.requests();
        requests
            .iter()
            .filter(|request| *request == "advertise 200")
            .count()
    }

    /// Waits until `status.webhook` is as wanted.
    pub(super) async fn until(
        &self,
        what: &str,
        wanted: impl Fn(&WebhookStatus) -> bool + Send,
    ) -> WebhookStatus {
        let found = self
            .world
            .until_source(what, move |source: Option<&ReleaseSource>| {
                source.is_some_and(|source| wanted(&webhook(source)))
            });
        webhook(&found.await)
    }

    /// Returns how often `status.webhook` was written since the proxy has forgotten.
    pub(super) fn status_writes(&self) -> usize {
        let seen = self.world.proxy.seen().into_iter();
        seen.filter(|seen| seen.verb == "PATCH" && seen.query.contains("fairway-webhook"))
            .count()
    }

    /// Returns how often the Secret with the token was read since the proxy has forgotten.
    pub(super) fn secret_reads(&self) -> usize {
        let seen = self.world.proxy.seen().into_iter();
        seen.filter(|seen| seen.path.ends_with("/secrets/hook"))
            .count()
    }

    /// Returns the count of deliveries with a result.
    pub(super) fn counted(&self, result: &str) -> u64 {
        let metrics = page(&self.agent.address(), "/metrics");
        let label = format!("result=\"{result}\"}} ");
        metrics
            .lines()
            .filter(|line| line.starts_with("fairway_webhook_deliveries_total"))
            .filter_map(|line| line.split_once(&label)?.1.parse::<u64>().ok())
            .sum()
    }
}

const LOOPBACK: &str = "127.0.0.1:0";

fn start(world: &World, address: &str) -> Agent {
    world.agent_with(&["--webhook-listen", address, "--log", "debug"])
}

/// Returns the address of the webhook port, which the agent logs.
pub(super) fn webhook_address(agent: &Agent) -> String {
    let log = agent.log();
    let (_, rest) = log
        .rsplit_once("\"webhook.address\":\"")
        .expect("it listens");
    rest.split_once('"')
        .expect("JSON closes its texts")
        .0
        .to_owned()
}

/// Writes the Secret with the token.
pub(super) async fn token(world: &World, data: Value) {
    let body = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "hook", "namespace": world.name},
        "stringData": data,
    });
    world.plane.apply_yaml(&body.to_string()).await;
}

/// Waits until the source has a path that is as wanted.
pub(super) async fn until_path(world: &World, wanted: impl Fn(&str) -> bool + Send) -> String {
    let source = world.until_source(
        "the webhook has its path",
        move |source: Option<&ReleaseSource>| {
            let path = source.and_then(|source| webhook(source).path);
            path.is_some_and(|path| wanted(&path))
        },
    );
    webhook(&source.await).path.unwrap()
}

pub(super) fn webhook(source: &ReleaseSource) -> WebhookStatus {
    let status = source.status.as_ref();
    status
        .and_then(|status| status.webhook.clone())
        .unwrap_or_default()
}

/// Signs as GitHub does.
pub(super) fn sign(token: &str, body: impl AsRef<[u8]>) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes());
    let tag = hmac::sign(&key, body.as_ref());
    tag.as_ref()
        .iter()
        .fold("sha256=".to_owned(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// The headers of a push of GitHub's.
pub(super) fn github(id: &str, body: impl AsRef<[u8]>) -> Vec<(String, String)> {
    headers(&[
        ("X-GitHub-Event", "push"),
        ("X-GitHub-Delivery", id),
        ("Content-Type", "application/json"),
        ("X-Hub-Signature-256", &sign(TOKEN, body)),
    ])
}

pub(super) fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// Sends one delivery.
pub(super) async fn deliver(
    address: &str,
    path: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> Answer {
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nHost: fairway\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("\r\n");
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    // An agent that has answered already does not read on.
    let _ = stream.write_all(body).await;
    answer(stream).await
}

/// Reads until the agent closes the connection; a status of zero means that it did so without a word.
pub(super) async fn answer(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let reading = stream.read_to_end(&mut bytes);
    let read = tokio::time::timeout(Duration::from_secs(60), reading).await;
    assert!(read.is_ok(), "the agent keeps the connection open");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Answer {
        status: status.unwrap_or_default(),
        text: body.to_owned(),
    }
}

/// Reads a page of the private port.
pub(super) fn page(address: &str, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}
