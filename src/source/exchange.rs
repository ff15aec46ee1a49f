//! What one fetch asks of a git server over https, and how long it waits for the answers.
//!
//! Two questions are enough: which references there are, and the pack between what is wanted and what is here. The
//! credentials go with each request from the first on; they never leave the host and port that the source names.

use std::error::Error as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::credentials::Credentials;
use super::error::SourceError;
use super::https::{HttpsClient, runtime, translate};
use super::transport::Refusal;
use super::url::SourceUrl;
use crate::model::limits;

/// Some forges talk git's protocol only with programs that call themselves git.
const AGENT: &str = concat!("git/2.0 (fairway ", env!("CARGO_PKG_VERSION"), ")");
const REFERENCES: &str = "/info/refs";
const REFERENCES_QUERY: &str = "service=git-upload-pack";
const PACK: &str = "/git-upload-pack";

/// The conversation of one fetch with a server, as far as http is concerned.
pub(super) struct Exchange {
    pub(super) client: HttpsClient,
    pub(super) url: SourceUrl,
    pub(super) credentials: Credentials,
    /// When the fetch must be over, and how long that is after its beginning.
    pub(super) deadline: (Instant, Duration),
    pub(super) cancelled: CancellationToken,
    /// Why libgit2 was told to stop.
    pub(super) refusal: Refusal,
    /// Where the server says the repository is: the path without its trailing slash.
    path: Mutex<String>,
}

/// What is asked.
pub(super) enum Question {
    /// The references and what the server can do.
    References,
    /// The pack for what is written here in git's words, or what both sides have in common.
    Pack(Vec<u8>),
}

/// An answer that is being read.
pub(super) struct Answer {
    body: Incoming,
    /// Bytes that may still come; a pack is measured where it is unpacked.
    rest: Option<usize>,
}

// === impl Exchange ===

impl Exchange {
    /// Makes the exchange of one fetch; nothing is sent yet.
    pub(super) fn new(
        client: HttpsClient,
        url: SourceUrl,
        credentials: Credentials,
        deadline: (Instant, Duration),
        (cancelled, refusal): (CancellationToken, Refusal),
    ) -> Arc<Self> {
        let path = uri(&url).path().trim_end_matches('/').to_owned();
        Arc::new(Self {
            client,
            url,
            credentials,
            deadline,
            cancelled,
            refusal,
            path: Mutex::new(path),
        })
    }

    /// Asks, and waits for the head of the answer. Must run outside of a runtime, as [`Exchange::read`] and
    /// [`Exchange::finish`].
    pub(super) fn ask(&self, question: &Question) -> Result<Answer, SourceError> {
        let runtime = runtime()?;
        runtime.block_on(async {
            for _ in 0..=limits::GIT_REDIRECTS_MAX {
                // The pool gets a connection back from a task of the runtime's one thread, a moment after the end of its answer was
                // read here. What that thread has to do is done first, so that no second connection is opened in this moment.
                let _ = runtime.spawn(tokio::task::yield_now()).await;
                let response = self.send(question).await?;
                if !is_redirect(response.status()) {
                    return self.judge(question, response);
                }
                if !matches!(question, Question::References) {
                    break;
                }
                let path = self.redirected(&response).ok_or_else(|| self.elsewhere())?;
                *self.path() = path;
                self.drain(response.into_body()).await;
            }
            Err(self.elsewhere())
        })
    }

    /// Waits for more of an answer; none at its end.
    pub(super) fn read(&self, answer: &mut Answer) -> Result<Option<Bytes>, SourceError> {
        runtime()?.block_on(async {
            loop {
                let frame = match self.patiently(answer.body.frame()).await? {
                    None => return Ok(None),
                    Some(Ok(frame)) => frame,
                    Some(Err(error)) => {
                        return Err(translate(&error, &self.url.host(), &self.credentials));
                    }
                };
                let Ok(data) = frame.into_data() else {
                    continue;
                };
                if let Some(rest) = &mut answer.rest {
                    *rest =
                        rest.checked_sub(data.len())
                            .ok_or_else(|| SourceError::PackTooLarge {
                                url: self.url.to_string(),
                                limit: limits::GIT_REFERENCES_SIZE_MAX,
                                unit: "bytes of references",
                            })?;
                }
                if !data.is_empty() {
                    return Ok(Some(data));
                }
            }
        })
    }

