//! TLS for the duration of a measurement.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use store_tls::{Trust, tls_config};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// A server certificate for the loopback address.
pub(super) struct Tls {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) acceptor: TlsAcceptor,
    pub(super) connector: TlsConnector,
}

impl Tls {
    /// Creates one in this directory.
    pub(super) fn make(directory: &Path) -> Result<Self> {
        let made = crate::tls::certificate(directory)?;
        let chain = CertificateDer::pem_file_iter(&made.certificate).context("can't read the certificate")?;
        let chain: Vec<CertificateDer<'static>> = chain.collect::<Result<_, _>>().context("no certificate in PEM")?;
        let private = PrivateKeyDer::from_pem_file(&made.key).context("can't read the key")?;
        let server = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|it| it.with_no_client_auth().with_single_cert(chain, private))
            .context("certificate and key don't fit")?;
        let client = tls_config(&Trust::Anything).context("no TLS")?;
        Ok(Self {
            certificate: made.certificate,
            key: made.key,
            acceptor: TlsAcceptor::from(Arc::new(server)),
            connector: TlsConnector::from(Arc::new(client)),
        })
    }
}
