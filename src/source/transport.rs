//! One conversation with a git server: list its references, and download what is missing.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use git2::{
    AutotagOption, CertificateCheckStatus, Cred, CredentialType, ErrorClass, ErrorCode,
    FetchOptions, Oid, RemoteCallbacks, RemoteRedirect, Repository,
};

use super::credentials::{Credentials, Login};
use super::error::SourceError;
use super::ssh;
use super::url::SourceUrl;
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
    pub(super) cancelled: &'a AtomicBool,
}

/// A reference on the server: its full name and the object it points at.
pub(super) struct RemoteReference {
    pub(super) name: String,
    pub(super) object: Oid,
}

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
        if self.url.local_path().is_some_and(|path| !path.exists()) {
            return Err(SourceError::RepositoryNotFound {
                url: self.url.to_string(),
            });
        }
        let refusal = RefCell::new(None);
        let call = self.ssh_call();
        let result = match &call {
            Some(call) => call.during(|| self.talk(mirror, specs, &refusal)),
            None => self.talk(mirror, specs, &refusal),
        };
        result.map_err(|error| {
            refusal
                .take()
                .or_else(|| call.and_then(|call| call.take_refusal()))
                .unwrap_or_else(|| self.classify(mirror.path(), &error))
        })
    }

    fn ssh_call(&self) -> Option<Arc<ssh::Call>> {
        let login = match self.credentials.login() {
            Login::Ssh(login) => Some(Arc::clone(login)),
            _ => None,
        };
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
        refusal: &RefCell<Option<SourceError>>,
    ) -> Result<Vec<RemoteReference>, git2::Error> {
        let mut remote = mirror.remote_anonymous(&self.url.to_string())?;
        let header;
        let mut options = FetchOptions::new();
        options
            .remote_callbacks(self.callbacks(refusal))
            .download_tags(AutotagOption::None)
            .update_fetchhead(false)
            .follow_redirects(RemoteRedirect::None);
        if let Login::Bearer(token) = self.credentials.login() {
            header = format!("Authorization: Bearer {token}");
            options.custom_headers(&[&header]);
        }
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

    fn callbacks<'b>(&'b self, refusal: &'b RefCell<Option<SourceError>>) -> RemoteCallbacks<'b> {
        let mut callbacks = RemoteCallbacks::new();
        let mut attempts = 0;
        callbacks.credentials(move |_, _, allowed| {
            attempts += 1;
            match self.credentials.login() {
                // libgit2 asks again and again while the server refuses.
                Login::Basic { username, password }
                    if attempts == 1 && allowed.contains(CredentialType::USER_PASS_PLAINTEXT) =>
                {
                    Cred::userpass_plaintext(username, password)
                }
                _ => {
                    refusal.replace(Some(SourceError::Unauthorized {
                        host: self.url.host(),
                    }));
                    Err(git2::Error::new(
                        ErrorCode::Auth,
                        ErrorClass::Http,
                        "the credentials were refused",
                    ))
                }
            }
        });
        callbacks.certificate_check(|certificate, host| {
            let own = self.credentials.authorities().is_some_and(|authorities| {
                certificate
                    .as_x509()
                    .is_some_and(|x509| authorities.vouch_for(x509.data(), host))
            });
            Ok(if own {
                CertificateCheckStatus::CertificateOk
            } else {
                CertificateCheckStatus::CertificatePassthrough
            })
        });
        callbacks.transfer_progress(move |progress| {
            let reason = self.why_stop(&progress);
            let go_on = reason.is_none();
            if !go_on {
                refusal.replace(reason);
            }
            go_on
        });
        callbacks.sideband_progress(move |_| {
            let reason = self.why_stop_now();
            let go_on = reason.is_none();
            if !go_on {
                refusal.replace(reason);
            }
            go_on
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
        (late || self.cancelled.load(Ordering::Relaxed)).then(|| self.timeout())
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
        if let Some(status) = text.strip_prefix("unexpected http status code: ") {
            return match status.parse() {
                Ok(403) => SourceError::Forbidden { host, url },
                Ok(404 | 410) => SourceError::RepositoryNotFound { url },
                Ok(status) => SourceError::Server { host, status },
                Err(_) => SourceError::Network { host, detail },
            };
        }
        if text.contains("timed out") {
            return SourceError::Timeout {
                host,
                after: limits::GIT_SERVER_TIMEOUT,
            };
        }
        match error.class() {
            _ if error.code() == ErrorCode::Auth => SourceError::Unauthorized { host },
            ErrorClass::Http if text.contains("redirect") => SourceError::Redirected { host },
            ErrorClass::Ssl if text.contains("certificate") => {
                SourceError::Untrusted { host, detail }
            }
            ErrorClass::Indexer | ErrorClass::Zlib => SourceError::PackBroken { host, detail },
            ErrorClass::Net | ErrorClass::Http | ErrorClass::Ssl => {
                SourceError::Network { host, detail }
            }
            ErrorClass::Os if text.contains("connect to") || text.contains("SSL error") => {
                SourceError::Network { host, detail }
            }
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
