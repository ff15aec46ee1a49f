//! What a source shows to its git server. It never shows up anywhere else.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

use super::error::SourceError;
use super::ssh;
use super::trust::CertificateAuthorities;

/// How a source signs in, and whom it trusts. `Debug` says which parts are set, never their values.
#[derive(Clone, Default)]
pub struct Credentials {
    login: Login,
    authorities: Option<CertificateAuthorities>,
}

#[derive(Clone, Default)]
enum Login {
    #[default]
    Anonymous,
    Basic {
        username: String,
        password: String,
    },
    Bearer(String),
    Ssh(Arc<ssh::Login>),
}

impl Credentials {
    /// Signs in with a name and a password or token.
    ///
    /// # Errors
    ///
    /// When one of them contains control characters: usually the line break at the end of a file.
    pub fn basic(
        username: impl Into<String>,
        password: impl Into<String>,
    ) -> Result<Self, SourceError> {
        Ok(Self {
            login: Login::Basic {
                username: checked("username", username.into())?,
                password: checked("password", password.into())?,
            },
            authorities: None,
        })
    }

    /// Signs in with a bearer token.
    ///
    /// # Errors
    ///
    /// When it contains control characters: usually the line break at the end of a file.
    pub fn bearer(token: impl Into<String>) -> Result<Self, SourceError> {
        Ok(Self {
            login: Login::Bearer(checked("bearerToken", token.into())?),
            authorities: None,
        })
    }

    /// Signs in over ssh with a private key in OpenSSH's or PEM form, with its public key where that cannot be derived, and its
    /// passphrase where it has one. `known_hosts` lists the hosts that may be talked to.
    ///
    /// # Errors
    ///
    /// When the key lacks its passphrase or is none, or when `known_hosts` cannot be read.
    pub fn ssh(
        identity: impl Into<String>,
        public: Option<String>,
        passphrase: Option<String>,
        known_hosts: &str,
    ) -> Result<Self, SourceError> {
        let passphrase = passphrase
            .map(|text| checked("password", text))
            .transpose()?;
        let login = ssh::Login::new(identity.into(), public, passphrase, known_hosts)?;
        Ok(Self {
            login: Login::Ssh(Arc::new(login)),
            authorities: None,
        })
    }

    /// Trusts these authorities beside the system's.
    #[must_use]
    pub fn trusting(mut self, authorities: CertificateAuthorities) -> Self {
        self.authorities = Some(authorities);
        self
    }

    /// Returns what goes into the header `Authorization`, marked as a secret.
    pub(super) fn authorization(&self) -> Option<HeaderValue> {
        let text = match &self.login {
            Login::Anonymous | Login::Ssh(_) => return None,
            Login::Basic { username, password } => {
                format!(
                    "Basic {}",
                    STANDARD.encode(format!("{username}:{password}"))
                )
            }
            Login::Bearer(token) => format!("Bearer {token}"),
        };
        let mut value = HeaderValue::try_from(text)
            .expect("control characters were refused when the credentials were made");
        value.set_sensitive(true);
        Some(value)
    }

    /// Returns what signs in over ssh.
    pub(super) fn ssh_login(&self) -> Option<&Arc<ssh::Login>> {
        match &self.login {
            Login::Ssh(login) => Some(login),
            Login::Anonymous | Login::Basic { .. } | Login::Bearer(_) => None,
        }
    }

    pub(super) fn authorities(&self) -> Option<&CertificateAuthorities> {
        self.authorities.as_ref()
    }

    /// Takes secrets out of a text that came from outside, and makes it one short line.
    pub(super) fn redact(&self, text: &str) -> String {
        let secret = match &self.login {
            Login::Anonymous | Login::Ssh(_) => "",
            Login::Basic { password, .. } => password,
            Login::Bearer(token) => token,
        };
        let text = if secret.is_empty() {
            text.to_owned()
        } else {
            text.replace(secret, "[redacted]")
        };
        let line: String = text
            .chars()
            .map(|char| if char.is_control() { ' ' } else { char })
            .take(DETAIL_LENGTH_MAX)
            .collect();
        line.trim().to_owned()
    }
}

/// Characters of a server's words that a message repeats.
const DETAIL_LENGTH_MAX: usize = 300;

fn checked(key: &'static str, value: String) -> Result<String, SourceError> {
    if value.chars().any(char::is_control) {
        return Err(SourceError::Credentials { key });
    }
    Ok(value)
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let login = match self.login {
            Login::Anonymous => "anonymous",
            Login::Basic { .. } => "basic",
            Login::Bearer(_) => "bearer",
            Login::Ssh(_) => "ssh",
        };
        f.debug_struct("Credentials")
            .field("login", &login)
            .field("own_authorities", &self.authorities.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_show_neither_in_debug_nor_in_redacted_text() {
        let credentials = Credentials::basic("ci", "hunter2").unwrap();
        assert!(!format!("{credentials:?}").contains("hunter2"));
        let header = credentials.authorization();
        assert_eq!(format!("{header:?}"), "Some(Sensitive)");
        assert_eq!(header.unwrap(), "Basic Y2k6aHVudGVyMg==");
        assert_eq!(
            credentials.redact("remote said\r\n: hunter2 is wrong\n"),
            "remote said  : [redacted] is wrong"
        );
    }

    #[test]
    fn a_line_break_at_the_end_is_named_without_the_value() {
        let message = Credentials::bearer("hunter2\n").unwrap_err().to_string();
        assert!(
            message.contains("bearerToken") && !message.contains("hunter2"),
            "{message}"
        );
    }
}
