//! The connection in consumer Secrets: the gateway, and the data keys.

use std::sync::Arc;

use super::fields::Data;
use super::key::SecretKey;
use crate::backend::AddressingStyle;
use crate::names::{AccessKeyId, Endpoint};

/// Address of the gateway for tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// URL of the gateway.
    pub endpoint: Endpoint,
    /// Region for which requests to it are signed.
    pub region: String,
    /// Position of the bucket name in request URLs.
    pub addressing_style: AddressingStyle,
    /// Certificate authorities of the gateway in PEM, if they are not publicly trusted.
    pub ca: Option<Arc<str>>,
}

/// Data key of the gateway's certificate authorities.
pub const CA_KEY: &str = "ca.crt";

/// Data keys defined by Service Binding (Service Binding Specification for Kubernetes 1.0,
/// "Well-known Secret Entries").
pub const BINDING_KEYS: [&str; 6] = ["type", "provider", "host", "port", "uri", "certificates"];

/// Data keys of the connection, including optional ones.
pub const CONNECTION_KEYS: [&str; 11] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "BUCKET_NAME",
    "BUCKET_NAMES",
    "S3_ADDRESSING_STYLE",
    "QUOTA_SOFT_BYTES",
    "QUOTA_HARD_BYTES",
];

/// Common content of the consumer Secrets of claims and accesses.
pub(super) struct Connection<'a> {
    pub(super) id: &'a AccessKeyId,
    pub(super) secret: &'a SecretKey,
    pub(super) gateway: &'a Gateway,
}

impl Connection<'_> {
    pub(super) fn data(&self) -> Data {
        let Self { id, secret, gateway } = self;
        let mut data = Data::default();
        data.text("AWS_ACCESS_KEY_ID", id.as_str());
        data.text("AWS_SECRET_ACCESS_KEY", secret.expose());
        data.text("AWS_REGION", &gateway.region);
        data.text("AWS_DEFAULT_REGION", &gateway.region);
        data.text("AWS_ENDPOINT_URL", gateway.endpoint.as_str());
        data.text("AWS_ENDPOINT_URL_S3", gateway.endpoint.as_str());
        data.text("S3_ADDRESSING_STYLE", gateway.addressing_style.as_str());
        data
    }
}
