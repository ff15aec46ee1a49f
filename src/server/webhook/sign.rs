//! A delivery as a forge would make it: for trying out what was registered.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::keys::{Keys, hex};
use super::payload::names;
use super::verify::{
    GITLAB_TOKEN, STANDARD_ID, STANDARD_SIGNATURE, STANDARD_TIMESTAMP, signature_header,
};
use crate::model::api::WebhookProvider;

/// A delivery, ready to be sent. The headers may hold the token: they are for the receiver only.
pub struct SignedDelivery {
    /// The headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Makes the delivery of a push to `reference` (written in full, `refs/heads/main`) of the repository at `url`.
pub fn signed_push(
    provider: WebhookProvider,
    keys: &Keys,
    (url, reference): (&str, &str),
    id: &str,
    now: Timestamp,
) -> SignedDelivery {
    let body = body(provider, url, reference).to_string().into_bytes();
    let event = match (provider, reference.starts_with("refs/tags/")) {
        (WebhookProvider::GitLab, false) => "Push Hook",
        (WebhookProvider::GitLab, true) => "Tag Push Hook",
        (WebhookProvider::Bitbucket, _) => "repo:refs_changed",
        _ => "push",
    };
    let (event_header, id_headers) = names(provider);
    let mut headers = vec![
        ("content-type", "application/json".to_owned()),
        (event_header, event.to_owned()),
    ];
    let token = keys.present();
    if let (WebhookProvider::GitLab, Some(key)) = (provider, &token.signing) {
        let timestamp = now.as_second().to_string();
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
        context.update(format!("{id}.{timestamp}.").as_bytes());
        context.update(&body);
        let signature = STANDARD.encode(context.sign());
        headers.push((STANDARD_ID, id.to_owned()));
        headers.push((STANDARD_TIMESTAMP, timestamp));
        headers.push((STANDARD_SIGNATURE, format!("v1,{signature}")));
        return SignedDelivery { headers, body };
    }
    headers.push((id_headers[id_headers.len() - 1], id.to_owned()));
    match signature_header(provider) {
        Some((header, prefix)) => {
            let tag = hmac::sign(&token.key(), &body);
            headers.push((header, format!("{prefix}{}", hex(tag.as_ref()))));
        }
        None => headers.push((GITLAB_TOKEN, token.text().to_owned())),
    }
    SignedDelivery { headers, body }
}

fn body(provider: WebhookProvider, url: &str, reference: &str) -> Value {
    match provider {
        WebhookProvider::GitLab => json!({"ref": reference, "project": {"git_http_url": url}}),
        WebhookProvider::Bitbucket => json!({
            "repository": {"links": {"clone": [{"href": url, "name": "http"}]}},
            "changes": [{"ref": {"id": reference}}],
        }),
        WebhookProvider::Generic => json!({"repository": url, "ref": reference}),
        WebhookProvider::GitHub | WebhookProvider::Gitea | WebhookProvider::Forgejo => {
            json!({"ref": reference, "repository": {"clone_url": url}})
        }
    }
}
