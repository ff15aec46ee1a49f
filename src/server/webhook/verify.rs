//! Whether a delivery comes from somebody who holds the token: over the raw bytes, as they arrive, before anything is read.

use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::keys::{Keys, Token};
use crate::model::api::WebhookProvider;
use crate::model::limits::WEBHOOK_CLOCK_SKEW;

/// The headers of Standard Webhooks, which GitLab sends with a signing token.
pub(super) const STANDARD_ID: &str = "webhook-id";
pub(super) const STANDARD_TIMESTAMP: &str = "webhook-timestamp";
pub(super) const STANDARD_SIGNATURE: &str = "webhook-signature";
/// The header with GitLab's secret token in plain text.
pub(super) const GITLAB_TOKEN: &str = "x-gitlab-token";

/// Signatures in one header that are looked at: one for each key that a sender may be changing between.
const SIGNATURES_MAX: usize = 4;

/// Verifies one delivery, part by part.
pub struct Verifier {
    candidates: Vec<Candidate>,
}

/// One token that could have signed.
struct Candidate {
    context: hmac::Context,
    /// What the delivery says that the signature is.
    claimed: Vec<[u8; 32]>,
    /// The token itself was sent, and is right.
    shown: bool,
}

/// Identifies what was signed: 64 bits of a digest under the token, so that it tells nothing about the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(pub u64);

/// The delivery was not made by somebody who holds the token, or was made too long ago. There is no more to say to anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the signature is missing or wrong")]
pub struct Refused;

// === impl Verifier ===

impl Verifier {
    /// Begins with the headers.
    ///
    /// # Errors
    ///
    /// When they hold no signature that could be right, so that the body need not be read.
    pub fn new(
        provider: WebhookProvider,
        keys: &Keys,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> Result<Self, Refused> {
        let candidates: Vec<Candidate> = keys
            .tokens
            .iter()
            .filter_map(|token| match provider {
                WebhookProvider::GitLab => gitlab(token, headers, now),
                _ => signed_body(provider, token, headers),
            })
            .collect();
        if candidates.is_empty() {
            return Err(Refused);
        }
        Ok(Self { candidates })
    }

    /// Takes the next part of the body.
    pub fn update(&mut self, part: &[u8]) {
        for candidate in &mut self.candidates {
            candidate.context.update(part);
        }
    }

    /// Decides, once the whole body was taken.
    ///
    /// # Errors
    ///
    /// When no token has signed it.
    pub fn finish(self) -> Result<Fingerprint, Refused> {
        let mut verified = Err(Refused);
        for candidate in self.candidates {
            let tag = candidate.context.sign();
            let mut valid = candidate.shown;
            for claimed in &candidate.claimed {
                valid |= equal(claimed, tag.as_ref());
            }
            if valid {
                verified = Ok(Fingerprint::of(tag.as_ref()));
            }
        }
        verified
    }
}

impl Fingerprint {
    fn of(tag: &[u8]) -> Self {
        Self(first_eight(&Sha256::digest(tag)))
    }

    /// Returns the digest of this and the forge's id for the delivery, by which a repeated one is recognised.
    pub fn with_id(self, id: &str) -> u64 {
        let mut hasher = Sha256::new();
        hasher.update(self.0.to_be_bytes());
        hasher.update(id.as_bytes());
        first_eight(&hasher.finalize())
    }
}

fn first_eight(digest: &[u8]) -> u64 {
    digest
        .iter()
        .take(8)
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The one comparison of secrets: takes the same time wherever they differ.
pub(super) fn equal(one: &[u8], other: &[u8]) -> bool {
    verify_slices_are_equal(one, other).is_ok()
}

/// HMAC-SHA256 of the body, in hexadecimal digits.
fn signed_body(provider: WebhookProvider, token: &Token, headers: &HeaderMap) -> Option<Candidate> {
    let (header, prefix) = signature_header(provider)?;
    let text = headers.get(header)?.to_str().ok()?;
    let claimed = from_hex(text.strip_prefix(prefix)?)?;
    Some(Candidate {
        context: hmac::Context::with_key(&token.key()),
        claimed: vec![claimed],
        shown: false,
    })
}

/// Returns the header in which a forge sends the signature of the body, and what stands before the digits.
pub(super) fn signature_header(provider: WebhookProvider) -> Option<(&'static str, &'static str)> {
    match provider {
        WebhookProvider::GitHub => Some(("x-hub-signature-256", "sha256=")),
        WebhookProvider::Gitea => Some(("x-gitea-signature", "")),
        WebhookProvider::Forgejo => Some(("x-forgejo-signature", "")),
        WebhookProvider::Bitbucket => Some(("x-hub-signature", "sha256=")),
        WebhookProvider::Generic => Some(("x-signature", "sha256=")),
        WebhookProvider::GitLab => None,
    }
}

/// A signing token demands the signature of id, time and body; any other token is compared as it was sent.
fn gitlab(token: &Token, headers: &HeaderMap, now: Timestamp) -> Option<Candidate> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let Some(key) = &token.signing else {
        let sent = headers.get(GITLAB_TOKEN)?.as_bytes();
        return equal(sent, token.text().as_bytes()).then(|| Candidate {
            context: hmac::Context::with_key(&token.key()),
            claimed: Vec::new(),
            shown: true,
        });
    };
    let (id, timestamp) = (text(STANDARD_ID)?, text(STANDARD_TIMESTAMP)?);
    let sent = Timestamp::from_second(timestamp.parse().ok()?).ok()?;
    let apart = Duration::try_from(now.duration_since(sent).abs()).ok()?;
    if apart > WEBHOOK_CLOCK_SKEW {
        return None;
    }
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    context.update(format!("{id}.{timestamp}.").as_bytes());
    let claimed = text(STANDARD_SIGNATURE)?
        .split(' ')
        .filter_map(|part| {
            STANDARD
                .decode(part.strip_prefix("v1,")?)
                .ok()?
                .try_into()
                .ok()
        })
        .take(SIGNATURES_MAX)
        .collect();
    Some(Candidate {
        context,
        claimed,
        shown: false,
    })
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
    }
    Some(bytes)
}
