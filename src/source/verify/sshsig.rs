//! Signatures by SSH keys: PROTOCOL.sshsig, in the namespace `git`.

use ssh_key::{Algorithm, HashAlg, PublicKey, SshSig};

use super::allowed::AllowedSigner;
use super::refusal::Refusal;

/// The namespace that git signs in; a signature made for something else proves nothing here.
const NAMESPACE: &str = "git";
/// The bit of a security key's flags that says that somebody touched it.
const TOUCHED: u8 = 1;

/// Judges a signature over `payload` that claims to be made at `time`, in seconds since 1970.
pub(super) fn judge(
    allowed: &[AllowedSigner],
    revoked: &[PublicKey],
    (armoured, payload): (&str, &[u8]),
    time: i64,
) -> Result<(), Refusal> {
    let signature =
        SshSig::from_pem(armoured.trim()).map_err(|error| Refusal::unusable(error.to_string()))?;
    let signer = PublicKey::from(signature.public_key().clone());
    let fingerprint = signer.fingerprint(HashAlg::Sha256).to_string();
    if signature.namespace() != NAMESPACE {
        return Err(Refusal::unusable("it was made for something else than git"));
    }
    match signer.algorithm() {
        Algorithm::Ed25519 | Algorithm::Ecdsa { .. } | Algorithm::Rsa { .. } => {}
        Algorithm::SkEd25519 => touched(&signature)?,
        other => {
            return Err(Refusal::unusable(format!(
                "keys of the kind {other} are not supported"
            )));
        }
    }
    let same = |key: &PublicKey| key.key_data() == signer.key_data();
    if revoked.iter().any(same) {
        return Err(Refusal::Revoked { key: fingerprint });
    }
    let mut lines = allowed.iter().filter(|line| same(&line.key)).peekable();
    if lines.peek().is_none() {
        return Err(Refusal::Unknown { key: fingerprint });
    }
    if signer.verify(NAMESPACE, payload, &signature).is_err() {
        return Err(Refusal::Bad { key: fingerprint });
    }
    let mut refusal = Refusal::Unknown {
        key: fingerprint.clone(),
    };
    for line in lines {
        let key = format!("{} ({fingerprint})", line.principals);
        if line.valid_after.is_some_and(|start| time < start) {
            refusal = Refusal::NotYetValid { key };
        } else if line.valid_before.is_some_and(|end| time > end) {
            let what = "the permission";
            refusal = Refusal::Expired { key, what };
        } else {
            return Ok(());
        }
    }
    Err(refusal)
}

/// The signature's 64 bytes are followed by the flags and a counter.
fn touched(signature: &SshSig) -> Result<(), Refusal> {
    let flags = signature.signature().as_bytes().get(64);
    if flags.is_some_and(|flags| flags & TOUCHED != 0) {
        return Ok(());
    }
    Err(Refusal::unusable("the security key was not touched"))
}
