//! Who may sign, as the files of a Secret say it.

use std::fmt;

use pgp::composed::SignedPublicKey;
use ssh_key::PublicKey;

use super::allowed::{self, AllowedSigner};
use super::refusal::Refusal;
use super::signed::Signed;
use super::{openpgp, sshsig};
use crate::source::error::SourceError;

/// The allowed signers of a source.
pub struct Signers {
    ssh: Vec<AllowedSigner>,
    revoked: Vec<PublicKey>,
    openpgp: Vec<SignedPublicKey>,
}

// === impl Signers ===

impl Signers {
    /// Reads `allowed_signers` (as git has it), `revoked_keys` (SSH public keys, one a line), and OpenPGP certificates from files whose
    /// names end in `.asc` or `.pub`. Other files are not looked at.
    ///
    /// # Errors
    ///
    /// When one cannot be read, or nobody is allowed.
    pub fn from_files<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<Self, SourceError> {
        let mut signers = Self {
            ssh: Vec::new(),
            revoked: Vec::new(),
            openpgp: Vec::new(),
        };
        for (key, content) in files {
            signers
                .add(key, &String::from_utf8_lossy(content))
                .map_err(|reason| SourceError::Signers {
                    key: key.to_owned(),
                    reason,
                })?;
        }
        if signers.ssh.is_empty() && signers.openpgp.is_empty() {
            return Err(SourceError::Signers {
                key: "allowed_signers".to_owned(),
                reason: "neither it nor a file `*.asc` or `*.pub` allows anybody".to_owned(),
            });
        }
        Ok(signers)
    }

    fn add(&mut self, key: &str, text: &str) -> Result<(), String> {
        match key {
            "allowed_signers" => self.ssh.extend(allowed::parse(text)?),
            "revoked_keys" => self.revoked.extend(allowed::parse_keys(text)?),
            _ if matches!(key.rsplit_once('.'), Some((_, "asc" | "pub"))) => {
                self.openpgp.extend(openpgp::parse(text)?);
            }
            _ => {}
        }
        Ok(())
    }

    /// Judges what is signed, at the time `now`.
    pub(super) fn judge(&self, signed: &Signed, now: i64) -> Result<(), Refusal> {
        let text = signed.signature.as_str();
        let parts = (text, &signed.payload[..]);
        match text.lines().next().unwrap_or_default().trim() {
            "-----BEGIN SSH SIGNATURE-----" => {
                sshsig::judge(&self.ssh, &self.revoked, parts, signed.time)
            }
            "-----BEGIN PGP SIGNATURE-----" | "-----BEGIN PGP MESSAGE-----" => {
                openpgp::judge(&self.openpgp, parts, now)
            }
            _ => Err(Refusal::unusable("it is neither of SSH nor of OpenPGP")),
        }
    }
}

impl fmt::Debug for Signers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signers")
            .field("ssh", &self.ssh.len())
            .field("openpgp", &self.openpgp.len())
            .finish_non_exhaustive()
    }
}
