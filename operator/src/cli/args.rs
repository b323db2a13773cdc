//! Flags shared by several commands.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use daemon::cluster;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::api::{AddressingStyle, ConsumerContent, Endpoint, Publishing, Unlabelled};

/// Access to the cluster, and the operator's identity in it.
#[derive(Debug, Args)]
pub(super) struct ClusterArgs {
    /// Kubeconfig file. Without it and --context, `run` uses the pod's service account, and `plan`
    /// and `why` use the same configuration as kubectl.
    #[arg(long, env = "STOWAGE_KUBECONFIG", value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig, if not its current one.
    #[arg(long, env = "STOWAGE_CONTEXT", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(super) context: Option<String>,
    /// Namespace of the operator's own Secrets; default: the pod's namespace, or stowage-system
    /// outside of a cluster.
    #[arg(long, env = "STOWAGE_NAMESPACE", value_name = "NAMESPACE", value_parser = cluster::namespace)]
    pub(super) namespace: Option<String>,
    /// Namespace in which gateways exchange the usage of buckets; default: the operator's own. A
    /// separate one isolates the writes of gateways from everything else.
    #[arg(long, env = "STOWAGE_USAGE_NAMESPACE", value_name = "NAMESPACE", value_parser = cluster::namespace)]
    pub(super) usage_namespace: Option<String>,
    /// Serve only the claims and accesses of this namespace; repeatable, or separated by commas;
    /// default: all namespaces. The operator then needs no rights on Secrets of other namespaces.
    /// Requires --installation-id, as kube-system can't be read either.
    #[arg(long, env = "STOWAGE_WATCH_NAMESPACE", value_name = "NAMESPACE", value_delimiter = ',', value_parser = cluster::namespace, requires = "installation_id")]
    pub(super) watch_namespace: Vec<String>,
    /// Additional namespace from which admin and CA Secrets of backends may be read; repeatable, or
    /// separated by commas.
    #[arg(long, env = "STOWAGE_TRUSTED_SECRET_NAMESPACE", value_name = "NAMESPACE", value_delimiter = ',', value_parser = cluster::namespace)]
    pub(super) trusted_secret_namespace: Vec<String>,
    /// For upgrades only: accept admin Secrets without the label
    /// broker.stowage.io/backend-credentials and the annotation broker.stowage.io/endpoints. A user
    /// who may edit an S3Backend can then have any such Secret sent to any endpoint. The log names
    /// each Secret used this way.
    #[arg(long, env = "STOWAGE_ACCEPT_UNLABELLED_CREDENTIALS")]
    pub(super) accept_unlabelled_credentials: bool,
    /// Identity in the tags of buckets, which distinguishes this cluster's buckets from those of
    /// another on the same store; default: the UID of kube-system. A restored cluster needs its
    /// former one.
    #[arg(long, env = "STOWAGE_INSTALLATION_ID", value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(super) installation_id: Option<String>,
}

impl ClusterArgs {
    /// Returns the policy for admin Secrets whose owner has not opted in.
    pub(super) fn unlabelled(&self) -> Unlabelled {
        if self.accept_unlabelled_credentials { Unlabelled::Accepted } else { Unlabelled::Refused }
    }
}

/// Flags about the gateway.
#[derive(Debug, Args)]
pub(super) struct GatewayArgs {
    /// URL of the S3 gateway that tenants use; no claim can be bound without one.
    #[arg(long, env = "STOWAGE_GATEWAY_ENDPOINT", value_name = "URL", value_parser = gateway_endpoint)]
    pub(super) gateway_endpoint: Endpoint,
    /// Region with which tenants sign requests to the gateway.
    #[arg(long, env = "STOWAGE_GATEWAY_REGION", value_name = "REGION", default_value = "us-east-1", value_parser = gateway_region)]
    pub(super) gateway_region: String,
    /// Position of the bucket's name in URLs of the gateway.
    #[arg(long, env = "STOWAGE_GATEWAY_ADDRESSING_STYLE", value_name = "STYLE", default_value = "path", value_parser = addressing_style())]
    pub(super) gateway_addressing_style: AddressingStyle,
}

/// Flags about ObjectBucketClaims.
#[derive(Debug, Args)]
pub(super) struct ObcArgs {
    /// Serve ObjectBucketClaims of the storage classes of --obc-provisioner (spec §9). Requires the
    /// CRDs of that API, which are not part of this project, and additional rights.
    #[arg(long, env = "STOWAGE_OBC", conflicts_with = "watch_namespace")]
    pub(super) obc: bool,
    /// Provisioner in the storage classes; two installations in one cluster need different names.
    #[arg(long, env = "STOWAGE_OBC_PROVISIONER", value_name = "NAME", default_value = "broker.stowage.io/bucket", value_parser = NonEmptyStringValueParser::new())]
    pub(super) obc_provisioner: String,
}

impl ObcArgs {
    /// Returns the provisioner in storage classes; `None` if ObjectBucketClaims are not served.
    pub(super) fn provisioner(self) -> Option<String> {
        self.obc.then_some(self.obc_provisioner)
    }
}

