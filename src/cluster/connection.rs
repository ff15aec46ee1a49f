//! One cluster: its identity, its client, and the way that every request takes.

use std::sync::Arc;

use backon::{BackoffBuilder, ExponentialBuilder};
use http::{HeaderMap, Method, Request, StatusCode, header};
use kube::client::{Body, ClientBuilder};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::{Duration, Instant, sleep, timeout_at};

use super::answer::Envelope;
use super::body_limit::BodyLimit;
use super::claim::{Guard, read_only, refusal};
use super::discovery::Discovery;
use super::error::{ClusterError, Words};
use crate::model::{ClusterUid, limits};

/// A connection to one cluster whose identity is known. Cloning is cheap and shares everything.
///
/// It lives on the tokio runtime that it was made on.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
    /// Sends requests as whom this connection is for; see [`Cluster::acting_as`].
    client: kube::Client,
    /// What every write asks; none where writing is not restricted.
    guard: Option<Guard>,
}

struct Inner {
    uid: ClusterUid,
    permits: Semaphore,
    discovery: Discovery,
}

/// One request, complete.
pub(super) struct Outgoing<'a> {
    pub(super) method: Method,
    /// Path and query.
    pub(super) target: String,
    pub(super) accept: &'static str,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
    pub(super) words: Words<'a>,
    /// Time for all attempts together, once the request has its turn.
    pub(super) deadline: Duration,
    /// When it is sent again.
    pub(super) repeat: Repeat,
}

/// When a request that failed in a way that may pass is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Always: sending it twice is the same as sending it once.
    Always,
    /// Where nothing can have come of it: the server turned it away, or was not reached at all.
    Unsent,
    /// Never.
    Never,
}

impl<'a> Outgoing<'a> {
    /// Makes a request that reads.
    pub(super) fn get(target: impl Into<String>, words: Words<'a>) -> Self {
        Self {
            method: Method::GET,
            target: target.into(),
            accept: JSON,
            content_type: JSON,
            body: Vec::new(),
            words,
            deadline: limits::REQUEST_DEADLINE,
            repeat: Repeat::Always,
        }
    }
}

/// An answer that is a success.
pub(super) struct Incoming {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
}

impl Incoming {
    /// Reads the answer as JSON.
    pub(super) fn json<T: DeserializeOwned>(&self, words: Words<'_>) -> Result<T, ClusterError> {
        serde_json::from_slice(&self.body).map_err(|error| ClusterError::unreadable(words, &error))
    }
}

pub(super) const JSON: &str = "application/json";
/// Answers with metadata alone; nothing of the object's content crosses the wire.
pub(super) const METADATA_JSON: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

impl Cluster {
    /// Connects, and reads the identity of the cluster before anything else. This needs `get` on the namespace
    /// `kube-system` and nothing more.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Identity`] when the cluster is not the `expected` one; otherwise why its identity could not be read.
    pub async fn connect(
        mut config: kube::Config,
        expected: Option<&ClusterUid>,
    ) -> Result<Self, ClusterError> {
        config.default_retry = false;
        config.connect_timeout = Some(limits::CONNECT_DEADLINE);
        let client = ClientBuilder::try_from(config)
            .map_err(|source| ClusterError::Settings { source })?
            .with_layer(&tower::layer::layer_fn(BodyLimit::new))
            .build();
        let permits = Semaphore::new(limits::CLUSTER_CONCURRENCY);
        let found = read_identity(&client, &permits).await?;
        if let Some(expected) = expected
            && *expected != found
        {
            let expected = expected.clone();
            return Err(ClusterError::Identity { expected, found });
        }
        let discovery = Discovery::default();
        let inner = Inner {
            uid: found,
            permits,
            discovery,
        };
        Ok(Self {
            inner: Arc::new(inner),
            client,
            guard: None,
        })
    }

