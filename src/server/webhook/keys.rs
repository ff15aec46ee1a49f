//! The tokens of one source, and what is derived from them.

use std::fmt;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::model::limits::WEBHOOK_TOKEN_MIN;

/// What the path of every webhook begins with.
const PATH_PREFIX: &str = "/hook/";
/// Says what a path is derived for, so that it never equals the signature of a body.
const PATH_PURPOSE: &[u8] = b"fairway webhook path\0";
/// What a signing token of Standard Webhooks begins with; the rest is the key in Base64.
const SIGNING_TOKEN_PREFIX: &str = "whsec_";

/// The token of a source, and the one before it while both are valid. `Debug` never shows them.
#[derive(Clone)]
pub struct Keys {
    pub(super) tokens: Vec<Token>,
}

/// One token.
#[derive(Clone)]
pub(super) struct Token {
    text: String,
    /// The decoded key, where the token is a signing token of Standard Webhooks.
    pub(super) signing: Option<Vec<u8>>,
}

/// Why a token cannot be used. It never repeats the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is none.
    #[error("it has no key `token`")]
    Missing,
    /// It could be guessed.
    #[error(
        "`{key}` is shorter than {WEBHOOK_TOKEN_MIN} characters: make one with `openssl rand -hex 32`"
    )]
    Short {
        /// The key of the Secret.
        key: &'static str,
    },
    /// No forge would send it like that.
    #[error(
        "`{key}` holds a line break or another control character: write it with `printf %s`, not with `echo`"
    )]
    Characters {
        /// The key of the Secret.
        key: &'static str,
    },
    /// It is announced as a signing token, and is none.
    #[error(
        "`{key}` begins with whsec_, and what follows is not Base64: copy it from the forge anew"
    )]
    SigningToken {
        /// The key of the Secret.
        key: &'static str,
    },
}

// === impl Keys ===

impl Keys {
    /// Reads the values of the Secret's keys `token` and `tokenPrevious`.
    ///
    /// # Errors
    ///
    /// When one of them is unusable, or the first one is missing.
    pub fn new(token: Option<&[u8]>, previous: Option<&[u8]>) -> Result<Self, KeyError> {
        let token = Token::new("token", token.ok_or(KeyError::Missing)?)?;
        let previous = previous
            .map(|bytes| Token::new("tokenPrevious", bytes))
            .transpose()?;
        Ok(Self {
            tokens: std::iter::once(token).chain(previous).collect(),
        })
    }

    /// Returns the path of each token, the present one first: `/hook/` and the HMAC-SHA256 of the source's namespace and
    /// name under the token. So nobody who does not know the token can tell it, and it differs for every source.
    pub fn paths(&self, namespace: &str, source: &str) -> Vec<String> {
        let path = |token: &Token| {
            let mut context = hmac::Context::with_key(&token.key());
            context.update(PATH_PURPOSE);
            context.update(namespace.as_bytes());
            context.update(b"\0");
            context.update(source.as_bytes());
            format!("{PATH_PREFIX}{}", hex(context.sign().as_ref()))
        };
        self.tokens.iter().map(path).collect()
    }

    /// Returns the token that is valid from now on.
    pub(super) fn present(&self) -> &Token {
        &self.tokens[0]
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({} tokens)", self.tokens.len())
    }
}

// === impl Token ===

impl Token {
    fn new(key: &'static str, bytes: &[u8]) -> Result<Self, KeyError> {
        let text = std::str::from_utf8(bytes).map_err(|_| KeyError::Characters { key })?;
        if text.chars().any(char::is_control) {
            return Err(KeyError::Characters { key });
        }
        if text.len() < WEBHOOK_TOKEN_MIN {
            return Err(KeyError::Short { key });
        }
        let signing = match text.strip_prefix(SIGNING_TOKEN_PREFIX) {
            Some(encoded) => {
                let decoded = STANDARD.decode(encoded).ok();
                Some(decoded.filter(|key| key.len() >= WEBHOOK_TOKEN_MIN))
            }
            None => None,
        };
        Ok(Self {
            text: text.to_owned(),
            signing: match signing {
                Some(None) => return Err(KeyError::SigningToken { key }),
                Some(decoded) => decoded,
                None => None,
            },
        })
    }

    /// Returns the key that signs bodies as they are.
    pub(super) fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.text.as_bytes())
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// Writes bytes in lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}
