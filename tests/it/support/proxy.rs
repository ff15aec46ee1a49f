//! A plain-HTTP proxy in front of the real API server that counts requests and makes chosen ones fail.
//!
//! It forwards what it gets, the header Authorization included, and streams answers through, watches as well.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::{StreamExt, stream};
use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::canaries;
use super::control_plane::ControlPlane;
use super::messages;

/// What goes wrong with a request.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// This answer, without forwarding.
    Status(u16),
    /// 429 with `Retry-After` in seconds, without forwarding.
    RetryAfter(u64),
    /// This body with code 200, without forwarding.
    Answer(&'static str),
    /// No answer ever; the request is not forwarded.
    Hang,
    /// The connection ends before the request is forwarded.
    ResetBefore,
    /// The request is forwarded, but the answer is lost.
    ResetAfter,
    /// The answer ends in its middle.
    Truncated,
    /// An answer that never ends, without forwarding.
    Endless,
    /// The request is forwarded after this time.
    Delay(Duration),
    /// The request is forwarded with a `renewTime` that is so many seconds later, as by a wrong clock.
    ClockAhead(i64),
}

/// Which requests a fault is for.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// `GET`, `PATCH`, …, or `WATCH`; empty for all.
    pub(crate) verb: &'static str,
    /// A part of the path, or with `exact` all of it.
    pub(crate) path: String,
    /// Whether the path has to be the same.
    pub(crate) exact: bool,
    /// Matching requests that pass before the first fault.
    pub(crate) skip: usize,
    /// Matching requests that fail then.
    pub(crate) times: usize,
    /// What happens to them.
    pub(crate) fault: Fault,
}

impl Rule {
    /// Makes a rule for every request with this verb and this part of the path.
    pub(crate) fn always(verb: &'static str, path: impl Into<String>, fault: Fault) -> Self {
        Self {
            verb,
            path: path.into(),
            exact: false,
            skip: 0,
            times: usize::MAX,
            fault,
        }
    }

    /// Makes a rule for every request with this verb and exactly this path.
    pub(crate) fn exactly(verb: &'static str, path: impl Into<String>, fault: Fault) -> Self {
        Self {
            exact: true,
            ..Self::always(verb, path, fault)
        }
    }

    fn fits(&self, seen: &Seen) -> bool {
        seen.fits(self.verb, &self.path) && (!self.exact || seen.path == self.path)
    }

    /// Makes a rule for the first `times` of them.
    pub(crate) fn first(
        times: usize,
        verb: &'static str,
        path: impl Into<String>,
        fault: Fault,
    ) -> Self {
        Self {
            times,
            ..Self::always(verb, path, fault)
        }
    }
}

/// One request that came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// `GET`, `PATCH`, …, or `WATCH`.
    pub(crate) verb: String,
    /// The path.
    pub(crate) path: String,
    /// The query.
    pub(crate) query: String,
    /// The header `Accept`.
    pub(crate) accept: String,
}

/// Called with the number of a request, from one, before it is forwarded or after it was answered. Says whether it goes on; if
/// not, the connection ends without an answer.
pub(crate) type Hook = Arc<dyn Fn(usize, &Seen) -> bool + Send + Sync>;

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    seen: Vec<Seen>,
    before: Option<Hook>,
    after: Option<Hook>,
    connections: CancellationToken,
    /// Secrets that were sent to where they do not belong.
    told: Vec<String>,
    /// Conditions that the reference does not show.
    unknown: BTreeSet<String>,
}

/// The proxy; it stops when it is dropped.
pub(crate) struct Proxy {
    address: SocketAddr,
    token: String,
    state: Arc<Mutex<State>>,
    stop: CancellationToken,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.cancel();
        if !std::thread::panicking() {
            let state = self.state.lock().unwrap();
            let (told, unknown) = (&state.told, &state.unknown);
            assert!(
                told.is_empty(),
                "a secret is told to the API server: {told:#?}"
            );
            assert!(
                unknown.is_empty(),
                "the reference does not show these conditions; `make messages`: {unknown:#?}"
            );
        }
    }
}

impl Proxy {
    /// Starts a proxy whose own token may do everything.
    pub(crate) async fn start(plane: &ControlPlane) -> Self {
        let namespace = plane.namespace().await;
        plane.apply_yaml(&format!(
            "{{apiVersion: v1, kind: ServiceAccount, metadata: {{name: proxy, namespace: {namespace}}}}}\n---\n\
             {{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {{name: {namespace}-proxy}},\n\
               roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}},\n\
               subjects: [{{kind: ServiceAccount, name: proxy, namespace: {namespace}}}]}}\n"
        ))
        .await;
        Self::start_as(plane, &namespace, "proxy").await
    }

