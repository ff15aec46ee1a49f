//! Which hosts `http` steps may call.

/// Judges an address by the hosts that `fairway.yaml` allows. An entry without a port means the port of the scheme, 443 for
/// https and 80 for http; any other port is named: `vault.example.com:8200`.
///
/// # Errors
///
/// The host, as it would be allowed; none where the text is no address of a host over http or https.
pub fn host_is_allowed(url: &str, allowed: &[String]) -> Result<(), Option<String>> {
    let uri: http::Uri = url.parse().map_err(|_| None)?;
    let default_port = match uri.scheme_str() {
        Some("https") => 443,
        Some("http") => 80,
        _ => return Err(None),
    };
    let authority = uri.authority().ok_or(None)?;
    // A name and password before the host would end up in logs.
    if authority.as_str().contains('@') || authority.host().is_empty() {
        return Err(None);
    }
    let host = authority.host().to_ascii_lowercase();
    let port = authority.port_u16().unwrap_or(default_port);
    let wanted = if port == default_port {
        host
    } else {
        format!("{host}:{port}")
    };
    let full = format!("{}:{port}", authority.host());
    let is_meant =
        |entry: &String| entry.eq_ignore_ascii_case(&wanted) || entry.eq_ignore_ascii_case(&full);
    if allowed.iter().any(is_meant) {
        Ok(())
    } else {
        Err(Some(wanted))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://api.example.com/a?b=c", Ok(()))]
    #[case("https://API.example.com:443/", Ok(()))]
    #[case("https://api.example.com:8443/", Err(Some("api.example.com:8443")))]
    #[case("http://10.0.0.1:8080/x", Ok(()))]
    #[case("https://other.example.com/", Err(Some("other.example.com")))]
    #[case(
        "https://api.example.com.evil.org/",
        Err(Some("api.example.com.evil.org"))
    )]
    #[case("https://api.example.com@evil.org/", Err(None))]
    #[case("ftp://api.example.com/", Err(None))]
    #[case("/relative", Err(None))]
    #[case("https:///path", Err(None))]
    fn hosts(#[case] url: &str, #[case] expected: Result<(), Option<&str>>) {
        let allowed = ["api.example.com".to_owned(), "10.0.0.1:8080".to_owned()];
        let expected = expected.map_err(|host| host.map(str::to_owned));
        assert_eq!(host_is_allowed(url, &allowed), expected, "{url}");
    }
}