    /// Takes in the end of an answer that has been understood, so that its connection can be used again.
    pub(super) fn finish(&self, answer: Answer) {
        if let Ok(runtime) = runtime() {
            runtime.block_on(self.drain(answer.body));
        }
    }

    async fn drain(&self, mut body: Incoming) {
        let end = async { while let Some(Ok(_)) = body.frame().await {} };
        // When it takes longer, a new connection is cheaper.
        let _ = tokio::time::timeout(limits::GIT_DRAIN_PATIENCE, end).await;
    }

    /// Sends a request; once more when the connection ends before the answer begins, as one does that was kept for too long.
    /// Neither question changes anything on the server.
    async fn send(&self, question: &Question) -> Result<Response<Incoming>, SourceError> {
        let first = self.client.request(self.request(question)?);
        let error = match self.patiently(first).await? {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        let broke = |error: &hyper_util::client::legacy::Error| {
            let cause = error.source().and_then(|cause| cause.downcast_ref());
            cause.is_some_and(hyper::Error::is_incomplete_message)
        };
        let error = if broke(&error) {
            let second = self.client.request(self.request(question)?);
            match self.patiently(second).await? {
                Ok(response) => return Ok(response),
                Err(error) => error,
            }
        } else {
            error
        };
        Err(translate(&error, &self.url.host(), &self.credentials))
    }

    fn request(&self, question: &Question) -> Result<Request<Full<Bytes>>, SourceError> {
        let base = uri(&self.url);
        let authority = base.authority().map_or("", |authority| authority.as_str());
        let path = self.path().clone();
        let request = match question {
            Question::References => Request::get(format!(
                "https://{authority}{path}{REFERENCES}?{REFERENCES_QUERY}"
            )),
            Question::Pack(_) => Request::post(format!("https://{authority}{path}{PACK}"))
                .header(CONTENT_TYPE, "application/x-git-upload-pack-request")
                .header(ACCEPT, question.answer_type()),
        };
        let mut request = request.header(USER_AGENT, AGENT);
        if let Some(value) = self.credentials.authorization() {
            request = request.header(AUTHORIZATION, value);
        }
        let body = match question {
            Question::References => Bytes::new(),
            Question::Pack(words) => Bytes::copy_from_slice(words),
        };
        request
            .body(Full::new(body))
            .map_err(|error| SourceError::Network {
                host: self.url.host(),
                detail: self.credentials.redact(&error.to_string()),
            })
    }

    fn judge(
        &self,
        question: &Question,
        response: Response<Incoming>,
    ) -> Result<Answer, SourceError> {
        let (host, url) = (self.url.host(), self.url.to_string());
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => return Err(SourceError::Unauthorized { host }),
            StatusCode::FORBIDDEN => return Err(SourceError::Forbidden { host, url }),
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                return Err(SourceError::RepositoryNotFound { url });
            }
            status => {
                let status = status.as_u16();
                return Err(SourceError::Server { host, status });
            }
        }
        let told = response.headers().get(CONTENT_TYPE);
        let told = told.map_or("", |value| value.to_str().unwrap_or("?"));
        if told != question.answer_type() {
            let detail = self.credentials.redact(&format!(
                "it answers with content of type `{told}`, not as git does"
            ));
            return Err(SourceError::Network { host, detail });
        }
        Ok(Answer {
            body: response.into_body(),
            rest: matches!(question, Question::References)
                .then_some(limits::GIT_REFERENCES_SIZE_MAX),
        })
    }

    /// Returns the path to which the server points, where it stays on its host and port and with https.
    fn redirected(&self, response: &Response<Incoming>) -> Option<String> {
        let location = response.headers().get(LOCATION)?.to_str().ok()?;
        let base = uri(&self.url);
        moved(&base, location)
    }

    fn elsewhere(&self) -> SourceError {
        SourceError::Redirected {
            host: self.url.host(),
        }
    }

    /// Waits until something happens, but neither beyond the end of the fetch nor for a server that stays silent.
    async fn patiently<T>(&self, work: impl Future<Output = T>) -> Result<T, SourceError> {
        let silent = Instant::now() + limits::GIT_SERVER_TIMEOUT;
        let (deadline, whole) = self.deadline;
        let timeout = |after| {
            let host = self.url.host();
            Err(SourceError::Timeout { host, after })
        };
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.cancelled.cancelled() => timeout(whole),
            () = tokio::time::sleep_until(deadline) => timeout(whole),
            () = tokio::time::sleep_until(silent) => timeout(limits::GIT_SERVER_TIMEOUT),
        }
    }

    fn path(&self) -> std::sync::MutexGuard<'_, String> {
        self.path.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Question ===