    /// Starts a proxy whose token is that of a ServiceAccount.
    pub(crate) async fn start_as(plane: &ControlPlane, namespace: &str, account: &str) -> Self {
        let token = token(plane, namespace, account).await;
        let mut config = plane.config().await;
        config.auth_info = kube::config::AuthInfo::default();
        config.disable_compression = true;
        config.default_retry = false;
        let upstream = kube::Client::try_from(config).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let stop = CancellationToken::new();
        let serve = serve(listener, upstream, state.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(serve));
        Self {
            address,
            token,
            state,
            stop,
        }
    }

    /// Connection settings through the proxy.
    pub(crate) fn config(&self) -> kube::Config {
        let mut config = kube::Config::new(format!("http://{}", self.address).parse().unwrap());
        config.auth_info.token = Some(self.token.clone().into());
        config
    }

    /// A kubeconfig that leads through the proxy.
    pub(crate) fn kubeconfig(&self) -> String {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "proxy", "user": {"token": self.token}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        })
        .to_string()
    }

    /// Adds a rule; the first that fits a request counts.
    pub(crate) fn inject(&self, rule: Rule) {
        self.state.lock().unwrap().rules.push(rule);
    }

    /// Removes all rules.
    pub(crate) fn heal(&self) {
        self.state.lock().unwrap().rules.clear();
    }

    /// Ends all open connections, watches as well.
    pub(crate) fn disconnect(&self) {
        std::mem::take(&mut self.state.lock().unwrap().connections).cancel();
    }

    /// Calls this before each request is forwarded.
    pub(crate) fn before(&self, hook: Hook) {
        self.state.lock().unwrap().before = Some(hook);
    }

    /// Calls this after each request was answered by the server, before the answer goes back.
    pub(crate) fn after(&self, hook: Hook) {
        self.state.lock().unwrap().after = Some(hook);
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.lock().unwrap().seen.clone()
    }

    /// Forgets the requests so far.
    pub(crate) fn forget(&self) {
        self.state.lock().unwrap().seen.clear();
    }

    /// How many requests had this verb and this part of the path.
    pub(crate) fn count(&self, verb: &str, path: &str) -> usize {
        let state = self.state.lock().unwrap();
        state
            .seen
            .iter()
            .filter(|seen| seen.fits(verb, path))
            .count()
    }
}

impl Seen {
    fn of<B>(request: &Request<B>) -> Self {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let accept = request.headers().get(header::ACCEPT);
        let accept = accept
            .and_then(|accept| accept.to_str().ok())
            .unwrap_or_default();
        let watch = query.split('&').any(|pair| pair == "watch=true");
        Self {
            verb: if watch {
                "WATCH".into()
            } else {
                request.method().to_string()
            },
            path: request.uri().path().to_owned(),
            query,
            accept: accept.to_owned(),
        }
    }

    pub(crate) fn fits(&self, verb: &str, path: &str) -> bool {
        (verb.is_empty() || self.verb == verb) && self.path.contains(path)
    }
}

impl State {
    fn fault_for(&mut self, seen: &Seen) -> Option<Fault> {
        let rule = self
            .rules
            .iter_mut()
            .find(|rule| rule.times > 0 && rule.fits(seen))?;
        if rule.skip > 0 {
            rule.skip -= 1;
            return None;
        }
        rule.times -= 1;
        Some(rule.fault.clone())
    }
}

async fn token(plane: &ControlPlane, namespace: &str, account: &str) -> String {
    let request: TokenRequest =
        serde_json::from_value(json!({"spec": {"audiences": [], "expirationSeconds": 3600}}))
            .unwrap();
    let answer = Api::<ServiceAccount>::namespaced(plane.client().await, namespace)
        .create_token_request(account, &PostParams::default(), &request)
        .await
        .unwrap();
    let token = answer.status.unwrap().token;
    canaries::register(&token);
    token
}

async fn serve(listener: TcpListener, upstream: kube::Client, state: Arc<Mutex<State>>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        let (upstream, state) = (upstream.clone(), state.clone());
        let connections = state.lock().unwrap().connections.clone();
        let service = service_fn(move |request| answer(request, upstream.clone(), state.clone()));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connections.run_until_cancelled_owned(connection));
    }
}

