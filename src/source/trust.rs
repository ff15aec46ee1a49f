//! Whom a source trusts: the system's certificate authorities and its own, which no other source sees.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
};

use super::error::SourceError;

/// The certificates of a `ca.crt`: trust for one source, beside the system's and seen by no other source.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificateAuthorities(Arc<Vec<CertificateDer<'static>>>);

/// Vouches for a server: by the authorities, or since its own certificate was pinned.
#[derive(Debug)]
struct Verifier {
    authorities: Arc<WebPkiServerVerifier>,
    own: Option<CertificateAuthorities>,
}

/// Makes the TLS settings of one source. Sessions are resumed among the connections that share them.
///
/// The system's authorities are read anew each time, so that a change of theirs counts without a restart, at the latest when
/// the Secret changes.
pub(super) fn client_config(own: Option<&CertificateAuthorities>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    // What the system has that cannot be read vouches for nobody.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let certificates = own.iter().flat_map(|own| own.0.iter().cloned());
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() {
        return Err("the system knows no authority, and the source names none".to_owned());
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = Verifier {
        authorities: webpki(roots, &provider).map_err(|error| error.to_string())?,
        own: own.cloned(),
    };
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

fn webpki(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, rustls::client::VerifierBuilderError> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build()
}

// === impl CertificateAuthorities ===

impl CertificateAuthorities {
    /// Reads a bundle of certificates in PEM.
    ///
    /// Intermediate certificates that the server does not send may be in the bundle. A server's own certificate in it is
    /// trusted as it is, whatever it says.
    ///
    /// # Errors
    ///
    /// When there is no certificate in it, or one that cannot be read.
    pub fn from_pem(pem: &[u8]) -> Result<Self, SourceError> {
        let invalid = |reason: String| SourceError::Authorities { reason };
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<_, _>>()
            .map_err(|error| invalid(error.to_string()))?;
        if certificates.is_empty() {
            return Err(invalid("there is no certificate in it".to_owned()));
        }
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots
                .add(certificate.clone())
                .map_err(|error| invalid(error.to_string()))?;
        }
        Ok(Self(Arc::new(certificates)))
    }
}

impl fmt::Debug for CertificateAuthorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CertificateAuthorities({})", self.0.len())
    }
}

// === impl Verifier ===

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let own = self.own.as_ref().map_or(&[][..], |own| &own.0[..]);
        if own.contains(certificate) {
            return Ok(ServerCertVerified::assertion());
        }
        let between: Vec<_> = sent.iter().chain(own).cloned().collect();
        self.authorities
            .verify_server_cert(certificate, &between, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.authorities
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.authorities
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}
