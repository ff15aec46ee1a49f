//! http: against a server that behaves well, and one that does not.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use fairway::runs::steps::StepResult;
use futures::stream;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Trial, done, message};

/// A token that must be told nowhere.
const TOKEN: &str = "canary-token-of-the-step";

/// What came in: method, path, and the headers that matter.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) path: String,
    pub(super) key: Option<String>,
    pub(super) authorization: Option<String>,
    pub(super) body: Value,
}

/// A server on this machine; it stops when it is dropped.
pub(super) struct Server {
    address: std::net::SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    stop: CancellationToken,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Server {
    pub(super) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&seen));
        let stop = CancellationToken::new();
        let serve = async move {
            let _ = axum::serve(listener, router).await;
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(serve));
        Self {
            address,
            seen,
            stop,
        }
    }

    pub(super) fn host(&self) -> String {
        self.address.to_string()
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn answer(State(seen): State<Arc<Mutex<Vec<Seen>>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let header = |name: &str| {
        let value = parts.headers.get(name)?;
        Some(value.to_str().unwrap().to_owned())
    };
    let (key, authorization) = (header("idempotency-key"), header("authorization"));
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    seen.lock().unwrap().push(Seen {
        path: path.clone(),
        key,
        authorization,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    });
    if path == "/silent" {
        std::future::pending::<()>().await;
    }
    let count = seen.lock().unwrap().len();
    respond(&path, count)
}

fn respond(path: &str, count: usize) -> Response {
    let built = |status: u16, body: Body| Response::builder().status(status).body(body).unwrap();
    let with = |status: u16, name: &str, value: &str| {
        let answer = Response::builder().status(status).header(name, value);
        answer.body(Body::empty()).unwrap()
    };
    match path {
        "/redirect" => with(307, "location", "http://169.254.169.254/latest/meta-data"),
        "/busy" => with(429, "retry-after", "17"),
        "/endless" => {
            let chunk = Bytes::from(vec![b'x'; 64 * 1024]);
            let chunks = stream::repeat_with(move || Ok::<_, io::Error>(chunk.clone()));
            built(200, Body::from_stream(chunks))
        }
        "/huge" => built(200, Body::from(vec![b'x'; 8 * 1024 * 1024])),
        // The first answer breaks off after the work was done.
        "/breaks" if count == 1 => {
            let broken: [io::Result<Bytes>; 2] =
                [Ok("{".into()), Err(io::ErrorKind::ConnectionReset.into())];
            built(200, Body::from_stream(stream::iter(broken)))
        }
        "/fails-once" if count == 1 => built(500, Body::from("oops")),
        _ => built(200, Body::from(json!({"id": count}).to_string())),
    }
}

async fn trial(server: &Server, path: &str, more: Value) -> Trial {
    let mut step = json!({"http": {"method": "POST", "url": server.url(path), "body": {"size": "${params.size}"}}});
    for (name, value) in more.as_object().unwrap() {
        step["http"][name] = value.clone();
    }
    let mut trial = Trial::new(step).await;
    trial.hosts = vec![server.host()];
    trial.deadline = Duration::from_secs(5);
    trial
}

#[tokio::test]
async fn a_request_carries_its_token_and_tells_it_nowhere() {
    let server = Server::start().await;
    let reference =
        json!({"bearerToken": {"namespace": "NAMESPACE", "name": "api", "key": "token"}});
    let mut trial = trial(&server, "/ok", reference).await;
    let missing = trial.attempt().await;
    assert!(
        message(&missing).contains("with the key `token` is not there"),
        "{missing:?}"
    );
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "api"}, "stringData": {"token": TOKEN}});
    trial.put("test", secret).await;
    let outcome = done(trial.attempt().await);
    assert_eq!(outcome.result, json!({"status": 200, "body": {"id": 1}}));
    let seen = server.seen().remove(0);
    assert_eq!(
        seen.authorization.as_deref(),
        Some(format!("Bearer {TOKEN}").as_str())
    );
    assert_eq!(
        (seen.path.as_str(), &seen.body),
        ("/ok", &json!({"size": "30Gi"}))
    );
    assert!(!format!("{outcome:?}{:?}", trial.record).contains(TOKEN));
}

#[tokio::test]
async fn f19_a_failure_after_the_work_is_retried_with_the_same_key() {
    let server = Server::start().await;
    for path in ["/fails-once", "/breaks"] {
        let mut trial = trial(&server, path, json!({"idempotencyKey": "k"})).await;
        server.seen.lock().unwrap().clear();
        let first = trial.attempt().await;
        assert!(
            matches!(first, StepResult::Retry { counts: true, .. }),
            "{path}: {first:?}"
        );
        done(trial.attempt().await);
        let keys: Vec<_> = server
            .seen()
            .into_iter()
            .map(|seen| seen.key.unwrap())
            .collect();
        assert_eq!(keys, ["k", "k"], "{path}");
    }
}

#[tokio::test]
async fn a_lost_answer_without_a_key_is_unknown() {
    let server = Server::start().await;
    let mut trial = trial(&server, "/silent", json!({})).await;
    trial.deadline = Duration::from_millis(300);
    let result = trial.attempt().await;
    assert!(matches!(result, StepResult::Unknown { .. }), "{result:?}");
    let mut get = self::trial(&server, "/silent", json!({"method": "GET", "body": null})).await;
    get.deadline = Duration::from_millis(300);
    assert!(matches!(
        get.attempt().await,
        StepResult::Retry { counts: true, .. }
    ));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let server = Server::start().await;
    let mut trial = trial(&server, "/redirect", json!({})).await;
    let result = trial.attempt().await;
    assert!(matches!(result, StepResult::Fail { .. }), "{result:?}");
    assert!(message(&result).contains("redirects are not followed"));
}

#[tokio::test]
async fn an_answer_without_end_ends() {
    let server = Server::start().await;
    for path in ["/endless", "/huge"] {
        let mut trial = trial(&server, path, json!({})).await;
        let outcome = done(trial.attempt().await);
        assert_eq!(
            outcome.result,
            json!({"status": 200, "body": null}),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_server_that_asks_for_time_gets_it() {
    let server = Server::start().await;
    let mut trial = trial(&server, "/busy", json!({})).await;
    let result = trial.attempt().await;
    let StepResult::Retry { after, .. } = result else {
        panic!("{result:?}");
    };
    assert_eq!(after, Some(Duration::from_secs(17)));
}

#[tokio::test]
async fn a_host_that_is_not_listed_is_not_called() {
    let server = Server::start().await;
    let mut trial = trial(&server, "/ok", json!({})).await;
    trial.hosts = vec!["api.example.com".to_owned()];
    let result = trial.attempt().await;
    assert!(matches!(result, StepResult::Fail { .. }), "{result:?}");
    assert!(message(&result).contains("fairway.yaml"));
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn nobody_there_does_not_count() {
    let server = Server::start().await;
    let mut trial = trial(&server, "/ok", json!({})).await;
    drop(server);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let result = trial.attempt().await;
    assert!(
        matches!(result, StepResult::Retry { counts: false, .. }),
        "{result:?}"
    );
}