/// An error ends the connection without an answer.
async fn answer(
    request: Request<Incoming>,
    upstream: kube::Client,
    state: Arc<Mutex<State>>,
) -> Result<Response<Body>, io::Error> {
    let seen = Seen::of(&request);
    let (number, fault, before, after) = {
        let mut state = state.lock().unwrap();
        state.seen.push(seen.clone());
        let fault = state.fault_for(&seen);
        (
            state.seen.len(),
            fault,
            state.before.clone(),
            state.after.clone(),
        )
    };
    if before.is_some_and(|hook| !hook(number, &seen)) {
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    match &fault {
        Some(Fault::Status(code)) => return Ok(status(*code, None)),
        Some(Fault::RetryAfter(seconds)) => return Ok(status(429, Some(*seconds))),
        Some(Fault::Answer(text)) => return Ok(Response::new(Body::from(*text))),
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::ResetBefore) => return Err(io::ErrorKind::ConnectionReset.into()),
        Some(Fault::Endless) => return Ok(Response::new(endless())),
        Some(Fault::Delay(time)) => tokio::time::sleep(*time).await,
        Some(Fault::ResetAfter | Fault::Truncated | Fault::ClockAhead(_)) | None => {}
    }
    let ahead = match &fault {
        Some(Fault::ClockAhead(seconds)) => Some(*seconds),
        _ => None,
    };
    let forwarded = forward(request, (&seen, &state, ahead), &upstream).await?;
    if after.is_some_and(|hook| !hook(number, &seen)) {
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    match fault {
        Some(Fault::ResetAfter) => Err(io::ErrorKind::ConnectionReset.into()),
        Some(Fault::Truncated) => Ok(truncated(forwarded).await),
        _ => Ok(forwarded),
    }
}

async fn forward(
    request: Request<Incoming>,
    (seen, state, ahead): (&Seen, &Mutex<State>, Option<i64>),
    upstream: &kube::Client,
) -> Result<Response<Body>, io::Error> {
    let (mut parts, body) = request.into_parts();
    parts.headers.remove(header::HOST);
    let body = axum::body::to_bytes(Body::new(body), usize::MAX)
        .await
        .map_err(io::Error::other)?;
    if let Some(unknown) = messages::note(&seen.path, &body) {
        state.lock().unwrap().unknown.insert(unknown);
    }
    // A Secret may hold what it holds. Statuses, Events, records and everything else may not.
    let text = String::from_utf8_lossy(&body);
    if let Some(found) = canaries::told(&text).filter(|_| !seen.path.contains("/secrets")) {
        let place = format!("{} {}: {found}", seen.verb, seen.path);
        state.lock().unwrap().told.push(place);
    }
    let body = match ahead {
        Some(seconds) if !body.is_empty() => {
            parts.headers.remove(header::CONTENT_LENGTH);
            Bytes::from(renewed_later(&body, seconds))
        }
        _ => body,
    };
    let request = Request::from_parts(parts, kube::client::Body::from(body));
    let answer = upstream.send(request).await.map_err(io::Error::other)?;
    Ok(answer.map(Body::new))
}

fn status(code: u16, retry_after: Option<u64>) -> Response<Body> {
    let text = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "message": format!("injected {code}"),
    });
    let mut answer = Response::new(Body::from(text.to_string()));
    *answer.status_mut() = StatusCode::from_u16(code).unwrap();
    if let Some(seconds) = retry_after {
        answer
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

fn renewed_later(body: &[u8], seconds: i64) -> Vec<u8> {
    let mut lease: serde_json::Value = serde_json::from_slice(body).unwrap();
    let renewed: jiff::Timestamp = lease["spec"]["renewTime"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let later = renewed + jiff::SignedDuration::from_secs(seconds);
    lease["spec"]["renewTime"] = json!(format!("{later:.6}"));
    serde_json::to_vec(&lease).unwrap()
}

fn endless() -> Body {
    let chunk = Bytes::from(vec![b' '; 1024 * 1024]);
    Body::from_stream(stream::repeat_with(move || {
        Ok::<_, io::Error>(chunk.clone())
    }))
}

async fn truncated(answer: Response<Body>) -> Response<Body> {
    let (mut parts, body) = answer.into_parts();
    let whole = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    parts.headers.remove(header::CONTENT_LENGTH);
    let half = stream::iter([Ok(whole.slice(..whole.len() / 2))]);
    let end = stream::iter([Err(io::Error::from(io::ErrorKind::ConnectionReset))]);
    Response::from_parts(parts, Body::from_stream(half.chain(end)))
}
