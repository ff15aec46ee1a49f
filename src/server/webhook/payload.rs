//! What a verified delivery announces: repositories and references, and nothing else is read of it.

use http::HeaderMap;

use super::bodies::change;
use super::repository::RepositoryName;
use super::verify::STANDARD_ID;
use crate::model::api::WebhookProvider;

/// Characters of an event or an id that are kept.
const WORD_MAX: usize = 64;

/// What a delivery says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The event, as the forge calls it; printable and short.
    pub event: String,
    /// The forge's id for the delivery.
    pub id: Option<String>,
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Ping,
    Other,
    /// Too large to be read: it may announce anything.
    Unknown,
    Change(Change),
}

/// What a push has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) repositories: Vec<RepositoryName>,
    pub(super) references: Vec<Named>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Named {
    Branch(String),
    Tag(String),
}

/// What a source follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// The repository; none for a directory on this machine.
    pub repository: Option<RepositoryName>,
    /// What of it.
    pub reference: FollowedReference,
}

/// The part of a repository that a source follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowedReference {
    /// A branch.
    Branch(String),
    /// One tag.
    Tag(String),
    /// Whichever tag is the highest.
    AnyTag,
    /// One commit, which no push changes.
    Commit,
}

/// What became of a delivery with a valid signature. The words are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryResult {
    /// It announces a change of what the source follows: git is looked at.
    Announced,
    /// It does, but the source is suspended.
    Suspended,
    /// It only asks whether anybody is there.
    Ping,
    /// It names another repository.
    OtherRepository,
    /// It names other branches or tags.
    OtherReference,
    /// It is about something else than a push.
    OtherEvent,
    /// It was delivered before.
    Repeated,
    /// It is signed, but cannot be read.
    Unreadable,
}

/// Why a verified delivery cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is in no form that is read.
    #[error("the content type must be application/json or application/x-www-form-urlencoded")]
    ContentType,
    /// It is a form, without the field that holds the payload.
    #[error("the form has no field `payload`")]
    Form,
    /// It is not what this provider sends.
    #[error("the payload is not what {provider:?} sends")]
    Json {
        /// The provider of the source.
        provider: WebhookProvider,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

// === impl Announcement ===

impl Announcement {
    /// Reads a delivery; without a body, which was too large to be kept, all that is known is that there was one.
    ///
    /// # Errors
    ///
    /// When it is not what the provider sends.
    pub fn read(
        provider: WebhookProvider,
        headers: &HeaderMap,
        body: Option<&[u8]>,
    ) -> Result<Self, Unreadable> {
        let (event, id) = Self::head(provider, headers);
        let content = match (kind(provider, &event), body) {
            (Kind::Ping, _) => Content::Ping,
            (Kind::Other, _) => Content::Other,
            (Kind::Change, None) => Content::Unknown,
            (Kind::Change, Some(body)) => Content::Change(change(provider, headers, body)?),
        };
        Ok(Self { event, id, content })
    }

    /// Reads the event and the forge's id for the delivery, from its headers alone.
    pub fn head(provider: WebhookProvider, headers: &HeaderMap) -> (String, Option<String>) {
        (event(provider, headers), id(provider, headers))
    }

    /// Compares with what a source follows.
    pub fn judge(&self, followed: &Followed) -> DeliveryResult {
        let Change {
            repositories,
            references,
        } = match &self.content {
            Content::Ping => return DeliveryResult::Ping,
            Content::Other => return DeliveryResult::OtherEvent,
            Content::Unknown => return DeliveryResult::Announced,
            Content::Change(change) => change,
        };
        let ours = followed.repository.as_ref();
        if !ours.is_some_and(|ours| repositories.contains(ours)) {
            return DeliveryResult::OtherRepository;
        }
        let named = references.iter().any(|named| followed.reference.is(named));
        if named {
            DeliveryResult::Announced
        } else {
            DeliveryResult::OtherReference
        }
    }
}

impl FollowedReference {
    fn is(&self, named: &Named) -> bool {
        match (self, named) {
            (Self::Branch(one), Named::Branch(other)) | (Self::Tag(one), Named::Tag(other)) => {
                one == other
            }
            (Self::AnyTag, Named::Tag(_)) => true,
            _ => false,
        }
    }
}

impl Named {
    pub(super) fn of(full: &str) -> Option<Self> {
        if let Some(branch) = full.strip_prefix("refs/heads/") {
            return Some(Self::Branch(branch.to_owned()));
        }
        let tag = full.strip_prefix("refs/tags/")?;
        Some(Self::Tag(tag.to_owned()))
    }

    pub(super) fn of_type(type_: &str, name: &str) -> Option<Self> {
        match type_ {
            "branch" => Some(Self::Branch(name.to_owned())),
            "tag" => Some(Self::Tag(name.to_owned())),
            _ => None,
        }
    }
}

impl DeliveryResult {
    /// Returns the word as it is written in statuses and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Announced => "Announced",
            Self::Suspended => "Suspended",
            Self::Ping => "Ping",
            Self::OtherRepository => "OtherRepository",
            Self::OtherReference => "OtherReference",
            Self::OtherEvent => "OtherEvent",
            Self::Repeated => "Repeated",
            Self::Unreadable => "Unreadable",
        }
    }
}

// === headers ===

enum Kind {
    Ping,
    Change,
    Other,
}

/// Returns the headers with the event and the id of a delivery.
pub(super) fn names(provider: WebhookProvider) -> (&'static str, &'static [&'static str]) {
    match provider {
        WebhookProvider::GitHub => ("x-github-event", &["x-github-delivery"]),
        WebhookProvider::GitLab => ("x-gitlab-event", &[STANDARD_ID, "x-gitlab-event-uuid"]),
        WebhookProvider::Gitea => ("x-gitea-event", &["x-gitea-delivery"]),
        WebhookProvider::Forgejo => ("x-forgejo-event", &["x-forgejo-delivery"]),
        // Cloud calls it UUID, Data Center Id.
        WebhookProvider::Bitbucket => ("x-event-key", &["x-request-uuid", "x-request-id"]),
        WebhookProvider::Generic => ("x-event", &["x-delivery"]),
    }
}

fn event(provider: WebhookProvider, headers: &HeaderMap) -> String {
    let unnamed = match provider {
        WebhookProvider::Generic => "push",
        _ => "",
    };
    word(headers, names(provider).0).unwrap_or_else(|| unnamed.to_owned())
}

fn id(provider: WebhookProvider, headers: &HeaderMap) -> Option<String> {
    names(provider)
        .1
        .iter()
        .find_map(|name| word(headers, name))
}

fn word(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    (!text.is_empty()).then(|| text.chars().take(WORD_MAX).collect())
}

fn kind(provider: WebhookProvider, event: &str) -> Kind {
    let event = event.to_ascii_lowercase();
    match (provider, event.as_str()) {
        (WebhookProvider::GitLab, "push hook" | "tag push hook" | "system hook")
        | (
            WebhookProvider::Bitbucket,
            "repo:push" | "repo:refs_changed" | "mirror:repo_synchronized",
        ) => Kind::Change,
        (WebhookProvider::Bitbucket, "diagnostics:ping") => Kind::Ping,
        (WebhookProvider::GitLab | WebhookProvider::Bitbucket, _) => Kind::Other,
        (_, "ping") => Kind::Ping,
        // A tag is announced by both.
        (_, "push" | "create") => Kind::Change,
        _ => Kind::Other,
    }
}
