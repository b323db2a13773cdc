//! The HTTP client under the SDK, with the trust that a backend's `spec.tls` asks for.

use std::fmt;
use std::sync::Arc;

use aws_sdk_s3::config::http::HttpResponse;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Whose certificates are believed.
#[derive(Clone, PartialEq, Eq)]
pub enum Trust {
    /// Those that the system's authorities signed.
    System,
    /// Those that the authorities in this PEM signed.
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

/// Makes the HTTP clients under the SDK. A parameter of the operator, as the Kubernetes client is: whoever embeds
/// it may bring a transport of their own.
pub trait Connect: Send + Sync + 'static {
    /// An HTTP client that believes what `trust` says.
    ///
    /// # Errors
    /// When the trust can't be established, as with a bundle that isn't PEM.
    fn connect(&self, trust: &Trust) -> Result<SharedHttpClient, ConnectError>;
}

/// HTTP/1.1 over TCP and rustls.
#[derive(Clone, Copy, Debug, Default)]
pub struct RustlsConnect;

impl Connect for RustlsConnect {
    fn connect(&self, trust: &Trust) -> Result<SharedHttpClient, ConnectError> {
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls_config(trust)?)
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(https);
        Ok(SharedHttpClient::new(Hyper { client }))
    }
}

fn tls_config(trust: &Trust) -> Result<ClientConfig, ConnectError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| ConnectError::Tls(error.to_string()))?;
    Ok(match trust {
        Trust::Anything => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAnything { provider }))
            .with_no_client_auth(),
        Trust::System => {
            let roots = store(rustls_native_certs::load_native_certs().certs).ok_or(ConnectError::NoSystemRoots)?;
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        Trust::Bundle(pem) => {
            let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
            let roots = certificates.ok().and_then(store).ok_or(ConnectError::Bundle)?;
            builder.with_root_certificates(roots).with_no_client_auth()
        }
    })
}

/// `None` if no certificate is usable.
fn store(certificates: Vec<CertificateDer<'static>>) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates);
    (added > 0).then_some(roots)
}

#[derive(Clone, Debug)]
struct Hyper {
    client: Client<HttpsConnector<TcpConnector>, SdkBody>,
}

impl HttpClient for Hyper {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Hyper {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let client = self.client.clone();
        HttpConnectorFuture::new(async move {
            let request = request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
            let response = client.request(request).await.map_err(|error| ConnectorError::io(error.into()))?;
            HttpResponse::try_from(response.map(SdkBody::from_body_1_x))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// `spec.tls.insecureSkipVerify`: any certificate will do, but signatures are checked all the same.
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
mod tests {
    use super::*;

    // covers: 1.backend.tls.caBundle
    #[test]
    fn a_bundle_without_a_certificate_is_refused() {
        assert_eq!(RustlsConnect.connect(&Trust::Bundle(b"no pem".to_vec())).err(), Some(ConnectError::Bundle));
        assert_eq!(RustlsConnect.connect(&Trust::Bundle(Vec::new())).err(), Some(ConnectError::Bundle));
    }

    // covers: 1.backend.tls.insecureSkipVerify
    #[test]
    fn skipping_verification_needs_no_authorities() {
        assert!(RustlsConnect.connect(&Trust::Anything).is_ok());
    }
}
