//! Own certificate authorities of a source: docs/adr/0003 says why they are checked here and not by libgit2.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use super::error::SourceError;

/// The certificates of a `ca.crt`: trust for one source, beside the system's and seen by no other source.
#[derive(Clone)]
pub struct CertificateAuthorities(Arc<Bundle>);

struct Bundle {
    certificates: Vec<CertificateDer<'static>>,
    verifier: Arc<WebPkiServerVerifier>,
}

impl CertificateAuthorities {
    /// Reads a bundle of certificates in PEM.
    ///
    /// Intermediate certificates that the server does not send as part of its own certificate must be in the bundle.
    ///
    /// # Errors
    ///
    /// When there is no certificate in it, or one that cannot be read.
    pub fn from_pem(pem: &[u8]) -> Result<Self, SourceError> {
        let invalid = |reason: String| SourceError::Authorities { reason };
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<_, _>>()
            .map_err(|error| invalid(error.to_string()))?;
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots
                .add(certificate.clone())
                .map_err(|error| invalid(error.to_string()))?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| invalid(error.to_string()))?;
        Ok(Self(Arc::new(Bundle {
            certificates,
            verifier,
        })))
    }

    /// Returns whether the server's certificate is vouched for by this bundle, for this host and now.
    ///
    /// A certificate that itself stands in the bundle is what the operator has pinned, whatever it says.
    pub(super) fn vouch_for(&self, certificate: &[u8], host: &str) -> bool {
        let certificate = CertificateDer::from(certificate);
        if self.0.certificates.contains(&certificate) {
            return true;
        }
        let Ok(name) = ServerName::try_from(host.trim_matches(['[', ']'])) else {
            return false;
        };
        self.0
            .verifier
            .verify_server_cert(
                &certificate,
                &self.0.certificates,
                &name,
                &[],
                UnixTime::now(),
            )
            .is_ok()
    }
}
