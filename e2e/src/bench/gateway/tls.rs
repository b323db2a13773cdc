//! A certificate for the length of a measurement, by the program `openssl`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use store_tls::{Trust, tls_config};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// A certificate of this machine's loopback, for whoever serves.
pub(super) struct Tls {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) acceptor: TlsAcceptor,
    pub(super) connector: TlsConnector,
}

impl Tls {
    /// Makes one in this directory; nothing where there is no `openssl`.
    pub(super) fn make(directory: &Path) -> Result<Option<Self>> {
        let (certificate, key) = (directory.join("tls.crt"), directory.join("tls.key"));
        let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 7 -subj /CN=bench \
                     -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE -keyout";
        let made = Command::new("openssl")
            .args(words.split_whitespace())
            .args([key.as_os_str(), "-out".as_ref(), certificate.as_os_str()])
            .stdin(Stdio::null())
            .output();
        let Ok(made) = made else { return Ok(None) };
        ensure!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
        let chain = CertificateDer::pem_file_iter(&certificate).context("can't read the certificate")?;
        let chain: Vec<CertificateDer<'static>> = chain.collect::<Result<_, _>>().context("no certificate in PEM")?;
        let private = PrivateKeyDer::from_pem_file(&key).context("can't read the key")?;
        let server = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|it| it.with_no_client_auth().with_single_cert(chain, private))
            .context("certificate and key don't fit")?;
        let client = tls_config(&Trust::Anything).context("no TLS")?;
        Ok(Some(Self {
            certificate,
            key,
            acceptor: TlsAcceptor::from(Arc::new(server)),
            connector: TlsConnector::from(Arc::new(client)),
        }))
    }
}
