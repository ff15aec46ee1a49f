//! One conversation with a git server: list its references, and download what is missing.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use git2::{AutotagOption, ErrorClass, ErrorCode, FetchOptions, Oid, RemoteCallbacks, Repository};
use tokio_util::sync::CancellationToken;

use super::credentials::Credentials;
use super::error::SourceError;
use super::exchange::Exchange;
use super::https::Connections;
use super::url::SourceUrl;
use super::{smart, ssh};
use crate::model::limits;

/// What one conversation may cost.
#[derive(Debug, Clone)]
pub struct MirrorLimits {
    /// Time for one fetch as a whole.
    pub deadline: Duration,
    /// Bytes of one pack.
    pub pack_size_max: usize,
    /// Objects of one pack.
    pub pack_objects_max: usize,
    /// Packs of a mirror, after which it is cloned anew.
    pub packs_max: usize,
}

impl Default for MirrorLimits {
    fn default() -> Self {
        Self {
            deadline: limits::FETCH_DEADLINE,
            pack_size_max: limits::PACK_SIZE_MAX,
            pack_objects_max: limits::PACK_OBJECTS_MAX,
            packs_max: limits::MIRROR_PACKS_MAX,
        }
    }
}

/// What a conversation needs to know; the mirror outlives it.
pub(super) struct Conversation<'a> {
    pub(super) url: &'a SourceUrl,
    pub(super) credentials: &'a Credentials,
    pub(super) limits: &'a MirrorLimits,
    pub(super) started: Instant,
    pub(super) cancelled: &'a CancellationToken,
    pub(super) connections: &'a Connections,
}

/// A reference on the server: its full name and the object it points at.
pub(super) struct RemoteReference {
    pub(super) name: String,
    pub(super) object: Oid,
}

/// Why libgit2 was told to stop: it passes on a text at best. The first reason counts.
#[derive(Clone, Default)]
pub(super) struct Refusal(Arc<Mutex<Option<SourceError>>>);

impl Conversation<'_> {
    /// Lists the server's references, and downloads those that the specs match and the mirror lacks.
    ///
    /// When nothing is missing, the listing is all that happens. libgit2 keeps a pack under a temporary name until it is
    /// complete and verified, so that a broken one leaves the mirror as it was.
    pub(super) fn download(
        &self,
        mirror: &Repository,
        specs: &[&str],
    ) -> Result<Vec<RemoteReference>, SourceError> {
        let refusal = Refusal::default();
        if self.url.local_path().is_some_and(|path| !path.exists()) {
            return Err(SourceError::RepositoryNotFound {
                url: self.url.to_string(),
            });
        }
        let call = self.ssh_call();
        let result = match &call {
            Some(call) => call.during(|| self.talk(mirror, specs, &refusal)),
            None if self.url.is_local() => self.talk(mirror, specs, &refusal),
            None => {
                let exchange = self.exchange(&refusal)?;
                smart::through(exchange, || self.talk(mirror, specs, &refusal))
            }
        };
        result.map_err(|error| {
            refusal
                .take()
                .or_else(|| call.and_then(|call| call.take_refusal()))
                .unwrap_or_else(|| self.classify(mirror.path(), &error))
        })
    }

    fn exchange(&self, refusal: &Refusal) -> Result<Arc<Exchange>, SourceError> {
        let client = self
            .connections
            .client(&self.url.host(), self.credentials)?;
        Ok(Exchange::new(
            client,
            self.url.clone(),
            self.credentials.clone(),
            (
                (self.started + self.limits.deadline).into(),
                self.limits.deadline,
            ),
            (self.cancelled.clone(), refusal.clone()),
        ))
    }

    fn ssh_call(&self) -> Option<Arc<ssh::Call>> {
        let login = self.credentials.ssh_login().map(Arc::clone);
        let deadline = self.started + self.limits.deadline;
        Some(ssh::Call::new(
            self.url.ssh_address()?.clone(),
            login,
            deadline,
        ))
    }

    fn talk(
        &self,
        mirror: &Repository,
        specs: &[&str],
        refusal: &Refusal,
    ) -> Result<Vec<RemoteReference>, git2::Error> {
        let mut remote = mirror.remote_anonymous(&self.url.to_string())?;
        let mut options = FetchOptions::new();
        options
            .remote_callbacks(self.callbacks(refusal))
            .download_tags(AutotagOption::None)
            .update_fetchhead(false);
        remote.download(specs, Some(&mut options))?;
        let references = remote
            .list()?
            .iter()
            .map(|head| RemoteReference {
                name: head.name().to_owned(),
                object: head.oid(),
            })
            .collect();
        // The answer is complete; how the connection ends changes nothing.
        drop(remote.disconnect());
        Ok(references)
    }

    fn callbacks<'b>(&'b self, refusal: &'b Refusal) -> RemoteCallbacks<'b> {
        let mut callbacks = RemoteCallbacks::new();
        callbacks.transfer_progress(move |progress| {
            let reason = self.why_stop(&progress);
            refusal.go_on(reason)
        });
        callbacks.sideband_progress(move |_| {
            let reason = self.why_stop_now();
            refusal.go_on(reason)
        });
        callbacks
    }

    fn why_stop(&self, progress: &git2::Progress<'_>) -> Option<SourceError> {
        let too_large = |limit, unit| SourceError::PackTooLarge {
            url: self.url.to_string(),
            limit,
            unit,
        };
        if progress.received_bytes() > self.limits.pack_size_max {
            return Some(too_large(self.limits.pack_size_max, "bytes"));
        }
        if progress.total_objects() > self.limits.pack_objects_max {
            return Some(too_large(self.limits.pack_objects_max, "objects"));
        }
        self.why_stop_now()
    }

    fn why_stop_now(&self) -> Option<SourceError> {
        let late = self.started.elapsed() > self.limits.deadline;
        (late || self.cancelled.is_cancelled()).then(|| self.timeout())
    }

    pub(super) fn timeout(&self) -> SourceError {
        SourceError::Timeout {
            host: self.url.host(),
            after: self.limits.deadline,
        }
    }

    /// Gives an error of libgit2 its name. Its texts are those of the one version that is built in, held by tests.
    fn classify(&self, mirror: &Path, error: &git2::Error) -> SourceError {
        let host = self.url.host();
        let url = self.url.to_string();
        let text = error.message();
        let detail = self.credentials.redact(text);
        if self.url.is_local() && error.code() == ErrorCode::NotFound {
            return SourceError::RepositoryNotFound { url };
        }
        match error.class() {
            ErrorClass::Indexer | ErrorClass::Zlib => SourceError::PackBroken { host, detail },
            ErrorClass::Net | ErrorClass::Http => SourceError::Network { host, detail },
            ErrorClass::Os => SourceError::from_storage(mirror, &detail),
            ErrorClass::Odb | ErrorClass::Object | ErrorClass::Reference => {
                SourceError::MirrorCorrupt {
                    directory: mirror.to_owned(),
                    detail,
                }
            }
            _ => SourceError::Other { detail },
        }
    }
}

// === impl Refusal ===

impl Refusal {
    /// Says why to stop, unless it has been said before.
    pub(super) fn say(&self, reason: SourceError) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(reason);
    }

    fn go_on(&self, reason: Option<SourceError>) -> bool {
        let go_on = reason.is_none();
        if let Some(reason) = reason {
            self.say(reason);
        }
        go_on
    }

    fn take(&self) -> Option<SourceError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