    /// Asks the cluster again who it is: whether it answers at all, and is still the same.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Identity`] when another cluster answers; otherwise why it could not be read.
    pub async fn confirm(&self) -> Result<(), ClusterError> {
        let found = read_identity(&self.client, &self.inner.permits).await?;
        if found == self.inner.uid {
            return Ok(());
        }
        let expected = self.inner.uid.clone();
        Err(ClusterError::Identity { expected, found })
    }

    /// Returns the same connection under a claim: writes are refused with [`ClusterError::ClaimLost`] as soon as it does not
    /// hold any more, those under way are given up; reading goes on.
    #[must_use]
    pub fn under(&self, guard: Guard) -> Self {
        Self {
            guard: Some(guard),
            ..self.clone()
        }
    }

    /// Puts the connection to another cluster under the claim that this one is under, if it is under any: who acts for a
    /// home acts for its runtimes.
    #[must_use]
    pub fn share_claim(&self, other: &Self) -> Self {
        Self {
            guard: self.guard.clone(),
            ..other.clone()
        }
    }

    /// Does something beside the cluster, `request` in words, while the claim holds that this connection is under; without one,
    /// always.
    ///
    /// # Errors
    ///
    /// [`ClusterError::ClaimLost`] when the claim does not hold, or ends before the work does.
    pub async fn while_claimed<T>(
        &self,
        request: &str,
        work: impl Future<Output = T>,
    ) -> Result<T, ClusterError> {
        under(self.guard.as_ref(), request, async { Ok(work.await) }).await
    }

    /// Returns the claim that this connection writes under, as records name it: equal or not, and nothing more. Without a claim it
    /// is empty.
    pub fn claim(&self) -> String {
        self.guard.as_ref().map_or_else(String::new, |guard| {
            let claim = guard.claim();
            format!("{}/{}", claim.lease_uid, claim.transitions)
        })
    }

    /// Returns the identity of the cluster.
    pub fn uid(&self) -> &ClusterUid {
        &self.inner.uid
    }

    /// Returns kube's client, for watches and for kube's own helpers that read. Answers are limited in size, but deadlines,
    /// turns and retries are then the caller's. Under a claim it refuses to write: that takes the methods of this type.
    pub fn client(&self) -> kube::Client {
        let client = self.client.clone();
        match self.guard {
            Some(_) => read_only(client),
            None => client,
        }
    }

    pub(super) fn discovery(&self) -> &Discovery {
        &self.inner.discovery
    }

    /// Sends a request when it is its turn, and again where that can help.
    pub(super) async fn send(&self, request: Outgoing<'_>) -> Result<Incoming, ClusterError> {
        let guard = self.guard.as_ref();
        let guard = guard.filter(|_| request.method != Method::GET);
        send(&self.client, &self.inner.permits, request, guard).await
    }

    /// Sends a request at once and under no claim; for leases alone.
    pub(super) async fn send_out_of_turn(
        &self,
        request: Outgoing<'_>,
    ) -> Result<Incoming, ClusterError> {
        send(&self.client, &Semaphore::new(1), request, None).await
    }

    /// Returns the same connection, with its turns, its claim and what was discovered, through another client.
    pub(super) fn through(&self, client: kube::Client) -> Self {
        Self {
            client,
            ..self.clone()
        }
    }

    /// Returns the client itself, which does not know of claims.
    pub(super) fn raw(&self) -> &kube::Client {
        &self.client
    }
}

async fn read_identity(
    client: &kube::Client,
    permits: &Semaphore,
) -> Result<ClusterUid, ClusterError> {
    let words = Words {
        request: "read the cluster's identity",
        secret: false,
    };
    let mut request = Outgoing::get("/api/v1/namespaces/kube-system", words);
    request.accept = METADATA_JSON;
    request.deadline = limits::CONNECT_DEADLINE;
    let envelope: Envelope = send(client, permits, request, None).await?.json(words)?;
    ClusterUid::new(envelope.metadata.uid.unwrap_or_default()).map_err(|error| {
        ClusterError::AnswerInvalid {
            request: words.request.to_owned(),
            message: error.to_string(),
        }
    })
}