/// Flags about the Secrets that tenants read.
#[derive(Debug, Args)]
pub(super) struct PublishingArgs {
    /// File with the CA certificates (PEM) of the gateway, if clients don't trust them anyway; they
    /// are put into Secrets as ca.crt. Read at start.
    #[arg(long, env = "STOWAGE_GATEWAY_CA_FILE", value_name = "FILE")]
    pub(super) gateway_ca_file: Option<PathBuf>,
    /// Prefix of labels and annotations that the secretTemplate of a claim may set, such as
    /// reloader.stakater.com/; repeatable, or separated by commas. Without it none may be set.
    #[arg(long, env = "STOWAGE_SECRET_METADATA_PREFIX", value_name = "PREFIX", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub(super) secret_metadata_prefix: Vec<String>,
    /// Add the keys of the Service Binding specification to Secrets: type, provider, host, port,
    /// uri, and certificates with --gateway-ca-file. Every Secret is written once more.
    #[arg(long, env = "STOWAGE_SERVICE_BINDING")]
    pub(super) service_binding: bool,
}

/// Maximum size in bytes of the certificates, which are copied into every Secret.
const LONGEST_CA: usize = 64 << 10;

impl PublishingArgs {
    /// Returns the configuration, and the certificates.
    ///
    /// # Errors
    /// Returns an error if the file can't be read, or contains no certificates.
    pub(super) fn read(self) -> Result<(Publishing, Option<Arc<str>>), String> {
        let ca = self.gateway_ca_file.as_deref().map(ca).transpose()?;
        let publishing =
            Publishing { metadata_prefixes: self.secret_metadata_prefix, service_binding: self.service_binding };
        Ok((publishing, ca))
    }
}

fn ca(file: &Path) -> Result<Arc<str>, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("--gateway-ca-file {}: {why}", file.display());
    let mut text = String::new();
    let most = u64::try_from(LONGEST_CA).unwrap_or(u64::MAX).saturating_add(1);
    let read = File::open(file).and_then(|file| file.take(most).read_to_string(&mut text));
    read.map_err(|error| wrong(&error))?;
    if text.len() > LONGEST_CA {
        return Err(wrong(&format!("it has more than {LONGEST_CA} bytes")));
    }
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    if certificates.map_err(|error| wrong(&error))?.is_empty() {
        return Err(wrong(&"there is no certificate (PEM) in it"));
    }
    Ok(text.into())
}

/// Flags about the gateway, for a command that can find out the values.
#[derive(Debug, Args)]
pub(super) struct GivenGatewayArgs {
    /// URL of the S3 gateway that the operator is configured with; default: that of most bound
    /// claims. Another URL shows the effect of such a change.
    #[arg(long, env = "STOWAGE_GATEWAY_ENDPOINT", value_name = "URL", value_parser = gateway_endpoint)]
    pub(super) gateway_endpoint: Option<Endpoint>,
    /// Region with which tenants sign requests to the gateway; default: that of most bound claims.
    #[arg(long, env = "STOWAGE_GATEWAY_REGION", value_name = "REGION", value_parser = gateway_region)]
    pub(super) gateway_region: Option<String>,
    /// Position of the bucket's name in URLs of the gateway; default: that of most bound claims.
    #[arg(long, env = "STOWAGE_GATEWAY_ADDRESSING_STYLE", value_name = "STYLE", value_parser = addressing_style())]
    pub(super) gateway_addressing_style: Option<AddressingStyle>,
}

/// Parses a URL that fits into the stored part of a consumer Secret. A longer one would be repaired
/// for ever.
fn gateway_endpoint(text: &str) -> Result<Endpoint, String> {
    let longest = ConsumerContent::LONGEST_ENDPOINT;
    let endpoint = Endpoint::parse(text).map_err(|error| error.to_string())?;
    if endpoint.as_str().len() > longest { Err(format!("it has more than {longest} bytes")) } else { Ok(endpoint) }
}

/// Parses a region, with the same limits as for backends.
fn gateway_region(text: &str) -> Result<String, String> {
    if (1..=63).contains(&text.len()) { Ok(text.to_owned()) } else { Err("a region has 1 to 63 characters".to_owned()) }
}

/// Parses a style by its name in the contract; the help lists the names.
fn addressing_style() -> impl TypedValueParser<Value = AddressingStyle> {
    PossibleValuesParser::new(AddressingStyle::ALL.map(AddressingStyle::as_str)).map(|word| {
        AddressingStyle::ALL.into_iter().find(|style| style.as_str() == word).expect("no other word gets through")
    })
}

/// Flags that limit concurrency.
#[derive(Debug, Args)]
pub(super) struct LimitArgs {
    /// Number of claims reconciled at once.
    #[arg(long, env = "STOWAGE_MAX_CONCURRENT_RECONCILES", value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) max_concurrent_reconciles: u16,
    /// Maximum number of concurrent calls to each backend.
    #[arg(long, env = "STOWAGE_MAX_UPSTREAM_CALLS", value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) max_upstream_calls: u16,
    /// Deadline of each call to a store, in seconds.
    #[arg(long, env = "STOWAGE_UPSTREAM_TIMEOUT", value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=300))]
    pub(super) upstream_timeout: u64,
    /// Maximum number of objects that one pass deletes from a bucket being emptied, before other
    /// claims get their turn.
    #[arg(long, env = "STOWAGE_PURGE_SLICE", value_name = "OBJECTS", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) purge_slice: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: 10.ca.longest
    #[test]
    fn of_a_file_of_authorities_no_more_is_read_than_every_secret_may_get() {
        let refused = |file: &str| ca(Path::new(file)).expect_err("it is refused");
        // A file without an end.
        assert!(refused("/dev/zero").ends_with(&format!("it has more than {LONGEST_CA} bytes")));
        assert!(refused("/dev/null").ends_with("there is no certificate (PEM) in it"));
        assert!(refused("/nowhere/ca.crt").starts_with("--gateway-ca-file /nowhere/ca.crt: "));
    }
}
