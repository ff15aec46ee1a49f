//! Digests of objects: what was last wanted, in a form that travels with the object.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The digest of a desired object, written `v1:` and the first 128 bits of SHA-256 in hexadecimal.
///
/// `v1` is SHA-256 over the compact JSON text of the object with its keys sorted. The prefix is part of the stored
/// format: a later way of computing it gets a new prefix and must accept this one, so that an upgraded agent writes
/// nothing on an unchanged repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(String);

impl Digest {
    /// Computes the digest of a JSON value.
    pub fn of(value: &Value) -> Self {
        let mut hasher = Hasher(Sha256::new());
        serde_json::to_writer(&mut hasher, value)
            .expect("a JSON value can always be written to a hasher");
        Self(format!("v1:{}", hex(&hasher.0.finalize()[..16])))
    }

    /// Computes the digest of a sequence of texts, each closed by a zero byte.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part.as_bytes());
            hasher.update([0]);
        }
        Self(format!("v1:{}", hex(&hasher.finalize()[..16])))
    }

    /// Takes over a digest that was read from an annotation; any text is allowed, equality is all that counts.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns a digest that equals none that is stored: whose key is not known here.
    pub fn unknown() -> Self {
        Self("unknown".to_owned())
    }

    /// Returns the digest as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key of the digests of Secrets. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey([u8; SecretKey::SIZE]);

impl SecretKey {
    /// Bytes of a key.
    pub const SIZE: usize = 32;

    /// Makes a key of random bytes.
    pub fn new(bytes: [u8; Self::SIZE]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes, for storing them.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the keyed form of a digest, written `k1:` and the first 128 bits of SHA-256 over the key and the digest in
    /// hexadecimal. Both have a fixed length and the result is cut, so that nothing can be appended to what is hashed.
    pub fn seal(&self, digest: &Digest) -> Digest {
        let mut hasher = Sha256::new();
        hasher.update(b"fairway secret digest k1\0");
        hasher.update(self.0);
        hasher.update(Sha256::digest(digest.0.as_bytes()));
        Digest(format!("k1:{}", hex(&hasher.finalize()[..16])))
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey")
    }
}

/// Feeds written bytes into SHA-256.
struct Hasher(Sha256);

impl std::io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_digest_depends_on_the_key_and_its_format_is_frozen() {
        let digest = Digest::of_parts(["one"]);
        let sealed = SecretKey::new([7; SecretKey::SIZE]).seal(&digest);
        assert_eq!(sealed.as_str(), "k1:422d1292cb3878a909c59e4299abff5a");
        assert_ne!(SecretKey::new([8; SecretKey::SIZE]).seal(&digest), sealed);
    }

    #[test]
    fn digest_does_not_depend_on_key_order_and_its_format_is_frozen() {
        let one: Value = serde_json::from_str(r#"{"b":1,"a":{"y":[1,2],"x":null}}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"a":{"x":null,"y":[1,2]},"b":1}"#).unwrap();
        assert_eq!(Digest::of(&one), Digest::of(&two));
        // Stored on clusters: this value must never change for v1.
        assert_eq!(
            Digest::of(&one).as_str(),
            "v1:f23ac274dee8c32ffbd5ce1c9443f931"
        );
    }
}
