//! The https client of a mirror: connections that are kept for a while, and what to call an error of theirs.
//!
//! docs/adr/0006 says why libgit2's own is not used. No proxy is used, whatever the environment says.

use std::error::Error;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::CertificateError;
use tokio::runtime::{Builder, Runtime};

use super::credentials::Credentials;
use super::error::SourceError;
use super::trust::{CertificateAuthorities, client_config};
use crate::model::limits;

/// Sends requests over https; cloning is cheap and shares the connections.
pub(super) type HttpsClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// The connection of one mirror and its TLS session, kept from fetch to fetch while the source trusts the same authorities.
#[derive(Default)]
pub(super) struct Connections(Mutex<Option<Kept>>);

struct Kept {
    authorities: Option<CertificateAuthorities>,
    client: HttpsClient,
}

// === impl Connections ===

impl Connections {
    /// Returns the client for what is trusted now: a connection that was made under other trust is not used again.
    pub(super) fn client(
        &self,
        host: &str,
        credentials: &Credentials,
    ) -> Result<HttpsClient, SourceError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let authorities = credentials.authorities();
        if let Some(kept) = kept.as_ref()
            && kept.authorities.as_ref() == authorities
        {
            return Ok(kept.client.clone());
        }
        let client = build(authorities).map_err(|detail| SourceError::Untrusted {
            host: host.to_owned(),
            detail,
        })?;
        *kept = Some(Kept {
            authorities: authorities.cloned(),
            client: client.clone(),
        });
        Ok(client)
    }
}

fn build(authorities: Option<&CertificateAuthorities>) -> Result<HttpsClient, String> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    // Small writes that follow each other must not wait for the acknowledgement of the one before.
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(limits::CONNECT_DEADLINE));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(client_config(authorities)?)
        .https_only()
        .enable_http1()
        .wrap_connector(connector);
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(limits::GIT_CONNECTION_IDLE_MAX)
        .pool_max_idle_per_host(1)
        .build(connector))
}

/// Returns the runtime that drives the connections of all mirrors. Fetches run on threads of their own and wait in
/// `block_on`; a connection that rests between two fetches needs somebody who notices that the server has closed it.
pub(super) fn runtime() -> Result<&'static Runtime, SourceError> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(limits::GIT_RESOLVERS_MAX)
            .thread_name("git-https")
            .enable_all()
            .build()
            .map_err(|error| error.to_string())
    });
    made.as_ref().map_err(|error| SourceError::Other {
        detail: format!("no thread for connections: {error}"),
    })
}

/// Gives an error of a request or an answer its name.
pub(super) fn translate(
    error: &(dyn Error + 'static),
    host: &str,
    credentials: &Credentials,
) -> SourceError {
    let host = host.to_owned();
    for cause in causes(error) {
        if let Some(rustls::Error::InvalidCertificate(reason)) = cause.downcast_ref() {
            let detail = credentials.redact(&in_words(reason));
            return SourceError::Untrusted { host, detail };
        }
        let kind = cause.downcast_ref().map(io::Error::kind);
        if kind == Some(io::ErrorKind::TimedOut) {
            let after = limits::CONNECT_DEADLINE;
            return SourceError::Timeout { host, after };
        }
    }
    // The outermost text says no more than that a client has failed.
    let texts: Vec<_> = causes(error).skip(1).map(ToString::to_string).collect();
    let text = match texts.last() {
        Some(last) if texts.len() > 1 && !texts[0].contains(last) => {
            format!("{}: {last}", texts[0])
        }
        Some(_) => texts[0].clone(),
        None => error.to_string(),
    };
    let detail = credentials.redact(&text);
    SourceError::Network { host, detail }
}

fn in_words(error: &CertificateError) -> String {
    let words = match error {
        CertificateError::UnknownIssuer => "it was issued by an authority that is not known here",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet"
        }
        other => return other.to_string(),
    };
    words.to_owned()
}

/// Iterates over an error and what lies beneath it. An `io::Error` names as its source what lies beneath the error that it
/// wraps, so that one is visited by itself.
fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> + 'a {
    std::iter::successors(Some(error), |&error: &&'a (dyn Error + 'static)| {
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        match wrapped {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}