/// Waits for a turn, which is kept over all attempts: a server that asks for fewer requests then gets fewer. The claim is
/// asked before each attempt, and its end ends an attempt.
async fn send(
    client: &kube::Client,
    permits: &Semaphore,
    request: Outgoing<'_>,
    guard: Option<&Guard>,
) -> Result<Incoming, ClusterError> {
    let _permit = permits
        .acquire()
        .await
        .expect("the semaphore is never closed");
    let deadline = Instant::now() + request.deadline;
    let body = Body::from(request.body.clone());
    let mut delays = retry_delays();
    let mut answers_500 = 0;
    loop {
        let body = body.try_clone().expect("a body of bytes can be cloned");
        let attempt = attempt(client, &request, body);
        let attempt = timeout_at(deadline, under(guard, request.words.request, attempt));
        let error = match attempt.await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error,
            Err(_) => {
                return Err(ClusterError::Timeout {
                    request: request.words.request.to_owned(),
                    after: request.deadline,
                });
            }
        };
        answers_500 += usize::from(matches!(error, ClusterError::Other { .. }));
        let again = match request.repeat {
            Repeat::Always => true,
            Repeat::Unsent => error.is_without_effect(),
            Repeat::Never => false,
        } && worth_sending_again(&error, answers_500);
        let Some(delay) = delays.next().filter(|_| again) else {
            return Err(error);
        };
        let delay = delay.max(error.retry_after().unwrap_or_default());
        if delay > limits::RETRY_DELAY_MAX || Instant::now() + delay >= deadline {
            return Err(error);
        }
        sleep(delay).await;
    }
}

/// Does something while the claim holds.
async fn under<T>(
    guard: Option<&Guard>,
    request: &str,
    attempt: impl Future<Output = Result<T, ClusterError>>,
) -> Result<T, ClusterError> {
    let Some(guard) = guard else {
        return attempt.await;
    };
    guard.check(request)?;
    tokio::select! {
        // An answer that is there counts, even if the claim has ended by now.
        biased;
        answer = attempt => answer,
        () = guard.lost() => Err(refusal(request)),
    }
}

fn retry_delays() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default()
        .with_min_delay(limits::RETRY_DELAY_MIN)
        .with_max_delay(limits::RETRY_DELAY_MAX)
        .with_max_times(limits::RETRIES_MAX)
        .build()
}

fn worth_sending_again(error: &ClusterError, answers_500: usize) -> bool {
    match error {
        ClusterError::TooManyRequests { .. } | ClusterError::Unavailable { .. } => true,
        ClusterError::Other { status: 500, .. } => answers_500 <= limits::RETRIES_AFTER_500,
        _ => false,
    }
}

async fn attempt(
    client: &kube::Client,
    request: &Outgoing<'_>,
    body: Body,
) -> Result<Incoming, ClusterError> {
    let words = request.words;
    let outgoing = Request::builder()
        .method(&request.method)
        .uri(&request.target)
        .header(header::ACCEPT, request.accept)
        .header(header::CONTENT_TYPE, request.content_type)
        .body(body)
        .map_err(|error| ClusterError::Invalid {
            request: words.request.to_owned(),
            message: error.to_string(),
        })?;
    let answer = client
        .send(outgoing)
        .await
        .map_err(|error| ClusterError::from_transport(words, &error))?;
    let (parts, body) = answer.into_parts();
    let body = body
        .collect_bytes()
        .await
        .map_err(|error| ClusterError::from_transport(words, &error))?;
    if parts.status.is_success() {
        let body = Vec::from(body);
        return Ok(Incoming {
            status: parts.status,
            body,
        });
    }
    let retry_after = retry_after(&parts.headers);
    Err(ClusterError::from_answer(
        words,
        parts.status,
        retry_after,
        &body,
    ))
}

/// Reads `Retry-After` in seconds; API servers do not send the form with a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}
