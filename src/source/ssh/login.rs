//! What a source shows to an ssh server, and what the server must show first.

use ssh_key::PrivateKey;

use super::known_hosts::KnownHosts;
use crate::source::error::SourceError;

/// A key, its passphrase, and the hosts that may see them.
pub(in super::super) struct Login {
    pub(super) identity: String,
    pub(super) public: Option<String>,
    pub(super) passphrase: Option<String>,
    pub(super) known_hosts: KnownHosts,
}

// === impl Login ===

impl Login {
    /// Checks what can be checked without a server.
    ///
    /// # Errors
    ///
    /// When the key is no private key or lacks its passphrase, or `known_hosts` cannot be read.
    pub(in super::super) fn new(
        identity: String,
        public: Option<String>,
        passphrase: Option<String>,
        known_hosts: &str,
    ) -> Result<Self, SourceError> {
        let unusable = |reason: &str| {
            Err(SourceError::SshKeys {
                key: "identity",
                reason: reason.to_owned(),
            })
        };
        if identity.trim().is_empty() {
            return unusable("it is missing");
        }
        if !identity.trim_start().starts_with("-----BEGIN ") || !identity.contains("PRIVATE KEY") {
            return unusable("it is not a private key");
        }
        let encrypted = match PrivateKey::from_openssh(&identity) {
            Ok(key) => key.is_encrypted(),
            // The older forms, which only libssh2 reads.
            Err(_) => identity.contains("ENCRYPTED"),
        };
        if encrypted && passphrase.is_none() {
            return unusable("a passphrase protects it; put that into the key `password`");
        }
        Ok(Self {
            identity,
            public,
            passphrase,
            known_hosts: KnownHosts::parse(known_hosts)?,
        })
    }
}
