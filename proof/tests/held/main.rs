//! The table of promises: for every kind of object, the tests that show each promise, or the reason
//! why it doesn't apply. `docs/reference/held.md` is generated from it.
//!
//! Kinds, roles of Secrets and promises are closed lists: a new one doesn't compile without its
//! cells. An open cell names the missing test, and the number of open cells may only decrease.

mod accesses;
mod backends;
mod claims;
mod config_maps;
mod evidence;
mod leases;
mod object_buckets;
mod page;
mod records;
mod secrets;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use evidence::{Alert, AnyCell, Cell, Mutant, Oracle, Proof, State, Threat};
use stowage_operator::api;
use stowage_operator::api::wire::Role;

const PAGE: &str = "docs/reference/held.md";
/// Environment variable that makes the test write the page.
const UPDATE: &str = "UPDATE_DOCS";
/// Number of open cells; lower it when you close one.
const OPEN: usize = 0;

/// Returns the root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Defines the promises. Each is a column of the table, with a title and a meaning.
macro_rules! promises {
    ($($name:ident: $evidence:ty, $title:literal, $says:literal;)*) => {
        /// The cells of one kind: a field for each promise.
        struct Row {
            $(#[doc = $says] $name: Cell<$evidence>,)*
        }

        /// The title and the meaning of each promise.
        const PROMISES: [(&str, &str); [$($title,)*].len()] = [$(($title, $says),)*];

        impl Row {
            /// Returns the cells in the order of the promises.
            fn cells(&self) -> [&dyn AnyCell; PROMISES.len()] {
                [$(&self.$name,)*]
            }
        }
    };
}

promises! {
    memory: Proof, "memory",
        "Objects of the worst size that the API server takes leave the memory of the process within a bound for each.";
    schema: Proof, "schema",
        "Each text, list and map has a bound: in the definition, or where the object is read.";
    pace: Proof, "pace",
        "Writes about one object, and calls for it, have a pace, whoever touches it.";
    requests: Proof, "requests",
        "Requests for one object don't grow with the number of others.";
    revoke: Proof, "revoke",
        "A revocation ends its keys at once, whatever is wrong with anything else.";
    served_by: Proof, "served-by",
        "A foreign note `served-by` is respected, is told, and keeps no key alive.";
    takeover: Proof, "takeover",
        "It is found again by an operator that takes over, and after a restore.";
    metrics: Proof, "metrics",
        "A metric counts it, or what is wrong with it.";
    alert: Alert, "alert",
        "An alert tells of trouble with it, and has a runbook.";
    preview: Proof, "plan, why",
        "`plan` tells what would be done about it, and `why` for what it waits.";
    rbac: Proof, "RBAC",
        "Each token may do with it what its program does, and nothing else.";
    threat: Threat, "threat",
        "The threat model has a row about it.";
    uninstall: Proof, "uninstall",
        "Taking Stowage off a cluster leaves it, or leaves nothing of it, as the guide says.";
    upgrade: Proof, "upgrade",
        "It is served on as each version that is kept has left it.";
    simulator: Proof, "simulator",
        "The simulator's history records what people do to it, and its page shows it.";
    oracle: Oracle, "oracle",
        "An oracle judges it in a scenario of the explorer.";
    mutant: Mutant, "mutant",
        "A mutant breaks it, and the exploration or a test finds that.";
}

/// A kind of object that Stowage defines, or writes and reads again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    S3Backend,
    BucketClaim,
    BucketAccess,
    ObjectBucketClaim,
    ObjectBucket,
    /// A Secret of the operator, by its role.
    Secret(Role),
    /// The Lease of the operators' leader election.
    LeaderLease,
    /// The Lease of a gateway that counts for quotas.
    GatewayLease,
    /// The ConfigMap with the counters of gateways.
    UsageConfigMap,
    /// The ConfigMap with the certificate authorities of the gateway.
    AuthoritiesConfigMap,
    /// The ConfigMap of an ObjectBucketClaim.
    ObcConfigMap,
}

impl Kind {
    /// Returns every kind, with one for each role of Secrets.
    fn all() -> impl Iterator<Item = Self> {
        let of_buckets =
            [Self::S3Backend, Self::BucketClaim, Self::BucketAccess, Self::ObjectBucketClaim, Self::ObjectBucket];
        let of_processes = [
            Self::LeaderLease,
            Self::GatewayLease,
            Self::UsageConfigMap,
            Self::AuthoritiesConfigMap,
            Self::ObcConfigMap,
        ];
        of_buckets.into_iter().chain(Role::ALL.map(Self::Secret)).chain(of_processes)
    }

    /// Returns the title on the page.
    fn title(self) -> String {
        let title = match self {
            Self::S3Backend => "S3Backend",
            Self::BucketClaim => "BucketClaim",
            Self::BucketAccess => "BucketAccess",
            Self::ObjectBucketClaim => "ObjectBucketClaim",
            Self::ObjectBucket => "ObjectBucket",
            Self::Secret(role) => return format!("Secret {}", role.as_str()),
            Self::LeaderLease => "Lease of the operators",
            Self::GatewayLease => "Lease of a gateway",
            Self::UsageConfigMap => "ConfigMap with counters",
            Self::AuthoritiesConfigMap => "ConfigMap with authorities",
            Self::ObcConfigMap => "ConfigMap of an ObjectBucketClaim",
        };
        title.to_owned()
    }

