//! What is shown to the server, and by whom the server's certificate has to be signed.

use k8s_openapi::ByteString;
use kube::config::AuthInfo;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use serde_json::Value;

use super::error::KubeconfigError;
use super::fields::Fields;

const CERTIFICATE: &str = "client-certificate-data";
const KEY: &str = "client-key-data";
const TOKEN: &str = "token";

/// Reads the certificates that may vouch for the server.
pub(super) fn authorities(field: &str, text: &str) -> Result<Vec<Vec<u8>>, KubeconfigError> {
    let certificates = certificates(field, &decode(field, text)?)?;
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        roots.add(certificate.clone()).map_err(|_| {
            KubeconfigError::invalid(
                field,
                "has a certificate that cannot be used as an authority",
            )
        })?;
    }
    Ok(certificates
        .into_iter()
        .map(|certificate| certificate.to_vec())
        .collect())
}

/// Reads a user: a token, or a certificate with its key.
pub(super) fn user(user: &Fields<'_>) -> Result<AuthInfo, KubeconfigError> {
    let certificate = user.text(CERTIFICATE)?;
    let key = user.text(KEY)?;
    match (user.text(TOKEN)?, certificate, key) {
        (Some(token), None, None) => bearer(&user.path_of(TOKEN), token),
        (None, Some(certificate), Some(key)) => pair(user, certificate, key),
        (None, None, None) => Err(KubeconfigError::missing(
            user.path_of(TOKEN),
            "give the user a token, or client-certificate-data and client-key-data",
        )),
        (Some(_), ..) => Err(KubeconfigError::invalid(
            user.path_of(TOKEN),
            "stands beside a client certificate, and it is not clear as whom the agent would act; keep one of them",
        )),
        (None, Some(_), None) => Err(KubeconfigError::missing(
            user.path_of(KEY),
            "a client certificate is of no use without its key",
        )),
        (None, None, Some(_)) => Err(KubeconfigError::missing(
            user.path_of(CERTIFICATE),
            "a key is of no use without its client certificate",
        )),
    }
}

fn bearer(field: &str, token: &str) -> Result<AuthInfo, KubeconfigError> {
    if token.is_empty() {
        return Err(KubeconfigError::invalid(
            field,
            "is empty; give the user a token",
        ));
    }
    // What RFC 6750 allows in the header and more, but nothing that could end it.
    if !token.chars().all(|char| char.is_ascii_graphic()) {
        return Err(KubeconfigError::invalid(
            field,
            "contains blanks, line breaks or other characters that no token has",
        ));
    }
    Ok(AuthInfo {
        token: Some(token.to_owned().into()),
        ..AuthInfo::default()
    })
}

fn pair(user: &Fields<'_>, certificate: &str, key: &str) -> Result<AuthInfo, KubeconfigError> {
    let (certificate_field, key_field) = (user.path_of(CERTIFICATE), user.path_of(KEY));
    let certificate = decode(&certificate_field, certificate)?;
    let key = decode(&key_field, key)?;
    let chain = certificates(&certificate_field, &certificate)?;
    if !chain
        .iter()
        .all(|one| ParsedCertificate::try_from(one).is_ok())
    {
        return Err(KubeconfigError::invalid(
            &certificate_field,
            "has a certificate that cannot be read",
        ));
    }
    let private_key = PrivateKeyDer::from_pem_slice(&key).map_err(|_| {
        KubeconfigError::invalid(
            &key_field,
            "holds no private key in PEM that is not encrypted",
        )
    })?;
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    CertifiedKey::from_der(chain, private_key, &provider).map_err(|_| {
        KubeconfigError::invalid(
            &key_field,
            "is not the key of client-certificate-data, or of a kind that TLS does not use",
        )
    })?;
    Ok(AuthInfo {
        client_certificate_data: Some(encode(certificate)),
        client_key_data: Some(encode(key).into()),
        ..AuthInfo::default()
    })
}

fn certificates(field: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, KubeconfigError> {
    let invalid = |reason| KubeconfigError::invalid(field, reason);
    let certificates = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| invalid("holds PEM that cannot be read"))?;
    if certificates.is_empty() {
        return Err(invalid("holds no certificate in PEM"));
    }
    Ok(certificates)
}

/// Decodes base64, which may be broken into lines as client-go accepts it.
fn decode(field: &str, text: &str) -> Result<Vec<u8>, KubeconfigError> {
    let text: String = text.split_ascii_whitespace().collect();
    serde_json::from_value(Value::String(text))
        .map(|ByteString(bytes)| bytes)
        .map_err(|_| KubeconfigError::invalid(field, "is not base64"))
}

/// Encodes as base64, since that is how kube wants it.
fn encode(bytes: Vec<u8>) -> String {
    match serde_json::to_value(ByteString(bytes)) {
        Ok(Value::String(text)) => text,
        other => unreachable!("bytes are always text in base64: {other:?}"),
    }
}
