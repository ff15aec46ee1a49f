//! Receives deliveries over HTTP, within limits of time, bytes and connections.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::guests::{Guests, Hearing};
use super::payload::{Announcement, DeliveryResult, Unreadable};
use super::routes::{Deliver, Delivery, Route, Routes};
use super::verify::Verifier;
use crate::model::limits;
use crate::report::Metrics;

/// Bytes of a kept body that one permit stands for.
const PERMIT_SIZE: usize = 1024;
/// Delay before the next connection is accepted after one could not be, for want of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Everything that receives deliveries. Clones share it.
#[derive(Clone)]
pub struct Receiver {
    routes: Routes,
    metrics: Arc<Metrics>,
    now: fn() -> Timestamp,
    /// Room for the bodies of all connections together.
    room: Arc<Semaphore>,
}

/// How a request is answered.
struct Answer(StatusCode, String);

/// Why a body was not taken in full.
enum Unfinished {
    TooLarge,
    TooSlow,
    NoRoom,
    Broken,
}

/// Serves the port until the token is cancelled. What was verified by then has rung its bell, and what was not is sent again
/// or found by the poll.
pub async fn serve(listener: TcpListener, receiver: Receiver, shutdown: CancellationToken) {
    let mut guests = Guests::default();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let has_room = tokio::select! {
                    () = shutdown.cancelled() => return,
                    has_room = guests.make_room() => has_room,
                };
                if has_room {
                    guests.seat(|hearing| converse(stream, receiver.clone(), hearing));
                } else {
                    tracing::debug!("a webhook connection was refused: all places are taken");
                }
            }
            Err(error) => {
                tracing::debug!(%error, "failed to accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one request on a connection.
async fn converse(stream: TcpStream, receiver: Receiver, hearing: Arc<Hearing>) {
    let listening = Arc::clone(&hearing);
    let service = service_fn(move |request| {
        listening.heard();
        let receiver = receiver.clone();
        async move { Ok::<_, Infallible>(receiver.answer(request).await.into_response()) }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits::WEBHOOK_HEAD_DEADLINE)
        .keep_alive(false)
        .max_buf_size(limits::WEBHOOK_HEAD_SIZE_MAX);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let connection = poll_fn(|context| {
        let polled = connection.as_mut().poll(context);
        hearing.read();
        polled
    });
    match timeout(limits::WEBHOOK_CONNECTION_DEADLINE, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a webhook connection broke off"),
        Err(error) => tracing::debug!(%error, "a webhook connection took too long"),
    }
}

// === impl Receiver ===

impl Receiver {
    /// Makes a receiver that delivers by these routes, and asks `now` for the time where it is signed.
    pub fn new(routes: Routes, metrics: Arc<Metrics>, now: fn() -> Timestamp) -> Self {
        Self {
            routes,
            metrics,
            now,
            room: Arc::new(Semaphore::new(limits::WEBHOOK_BODIES_MAX / PERMIT_SIZE)),
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Answer {
        if request.method() != Method::POST {
            return Answer(StatusCode::METHOD_NOT_ALLOWED, "send a POST\n".to_owned());
        }
        if request.body().size_hint().lower() > limits::WEBHOOK_BODY_MAX {
            return too_large();
        }
        if self.routes.is_empty() {
            self.metrics.webhook_delivered(None, "standing-by");
            return Answer(
                StatusCode::SERVICE_UNAVAILABLE,
                "this replica stands by, or no source has a webhook\n".to_owned(),
            );
        }
        let Some((route, deliver)) = self.routes.find(request.uri().path()).await else {
            self.metrics.webhook_delivered(None, "refused");
            return refused();
        };
        let (result, answer) = self.deliver(&route, &deliver, request).await;
        self.metrics.webhook_delivered(Some(&route.source), result);
        answer
    }

    /// Verifies, reads, delivers; returns the word for the metrics as well.
    async fn deliver(
        &self,
        route: &Route,
        deliver: &Deliver,
        request: Request<Incoming>,
    ) -> (&'static str, Answer) {
        let (head, body) = request.into_parts();
        let verifier = Verifier::new(route.provider, &route.keys, &head.headers, (self.now)());
        let Ok(verifier) = verifier else {
            return ("refused", refused());
        };
        let taken = timeout(limits::WEBHOOK_BODY_DEADLINE, self.take(body, verifier)).await;
        let (body, verifier) = match taken.unwrap_or(Err(Unfinished::TooSlow)) {
            Ok(taken) => taken,
            Err(unfinished) => return ("unfinished", unfinished.answer()),
        };
        let Ok(fingerprint) = verifier.finish() else {
            return ("refused", refused());
        };
        let kept = body.as_ref().map(|body| body.bytes.as_slice());
        let (delivery, failed) = judge(route, &head.headers, kept, |id| fingerprint.with_id(id));
        let result = deliver(delivery);
        let answer = match (result, failed) {
            (DeliveryResult::Unreadable, Some(error)) => unreadable(&error),
            _ => Answer(StatusCode::OK, sentence(result, route)),
        };
        (result.as_str(), answer)
    }

    /// Takes a body part by part. One that is too large to be kept is verified all the same.
    async fn take(
        &self,
        mut body: Incoming,
        mut verifier: Verifier,
    ) -> Result<(Option<Kept>, Verifier), Unfinished> {
        let mut kept = Some(Kept::default());
        let mut size = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Unfinished::Broken)?;
            let Ok(part) = frame.into_data() else {
                continue;
            };
            size += part.len() as u64;
            if size > limits::WEBHOOK_BODY_MAX {
                return Err(Unfinished::TooLarge);
            }
            verifier.update(&part);
            kept = match kept.take() {
                Some(kept) => kept.with(&part, &self.room)?,
                None => None,
            };
        }
        Ok((kept, verifier))
    }
}

/// A body that is kept, and the room that it takes.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    permits: Vec<OwnedSemaphorePermit>,
    room: usize,
}

impl Kept {
    /// Adds a part; nothing is kept any more once it is too much.
    fn with(mut self, part: &Bytes, room: &Arc<Semaphore>) -> Result<Option<Self>, Unfinished> {
        let size = self.bytes.len() + part.len();
        if size > limits::WEBHOOK_BODY_KEPT_MAX {
            return Ok(None);
        }
        if size > self.room {
            // Doubled, as a Vec does it, so that the room is what is really taken.
            let wanted = size.next_power_of_two().max(PERMIT_SIZE);
            let more = u32::try_from((wanted - self.room) / PERMIT_SIZE).unwrap_or(u32::MAX);
            let permit = Arc::clone(room).try_acquire_many_owned(more);
            self.permits.push(permit.map_err(|_| Unfinished::NoRoom)?);
            self.room = wanted;
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(part);
        Ok(Some(self))
    }
}

/// Reads a verified delivery, and compares it with what the source follows.
fn judge(
    route: &Route,
    headers: &HeaderMap,
    body: Option<&[u8]>,
    digest: impl Fn(&str) -> u64,
) -> (Delivery, Option<Unreadable>) {
    match Announcement::read(route.provider, headers, body) {
        Ok(announcement) => {
            let delivery = Delivery {
                digest: announcement.id.as_deref().map(digest),
                result: match announcement.judge(&route.followed) {
                    DeliveryResult::Announced if route.suspended => DeliveryResult::Suspended,
                    result => result,
                },
                event: announcement.event,
                id: announcement.id,
            };
            (delivery, None)
        }
        Err(error) => {
            let (event, id) = Announcement::head(route.provider, headers);
            let delivery = Delivery {
                digest: id.as_deref().map(digest),
                result: DeliveryResult::Unreadable,
                event,
                id,
            };
            (delivery, Some(error))
        }
    }
}

/// Says for the forge's list of deliveries what was done.
fn sentence(result: DeliveryResult, route: &Route) -> String {
    let source = &route.source;
    match result {
        DeliveryResult::Announced => format!("looking for a new revision of {source}\n"),
        DeliveryResult::Suspended => format!("nothing to do: {source} is suspended\n"),
        DeliveryResult::Ping => format!("{source} takes deliveries here\n"),
        DeliveryResult::OtherRepository => {
            format!("nothing to do: {source} follows another repository\n")
        }
        DeliveryResult::OtherReference => {
            format!("nothing to do: {source} follows another branch or tag\n")
        }
        DeliveryResult::OtherEvent => "nothing to do: not a push\n".to_owned(),
        DeliveryResult::Repeated => "nothing to do: delivered before\n".to_owned(),
        DeliveryResult::Unreadable => "cannot be read\n".to_owned(),
    }
}

/// One answer for a path that nobody has and for a signature that is wrong.
fn refused() -> Answer {
    Answer(StatusCode::NOT_FOUND, "not found\n".to_owned())
}

fn too_large() -> Answer {
    Unfinished::TooLarge.answer()
}

fn unreadable(error: &Unreadable) -> Answer {
    let status = match error {
        Unreadable::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Unreadable::Form | Unreadable::Json { .. } => StatusCode::BAD_REQUEST,
    };
    let cause = std::error::Error::source(error);
    let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
    Answer(status, format!("{error}{cause}\n"))
}

impl Unfinished {
    fn answer(&self) -> Answer {
        let (status, text) = match self {
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too large"),
            Self::TooSlow => (StatusCode::REQUEST_TIMEOUT, "too slow"),
            Self::NoRoom => (StatusCode::SERVICE_UNAVAILABLE, "too many at once"),
            Self::Broken => (StatusCode::BAD_REQUEST, "broken off"),
        };
        Answer(status, format!("{text}\n"))
    }
}

impl Answer {
    fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(self.1)));
        *response.status_mut() = self.0;
        let headers = response.headers_mut();
        let text = header::HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, text);
        headers.insert(
            header::CONNECTION,
            header::HeaderValue::from_static("close"),
        );
        response
    }
}
