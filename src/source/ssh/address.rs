//! Where a repository over ssh is: `ssh://user@host:port/path`, or `user@host:path` as scp writes it.

use std::fmt;

/// The port that needs no mention.
pub(super) const PORT: u16 = 22;

/// A checked address. No part of it can be mistaken for an option, or break out of the quotes of the remote command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in super::super) struct Address {
    pub(super) user: String,
    pub(super) host: String,
    pub(super) port: u16,
    /// As the server gets it: absolute, or relative to the account's home.
    pub(super) path: String,
}

// === impl Address ===

impl Address {
    /// Reads what stands behind `ssh://`.
    pub(in super::super) fn parse_url(rest: &str) -> Result<Self, &'static str> {
        let (authority, path) = rest.split_at(rest.find('/').ok_or("it has no path")?);
        let (user, host) = authority.rsplit_once('@').unwrap_or(("git", authority));
        let (host, port) = match host.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| "its port is no number")?)
            }
            _ => (host, PORT),
        };
        Self::checked(user, host, port, path)
    }

    /// Reads `user@host:path`.
    pub(in super::super) fn parse_scp(text: &str) -> Result<Self, &'static str> {
        let neither = "it is neither an https or ssh URL nor an absolute path";
        let (user, rest) = text.split_once('@').ok_or(neither)?;
        let (host, path) = match rest.find("]:") {
            Some(end) => (&rest[..=end], &rest[end + 2..]),
            None => rest.split_once(':').ok_or(neither)?,
        };
        Self::checked(user, host, PORT, path)
    }

    fn checked(user: &str, host: &str, port: u16, path: &str) -> Result<Self, &'static str> {
        let word = |text: &str| {
            !text.is_empty()
                && !text.starts_with('-')
                && text
                    .chars()
                    .all(|char| char.is_ascii_alphanumeric() || "._-".contains(char))
        };
        if user.contains(':') {
            return Err("it contains credentials; put them into the Secret that secretRef names");
        }
        if !word(user) {
            return Err("its user is no plain name");
        }
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let is_address = inner.is_some_and(|text| text.parse::<std::net::Ipv6Addr>().is_ok());
        if !is_address && !word(host) {
            return Err("its host is no plain name");
        }
        if path.contains(['?', '#']) {
            return Err("it contains a query or a fragment");
        }
        if path.contains(['\'', '!', '\\']) || path.starts_with('-') {
            return Err("its path contains a quote, `!` or backslash, or starts with `-`");
        }
        if path.trim_matches('/').is_empty() {
            return Err("it has no path to a repository");
        }
        Ok(Self {
            user: user.to_owned(),
            host: inner.unwrap_or(host).to_ascii_lowercase(),
            port,
            path: path.to_owned(),
        })
    }

    /// Returns host and port, for messages.
    pub(in super::super) fn host(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        match self.port {
            PORT => host,
            port => format!("{host}:{port}"),
        }
    }

    /// Returns the command to run on the server.
    pub(super) fn command(&self) -> String {
        format!("git-upload-pack '{}'", self.path)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.trim_start_matches('/');
        write!(f, "ssh://{}@{}/{path}", self.user, self.host())
    }
}
