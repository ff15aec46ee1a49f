//! What can go wrong with a request, and whether trying again can help.

use std::time::Duration;

use http::StatusCode;
use http_body_util::LengthLimitError;
use kube::core::Status;

use crate::model::{ClusterUid, GroupKind, limits};

/// A request that did not do what it should.
///
/// `request` names it in words (`apply ConfigMap default/a`). Messages of the server are cut to a bound, and for Secrets to the
/// reason and the names of fields, since the text may quote values.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The object, or the namespace that it should live in, is not there.
    #[error("failed to {request}: not found: {message}")]
    NotFound {
        /// The request in words.
        request: String,
        /// The server's message.
        message: String,
    },
    /// The cluster serves no such kind, or not in this version.
    #[error("the cluster does not serve {kind} in version {version}")]
    KindUnknown {
        /// The kind.
        kind: GroupKind,
        /// The version that was asked for.
        version: String,
    },
    /// The API group exists, but the server behind it does not answer, so nothing can be said about its kinds.
    #[error("the API group {group} is not available now")]
    GroupUnavailable {
        /// The group.
        group: String,
    },
    /// The account may not do this; the message names the rule that is missing.
    #[error("failed to {request}: forbidden: {message}")]
    Forbidden {
        /// The request in words.
        request: String,
        /// The server's message.
        message: String,
    },
    /// The credentials are missing, wrong or expired.
    #[error("failed to {request}: the credentials are not accepted")]
    Unauthorized {
        /// The request in words.
        request: String,
    },
    /// Somebody else has written in between, or a precondition does not hold.
    #[error("failed to {request}: conflict: {message}")]
    Conflict {
        /// The request in words.
        request: String,
        /// The server's message.
        message: String,
    },
    /// The change is to a field that cannot be changed in place.
    #[error("failed to {request}: `{field}` cannot be changed in place: {message}")]
    Immutable {
        /// The request in words.
        request: String,
        /// The field, as the server names it; several are joined by a comma.
        field: String,
        /// The server's message.
        message: String,
    },
    /// A list or watch cannot go on from where it was; it has to begin anew.
    #[error("failed to {request}: it is too old to go on from")]
    Expired {
        /// The request in words.
        request: String,
    },
    /// The server refuses the object as it is.
    #[error("failed to {request}: refused: {message}")]
    Invalid {
        /// The request in words.
        request: String,
        /// The server's message.
        message: String,
    },
    /// The server asks for fewer requests.
    #[error("failed to {request}: too many requests")]
    TooManyRequests {
        /// The request in words.
        request: String,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },
    /// The server cannot be reached, or says that it cannot serve now.
    #[error("failed to {request}: the server is unavailable: {message}")]
    Unavailable {
        /// The request in words.
        request: String,
        /// What was said or seen.
        message: String,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
        /// Whether the request may have reached the server, so that it is not known whether it took effect.
        reached: bool,
    },
    /// There was no answer in time. Whether the request took effect is not known.
    #[error("failed to {request}: no answer within {} s", after.as_secs())]
    Timeout {
        /// The request in words.
        request: String,
        /// The deadline.
        after: Duration,
    },
    /// The answer is larger than the limit. Whether the request took effect is not known.
    #[error("failed to {request}: the answer is larger than {limit} bytes")]
    AnswerTooLarge {
        /// The request in words.
        request: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The answer is not what an API server sends. Whether the request took effect is not known.
    #[error("failed to {request}: the answer cannot be read: {message}")]
    AnswerInvalid {
        /// The request in words.
        request: String,
        /// What is wrong with it.
        message: String,
    },
    /// The process does not hold the lease any more under which this write was begun; nothing was sent, or what was sent was
    /// given up before its answer.
    #[error("failed to {request}: this process does not hold the lease any more")]
    ClaimLost {
        /// The request in words.
        request: String,
    },
    /// The cluster is not the one that was expected.
    #[error("this is cluster {found}, but {expected} was expected")]
    Identity {
        /// The uid that was expected.
        expected: ClusterUid,
        /// The uid that was found.
        found: ClusterUid,
    },
    /// Nothing is done for a source, since the account that it names cannot be acted as.
    #[error("failed to act as ServiceAccount {account}: {message}")]
    Account {
        /// The account.
        account: String,
        /// Why, and the way out.
        message: String,
    },
    /// The name of the server leads where nobody's cluster is.
    #[error("the address of {host} is refused: {reason}")]
    Address {
        /// The name.
        host: String,
        /// Why.
        reason: &'static str,
    },
    /// The connection settings cannot be used.
    #[error("the connection settings cannot be used")]
    Settings {
        /// What is wrong with them.
        #[source]
        source: kube::Error,
    },
    /// Anything else that the server says.
    #[error("failed to {request}: answer {status}: {message}")]
    Other {
        /// The request in words.
        request: String,
        /// The HTTP status code.
        status: u16,
        /// The server's message.
        message: String,
    },
}

