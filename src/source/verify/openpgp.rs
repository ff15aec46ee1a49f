//! Signatures by OpenPGP certificates: RFC 9580.
//!
//! The `pgp` crate does the mathematics; what counts is decided here, as gpg does: a key that is expired or revoked now signs nothing,
//! a subkey needs a binding in both directions and the right to sign, and SHA-1 binds nothing.

use pgp::composed::{Deserializable as _, DetachedSignature, SignedPublicKey, SignedPublicSubKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{Signature, SignatureType};
use pgp::types::{KeyDetails, Tag};

use super::refusal::Refusal;

/// Seconds by which a signer's clock may be ahead of ours.
const AHEAD_MAX: i64 = 24 * 60 * 60;

/// Reads every certificate of an armoured file.
pub(super) fn parse(text: &str) -> Result<Vec<SignedPublicKey>, String> {
    let (certificates, _) =
        SignedPublicKey::from_armor_many(text.as_bytes()).map_err(|error| error.to_string())?;
    let certificates: Vec<_> = certificates
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    if certificates.is_empty() {
        return Err("it holds no certificate".to_owned());
    }
    Ok(certificates)
}

/// Judges a signature over `payload` at the time `now`, in seconds since 1970.
pub(super) fn judge(
    certificates: &[SignedPublicKey],
    (armoured, payload): (&str, &[u8]),
    now: i64,
) -> Result<(), Refusal> {
    let signature = parse_signature(armoured)?;
    let issuer = Issuer::of(&signature);
    let mut refusal = Refusal::Unknown { key: issuer.name() };
    for certificate in certificates {
        let signer = Signer { certificate, now };
        let judged = if issuer.is(&certificate.primary_key) {
            signer.primary(&signature, payload)
        } else if let Some(subkey) = certificate
            .public_subkeys
            .iter()
            .find(|subkey| issuer.is(&subkey.key))
        {
            signer.subkey(subkey, &signature, payload)
        } else {
            continue;
        };
        match judged {
            Ok(()) => return Ok(()),
            Err(why) => refusal = why,
        }
    }
    Err(refusal)
}

/// Reads the one signature of an armoured block: with two of them it would be unclear which one counts.
fn parse_signature(armoured: &str) -> Result<Signature, Refusal> {
    let (signatures, _) = DetachedSignature::from_armor_many(armoured.as_bytes())
        .map_err(|error| unreadable(&error))?;
    let mut signatures = signatures
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| unreadable(&error))?;
    let (Some(DetachedSignature { signature }), true) = (signatures.pop(), signatures.is_empty())
    else {
        return Err(Refusal::unusable("it is not exactly one"));
    };
    if !matches!(
        signature.typ(),
        Some(SignatureType::Binary | SignatureType::Text)
    ) {
        return Err(Refusal::unusable("it is not the signature of a document"));
    }
    if !is_strong(&signature) {
        return Err(Refusal::unusable("its digest is too weak"));
    }
    Ok(signature)
}

fn unreadable(error: &pgp::errors::Error) -> Refusal {
    Refusal::unusable(error.to_string())
}

/// Who claims to have made a signature.
struct Issuer {
    fingerprints: Vec<String>,
    ids: Vec<String>,
}

// === impl Issuer ===

impl Issuer {
    fn of(signature: &Signature) -> Self {
        let fingerprints = signature.issuer_fingerprint();
        let ids = signature.issuer_key_id();
        Self {
            fingerprints: fingerprints.iter().map(|one| format!("{one:X}")).collect(),
            ids: ids
                .iter()
                .map(|one| one.to_string().to_uppercase())
                .collect(),
        }
    }

    fn name(&self) -> String {
        let known = self.fingerprints.first().or(self.ids.first());
        known.map_or_else(
            || "a key that it does not name".to_owned(),
            |key| format!("the OpenPGP key {key}"),
        )
    }

    fn is(&self, key: &impl KeyDetails) -> bool {
        if self.fingerprints.is_empty() {
            return self
                .ids
                .contains(&key.legacy_key_id().to_string().to_uppercase());
        }
        self.fingerprints
            .contains(&format!("{:X}", key.fingerprint()))
    }
}

/// A certificate that may have made a signature.
struct Signer<'a> {
    certificate: &'a SignedPublicKey,
    now: i64,
}

// === impl Signer ===