    /// Returns the plural of the kind, as in RBAC rules.
    fn resource(self) -> &'static str {
        match self {
            Self::S3Backend => "s3backends",
            Self::BucketClaim => "bucketclaims",
            Self::BucketAccess => "bucketaccesses",
            Self::ObjectBucketClaim => "objectbucketclaims",
            Self::ObjectBucket => "objectbuckets",
            Self::Secret(_) => "secrets",
            Self::LeaderLease | Self::GatewayLease => "leases",
            Self::UsageConfigMap | Self::AuthoritiesConfigMap | Self::ObcConfigMap => "configmaps",
        }
    }

    fn row(self) -> &'static Row {
        match self {
            Self::S3Backend => &backends::S3_BACKEND,
            Self::BucketClaim => &claims::BUCKET_CLAIM,
            Self::BucketAccess => &accesses::BUCKET_ACCESS,
            Self::ObjectBucketClaim => &object_buckets::OBJECT_BUCKET_CLAIM,
            Self::ObjectBucket => &object_buckets::OBJECT_BUCKET,
            Self::Secret(Role::BucketRecord) => &records::BUCKET_RECORD,
            Self::Secret(Role::AccessRecord) => &records::ACCESS_RECORD,
            Self::Secret(Role::VirtualCredential) => &secrets::VIRTUAL_CREDENTIAL,
            Self::Secret(Role::AnonymousBinding) => &secrets::ANONYMOUS_BINDING,
            Self::Secret(Role::ConsumerSecret) => &secrets::CONSUMER_SECRET,
            Self::Secret(Role::AccessCredential) => &secrets::ACCESS_CREDENTIAL,
            Self::LeaderLease => &leases::LEADER,
            Self::GatewayLease => &leases::GATEWAY,
            Self::UsageConfigMap => &config_maps::USAGE,
            Self::AuthoritiesConfigMap => &config_maps::AUTHORITIES,
            Self::ObcConfigMap => &config_maps::OBC,
        }
    }
}

#[test]
fn everything_that_is_said_to_hold_a_promise_is_there() {
    let mut problems = Vec::new();
    for kind in Kind::all() {
        for ((title, _), cell) in PROMISES.iter().zip(kind.row().cells()) {
            problems.extend(cell.problems().into_iter().map(|problem| format!("{}, {title}: {problem}", kind.title())));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_page_shows_the_table() {
    let fresh = page::render();
    if std::env::var_os(UPDATE).is_some() {
        fs::write(root().join(PAGE), &fresh).expect("the page can be written");
    }
    let stored = fs::read_to_string(root().join(PAGE)).unwrap_or_default();
    assert!(stored == fresh, "{PAGE} is not what the rows say; `just held`, or {UPDATE}=1 for this test, writes it");
}

#[test]
fn open_cells_become_fewer() {
    let cells = Kind::all().flat_map(|kind| kind.row().cells());
    let open = cells.filter(|cell| cell.state() == State::Open).count();
    assert_eq!(open, OPEN, "left, what is open; right, what may be: where it is more, which test holds the promise?");
}

/// Resources that are written and never read again: Events.
const NOT_READ: [&str; 1] = ["events"];

#[test]
fn each_kind_that_is_defined_or_written_has_a_row() {
    let rows: BTreeSet<&str> = Kind::all().map(Kind::resource).collect();
    let mut known: BTreeSet<String> = api::crds().into_iter().map(|definition| definition.spec.names.plural).collect();
    for file in ["kind-config/operator/rbac.yaml", "kind-config/namespaced/rbac.yaml", "kind-config/gateway/rbac.yaml"]
    {
        known.extend(written(file));
    }
    let without: Vec<&String> =
        known.iter().filter(|it| !rows.contains(it.as_str()) && !NOT_READ.contains(&it.as_str())).collect();
    assert_eq!(without, [] as [&str; 0], "these have no row");
    let lost: Vec<&&str> = rows.iter().filter(|resource| !known.contains(**resource)).collect();
    assert_eq!(lost, [] as [&&str; 0], "nobody writes these");
}

/// Returns the resources that the roles of a manifest allow to write.
fn written(file: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let documents = stowage_world::parse(file, &text).unwrap_or_else(|error| panic!("{error}"));
    let mut written = BTreeSet::new();
    for document in documents {
        let rules = document.object.data["rules"].as_array().cloned().unwrap_or_default();
        for rule in rules {
            let words = |field: &str| -> Vec<String> {
                let all = rule[field].as_array().into_iter().flatten();
                all.filter_map(|word| word.as_str().map(str::to_owned)).collect()
            };
            if words("verbs").iter().any(|verb| !["get", "list", "watch"].contains(&verb.as_str())) {
                let kind = |resource: String| resource.split('/').next().unwrap_or_default().to_owned();
                written.extend(words("resources").into_iter().map(kind));
            }
        }
    }
    written
}