impl ClusterError {
    /// Returns whether the same request may succeed later without anybody changing anything.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::GroupUnavailable { .. }
            | Self::Conflict { .. }
            | Self::Expired { .. }
            | Self::TooManyRequests { .. }
            | Self::Unavailable { .. }
            | Self::Timeout { .. }
            | Self::AnswerInvalid { .. } => true,
            Self::Other { status, .. } => *status >= 500,
            Self::NotFound { .. }
            | Self::KindUnknown { .. }
            | Self::Forbidden { .. }
            | Self::Unauthorized { .. }
            | Self::Immutable { .. }
            | Self::Invalid { .. }
            | Self::AnswerTooLarge { .. }
            // Whoever leads next decides anew.
            | Self::ClaimLost { .. }
            | Self::Identity { .. }
            | Self::Account { .. }
            | Self::Address { .. }
            | Self::Settings { .. } => false,
        }
    }

    /// Returns whether a field stands in the way that cannot be changed in place.
    pub fn is_immutable(&self) -> bool {
        matches!(self, Self::Immutable { .. })
    }

    /// Returns whether it is certain that nothing came of a request that failed in a way that may pass: the server turned it
    /// away, or was not reached at all. It speaks of one attempt.
    pub fn is_without_effect(&self) -> bool {
        matches!(
            self,
            Self::GroupUnavailable { .. }
                | Self::TooManyRequests { .. }
                | Self::Unavailable { reached: false, .. }
        )
    }

    /// Returns how long the server asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyRequests { retry_after, .. } | Self::Unavailable { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }

    /// Makes the error for an answer that is no success.
    pub(super) fn from_answer(
        words: Words<'_>,
        code: StatusCode,
        retry_after: Option<Duration>,
        body: &[u8],
    ) -> Self {
        // What is no Status comes from something between us and the server, or from a path that is not served.
        let status = serde_json::from_slice::<Status>(body)
            .unwrap_or_else(|_| Status::failure(&String::from_utf8_lossy(body), ""));
        Self::from_status(words, code.as_u16(), retry_after, &status)
    }

    /// Makes the error for a failure as the server describes it.
    pub(super) fn from_status(
        words: Words<'_>,
        code: u16,
        retry_after: Option<Duration>,
        status: &Status,
    ) -> Self {
        let asked = status
            .details
            .as_ref()
            .map_or(0, |details| details.retry_after_seconds);
        let retry_after =
            retry_after.or((asked > 0).then(|| Duration::from_secs(u64::from(asked))));
        let request = words.request.to_owned();
        let message = words.sanitise(status);
        match code {
            // An apply with a field that the schema has not, or of another type, is answered as if the server had failed.
            500 if status
                .message
                .starts_with("failed to create typed patch object") =>
            {
                Self::Invalid { request, message }
            }
            400 | 413 | 415 => Self::Invalid { request, message },
            401 => Self::Unauthorized { request },
            403 => Self::Forbidden { request, message },
            404 => Self::NotFound { request, message },
            409 => Self::Conflict { request, message },
            410 => Self::Expired { request },
            422 => match immutable_fields(status) {
                Some(field) => Self::Immutable {
                    request,
                    field,
                    message,
                },
                None => Self::Invalid { request, message },
            },
            429 => Self::TooManyRequests {
                request,
                retry_after,
            },
            502..=504 => Self::Unavailable {
                request,
                message,
                retry_after,
                // Only 503 says that nothing was tried.
                reached: code != 503,
            },
            code => Self::Other {
                request,
                status: code,
                message,
            },
        }
    }

    /// Makes the error for an answer that is not the JSON it should be. The parser's own words may quote values; where it
    /// stopped says enough.
    pub(super) fn unreadable(words: Words<'_>, error: &serde_json::Error) -> Self {
        Self::AnswerInvalid {
            request: words.request.to_owned(),
            message: format!("{:?} error at byte {}", error.classify(), error.column()),
        }
    }

    /// Makes the error for a request that got no answer, or not all of it.
    pub(super) fn from_transport(words: Words<'_>, error: &kube::Error) -> Self {
        let request = words.request.to_owned();
        let chain = || std::iter::successors(Some(error as &dyn std::error::Error), |e| e.source());
        if chain().any(<dyn std::error::Error>::is::<LengthLimitError>) {
            return Self::AnswerTooLarge {
                request,
                limit: limits::RESPONSE_SIZE_MAX,
            };
        }
        match error {
            kube::Error::Api(status) => return Self::from_status(words, status.code, None, status),
            kube::Error::Auth(_) => return Self::Unauthorized { request },
            kube::Error::SerdeError(error) => return Self::unreadable(words, error),
            _ => {}
        }
        // The innermost error says most: `connection refused`, `invalid peer certificate`.
        let message = chain().last().map(ToString::to_string).unwrap_or_default();
        Self::Unavailable {
            request,
            message: bounded(&message),
            retry_after: None,
            reached: !chain().any(|error| {
                let error = error.downcast_ref::<hyper_util::client::legacy::Error>();
                error.is_some_and(hyper_util::client::legacy::Error::is_connect)
            }),
        }
    }
}

