//! Which repository a URL names, however it is written.

/// Host and path of a repository. Two URLs that differ in scheme, user, `.git` or case name the same one; a host or a path
/// that only ends alike does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryName {
    host: String,
    path: String,
}

impl RepositoryName {
    /// Reads `https://host/path.git`, `ssh://git@host:22/path` or `git@host:path`; none for anything else.
    pub fn of(url: &str) -> Option<Self> {
        let (scheme, host, path) = if let Some((scheme, rest)) = url.split_once("://") {
            let (authority, path) = rest.split_once('/')?;
            (scheme.to_ascii_lowercase(), authority, path)
        } else {
            let (authority, path) = url.split_once(':')?;
            authority.contains('@').then_some(())?;
            ("ssh".to_owned(), authority, path)
        };
        let default_port = match scheme.as_str() {
            "https" => ":443",
            "http" => ":80",
            "ssh" | "git+ssh" => ":22",
            "git" => ":9418",
            _ => return None,
        };
        let host = host.rsplit('@').next()?.to_ascii_lowercase();
        let host = host.strip_suffix(default_port).unwrap_or(&host);
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        if host.is_empty() || path.is_empty() {
            return None;
        }
        Some(Self {
            host: host.to_owned(),
            path: path.to_ascii_lowercase(),
        })
    }
}
