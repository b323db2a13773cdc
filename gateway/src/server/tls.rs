//! The gateway's own certificate, read from files and read again when they change.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

/// Interval between two reads of the files. A mounted Secret is replaced as a whole, by a link.
const LOOK: Duration = Duration::from_secs(10);

/// A certificate with its key. Clones share it, also after it was reloaded.
#[derive(Clone)]
pub struct Certificate {
    files: Arc<Files>,
    acceptor: TlsAcceptor,
    shown: Arc<Shown>,
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// The certificate currently shown to clients.
struct Shown(RwLock<Arc<CertifiedKey>>);

/// The reason why a certificate can't be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file can't be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// There is no certificate in PEM in the file.
    #[error("{}: it holds no certificate in PEM", .0.display())]
    NoCertificate(PathBuf),
    /// There is no private key in PEM in the file.
    #[error("{}: it holds no private key in PEM", .0.display())]
    NoKey(PathBuf),
    /// The key is of an unknown kind, or doesn't belong to the certificate.
    #[error("certificate and key can't be used together: {0}")]
    Unfit(rustls::Error),
}

impl Certificate {
    /// Reads certificate chain and private key, both in PEM.
    ///
    /// # Errors
    /// Returns an error if certificate or key can't be read, or if they don't belong together.
    pub fn read(certificate: PathBuf, key: PathBuf) -> Result<Self, CertificateError> {
        let files = Arc::new(Files { certificate, key });
        let shown = Arc::new(Shown(RwLock::new(Arc::new(files.read()?))));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(CertificateError::Unfit)?
            .with_no_client_auth()
            .with_cert_resolver(shown.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { files, acceptor: TlsAcceptor::from(Arc::new(config)), shown })
    }

    pub(super) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    /// Reloads the files periodically. Never returns. Files that don't belong together, as between
    /// the writes of the two, change nothing.
    pub async fn follow(&self) {
        loop {
            sleep(LOOK).await;
            let files = self.files.clone();
            let read = tokio::task::spawn_blocking(move || files.read()).await;
            match read {
                Ok(Ok(new)) => self.show(new),
                Ok(Err(error)) => tracing::warn!(%error, "the certificate can't be read again; the last one is shown"),
                Err(error) => tracing::warn!(%error, "the certificate could not be looked at"),
            }
        }
    }

    fn show(&self, new: CertifiedKey) {
        let mut shown = self.shown.0.write();
        if shown.cert != new.cert {
            *shown = Arc::new(new);
            tracing::info!("another certificate is shown from now on");
        }
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("file", &self.files.certificate).finish_non_exhaustive()
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown")
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}

impl Files {
    fn read(&self) -> Result<CertifiedKey, CertificateError> {
        let pem = |path: &Path| fs::read(path).map_err(|error| CertificateError::File { path: path.to_owned(), error });
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&pem(&self.certificate)?)
            .collect::<Result<_, _>>()
            .map_err(|_| CertificateError::NoCertificate(self.certificate.clone()))?;
        if chain.is_empty() {
            return Err(CertificateError::NoCertificate(self.certificate.clone()));
        }
        let key =
            PrivateKeyDer::from_pem_slice(&pem(&self.key)?).map_err(|_| CertificateError::NoKey(self.key.clone()))?;
        CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(CertificateError::Unfit)
    }
}