/// A request in words, and whether the server's words about it may be repeated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words<'a> {
    /// The request.
    pub(super) request: &'a str,
    /// Whether the object may hold secret values that a message could quote.
    pub(super) secret: bool,
}

impl Words<'_> {
    fn sanitise(self, status: &Status) -> String {
        if !self.secret {
            return bounded(&status.message);
        }
        let fields = cause_fields(status).join(", ");
        match (status.reason.as_str(), fields.as_str()) {
            ("", "") => "no reason was given".to_owned(),
            (reason, "") => bounded(reason),
            (reason, fields) => bounded(&format!("{reason}: {fields}")),
        }
    }
}

fn bounded(message: &str) -> String {
    let message = message.trim();
    if message.len() <= limits::SERVER_MESSAGE_MAX {
        return message.to_owned();
    }
    let mut end = limits::SERVER_MESSAGE_MAX;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &message[..end])
}

fn cause_fields(status: &Status) -> Vec<&str> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .map(|cause| cause.field.as_str())
        .filter(|field| !field.is_empty())
        .collect()
}

/// Kubernetes has no reason of its own for "this field cannot change"; these are the words of its validations.
const IMMUTABLE_WORDS: [&str; 4] = [
    "immutable",
    "may not change once set",
    "cannot change roleRef",
    "updates to ",
];

fn immutable_fields(status: &Status) -> Option<String> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let fields: Vec<&str> = causes
        .filter(|cause| {
            IMMUTABLE_WORDS
                .iter()
                .any(|words| cause.message.contains(words))
        })
        .map(|cause| cause.field.as_str())
        .collect();
    (!fields.is_empty()).then(|| fields.join(", "))
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
