//! Flags that several commands have.

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

/// How the cluster is reached, and what the operator is in it.
#[derive(Debug, Args)]
pub(super) struct ClusterArgs {
    /// Kubeconfig file; without it and --context, `run` uses the pod's service account, `plan` and
    /// `why` use what kubectl does.
    #[arg(long, env = "STOWAGE_KUBECONFIG", value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig, if not its current one.
    #[arg(long, env = "STOWAGE_CONTEXT", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(super) context: Option<String>,
    /// Namespace where the operator keeps its Secrets; by default the pod's own, outside of a
    /// cluster stowage-system.
    #[arg(long, env = "STOWAGE_NAMESPACE", value_name = "NAMESPACE", value_parser = cluster::namespace)]
    pub(super) namespace: Option<String>,
    /// Namespace where gateways tell each other how much buckets hold; by default the operator's
    /// own. One that is apart keeps what gateways write from everything else.
    #[arg(long, env = "STOWAGE_USAGE_NAMESPACE", value_name = "NAMESPACE", value_parser = cluster::namespace)]
    pub(super) usage_namespace: Option<String>,
    /// Serve the claims and accesses of this namespace, and of no other that isn't named too;
    /// repeatable, or separated by commas. By default all are served. It takes no right on Secrets
    /// of other namespaces, and needs --installation-id, as kube-system can't be read either.
    #[arg(long, env = "STOWAGE_WATCH_NAMESPACE", value_name = "NAMESPACE", value_delimiter = ',', value_parser = cluster::namespace, requires = "installation_id")]
    pub(super) watch_namespace: Vec<String>,
    /// Another namespace, besides that one, where admin and CA Secrets of backends are read;
    /// repeatable, or separated by commas.
    #[arg(long, env = "STOWAGE_TRUSTED_SECRET_NAMESPACE", value_name = "NAMESPACE", value_delimiter = ',', value_parser = cluster::namespace)]
    pub(super) trusted_secret_namespace: Vec<String>,
    /// For the time of an upgrade: admin Secrets are used that have neither the label
    /// broker.stowage.io/backend-credentials nor the annotation broker.stowage.io/endpoints. Who
    /// may edit an S3Backend can then have any such Secret sent anywhere; the log names what is
    /// used.
    #[arg(long, env = "STOWAGE_ACCEPT_UNLABELLED_CREDENTIALS")]
    pub(super) accept_unlabelled_credentials: bool,
    /// Stands in the tags of buckets and tells this cluster's from another's on the same store; by
    /// default the UID of kube-system. A restored cluster is given its old one.
    #[arg(long, env = "STOWAGE_INSTALLATION_ID", value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(super) installation_id: Option<String>,
}

impl ClusterArgs {
    /// What becomes of admin Secrets whose owner says nothing of what they are for.
    pub(super) fn unlabelled(&self) -> Unlabelled {
        if self.accept_unlabelled_credentials { Unlabelled::Accepted } else { Unlabelled::Refused }
    }
}

/// The gateway.
#[derive(Debug, Args)]
pub(super) struct GatewayArgs {
    /// URL of the S3 gateway that tenants talk to; no claim can be bound without one.
    #[arg(long, env = "STOWAGE_GATEWAY_ENDPOINT", value_name = "URL", value_parser = gateway_endpoint)]
    pub(super) gateway_endpoint: Endpoint,
    /// Region that requests to the gateway are signed for.
    #[arg(long, env = "STOWAGE_GATEWAY_REGION", value_name = "REGION", default_value = "us-east-1", value_parser = gateway_region)]
    pub(super) gateway_region: String,
    /// How the gateway wants a bucket's name in a request's URL.
    #[arg(long, env = "STOWAGE_GATEWAY_ADDRESSING_STYLE", value_name = "STYLE", default_value = "path", value_parser = addressing_style())]
    pub(super) gateway_addressing_style: AddressingStyle,
}

/// Whether ObjectBucketClaims are served.
#[derive(Debug, Args)]
pub(super) struct ObcArgs {
    /// Serve ObjectBucketClaims of the storage classes of --obc-provisioner (spec §9). Their
    /// definitions are others', and the operator needs more rights.
    #[arg(long, env = "STOWAGE_OBC", conflicts_with = "watch_namespace")]
    pub(super) obc: bool,
    /// What storage classes call this provisioner: another name where two installations serve one
    /// cluster.
    #[arg(long, env = "STOWAGE_OBC_PROVISIONER", value_name = "NAME", default_value = "broker.stowage.io/bucket", value_parser = NonEmptyStringValueParser::new())]
    pub(super) obc_provisioner: String,
}

impl ObcArgs {
    /// What storage classes call the provisioner; `None` where none are served.
    pub(super) fn provisioner(self) -> Option<String> {
        self.obc.then_some(self.obc_provisioner)
    }
}

