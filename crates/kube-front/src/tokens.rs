//! Tokens of ServiceAccounts: random texts that the front knows whose they are. There is nothing to
//! read out of one.

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

/// How long a token is good for that nobody said anything about, in seconds.
const DEFAULT_SECONDS: i64 = 3600;
/// The shortest life that a token can be asked for, in seconds.
const SHORTEST: i64 = 600;
/// The longest, in seconds: a server takes what fits into 32 bits.
const LONGEST: i64 = 1 << 32;
/// Most tokens that are known at a time; of more, those go first that end first.
const MOST: usize = 10_000;

/// The ServiceAccount that a token is of, and until when it is good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedTo {
    /// The account's namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID: an account that is made anew has other tokens.
    pub uid: String,
    /// When it ends, by the cluster's clock.
    pub ends: Timestamp,
}

/// A token that was handed out, by its hash: the token itself is known to its bearer alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    /// SHA-256 of the token's text.
    pub hash: [u8; 32],
    /// Whose it is.
    pub to: IssuedTo,
}

/// Is told of each token before it is handed out.
pub type KeepIssued = Arc<dyn Fn(&Issued) + Send + Sync>;

/// The tokens that were handed out, by their hashes.
#[derive(Default)]
pub(super) struct Tokens {
    issued: Mutex<BTreeMap<[u8; 32], IssuedTo>>,
    keep: Option<KeepIssued>,
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// The ServiceAccount of this name.
fn account(cluster: &Cluster, namespace: &str, name: &str) -> Result<Shared, Failure> {
    let state = cluster.read();
    let kind = state.kind("", "v1", "serviceaccounts").ok_or_else(status::no_such_resource)?;
    state.get(&kind, &Place::new(namespace, name)).cloned().ok_or_else(|| status::not_found(&kind, name))
}

impl Tokens {
    /// Those that were handed out before, and who is told of others.
    pub(super) fn new(issued: Vec<Issued>, keep: Option<KeepIssued>) -> Self {
        let issued = issued.into_iter().map(|Issued { hash, to }| (hash, to)).collect();
        Self { issued: Mutex::new(issued), keep }
    }

    /// From now on these are known, and no others.
    pub(super) fn replace(&self, issued: Vec<Issued>) {
        let mut all = self.issued.lock();
        if let Some(keep) = &self.keep {
            issued.iter().for_each(|issued| keep(issued));
        }
        *all = issued.into_iter().map(|Issued { hash, to }| (hash, to)).collect();
    }

    /// All that are known.
    pub(super) fn all(&self) -> Vec<Issued> {
        self.issued.lock().iter().map(|(hash, to)| Issued { hash: *hash, to: to.clone() }).collect()
    }

    /// Answers a `TokenRequest` for a ServiceAccount, with a token made of these random bytes.
    ///
    /// # Errors
    /// 404 without the account, 422 for a life that is too short or too long.
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

    /// Whose a token is: until it ends, or its account goes.
    pub(super) fn whose(&self, cluster: &Cluster, token: &str) -> Option<Identity> {
        let issued = self.issued.lock().get(&hash(token)).cloned()?;
        let stands = cluster.time() < issued.ends;
        let account = account(cluster, &issued.namespace, &issued.name).ok()?;
        let same = meta::uid(&account) == issued.uid;
        (stands && same).then(|| Identity::service_account(&issued.namespace, &issued.name, &issued.uid))
    }
}
