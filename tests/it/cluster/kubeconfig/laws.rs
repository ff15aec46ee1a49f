//! What holds for every input.

use fairway::cluster::{AccessPolicy, RemoteAccess};
use kube::config::AuthInfo;
use proptest::prelude::*;

use super::good;

/// Pieces that make another YAML of a good one.
const PIECES: &[&str] = &[
    "",
    "\n",
    " ",
    "  ",
    "- ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    "'",
    "\"",
    "|",
    "&a ",
    "*a",
    "!!map ",
    "<<: ",
    "---\n",
    "#",
    "null",
    "true",
    "exec: ",
    "tokenFile: /etc/passwd\n",
    "proxy-url: ",
    "as: admin\n",
    "users",
    "name: robot\n",
    "\t",
    "\u{0}",
    "\u{feff}",
];

/// Checks an answer, whichever it is.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    match RemoteAccess::parse(bytes, AccessPolicy::default()) {
        Err(error) => prop_assert!(!error.to_string().contains("canary"), "{error}"),
        Ok(access) => {
            let config = access.config();
            prop_assert_eq!(access.server().scheme_str(), Some("https"));
            prop_assert_eq!(config.proxy_url, None);
            prop_assert_eq!(config.root_cert_file, None);
            prop_assert!(config.root_cert.is_some() && !config.accept_invalid_certs);
            prop_assert!(config.headers.is_empty());
            let AuthInfo {
                username,
                password,
                token_file,
                client_certificate,
                client_key,
                impersonate,
                impersonate_groups,
                auth_provider,
                exec,
                ..
            } = config.auth_info;
            prop_assert!(username.is_none() && password.is_none() && token_file.is_none());
            prop_assert!(client_certificate.is_none() && client_key.is_none());
            prop_assert!(impersonate.is_none() && impersonate_groups.is_none());
            prop_assert!(auth_provider.is_none() && exec.is_none());
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        prop_assert!(RemoteAccess::parse(&bytes, AccessPolicy::default()).is_err());
    }

    #[test]
    fn what_is_accepted_uses_nothing_that_is_forbidden_and_what_is_not_tells_no_value(
        changes in prop::collection::vec((0.0..1.0_f64, 0_usize..40, prop::sample::select(PIECES)), 1..4)
    ) {
        let mut text: Vec<char> = good().chars().collect();
        for (place, length, piece) in changes {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss,
                reason = "a place inside the text")]
            let start = (place * text.len() as f64) as usize;
            let end = (start + length).min(text.len());
            text.splice(start..end, piece.chars());
        }
        check(text.iter().collect::<String>().as_bytes())?;
    }
}
