//! Who may do what: a pure function of the caller, of what is asked for, of what is known and of
//! the time.

use std::sync::Arc;

use jiff::Timestamp;
use stowage_api::BucketName;

use crate::head::{Ask, Operation};
use crate::refusal::{Code, Refusal};
use crate::registry::{Backend, Key, Tables, Unreachable};

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub enum Caller<'a> {
    /// Who holds this key: the signature has been verified.
    Key(&'a Key),
    /// Anybody.
    Nobody,
}

/// What is asked for, as far as access is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The operation.
    pub operation: Operation,
    /// The bucket, where one is named.
    pub bucket: Option<&'a BucketName>,
    /// The bucket that a copy comes from.
    pub source: Option<&'a BucketName>,
    /// Whether it is about a version that may be past, or wants other headers than an object has.
    pub is_special: bool,
}

impl<'a> Wanted<'a> {
    /// What a request wants.
    #[must_use]
    pub fn of(ask: &'a Ask) -> Self {
        Self {
            operation: ask.operation,
            bucket: ask.target.bucket(),
            source: ask.copy.as_ref().map(|source| &source.bucket),
            is_special: ask.names_version() || ask.overrides_headers(),
        }
    }
}

/// What is to be done with a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Pass it on to this backend.
    Forward(Arc<Backend>),
    /// Tell the caller which buckets are theirs.
    TellBuckets,
    /// Tell the gateway's region, which every bucket is in as far as the caller can know.
    TellRegion,
}

/// Decides about a request.
///
/// # Errors
/// - `InvalidAccessKeyId` where the key's time has come, as where its Secret is gone;
/// - `AccessDenied` where the bucket is not the caller's, whether it exists or not; so for a copy's
///   source;
/// - `ServiceUnavailable` where the store that the key was made for can't be told now;
/// - `NotImplemented` for a copy from one store to another.
pub fn decide(caller: Caller<'_>, wanted: &Wanted<'_>, known: &Tables, now: Timestamp) -> Result<Verdict, Refusal> {
    match caller {
        Caller::Key(key) if key.credential.is_expired(now) => Err(unknown_key()),
        Caller::Key(key) => {
            let Some(bucket) = wanted.bucket else {
                return if wanted.operation == Operation::ListBuckets {
                    Ok(Verdict::TellBuckets)
                } else {
                    Err(denied())
                };
            };
            let backend = reach(key, bucket, known)?;
            if let Some(source) = wanted.source {
                let from = reach(key, source, known)?;
                if from.name != backend.name {
                    let message = "Copies from one store to another are not implemented.";
                    return Err(Refusal::new(Code::NotImplemented, message));
                }
            }
            if wanted.operation == Operation::GetBucketLocation {
                return Ok(Verdict::TellRegion);
            }
            Ok(Verdict::Forward(backend))
        }
        Caller::Nobody => {
            let is_public = wanted.operation.is_public() && !wanted.is_special;
            let bucket = wanted.bucket.filter(|_| is_public).ok_or_else(denied)?;
            let binding = known.binding(bucket.as_str()).ok_or_else(denied)?;
            known.reach_binding(binding).map(Verdict::Forward).map_err(refusal)
        }
    }
}

/// The store behind a key's bucket.
fn reach(key: &Key, bucket: &BucketName, known: &Tables) -> Result<Arc<Backend>, Refusal> {
    let scope = key.credential.scope(bucket.as_str()).ok_or_else(denied)?;
    known.reach_scope(key, scope).map_err(refusal)
}

fn refusal(why: Unreachable) -> Refusal {
    match why {
        Unreachable::Held => denied(),
        Unreachable::NoBackend | Unreachable::Elsewhere => unknown_store(),
    }
}

/// The bucket is not the caller's: in the same words whether it exists or not.
#[must_use]
pub fn denied() -> Refusal {
    Refusal::new(Code::AccessDenied, "Access Denied")
}

/// The key is nobody's: in the same words whether it is expired, deleted, or never was.
#[must_use]
pub fn unknown_key() -> Refusal {
    Refusal::new(Code::InvalidAccessKeyId, "The AWS Access Key Id you provided does not exist in our records.")
}

fn unknown_store() -> Refusal {
    let message = "The store of this bucket can't be told now. Please try again later.";
    Refusal::new(Code::ServiceUnavailable, message)
}