impl Signer<'_> {
    fn name(&self) -> String {
        let fingerprint = format!("{:X}", self.certificate.primary_key.fingerprint());
        match self.certificate.details.users.first() {
            Some(user) => format!("{} ({fingerprint})", String::from_utf8_lossy(user.id.id())),
            None => fingerprint,
        }
    }

    fn primary(&self, signature: &Signature, payload: &[u8]) -> Result<(), Refusal> {
        let key = &self.certificate.primary_key;
        if signature.verify(key, payload).is_err() {
            return Err(Refusal::Bad { key: self.name() });
        }
        let own = self.own_signature()?;
        self.usable(own, key)?;
        self.timely(signature, key)
    }

    fn subkey(
        &self,
        subkey: &SignedPublicSubKey,
        signature: &Signature,
        payload: &[u8],
    ) -> Result<(), Refusal> {
        if signature.verify(&subkey.key, payload).is_err() {
            return Err(Refusal::Bad { key: self.name() });
        }
        let primary = &self.certificate.primary_key;
        let own = self.own_signature()?;
        self.unexpired(own, primary)?;
        let valid = subkey
            .signatures
            .iter()
            .filter(|binding| binding.verify_subkey_binding(primary, &subkey.key).is_ok());
        // A revocation counts however weak its digest is.
        let is_revocation =
            |binding: &&Signature| binding.typ() == Some(SignatureType::SubkeyRevocation);
        if valid.clone().any(|binding| is_revocation(&binding)) {
            return Err(Refusal::Revoked { key: self.name() });
        }
        let valid = valid.filter(|binding| is_strong(binding));
        let binding = newest(valid)
            .ok_or_else(|| Refusal::unusable("nothing binds the subkey to its certificate"))?;
        self.usable(binding, &subkey.key)?;
        let back = binding.embedded_signature().is_some_and(|back| {
            is_strong(back)
                && back
                    .verify_primary_key_binding(&subkey.key, primary)
                    .is_ok()
        });
        if !back {
            return Err(Refusal::unusable(
                "the subkey does not vouch for its certificate",
            ));
        }
        self.timely(signature, &subkey.key)
    }

    /// Returns the newest signature by which the certificate says what it is, unless it is revoked.
    fn own_signature(&self) -> Result<&Signature, Refusal> {
        let primary = &self.certificate.primary_key;
        let details = &self.certificate.details;
        // A revocation counts however weak its digest is.
        let revoked = details
            .revocation_signatures
            .iter()
            .any(|revocation| revocation.verify_key(primary).is_ok());
        if revoked {
            return Err(Refusal::Revoked { key: self.name() });
        }
        let direct = details
            .direct_signatures
            .iter()
            .filter(|own| is_strong(own) && own.verify_key(primary).is_ok());
        let named = details.users.iter().flat_map(|user| {
            let valid = user.signatures.iter().filter(|own| {
                own.verify_certification(primary, Tag::UserId, &user.id)
                    .is_ok()
            });
            let withdrawn = valid
                .clone()
                .any(|own| own.typ() == Some(SignatureType::CertRevocation));
            valid.filter(move |own| !withdrawn && is_strong(own))
        });
        newest(direct.chain(named))
            .ok_or_else(|| Refusal::unusable("the certificate does not vouch for itself"))
    }

    /// Checks the right to sign, and that the key has not expired.
    fn usable(&self, binding: &Signature, key: &impl KeyDetails) -> Result<(), Refusal> {
        if !binding.key_flags().sign() {
            return Err(Refusal::unusable(format!(
                "the key of {} is not one for signing",
                self.name()
            )));
        }
        self.unexpired(binding, key)
    }

    fn unexpired(&self, binding: &Signature, key: &impl KeyDetails) -> Result<(), Refusal> {
        let lifetime = binding
            .key_expiration_time()
            .map_or(0, pgp::types::Duration::as_secs);
        let end = i64::from(key.created_at().as_secs()) + i64::from(lifetime);
        if lifetime > 0 && end <= self.now {
            return Err(Refusal::Expired {
                key: self.name(),
                what: "the key",
            });
        }
        Ok(())
    }

    /// Checks the signature's own times.
    fn timely(&self, signature: &Signature, key: &impl KeyDetails) -> Result<(), Refusal> {
        let Some(made) = signature.created().map(|time| i64::from(time.as_secs())) else {
            return Err(Refusal::unusable("it does not say when it was made"));
        };
        if made < i64::from(key.created_at().as_secs()) || made > self.now + AHEAD_MAX {
            return Err(Refusal::unusable(
                "it says that it was made before its key, or in the future",
            ));
        }
        let lifetime = signature
            .signature_expiration_time()
            .map_or(0, pgp::types::Duration::as_secs);
        if lifetime > 0 && made + i64::from(lifetime) <= self.now {
            return Err(Refusal::Expired {
                key: self.name(),
                what: "the signature",
            });
        }
        Ok(())
    }
}

fn newest<'a>(signatures: impl Iterator<Item = &'a Signature>) -> Option<&'a Signature> {
    signatures.max_by_key(|signature| signature.created())
}

fn is_strong(signature: &Signature) -> bool {
    matches!(
        signature.hash_alg(),
        Some(
            HashAlgorithm::Sha256
                | HashAlgorithm::Sha384
                | HashAlgorithm::Sha512
                | HashAlgorithm::Sha3_256
                | HashAlgorithm::Sha3_512
        )
    )
}
