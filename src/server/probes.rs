//! What the port answers.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::listener::BoundedListener;

/// The content type of metrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the port asks the rest of the agent. Each answer must come at once, from memory.
#[derive(Clone)]
pub struct Probes {
    /// Whether the agent still makes progress: its driver has given a sign of life not long ago. An error says why not.
    pub alive: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Whether the agent has begun its work: sources are listed. An error says what is missing.
    pub ready: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Metrics in the text format of OpenMetrics.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
}

/// Serves the port until the token is cancelled; requests that are under way then end first, within their deadline.
///
/// # Errors
///
/// When the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    probes: Probes,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .layer(map_response(close_connection))
        .with_state(probes);
    axum::serve(BoundedListener::new(listener), router)
        .with_graceful_shutdown(shutdown.cancelled_owned())
        .await
}

async fn healthz(State(probes): State<Probes>) -> Response {
    answer((probes.alive)())
}

async fn readyz(State(probes): State<Probes>) -> Response {
    answer((probes.ready)())
}

async fn metrics(State(probes): State<Probes>) -> Response {
    ([(CONTENT_TYPE, OPEN_METRICS)], (probes.metrics)()).into_response()
}

fn answer(result: Result<(), String>) -> Response {
    match result {
        Ok(()) => "ok\n".into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

/// Ends the connection with its first answer, so that a deadline on the connection is one on the request.
async fn close_connection(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
