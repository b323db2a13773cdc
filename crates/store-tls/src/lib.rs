//! Whose certificates a server may show: TLS for the clients of stores that are run by anybody.
//!
//! # Guarantees
//!
//! - Names and dates of a certificate are checked, and so are signatures of handshakes; under
//!   [`Trust::Anything`] the signatures alone.
//! - What stands in a bundle is believed for the names and dates that it has, whether or not it is
//!   an authority's. All else is for those to sign that are authorities.
//! - No bundle is half read: one entry that is no certificate, and it is refused.
//!
//! # Limits
//!
//! - No certificates of clients, no revocation lists, no protocol but TLS 1.2 and 1.3.
//! - The system's authorities are read each time that a configuration is made.

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

/// Whose certificates are believed.
#[derive(Clone, PartialEq, Eq)]
pub enum Trust {
    /// Those that the system's authorities signed.
    System,
    /// Those that stand in this PEM, and those that the authorities in it signed.
    Bundle(Vec<u8>),
    /// All of them.
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

/// Why no HTTP client could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The CA bundle holds no certificate that can be read.
    #[error("the CA bundle holds no certificate in PEM that can be read")]
    Bundle,
    /// The system has no certificate authorities.
    #[error("the system has no certificate authorities; give the backend a CA bundle")]
    NoSystemRoots,
    /// The TLS library refused its configuration.
    #[error("TLS: {0}")]
    Tls(String),
}

/// How connections with this trust are made. Which protocols are offered (ALPN) is for whoever
/// makes them to add.
///
/// # Errors
/// When there is no authority to believe, or the TLS library refuses its configuration.
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

/// `None` if no certificate is usable.
fn store(certificates: Vec<CertificateDer<'static>>) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates);
    (added > 0).then_some(roots)
}

fn signed_by(roots: RootCertStore, provider: Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, ConnectError> {
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    verifier.map_err(|error| ConnectError::Tls(error.to_string()))
}

/// Whether a certificate is refused because it is one to sign others with: where it is its own
/// authority, it would be believed if it stood in the bundle.
pub fn is_authority(why: &CertificateError) -> bool {
    let CertificateError::Other(why) = why else { return false };
    why.0.downcast_ref::<webpki::Error>() == Some(&webpki::Error::CaUsedAsEndEntity)
}

/// A CA bundle: what its authorities signed is believed, and so is what stands in it. A store whose
/// certificate is its own authority (`openssl req -x509` makes such) can be given no other bundle.
#[derive(Debug)]
struct InBundle {
    authorities: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for InBundle {
    /// The library looks at the dates first, then at who signed, then at the names. So where it is
    /// the second that it refuses, the third is left to be looked at.
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

/// [`Trust::Anything`]: any certificate will do, but signatures are checked all the same.
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