/// What stands in the Secrets that tenants read.
#[derive(Debug, Args)]
pub(super) struct PublishingArgs {
    /// File with the certificates (PEM) of the authorities that vouch for the gateway, where they
    /// are not those that everybody trusts: it is put into Secrets as ca.crt. Read at start.
    #[arg(long, env = "STOWAGE_GATEWAY_CA_FILE", value_name = "FILE")]
    pub(super) gateway_ca_file: Option<PathBuf>,
    /// What labels and annotations that claims' secretTemplates write may begin with, such as
    /// reloader.stakater.com/; repeatable, or separated by commas. None may be written without it.
    #[arg(long, env = "STOWAGE_SECRET_METADATA_PREFIX", value_name = "PREFIX", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub(super) secret_metadata_prefix: Vec<String>,
    /// Put the keys into Secrets that runtimes of Service Binding look for: type, provider, host,
    /// port, uri, and certificates with --gateway-ca-file. Every Secret is written once more.
    #[arg(long, env = "STOWAGE_SERVICE_BINDING")]
    pub(super) service_binding: bool,
}

/// Most bytes of the certificates that every Secret gets.
const LONGEST_CA: usize = 64 << 10;

impl PublishingArgs {
    /// What they say, and the certificates.
    ///
    /// # Errors
    /// When the file can't be read, or is none of certificates.
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

/// The gateway, for a command that finds out what it is not told.
#[derive(Debug, Args)]
pub(super) struct GivenGatewayArgs {
    /// URL of the S3 gateway that the operator was told; by default the one that most bound claims
    /// have. Another one shows what would be done if the operator were told that.
    #[arg(long, env = "STOWAGE_GATEWAY_ENDPOINT", value_name = "URL", value_parser = gateway_endpoint)]
    pub(super) gateway_endpoint: Option<Endpoint>,
    /// Region that requests to the gateway are signed for; by default the one that most bound
    /// claims have.
    #[arg(long, env = "STOWAGE_GATEWAY_REGION", value_name = "REGION", value_parser = gateway_region)]
    pub(super) gateway_region: Option<String>,
    /// How the gateway wants a bucket's name in a request's URL; by default as most bound claims
    /// have it.
    #[arg(long, env = "STOWAGE_GATEWAY_ADDRESSING_STYLE", value_name = "STYLE", value_parser = addressing_style())]
    pub(super) gateway_addressing_style: Option<AddressingStyle>,
}

/// A URL that fits into what is kept of a consumer Secret: one that does not would be repaired for
/// ever.
fn gateway_endpoint(text: &str) -> Result<Endpoint, String> {
    let longest = ConsumerContent::LONGEST_ENDPOINT;
    let endpoint = Endpoint::parse(text).map_err(|error| error.to_string())?;
    if endpoint.as_str().len() > longest { Err(format!("it has more than {longest} bytes")) } else { Ok(endpoint) }
}

/// A region, as backends may have it too.
fn gateway_region(text: &str) -> Result<String, String> {
    if (1..=63).contains(&text.len()) { Ok(text.to_owned()) } else { Err("a region has 1 to 63 characters".to_owned()) }
}

/// Reads a style by its name in the contract, which the help lists.
fn addressing_style() -> impl TypedValueParser<Value = AddressingStyle> {
    PossibleValuesParser::new(AddressingStyle::ALL.map(AddressingStyle::as_str)).map(|word| {
        AddressingStyle::ALL.into_iter().find(|style| style.as_str() == word).expect("no other word gets through")
    })
}

/// Bounds of what is under way.
#[derive(Debug, Args)]
pub(super) struct LimitArgs {
    /// How many claims are worked on at once.
    #[arg(long, env = "STOWAGE_MAX_CONCURRENT_RECONCILES", value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) max_concurrent_reconciles: u16,
    /// How many calls may be under way at once to each backend.
    #[arg(long, env = "STOWAGE_MAX_UPSTREAM_CALLS", value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) max_upstream_calls: u16,
    /// Deadline of each call to a store, in seconds.
    #[arg(long, env = "STOWAGE_UPSTREAM_TIMEOUT", value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=300))]
    pub(super) upstream_timeout: u64,
    /// How many objects one pass deletes at most from a bucket that is emptied, before others get
    /// their turn.
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
        // One that has no end.
        assert!(refused("/dev/zero").ends_with(&format!("it has more than {LONGEST_CA} bytes")));
        assert!(refused("/dev/null").ends_with("there is no certificate (PEM) in it"));
        assert!(refused("/nowhere/ca.crt").starts_with("--gateway-ca-file /nowhere/ca.crt: "));
    }
}
