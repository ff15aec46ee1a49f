//! Which host keys are accepted: the format of sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT".
//!
//! As in OpenSSH, a host on another port than 22 is `[host]:port`; where that is not listed, a line for the host alone may
//! vouch for it, and never against it. Certificates of hosts are not supported: `@cert-authority` lines vouch for nothing.

use aws_lc_rs::hmac;
use ssh_key::known_hosts::{Entry, HostPatterns, Marker};
use ssh_key::{Algorithm, EcdsaCurve, HashAlg, PublicKey};

use super::address::{Address, PORT};
use crate::source::error::SourceError;

/// The lines of a `known_hosts`.
pub(super) struct KnownHosts(Vec<Entry>);

// === impl KnownHosts ===

impl KnownHosts {
    /// Reads all lines. One that cannot be read is an error, since it might be the one that revokes a key.
    pub(super) fn parse(text: &str) -> Result<Self, SourceError> {
        let unusable = |reason: String| SourceError::SshKeys {
            key: "known_hosts",
            reason,
        };
        let mut entries = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let entry = line
                .parse()
                .map_err(|error| unusable(format!("line {}: {error}", index + 1)))?;
            entries.push(entry);
        }
        if entries.is_empty() {
            return Err(unusable("it lists no host".to_owned()));
        }
        Ok(Self(entries))
    }

    /// Returns the host key algorithms in the order to ask for them: those that are known of this host, then the rest, so that a
    /// host with another key can show it.
    pub(super) fn algorithms(&self, address: &Address) -> String {
        let known: Vec<_> = self
            .candidates(address)
            .flat_map(|entry| names(&entry.public_key().algorithm()))
            .collect();
        let mut all = known;
        all.extend(ALGORITHMS);
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|name| seen.insert(*name));
        all.join(",")
    }

    /// Judges the key that a host has shown.
    pub(super) fn check(&self, address: &Address, key: &PublicKey) -> Result<(), SourceError> {
        let (host, offered) = (address.host(), describe(key));
        let same = |entry: &&Entry| entry.public_key().key_data() == key.key_data();
        let revoked = self.0.iter().filter(|entry| {
            entry.marker() == Some(&Marker::Revoked)
                && (matches(entry, &name(address)) || matches(entry, &address.host))
        });
        if revoked.clone().any(|entry| same(&entry)) {
            return Err(SourceError::HostKeyRevoked { host, offered });
        }
        if self.candidates(address).any(|entry| same(&entry)) {
            return Ok(());
        }
        let known: Vec<_> = self
            .with_name(&name(address))
            .map(|entry| describe(entry.public_key()))
            .collect();
        if known.is_empty() {
            return Err(SourceError::HostKeyUnknown { host, offered });
        }
        let known = known.join(", ");
        Err(SourceError::HostKeyChanged {
            host,
            offered,
            known,
        })
    }

    /// The lines that may vouch for a host.
    fn candidates<'a>(&'a self, address: &'a Address) -> impl Iterator<Item = &'a Entry> {
        let exact = self.with_name(&name(address)).next().is_some();
        self.0.iter().filter(move |entry| {
            let wanted = if exact {
                name(address)
            } else {
                address.host.clone()
            };
            entry.marker().is_none() && matches(entry, &wanted)
        })
    }

    fn with_name(&self, name: &str) -> impl Iterator<Item = &Entry> {
        self.0
            .iter()
            .filter(move |entry| entry.marker().is_none() && matches(entry, name))
    }
}

/// All that libssh2 speaks and we accept: no DSA, and no RSA over SHA-1.
const ALGORITHMS: [&str; 6] = [
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
];

fn names(algorithm: &Algorithm) -> Vec<&'static str> {
    match algorithm {
        Algorithm::Ed25519 => vec!["ssh-ed25519"],
        Algorithm::Ecdsa { curve } => vec![match curve {
            EcdsaCurve::NistP256 => "ecdsa-sha2-nistp256",
            EcdsaCurve::NistP384 => "ecdsa-sha2-nistp384",
            EcdsaCurve::NistP521 => "ecdsa-sha2-nistp521",
        }],
        Algorithm::Rsa { .. } => vec!["rsa-sha2-512", "rsa-sha2-256"],
        _ => Vec::new(),
    }
}

/// The name that a host has in the file.
fn name(address: &Address) -> String {
    match address.port {
        PORT => address.host.clone(),
        port => format!("[{}]:{port}", address.host),
    }
}

fn matches(entry: &Entry, name: &str) -> bool {
    match entry.host_patterns() {
        HostPatterns::HashedName { salt, hash } => {
            let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, salt);
            hmac::verify(&key, name.as_bytes(), hash).is_ok()
        }
        HostPatterns::Patterns(patterns) => {
            let is =
                |pattern: &str| wildcard(pattern.to_ascii_lowercase().as_bytes(), name.as_bytes());
            let negated = |pattern: &String| pattern.strip_prefix('!').is_some_and(is);
            !patterns.iter().any(negated) && patterns.iter().any(|pattern| is(pattern))
        }
    }
}

