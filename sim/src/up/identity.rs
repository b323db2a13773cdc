//! The identity of the simulated API server: a certificate of its own authority, and the token of
//! the administrator.

use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};

/// Names in the certificate, besides the server's address.
const NAMES: [&str; 6] =
    ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", "::1"];

/// Size of a token in bytes.
const TOKEN_BYTES: usize = 32;

/// The credentials of the server and of its administrator.
pub(super) struct Identity {
    /// The authority's certificate, in PEM.
    pub(super) authority: String,
    /// Bearer token of the administrator.
    pub(super) token: String,
    /// The server's TLS configuration.
    pub(super) tls: Arc<ServerConfig>,
}

/// The part of the identity that outlives the process, so that existing kubeconfigs stay valid.
#[derive(Serialize, Deserialize)]
pub(super) struct Lasting {
    /// The authority's certificate and its key, in PEM.
    authority: String,
    key: String,
    token: String,
}

fn failed(error: rcgen::Error) -> String {
    format!("can't make a certificate: {error}")
}

/// Returns the parameters of the authority's certificate.
fn authority() -> Result<CertificateParams, String> {
    let mut authority = CertificateParams::new(Vec::new()).map_err(failed)?;
    authority.distinguished_name.push(DnType::CommonName, "stowage-sim authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(authority)
}

impl Lasting {
    /// Creates a new authority and token.
    ///
    /// # Errors
    /// Returns an error message if there are no random numbers.
    pub(super) fn new() -> Result<Self, String> {
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = authority()?.self_signed(&key).map_err(failed)?;
        Ok(Self { authority: certificate.pem(), key: key.serialize_pem(), token: token()? })
    }

    /// Serializes the identity for a file.
    pub(super) fn text(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts are JSON")
    }

    /// Reads the identity from a file.
    ///
    /// # Errors
    /// Returns an error message if the text can't be parsed.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| format!("the identity of the data can't be read: {error}"))
    }
}

impl Identity {
    /// Creates the identity of a server at this address.
    ///
    /// # Errors
    /// Returns an error message if TLS can't be configured.
    pub(super) fn new(lasting: Lasting, address: IpAddr) -> Result<Self, String> {
        let authority = Issuer::new(authority()?, KeyPair::from_pem(&lasting.key).map_err(failed)?);
        let key = KeyPair::generate().map_err(failed)?;
        let mut names: Vec<String> = NAMES.map(str::to_owned).into();
        if !names.contains(&address.to_string()) {
            names.push(address.to_string());
        }
        let mut server = CertificateParams::new(names).map_err(failed)?;
        server.distinguished_name.push(DnType::CommonName, "stowage-sim");
        // Strict TLS clients require it.
        server.use_authority_key_identifier_extension = true;
        let server = server.signed_by(&key, &authority).map_err(failed)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map(|builder| builder.with_no_client_auth())
            .and_then(|builder| builder.with_single_cert(vec![server.der().clone()], key));
        let mut config = config.map_err(|error| format!("can't speak TLS: {error}"))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { authority: lasting.authority, token: lasting.token, tls: Arc::new(config) })
    }
}

/// Returns a random token.
fn token() -> Result<String, String> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| format!("there are no random numbers: {error}"))?;
    Ok(hex::encode(bytes))
}

/// Returns random bytes.
///
/// # Panics
/// Panics if the system has no random numbers. It had some when the simulator started.
pub(super) fn random() -> [u8; TOKEN_BYTES] {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes
}
