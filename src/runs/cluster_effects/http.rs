//! The client of `http` steps: one connection for each request, no redirects, answers within a limit, and no name that leads to
//! this machine or its link.
//!
//! Which hosts may be called at all is checked by the step. What a listed name resolves to is checked here, where the
//! connection is made, so that a name cannot be pointed at an address between a check and its use. An address that is listed
//! as such is meant.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tower::Service;

use crate::model::limits;
use crate::runs::effects::{EffectError, HttpAnswer, HttpRequest};

const AGENT: &str = concat!("fairway/", env!("CARGO_PKG_VERSION"));

type HttpClient = Client<HttpsConnector<HttpConnector<GuardedResolver<GaiResolver>>>, Full<Bytes>>;

/// Sends requests; cloning shares the client, which is made when it is needed first.
#[derive(Clone, Default)]
pub(super) struct HttpDoor {
    client: Arc<OnceLock<Result<HttpClient, String>>>,
}

// === impl HttpDoor ===

impl HttpDoor {
    /// Sends a request once, and reads the answer.
    pub(super) async fn send(
        &self,
        request: &HttpRequest,
        token: Option<&str>,
    ) -> Result<HttpAnswer, EffectError> {
        let client = match self.client.get_or_init(build) {
            Ok(client) => client.clone(),
            Err(message) => return Err(EffectError::Refused(message.clone())),
        };
        let outgoing = outgoing(request, token)?;
        let subject = format!("{} {}", request.method, request.url);
        let exchange = async {
            let answer = client.request(outgoing).await.map_err(|error| {
                let message = format!("{subject}: {}", innermost(&error));
                // A connection that was not made has carried nothing.
                if error.is_connect() {
                    EffectError::Transient {
                        message,
                        retry_after: None,
                    }
                } else {
                    EffectError::Lost(message)
                }
            })?;
            let (parts, body) = answer.into_parts();
            Ok(HttpAnswer {
                status: parts.status.as_u16(),
                retry_after: retry_after(&parts.headers),
                body: read(body)
                    .await
                    .map_err(|error| EffectError::Lost(format!("{subject}: {error}")))?,
            })
        };
        let answered = tokio::time::timeout(request.deadline, exchange).await;
        answered.unwrap_or_else(|_| {
            Err(EffectError::Lost(format!(
                "{subject}: no answer within {} s",
                request.deadline.as_secs()
            )))
        })
    }
}

fn build() -> Result<HttpClient, String> {
    let mut connector = HttpConnector::new_with_resolver(GuardedResolver(GaiResolver::new()));
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(limits::CONNECT_DEADLINE));
    let connector = HttpsConnectorBuilder::new()
        .with_native_roots()
        .map_err(|error| format!("the system's certificate authorities cannot be read: {error}"))?
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector);
    // A connection that rested may be closed by the other side just when a request is on it.
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .pool_max_idle_per_host(0)
        .retry_canceled_requests(false);
    Ok(builder.build(connector))
}

fn outgoing(
    request: &HttpRequest,
    token: Option<&str>,
) -> Result<Request<Full<Bytes>>, EffectError> {
    let refused = |what: &str| EffectError::Refused(format!("{what} cannot be sent"));
    let method = Method::from_bytes(request.method.as_bytes())
        .map_err(|_| refused(&format!("the method {}", request.method)))?;
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    if request.body.is_some() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, value) in &request.headers {
        let header = HeaderName::from_bytes(name.as_bytes()).ok();
        let header = header.zip(HeaderValue::from_str(value).ok());
        let (name, value) = header.ok_or_else(|| refused(&format!("the header {name}")))?;
        headers.insert(name, value);
    }
    if let Some(token) = token {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| refused("a token with characters that no header has"))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let body = request
        .body
        .as_ref()
        .map(Value::to_string)
        .unwrap_or_default();
    let mut outgoing = Request::builder()
        .method(method)
        .uri(&request.url)
        .body(Full::new(Bytes::from(body)))
        .map_err(|_| refused("the address"))?;
    *outgoing.headers_mut() = headers;
    Ok(outgoing)
}