/// Matches `*` and `?`, without going back further than to the last `*`.
fn wildcard(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star = None;
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((last, begun)) = star else {
                    return false;
                };
                star = Some((last, begun + 1));
                at = last + 1;
                from = begun + 1;
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// Writes a key as `ssh-keygen -l` names it.
fn describe(key: &PublicKey) -> String {
    format!("{} {}", key.algorithm(), key.fingerprint(HashAlg::Sha256))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use ssh_key::private::{Ed25519Keypair, KeypairData};

    use super::*;

    fn key(seed: u8) -> PublicKey {
        let pair = KeypairData::from(Ed25519Keypair::from_seed(&[seed; 32]));
        ssh_key::PrivateKey::new(pair, "")
            .unwrap()
            .public_key()
            .clone()
    }

    fn address(text: &str) -> Address {
        Address::parse_url(&format!("{text}/modules.git")).unwrap()
    }

    fn hashed(name: &str) -> String {
        let hash = hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, b"salt salt salt salt!"),
            name.as_bytes(),
        );
        let hash: [u8; 20] = hash.as_ref().try_into().unwrap();
        HostPatterns::HashedName {
            salt: b"salt salt salt salt!".to_vec(),
            hash,
        }
        .to_string()
    }

    fn judge(line: &str, host: &str) -> &'static str {
        let line = line.replace("KEY", &key(1).to_openssh().unwrap());
        let line = line.replace("OTHER", &key(2).to_openssh().unwrap());
        let known = KnownHosts::parse(&line).unwrap();
        match known.check(&address(host), &key(1)) {
            Ok(()) => "good",
            Err(SourceError::HostKeyUnknown { .. }) => "unknown",
            Err(SourceError::HostKeyChanged { .. }) => "changed",
            Err(SourceError::HostKeyRevoked { .. }) => "revoked",
            Err(error) => panic!("{error}"),
        }
    }

    #[rstest]
    #[case::plain("a.example KEY", "a.example", "good")]
    #[case::capitals("A.Example KEY", "a.EXAMPLE", "good")]
    #[case::list("b.example,a.example KEY comment", "a.example", "good")]
    #[case::tabs("a.example\tKEY", "a.example", "good")]
    #[case::wildcard("*.example KEY", "a.b.example", "good")]
    #[case::question_mark("?.example KEY", "ab.example", "unknown")]
    #[case::negated("*.example,!a.example KEY", "a.example", "unknown")]
    #[case::second_line("a.example OTHER\n\n# more\na.example KEY", "a.example", "good")]
    #[case::another_host("b.example KEY", "a.example", "unknown")]
    #[case::changed("a.example OTHER", "a.example", "changed")]
    #[case::port("[a.example]:2222 KEY", "a.example:2222", "good")]
    #[case::another_port("[a.example]:2222 KEY", "a.example:2223", "unknown")]
    #[case::port_is_not_the_default("[a.example]:2222 KEY", "a.example", "unknown")]
    #[case::port_by_its_host("a.example KEY", "a.example:2222", "good")]
    #[case::port_before_its_host(
        "a.example KEY\n[a.example]:2222 OTHER",
        "a.example:2222",
        "changed"
    )]
    #[case::a_host_alone_vouches_only("a.example OTHER", "a.example:2222", "unknown")]
    #[case::address("[::1]:2222 KEY", "[::1]:2222", "good")]
    #[case::revoked("a.example KEY\n@revoked * KEY", "a.example", "revoked")]
    #[case::another_is_revoked("a.example KEY\n@revoked * OTHER", "a.example", "good")]
    #[case::revoked_elsewhere("a.example KEY\n@revoked b.example KEY", "a.example", "good")]
    #[case::revoked_whatever_the_port(
        "[a.example]:9 KEY\n@revoked a.example KEY",
        "a.example:9",
        "revoked"
    )]
    #[case::authority("@cert-authority a.example KEY", "a.example", "unknown")]
    fn a_host_key_is_judged_as_ssh_does(
        #[case] line: &str,
        #[case] host: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(judge(line, host), expected);
    }

    #[rstest]
    #[case::good("a.example", "a.example", "good")]
    #[case::port("[a.example]:2222", "a.example:2222", "good")]
    #[case::another("b.example", "a.example", "unknown")]
    fn hashed_names_are_found(#[case] name: &str, #[case] host: &str, #[case] expected: &str) {
        assert_eq!(judge(&format!("{} KEY", hashed(name)), host), expected);
    }

    #[test]
    fn both_fingerprints_are_shown() {
        let known = KnownHosts::parse(&format!("a {}", key(2).to_openssh().unwrap())).unwrap();
        let error = known.check(&address("a"), &key(1)).unwrap_err();
        for key in [key(1), key(2)] {
            let fingerprint = key.fingerprint(HashAlg::Sha256).to_string();
            assert!(error.to_string().contains(&fingerprint), "{error}");
        }
    }

    #[test]
    fn the_known_kinds_of_key_are_asked_for_first() {
        let ecdsa = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg=";
        let known = KnownHosts::parse(&format!("a {ecdsa}")).unwrap();
        let asked = known.algorithms(&address("a"));
        assert!(
            asked.starts_with("ecdsa-sha2-nistp256,ssh-ed25519,"),
            "{asked}"
        );
        assert!(known.algorithms(&address("b")).starts_with("ssh-ed25519,"));
    }

    #[rstest]
    #[case("", "it lists no host")]
    #[case("# a.example\n", "it lists no host")]
    #[case("a.example ssh-ed25519\n", "line 1")]
    #[case("\n@revoked a.example ssh-ed25519 nonsense\n", "line 2")]
    fn a_file_that_cannot_be_read_is_refused(#[case] text: &str, #[case] reason: &str) {
        let message = KnownHosts::parse(text).err().unwrap().to_string();
        assert!(message.contains(reason), "{message}");
    }
}
