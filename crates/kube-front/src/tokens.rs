//! ServiceAccount tokens: random strings that the front maps to accounts. A token contains no
//! information.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube_sim::Cluster;
use kube_sim::meta;
use kube_sim::status::{self, Failure, FieldError};
use kube_sim::store::{Place, Shared};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::identity::Identity;

/// Default lifetime of a token, in seconds.
const DEFAULT_SECONDS: i64 = 3600;
/// Minimum lifetime that a request can ask for, in seconds.
const SHORTEST: i64 = 600;
/// Maximum lifetime, in seconds: an API server accepts up to 32 bits.
const LONGEST: i64 = 1 << 32;
/// Maximum number of known tokens. Over the limit, those that expire first are dropped.
const MOST: usize = 10_000;

/// The ServiceAccount of a token, and the token's expiry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedTo {
    /// The account's namespace.
    pub namespace: String,
    /// Name of the ServiceAccount.
    pub name: String,
    /// UID of the ServiceAccount: a recreated account has other tokens.
    pub uid: String,
    /// Expiry by the cluster's clock.
    pub ends: Timestamp,
}

/// An issued token, by its hash: only the bearer knows the token itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    /// SHA-256 of the token's text.
    pub hash: [u8; 32],
    /// ServiceAccount and expiry of the token.
    pub to: IssuedTo,
}

/// Called with each token before it is issued.
pub type KeepIssued = Arc<dyn Fn(&Issued) + Send + Sync>;

/// The issued tokens, by their hashes.
#[derive(Default)]
pub(super) struct Tokens {
    issued: Mutex<BTreeMap<[u8; 32], IssuedTo>>,
    keep: Option<KeepIssued>,
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Returns the ServiceAccount with this name.
fn account(cluster: &Cluster, namespace: &str, name: &str) -> Result<Shared, Failure> {
    let state = cluster.read();
    let kind = state.kind("", "v1", "serviceaccounts").ok_or_else(status::no_such_resource)?;
    state.get(&kind, &Place::new(namespace, name)).cloned().ok_or_else(|| status::not_found(&kind, name))
}

impl Tokens {
    /// Starts with tokens that were issued before; `keep` is called for new ones.
    pub(super) fn new(issued: Vec<Issued>, keep: Option<KeepIssued>) -> Self {
        let issued = issued.into_iter().map(|Issued { hash, to }| (hash, to)).collect();
        Self { issued: Mutex::new(issued), keep }
    }

    /// Replaces the known tokens.
    pub(super) fn replace(&self, issued: Vec<Issued>) {
        let mut all = self.issued.lock();
        if let Some(keep) = &self.keep {
            issued.iter().for_each(|issued| keep(issued));
        }
        *all = issued.into_iter().map(|Issued { hash, to }| (hash, to)).collect();
    }

    /// Returns all known tokens.
    pub(super) fn all(&self) -> Vec<Issued> {
        self.issued.lock().iter().map(|(hash, to)| Issued { hash: *hash, to: to.clone() }).collect()
    }

    /// Answers a `TokenRequest` for a ServiceAccount, with a token made from these random bytes.
    ///
    /// # Errors
    /// Returns 404 if the account doesn't exist, 422 for a lifetime that is too short or too long.
    pub(super) fn issue(
        &self,
        cluster: &Cluster,
        namespace: &str,
        name: &str,
        mut request: Value,
        random: &[u8; 32],
    ) -> Result<Value, Failure> {
        let account = account(cluster, namespace, name)?;
        let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(DEFAULT_SECONDS);
        let refuse = |detail: &str| {
            let error = FieldError::invalid("spec.expirationSeconds", seconds, detail);
            Err(status::invalid("authentication.k8s.io", "TokenRequest", name, &[error]))
        };
        if seconds < SHORTEST {
            return refuse("may not specify a duration less than 10 minutes");
        }
        if seconds > LONGEST {
            return refuse("may not specify a duration larger than 2^32 seconds");
        }
        let now = cluster.time();
        let ends = now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
        let token = hex::encode(random);
        let uid = meta::uid(&account).to_owned();
        let issued = IssuedTo { namespace: namespace.to_owned(), name: name.to_owned(), uid, ends };
        self.keep(hash(&token), issued, now);
        request["apiVersion"] = "authentication.k8s.io/v1".into();
        request["kind"] = "TokenRequest".into();
        request["metadata"] = json!({"name": name, "namespace": namespace});
        request["spec"]["expirationSeconds"] = seconds.into();
        let whole = Timestamp::from_second(ends.as_second()).unwrap_or(ends);
        request["status"] = json!({"token": token, "expirationTimestamp": whole.to_string()});
        Ok(request)
    }

    fn keep(&self, hash: [u8; 32], issued: IssuedTo, now: Timestamp) {
        let mut all = self.issued.lock();
        if let Some(keep) = &self.keep {
            keep(&Issued { hash, to: issued.clone() });
        }
        all.retain(|_, issued| issued.ends > now);
        while all.len() >= MOST {
            let Some(first) = all.iter().min_by_key(|(_, issued)| issued.ends).map(|(hash, _)| *hash) else { break };
            all.remove(&first);
        }
        all.insert(hash, issued);
    }

    /// Returns the user of a token, until it expires or its account is deleted.
    pub(super) fn whose(&self, cluster: &Cluster, token: &str) -> Option<Identity> {
        let issued = self.issued.lock().get(&hash(token)).cloned()?;
        let stands = cluster.time() < issued.ends;
        let account = account(cluster, &issued.namespace, &issued.name).ok()?;
        let same = meta::uid(&account) == issued.uid;
        (stands && same).then(|| Identity::service_account(&issued.namespace, &issued.name, &issued.uid))
    }
}
