//! Being told to stop.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::failure::Failure;

/// Returns a token that SIGTERM and SIGINT cancel.
pub(super) fn stopped_by_signals() -> Result<CancellationToken, Failure> {
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let cancelled = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("told to stop");
        cancelled.cancel();
    });
    Ok(stop)
}
