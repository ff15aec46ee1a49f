//! The bodies of the forges: of each only the fields that name a repository and a reference.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::payload::{Change, Named, Unreadable};
use super::repository::RepositoryName;
use crate::model::api::WebhookProvider;

/// The fields of GitHub, Gitea and Forgejo.
#[derive(Deserialize)]
struct Push {
    #[serde(rename = "ref")]
    reference: String,
    /// Only in `create`, whose reference is a short name.
    ref_type: Option<String>,
    repository: PushRepository,
}

#[derive(Deserialize)]
struct PushRepository {
    #[serde(rename = "clone_url")]
    https: Option<String>,
    #[serde(rename = "ssh_url")]
    ssh: Option<String>,
    #[serde(rename = "html_url")]
    page: Option<String>,
}

/// The fields of GitLab. A system hook about something else than a push has none of them.
#[derive(Deserialize)]
struct GitLabPush {
    #[serde(rename = "ref")]
    reference: Option<String>,
    project: Option<GitLabProject>,
}

#[derive(Deserialize)]
struct GitLabProject {
    #[serde(rename = "git_http_url")]
    https: Option<String>,
    #[serde(rename = "git_ssh_url")]
    ssh: Option<String>,
    #[serde(rename = "web_url")]
    page: Option<String>,
}

/// The fields of Bitbucket: `push` in Cloud, `changes` in Data Center.
#[derive(Deserialize)]
struct BitbucketPush {
    repository: BitbucketRepository,
    push: Option<CloudPush>,
    #[serde(default)]
    changes: Vec<CenterChange>,
}

#[derive(Deserialize)]
struct BitbucketRepository {
    links: BitbucketLinks,
}

#[derive(Deserialize)]
struct BitbucketLinks {
    /// The page of the repository in Cloud; its path is the one that is cloned.
    html: Option<Link>,
    #[serde(default)]
    clone: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    href: String,
}

#[derive(Deserialize)]
struct CloudPush {
    changes: Vec<CloudChange>,
}

#[derive(Deserialize)]
struct CloudChange {
    new: Option<CloudReference>,
    old: Option<CloudReference>,
}

#[derive(Deserialize)]
struct CloudReference {
    #[serde(rename = "type")]
    type_: String,
    name: String,
}

#[derive(Deserialize)]
struct CenterChange {
    #[serde(rename = "ref")]
    reference: CenterReference,
}

#[derive(Deserialize)]
struct CenterReference {
    id: String,
}

/// The fields that anything else has to send.
#[derive(Deserialize)]
struct GenericPush {
    repository: String,
    #[serde(rename = "ref")]
    reference: String,
}

/// Reads what a push has changed.
pub(super) fn change(
    provider: WebhookProvider,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Change, Unreadable> {
    let json = json_of(headers, body)?;
    let (urls, references) = match provider {
        WebhookProvider::GitLab => gitlab(parse(provider, &json)?),
        WebhookProvider::Bitbucket => bitbucket(parse(provider, &json)?),
        WebhookProvider::Generic => {
            let push: GenericPush = parse(provider, &json)?;
            let named = Named::of(&push.reference);
            (vec![Some(push.repository)], named.into_iter().collect())
        }
        WebhookProvider::GitHub | WebhookProvider::Gitea | WebhookProvider::Forgejo => {
            github(parse(provider, &json)?)
        }
    };
    let urls = urls.iter().flatten();
    Ok(Change {
        repositories: urls.filter_map(|url| RepositoryName::of(url)).collect(),
        references,
    })
}

type Urls = Vec<Option<String>>;

fn github(push: Push) -> (Urls, Vec<Named>) {
    let named = match &push.ref_type {
        Some(type_) => Named::of_type(type_, &push.reference),
        None => Named::of(&push.reference),
    };
    let repository = push.repository;
    let urls = vec![repository.https, repository.ssh, repository.page];
    (urls, named.into_iter().collect())
}

fn gitlab(push: GitLabPush) -> (Urls, Vec<Named>) {
    let named = push.reference.as_deref().and_then(Named::of);
    let urls = push.project.map_or_else(Vec::new, |project| {
        vec![project.https, project.ssh, project.page]
    });
    (urls, named.into_iter().collect())
}

fn bitbucket(push: BitbucketPush) -> (Urls, Vec<Named>) {
    let cloud = push.push.into_iter().flat_map(|push| push.changes);
    let cloud = cloud
        .flat_map(|change| [change.new, change.old])
        .flatten()
        .filter_map(|reference| Named::of_type(&reference.type_, &reference.name));
    let center = push.changes.iter();
    let center = center.filter_map(|change| Named::of(&change.reference.id));
    let references = cloud.chain(center).collect();
    let links = push.repository.links;
    let urls = links.html.into_iter().chain(links.clone);
    (urls.map(|link| Some(link.href)).collect(), references)
}

fn parse<T: DeserializeOwned>(provider: WebhookProvider, json: &[u8]) -> Result<T, Unreadable> {
    serde_json::from_slice(json).map_err(|source| Unreadable::Json { provider, source })
}

/// Takes the JSON out of a body: all of it, or the field of a form, as GitHub and Gitea can be told to send it.
fn json_of<'a>(headers: &HeaderMap, body: &'a [u8]) -> Result<Cow<'a, [u8]>, Unreadable> {
    let type_ = headers
        .get(CONTENT_TYPE)
        .and_then(|type_| type_.to_str().ok());
    let type_ = type_.unwrap_or_default().split(';').next();
    match type_
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
        .as_str()
    {
        "application/json" => Ok(body.into()),
        "application/x-www-form-urlencoded" => form_urlencoded::parse(body)
            .find(|(name, _)| name == "payload")
            .map(|(_, payload)| payload.into_owned().into_bytes().into())
            .ok_or(Unreadable::Form),
        _ => Err(Unreadable::ContentType),
    }
}