/// Reads a body: JSON, else text. One that is too long is null: the status has said what happened.
async fn read(body: Incoming) -> Result<Value, String> {
    let collected = Limited::new(body, limits::HTTP_ANSWER_MAX).collect().await;
    match collected {
        Ok(collected) => {
            let bytes = collected.to_bytes();
            if bytes.is_empty() {
                return Ok(Value::Null);
            }
            let text = || String::from_utf8_lossy(&bytes).into_owned().into();
            Ok(serde_json::from_slice(&bytes).unwrap_or_else(|_| text()))
        }
        Err(error) if error.is::<LengthLimitError>() => Ok(Value::Null),
        Err(error) => Err(innermost(error.as_ref())),
    }
}

/// Reads `Retry-After` in seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds).min(limits::HTTP_RETRY_AFTER_MAX))
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Resolves names, and refuses those that lead to this machine, its link or nowhere.
#[derive(Clone)]
struct GuardedResolver<R>(R);

impl<R> Service<Name> for GuardedResolver<R>
where
    R: Service<
            Name,
            Response: Iterator<Item = SocketAddr>,
            Error: Into<Box<dyn Error + Send + Sync>>,
        >,
    R::Future: Send + 'static,
{
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        // Whoever lists this name means it.
        let local = name.as_str().eq_ignore_ascii_case("localhost");
        let resolving = self.0.call(name);
        Box::pin(async move {
            let found: Vec<SocketAddr> = resolving.await.map_err(Into::into)?.collect();
            if let Some(refused) = found.iter().find(|found| !local && is_refused(found.ip())) {
                return Err(format!(
                    "the name leads to {}, which is no address of another host; list the address itself if it is meant",
                    refused.ip()
                )
                .into());
            }
            Ok(found.into_iter())
        })
    }
}

/// Returns whether an address is this machine, its link (where clouds serve credentials), or no host at all.
fn is_refused(address: IpAddr) -> bool {
    let v4 = |address: Ipv4Addr| {
        address.is_loopback()
            || address.is_link_local()
            || address.is_unspecified()
            || address.is_broadcast()
            || address.is_multicast()
            || address.octets()[0] == 0
    };
    match address.to_canonical() {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_unicast_link_local()
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("api.example.com", "192.0.2.7", true)]
    #[case("api.example.com", "127.0.0.1", false)]
    #[case("metadata.example.com", "169.254.169.254", false)]
    #[case("localhost", "127.0.0.1", true)]
    #[tokio::test]
    async fn a_name_is_checked_where_it_is_resolved(
        #[case] name: &str,
        #[case] address: &str,
        #[case] allowed: bool,
    ) {
        // Among several addresses one is enough: which is used is not ours to choose.
        let found: Vec<SocketAddr> = ["192.0.2.1", address]
            .map(|address| SocketAddr::new(address.parse().unwrap(), 443))
            .to_vec();
        let inner = tower::service_fn(move |_: Name| {
            std::future::ready(Ok::<_, std::io::Error>(found.clone().into_iter()))
        });
        let resolved = GuardedResolver(inner).call(name.parse().unwrap()).await;
        assert_eq!(resolved.is_ok(), allowed);
        if let Err(error) = resolved {
            assert!(error.to_string().contains(address));
        }
    }

    #[rstest]
    #[case("127.0.0.1", true)]
    #[case("127.8.9.1", true)]
    #[case("169.254.169.254", true)]
    #[case("0.0.0.0", true)]
    #[case("0.1.2.3", true)]
    #[case("255.255.255.255", true)]
    #[case("224.0.0.1", true)]
    #[case("::1", true)]
    #[case("::", true)]
    #[case("fe80::1", true)]
    #[case("::ffff:127.0.0.1", true)]
    #[case("::ffff:169.254.169.254", true)]
    #[case("10.0.0.1", false)]
    #[case("192.0.2.7", false)]
    #[case("fd00::1", false)]
    #[case("2001:db8::1", false)]
    fn a_name_must_not_lead_here(#[case] address: &str, #[case] refused: bool) {
        assert_eq!(is_refused(address.parse().unwrap()), refused);
    }
}