impl Question {
    fn answer_type(&self) -> &'static str {
        match self {
            Self::References => "application/x-git-upload-pack-advertisement",
            Self::Pack(_) => "application/x-git-upload-pack-result",
        }
    }
}

fn uri(url: &SourceUrl) -> Uri {
    url.to_string()
        .parse()
        .expect("an https URL was parsed when it was checked")
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Returns the path of the repository behind a redirect of the references; none when it leads anywhere else.
fn moved(base: &Uri, location: &str) -> Option<String> {
    // A location that starts with two slashes names another host.
    let location = if location.starts_with('/') && !location.starts_with("//") {
        format!("https://{}{location}", base.authority()?)
    } else {
        location.to_owned()
    };
    let target: Uri = location.parse().ok()?;
    let authority = target.authority()?;
    let same = target.scheme_str() == Some("https")
        && !authority.as_str().contains('@')
        && authority.host().eq_ignore_ascii_case(base.host()?)
        && authority.port_u16().unwrap_or(443) == base.port_u16().unwrap_or(443)
        && target.query() == Some(REFERENCES_QUERY);
    let path = target.path().strip_suffix(REFERENCES)?;
    (same && !path.is_empty()).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/new.git/info/refs?service=git-upload-pack", Some("/new.git"))]
    #[case(
        "https://git.example.com:8443/new.git/info/refs?service=git-upload-pack",
        Some("/new.git")
    )]
    #[case(
        "https://GIT.example.com:8443/a/b/info/refs?service=git-upload-pack",
        Some("/a/b")
    )]
    #[case::downgraded(
        "http://git.example.com:8443/new.git/info/refs?service=git-upload-pack",
        None
    )]
    #[case::another_host(
        "https://git.example.org:8443/new.git/info/refs?service=git-upload-pack",
        None
    )]
    #[case::another_port(
        "https://git.example.com/new.git/info/refs?service=git-upload-pack",
        None
    )]
    #[case::another_host_in_short(
        "//git.example.org/new.git/info/refs?service=git-upload-pack",
        None
    )]
    #[case::credentials(
        "https://a@git.example.com:8443/new.git/info/refs?service=git-upload-pack",
        None
    )]
    #[case::a_page_to_sign_in("https://git.example.com:8443/login?next=new.git", None)]
    #[case::no_repository("/info/refs?service=git-upload-pack", None)]
    #[case::another_service("/new.git/info/refs?service=git-receive-pack", None)]
    #[case::relative("new.git/info/refs?service=git-upload-pack", None)]
    #[case::nothing("", None)]
    fn a_redirect_stays_on_the_host(#[case] location: &str, #[case] path: Option<&str>) {
        let base = Uri::from_static("https://git.example.com:8443/old.git");
        assert_eq!(moved(&base, location).as_deref(), path);
    }
}
