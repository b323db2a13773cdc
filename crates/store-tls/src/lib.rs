//! TLS configurations for clients of S3 stores: which server certificates are trusted.
//!
//! # Guarantees
//!
//! - The names and dates of a certificate are checked, and so are the signatures of handshakes.
//!   Under [`Trust::Anything`] only the signatures are checked.
//! - A certificate in a bundle is trusted for its own names and dates, even if it is not a CA
//!   certificate. Any other certificate has to be signed by a CA certificate of the bundle.
//! - A bundle is never used in part: it is refused if one of its entries is not a certificate.
//!
//! # Limits
//!
//! - No client certificates, no revocation lists, and no protocols but TLS 1.2 and 1.3.
//! - The system's CA certificates are read each time a configuration is created.

#![warn(clippy::too_many_lines)]

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// The server certificates to trust.
#[derive(Clone, PartialEq, Eq)]
pub enum Trust {
    /// Certificates signed by the system's authorities.
    System,
    /// Certificates contained in this PEM bundle, and certificates signed by its authorities.
    Bundle(Vec<u8>),
    /// Any certificate.
    Anything,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "System",
            Self::Bundle(_) => "Bundle",
            Self::Anything => "Anything",
        })
    }
}

/// The reasons why no HTTP client can be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The CA bundle contains no certificate that can be read.
    #[error("the CA bundle holds no certificate in PEM that can be read")]
    Bundle,
    /// The system has no certificate authorities.
    #[error("the system has no certificate authorities; give the backend a CA bundle")]
    NoSystemRoots,
    /// The TLS library refused its configuration.
    #[error("TLS: {0}")]
    Tls(String),
}

/// Creates a TLS client configuration with this trust. It sets no ALPN protocols: the caller adds
/// those it supports.
///
/// # Errors
/// Returns an error if there is no authority to trust, or if the TLS library refuses its
/// configuration.
pub fn tls_config(trust: &Trust) -> Result<ClientConfig, ConnectError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| ConnectError::Tls(error.to_string()))?;
    let verifier = verifier(trust, provider)?;
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn verifier(trust: &Trust, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, ConnectError> {
    Ok(match trust {
        Trust::Anything => Arc::new(AcceptAnything { provider }),
        Trust::System => {
            let roots = store(rustls_native_certs::load_native_certs().certs).ok_or(ConnectError::NoSystemRoots)?;
            signed_by(roots, provider)?
        }
        Trust::Bundle(pem) => {
            let certificates: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(pem).collect();
            let certificates = certificates.map_err(|_| ConnectError::Bundle)?;
            let roots = store(certificates.clone()).ok_or(ConnectError::Bundle)?;
            Arc::new(InBundle { authorities: signed_by(roots, provider)?, certificates })
        }
    })
}

/// Builds a root store. Returns `None` if no certificate is usable.
fn store(certificates: Vec<CertificateDer<'static>>) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates);
    (added > 0).then_some(roots)
}

fn signed_by(roots: RootCertStore, provider: Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, ConnectError> {
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    verifier.map_err(|error| ConnectError::Tls(error.to_string()))
}

/// Returns true if a certificate was refused because it is a CA certificate used as a server
/// certificate. A self-signed one of that kind would be trusted if the bundle contained it.
pub fn is_authority(why: &CertificateError) -> bool {
    let CertificateError::Other(why) = why else { return false };
    why.0.downcast_ref::<webpki::Error>() == Some(&webpki::Error::CaUsedAsEndEntity)
}

/// Trusts certificates in a CA bundle, and certificates signed by its authorities. For a store with
/// a self-signed CA certificate (as `openssl req -x509` creates) no other bundle is possible.
#[derive(Debug)]
struct InBundle {
    authorities: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for InBundle {
    /// Checks the chain first and then, if only the issuer was refused, looks for the certificate
    /// in the bundle.
    ///
    /// The library checks the dates first, then the issuer, then the names. So if it refuses the
    /// issuer, the names still have to be checked here.
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verdict = self.authorities.verify_server_cert(certificate, intermediates, name, ocsp, now);
        match &verdict {
            Err(rustls::Error::InvalidCertificate(why))
                if (is_authority(why) || *why == CertificateError::UnknownIssuer)
                    && self.certificates.contains(certificate) =>
            {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            _ => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Implements [`Trust::Anything`]: accepts any certificate, but still checks the signatures of the
/// handshake.
#[derive(Debug)]
struct AcceptAnything {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AcceptAnything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
