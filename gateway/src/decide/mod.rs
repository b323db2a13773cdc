//! Authorisation: a pure function of the caller, the request, the cached cluster state and the
//! time.

mod grants;
mod refusals;
mod wanted;

use std::sync::Arc;

use jiff::Timestamp;
use stowage_api::{AccessScope, BucketName, ServedCredential};

use crate::head::Operation;
use crate::refusal::{Code, Refusal};
use crate::registry::{Backend, Holder, Key, Tables};
use refusals::of_unreachable;

pub use refusals::{denied, unknown_key};
pub use wanted::Wanted;

/// The authenticated sender of a request.
#[derive(Clone, Copy, Debug)]
pub enum Caller<'a> {
    /// The holder of this key, whose signature has been verified.
    Key(&'a Key),
    /// An anonymous sender.
    Nobody,
}

/// The action to take on a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Forward it to this backend.
    Forward(Arc<Backend>),
    /// Read the document of this DeleteObjects, then decide again with its keys.
    ReadDeletion,
    /// Answer with the caller's buckets, each with the time at which it was claimed.
    TellBuckets(Vec<(BucketName, Option<Timestamp>)>),
    /// Answer with the bucket's configuration, as far as a tenant may see it.
    TellConfiguration,
    /// Answer with the gateway's region, which is the region of every bucket to its clients.
    TellRegion,
}

/// Authorises a request.
///
/// # Errors
/// - `InvalidAccessKeyId` if the key has expired, as if its Secret were deleted;
/// - `AccessDenied` if the bucket, or the source of a copy, is not the caller's, whether it exists
///   or not;
/// - `AccessDenied` if the key of an access doesn't allow the request;
/// - `ServiceUnavailable` if the store that the key was made for can't be determined now;
/// - `NotImplemented` for a copy from one store to another.
pub fn decide(caller: Caller<'_>, wanted: &Wanted<'_>, known: &Tables, now: Timestamp) -> Result<Verdict, Refusal> {
    match caller {
        Caller::Key(key) if key.is_expired(now) => Err(unknown_key()),
        Caller::Key(key) => {
            let Some(bucket) = wanted.bucket else {
                return if wanted.operation == Operation::ListBuckets {
                    Ok(Verdict::TellBuckets(buckets_of(key, known)))
                } else {
                    Err(denied())
                };
            };
            let backend = match &key.holder {
                Holder::Claim(credential) => reach(credential, bucket, known)?,
                Holder::Access(access) => grants::target(access, bucket, wanted, known)?,
            };
            if let Some(source) = wanted.source {
                let from = match &key.holder {
                    Holder::Claim(credential) => reach(credential, &source.bucket, known)?,
                    Holder::Access(access) => grants::source(access, source, known)?,
                };
                if from.name != backend.name {
                    let message = "Copies from one store to another are not implemented.";
                    return Err(Refusal::new(Code::NotImplemented, message));
                }
            }
            // Every DeleteObjects is read before it is forwarded, even if the key opens the whole
            // bucket: some stores resolve `..` in an object key as a path, and the gateway's admin
            // key could reach other buckets.
            if wanted.operation == Operation::DeleteObjects && wanted.deletion.is_none() {
                return Ok(Verdict::ReadDeletion);
            }
            Ok(match wanted.operation {
                Operation::GetBucketLocation => Verdict::TellRegion,
                operation if operation.is_about_configuration() => Verdict::TellConfiguration,
                _ => Verdict::Forward(backend),
            })
        }
        Caller::Nobody => {
            let is_plain = !wanted.names_version && !wanted.overrides_headers;
            let is_public = wanted.operation.is_public() && is_plain;
            let bucket = wanted.bucket.filter(|_| is_public).ok_or_else(denied)?;
            let binding = known.binding(bucket.as_str()).ok_or_else(denied)?;
            known.reach_binding(binding).map(Verdict::Forward).map_err(of_unreachable)
        }
    }
}

/// Returns the store of a bucket that the claim's key opens.
fn reach(credential: &ServedCredential, bucket: &BucketName, known: &Tables) -> Result<Arc<Backend>, Refusal> {
    let scope = credential.scope(bucket.as_str()).ok_or_else(denied)?;
    known.reach_scope(credential, scope).map_err(of_unreachable)
}

/// Returns the caller's buckets. For an access, only those that it may use now.
fn buckets_of(key: &Key, known: &Tables) -> Vec<(BucketName, Option<Timestamp>)> {
    match &key.holder {
        Holder::Claim(credential) => {
            let since = |bucket| known.held_by_since(bucket, &credential.uid);
            credential.scopes.iter().map(|scope| (scope.bucket.clone(), since(&scope.bucket))).collect()
        }
        Holder::Access(access) => {
            let open = access.scopes.iter().filter(|scope| known.grant(access, &scope.bucket).is_ok());
            let since = |scope: &AccessScope| known.held_by_since(&scope.bucket, scope.claim.as_ref()?);
            open.map(|scope| (scope.bucket.clone(), since(scope))).collect()
        }
    }
}
