//! Where a repository is: an allow-list, checked before anything connects.

use std::fmt;
use std::path::{Path, PathBuf};

use super::error::SourceError;
use super::ssh;

/// The checked location of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceUrl(Location);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Location {
    Https { url: String, host: String },
    Local(PathBuf),
    Ssh(ssh::Address),
}

impl SourceUrl {
    /// Checks a URL: `https://…`, `ssh://…`, `user@host:path`, `file:///…` or an absolute path.
    ///
    /// # Errors
    ///
    /// On any other scheme, on credentials inside the URL (the error does not repeat them), and on text that is no URL.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let refused = |reason| Err(SourceError::Url { reason });
        if text.chars().any(|char| char.is_control() || char == ' ') {
            return refused("it contains spaces or control characters");
        }
        if text.starts_with('/') {
            return Ok(Self(Location::Local(PathBuf::from(text))));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Self::ssh(ssh::Address::parse_scp(text));
        };
        match scheme.to_ascii_lowercase().as_str() {
            "https" => Self::parse_https(text),
            "file" if rest.starts_with('/') => Ok(Self(Location::Local(PathBuf::from(rest)))),
            "file" => refused("a file URL names an absolute path, as in file:///srv/modules.git"),
            "ssh" => Self::ssh(ssh::Address::parse_url(rest)),
            "http" => refused(
                "plain http would show credentials and content to everybody on the way; use https",
            ),
            _ => refused("its scheme is not supported; use https or ssh"),
        }
    }

    fn ssh(parsed: Result<ssh::Address, &'static str>) -> Result<Self, SourceError> {
        parsed
            .map(|address| Self(Location::Ssh(address)))
            .map_err(|reason| SourceError::Url { reason })
    }

    fn parse_https(text: &str) -> Result<Self, SourceError> {
        let refused = |reason| Err(SourceError::Url { reason });
        let Ok(uri) = text.parse::<http::Uri>() else {
            return refused("it cannot be parsed");
        };
        let Some(authority) = uri.authority() else {
            return refused("it has no host");
        };
        if authority.as_str().contains('@') {
            return refused(
                "it contains credentials; put them into the Secret that secretRef names",
            );
        }
        if text.contains(['?', '#']) {
            return refused("it contains a query or a fragment");
        }
        if uri.path().trim_matches('/').is_empty() {
            return refused("it has no path to a repository");
        }
        Ok(Self(Location::Https {
            url: text.to_owned(),
            host: authority.as_str().to_owned(),
        }))
    }

    /// Returns whether the repository is on this machine, which an agent does not want.
    pub fn is_local(&self) -> bool {
        matches!(self.0, Location::Local(_))
    }

    /// Returns the path of a repository on this machine.
    pub(super) fn local_path(&self) -> Option<&Path> {
        match &self.0 {
            Location::Local(path) => Some(path),
            Location::Https { .. } | Location::Ssh(_) => None,
        }
    }

    /// Returns the address of a repository that is reached over ssh.
    pub(super) fn ssh_address(&self) -> Option<&ssh::Address> {
        match &self.0 {
            Location::Ssh(address) => Some(address),
            Location::Https { .. } | Location::Local(_) => None,
        }
    }

    /// Returns whether the repository is reached over ssh, and so needs a key and known hosts.
    pub fn is_ssh(&self) -> bool {
        self.ssh_address().is_some()
    }

    /// Returns host and port, or the path, for messages.
    pub(super) fn host(&self) -> String {
        match &self.0 {
            Location::Https { host, .. } => host.clone(),
            Location::Ssh(address) => address.host(),
            Location::Local(path) => path.display().to_string(),
        }
    }
}

impl fmt::Display for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Location::Https { url, .. } => f.write_str(url),
            Location::Ssh(address) => fmt::Display::fmt(address, f),
            Location::Local(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://git.example.com/platform/modules.git", false)]
    #[case("https://git.example.com:8443/m", false)]
    #[case("HTTPS://git.example.com/m", false)]
    #[case("https://[::1]:8443/m", false)]
    #[case("file:///srv/modules.git", true)]
    #[case("/srv/modules.git", true)]
    #[case("ssh://git@git.example.com/m.git", false)]
    #[case("git@git.example.com:m.git", false)]
    fn accepts_allowed_places(#[case] text: &str, #[case] local: bool) {
        assert_eq!(SourceUrl::parse(text).unwrap().is_local(), local);
    }

    #[rstest]
    #[case(
        "ssh://git@Git.example.com:2222/a/m.git",
        "ssh://git@git.example.com:2222/a/m.git",
        "git.example.com:2222"
    )]
    #[case(
        "ssh://git.example.com:22/m.git",
        "ssh://git@git.example.com/m.git",
        "git.example.com"
    )]
    #[case("ssh://ci@[::1]:2222/m", "ssh://ci@[::1]:2222/m", "[::1]:2222")]
    #[case("ssh://ci@[::1]/m", "ssh://ci@[::1]/m", "[::1]")]
    #[case(
        "git@git.example.com:team/m.git",
        "ssh://git@git.example.com/team/m.git",
        "git.example.com"
    )]
    #[case("git@[::1]:m.git", "ssh://git@[::1]/m.git", "[::1]")]
    fn addresses_over_ssh_are_understood(
        #[case] text: &str,
        #[case] shown: &str,
        #[case] host: &str,
    ) {
        let url = SourceUrl::parse(text).unwrap();
        assert_eq!(
            (url.to_string(), url.host()),
            (shown.to_owned(), host.to_owned())
        );
        assert!(url.is_ssh());
    }

    #[rstest]
    #[case("https://user:hunter2@git.example.com/m", "credentials")]
    #[case("https://hunter2@git.example.com/m", "credentials")]
    #[case("https://git.example.com/m?token=hunter2", "query")]
    #[case("https://git.example.com/m#hunter2", "fragment")]
    #[case("https://git.example.com", "no path")]
    #[case("https:///m", "parsed")]
    #[case("https://git.example.com/a b", "spaces")]
    #[case("https://git.example.com/a\nb", "spaces")]
    #[case("http://git.example.com/m", "plain http")]
    #[case("git://git.example.com/m", "scheme")]
    #[case("ext::sh -c date", "spaces")]
    #[case("ftp://git.example.com/m", "scheme")]
    #[case("ssh://git:hunter2@git.example.com/m", "credentials")]
    #[case("git:hunter2@git.example.com:m", "credentials")]
    #[case("ssh://-oProxyCommand=x/m", "host is no plain name")]
    #[case("git@-oProxyCommand=x:m", "host is no plain name")]
    #[case("-o@git.example.com:m", "user is no plain name")]
    #[case("git@git.example.com:-x", "path contains")]
    #[case("ssh://git@git.example.com/m'x", "path contains")]
    #[case("ssh://git@git.example.com:x/m", "port is no number")]
    #[case("ssh://git@git.example.com", "no path")]
    #[case("ssh://git@git.example.com/", "no path")]
    #[case("git@git.example.com", "neither")]
    #[case("git+ssh://git@git.example.com/m", "scheme")]
    #[case("--upload-pack=x", "neither")]
    #[case("../modules", "neither")]
    #[case("file://host/m", "absolute")]
    #[case("", "neither")]
    fn refuses_all_else_without_repeating_it(#[case] text: &str, #[case] reason: &str) {
        let message = SourceUrl::parse(text).unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
        assert!(!message.contains("hunter2"));
    }
}
