//! A certificate for the loopback address, with a certificate authority generated for it.

use std::path::Path;

use anyhow::{Context as _, Result};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use stowage_testbed::gateway::Certificate;

/// Generates an authority, and a certificate signed by it for `127.0.0.1`.
///
/// # Errors
/// Fails if there are no random numbers, or if the directory can't be written.
pub(crate) fn certificate(directory: &Path) -> Result<Certificate> {
    let failed = || "can't make a certificate";
    let mut authority = CertificateParams::new(Vec::new()).with_context(failed)?;
    authority.distinguished_name.push(DnType::CommonName, "stowage-e2e authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().with_context(failed)?);
    let authority = authority.with_context(failed)?;
    let key = KeyPair::generate().with_context(failed)?;
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let mut server = CertificateParams::new(names).with_context(failed)?;
    server.distinguished_name.push(DnType::CommonName, "stowage-e2e");
    // Strict verifiers require it.
    server.use_authority_key_identifier_extension = true;
    let server = server.signed_by(&key, &authority).with_context(failed)?;
    let write = |name: &str, text: String| {
        let path = directory.join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string()).map(|()| path)
    };
    Ok(Certificate {
        authority: write("authority.pem", authority.pem())?,
        certificate: write("certificate.pem", server.pem())?,
        key: write("key.pem", key.serialize_pem())?,
    })
}
