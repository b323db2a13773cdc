//! Tests of certificates that are trusted and certificates that are refused.

use std::time::Duration;

use rstest::rstest;

use super::*;

/// Created by `openssl req -x509`: a self-signed CA certificate for `s3.example` and 10.0.0.1,
/// valid from the end of 2026 to the end of 2126.
const SELF_SIGNED: &str = "\
-----BEGIN CERTIFICATE-----
MIIBlTCCATqgAwIBAgIUQQuiwo0dNlWwfk+VJ4NPA+/Bj/8wCgYIKoZIzj0EAwIw
EDEOMAwGA1UEAwwFc3RvcmUwIBcNMjYxMTI3MDIxMzU0WhgPMjEyNjExMDMwMjEz
NTRaMBAxDjAMBgNVBAMMBXN0b3JlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
CaZxR9osreo4IUd8yVAa2hhUFpOyXa/M8NVIa+RxJm618JFyVLCruCQiv4NZDKeN
8PD2BGOjthN4ORDm0IfjaKNwMG4wHQYDVR0OBBYEFF8OhxEj0qYBazOFB9whxdI0
W5NpMB8GA1UdIwQYMBaAFF8OhxEj0qYBazOFB9whxdI0W5NpMA8GA1UdEwEB/wQF
MAMBAf8wGwYDVR0RBBQwEoIKczMuZXhhbXBsZYcECgAAATAKBggqhkjOPQQDAgNJ
ADBGAiEAmyFMDmuLOQFh06VVJeYMgVai/ntI+1liZjQ/HgYVL+QCIQD9VGztYmNR
Ys2twXJ9De/VcMl5LxAMOZ7wutPQCEC56Q==
-----END CERTIFICATE-----
";

/// Like [`SELF_SIGNED`], with another key.
const IMPOSTER: &str = "\
-----BEGIN CERTIFICATE-----
MIIBlDCCATqgAwIBAgIUQRERF62ePM/Lds3zcglSWOkk16EwCgYIKoZIzj0EAwIw
EDEOMAwGA1UEAwwFc3RvcmUwIBcNMjYxMTI3MDIxMzU0WhgPMjEyNjExMDMwMjEz
NTRaMBAxDjAMBgNVBAMMBXN0b3JlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
Piof/P0YZsDBjg+HayanUIB4H1lgIZEWfanzL8y9AcLDztAH3NMTfbtJmttVcv9T
WSJdB4dh43sL5rJUqsyp86NwMG4wHQYDVR0OBBYEFKlkC4BsUxbsqubU20vYrZhN
rlOfMB8GA1UdIwQYMBaAFKlkC4BsUxbsqubU20vYrZhNrlOfMA8GA1UdEwEB/wQF
MAMBAf8wGwYDVR0RBBQwEoIKczMuZXhhbXBsZYcECgAAATAKBggqhkjOPQQDAgNI
ADBFAiA6xoRn8FNKKdnHf3p5BgZzoLbJ0kCvwgebNcfAigYhbQIhALQGvelg2hL4
f1Oa+4pT2mh4Sxy0UefmqZxhA4JHJ6qQ
-----END CERTIFICATE-----
";

/// Certificate for `s3.example` with the same dates, signed by an authority that no client trusts.
const LEAF: &str = "\
-----BEGIN CERTIFICATE-----
MIIBizCCATGgAwIBAgIUKIJp/RO/2rChEbrQZoyx2P1c75YwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJYXV0aG9yaXR5MCAXDTI2MTEyNzAyMTM1NFoYDzIxMjYxMTAz
MDIxMzU0WjAPMQ0wCwYDVQQDDARsZWFmMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD
QgAEgnMOw9tlg/sOATMwlj8bxCM8G+LWnpKxdD2NytwD1arjHTm+INiJpd9Z3Qko
pXwswGZ+HUy7dM0xi+XIOB5RyqNkMGIwCQYDVR0TBAIwADAVBgNVHREEDjAMggpz
My5leGFtcGxlMB0GA1UdDgQWBBTLmT4OwvykAli4suAgp9pueUv9ozAfBgNVHSME
GDAWgBSfv6x0NOH7L/J1x/xp5IS/AFDAijAKBggqhkjOPQQDAgNIADBFAiEAv+wc
uRfNn7HDYiR2VQJY70tT8z9Os83HBlS6uGQv6jECIEKd2VBXv+/zSWeZsxlH8euY
GMgDy+bEBD4NQNdi9G2C
-----END CERTIFICATE-----
";

const DAY: u64 = 86_400;
/// Days since 1970, before, within and after the validity of the certificates.
const BEFORE: u64 = 20_000;
const WITHIN: u64 = 22_000;
const AFTER: u64 = 58_000;

/// Verifies a server of this name that shows `certificate`, for a client that trusts `bundle`.
fn verdict(bundle: &str, certificate: &str, name: &str, day: u64) -> Result<(), rustls::Error> {
    let verifier = verifier(&Trust::Bundle(bundle.into()), Arc::new(ring::default_provider())).expect("a bundle");
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("a certificate");
    let name = ServerName::try_from(name).expect("a name");
    let now = UnixTime::since_unix_epoch(Duration::from_secs(day * DAY));
    verifier.verify_server_cert(&certificate, &[], &name, &[], now).map(drop)
}

// covers: 1.backend.tls.inBundle
#[rstest]
#[case(SELF_SIGNED, "s3.example")]
#[case(SELF_SIGNED, "10.0.0.1")]
#[case(LEAF, "s3.example")]
fn what_stands_in_the_bundle_is_believed_for_its_names_and_dates(#[case] certificate: &str, #[case] name: &str) {
    assert_eq!(verdict(certificate, certificate, name, WITHIN), Ok(()));
    let beside = [IMPOSTER, certificate].concat();
    assert_eq!(verdict(&beside, certificate, name, WITHIN), Ok(()), "also beside others");
    let why = |verdict: Result<(), rustls::Error>| match verdict {
        Err(rustls::Error::InvalidCertificate(why)) => why,
        other => panic!("{other:?}"),
    };
    let of_another = why(verdict(certificate, certificate, "s4.example", WITHIN));
    assert!(matches!(of_another, CertificateError::NotValidForNameContext { .. }), "{of_another:?}");
    let too_early = why(verdict(certificate, certificate, name, BEFORE));
    assert!(matches!(too_early, CertificateError::NotValidYetContext { .. }), "{too_early:?}");
    let too_late = why(verdict(certificate, certificate, name, AFTER));
    assert!(matches!(too_late, CertificateError::ExpiredContext { .. }), "{too_late:?}");
}

#[rstest]
#[case(IMPOSTER, SELF_SIGNED)]
#[case(SELF_SIGNED, IMPOSTER)]
#[case(SELF_SIGNED, LEAF)]
#[case(LEAF, SELF_SIGNED)]
fn what_does_not_stand_in_it_is_not(#[case] bundle: &str, #[case] certificate: &str) {
    assert!(verdict(bundle, certificate, "s3.example", WITHIN).is_err());
}

// covers: 1.backend.tls.caBundle
#[test]
fn a_bundle_without_a_certificate_is_refused() {
    assert_eq!(tls_config(&Trust::Bundle(b"no pem".to_vec())).err(), Some(ConnectError::Bundle));
    assert_eq!(tls_config(&Trust::Bundle(Vec::new())).err(), Some(ConnectError::Bundle));
}

// covers: 1.backend.tls.insecureSkipVerify
#[test]
fn skipping_verification_needs_no_authorities() {
    assert!(tls_config(&Trust::Anything).is_ok());
}
