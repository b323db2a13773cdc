//! The connection that consumer Secrets carry: the gateway, and the keys of their data.

use std::sync::Arc;

use super::fields::Data;
use super::key::SecretKey;
use crate::backend::AddressingStyle;
use crate::names::{AccessKeyId, Endpoint};

/// The gateway, as tenants reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Its URL.
    pub endpoint: Endpoint,
    /// The region that requests to it are signed for.
    pub region: String,
    /// How it wants a bucket's name in a request's URL.
    pub addressing_style: AddressingStyle,
    /// PEM of the authorities that vouch for it, where those that everybody trusts don't.
    pub ca: Option<Arc<str>>,
}

/// The data key of the authorities that vouch for the gateway.
pub const CA_KEY: &str = "ca.crt";

/// The data keys that a runtime of Service Binding looks for (Service Binding Specification for
/// Kubernetes 1.0, "Well-known Secret Entries").
pub const BINDING_KEYS: [&str; 6] = ["type", "provider", "host", "port", "uri", "certificates"];

/// The data keys of the connection, those that may be absent included.
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

/// What claims' and accesses' consumer Secrets have in common.
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
