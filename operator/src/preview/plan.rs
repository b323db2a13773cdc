//! Preview of all requested objects.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::stream::{self, StreamExt};
use kube::Resource;
use serde_json::{Value, json};

use crate::api::{AccessRef, AccessUid, ClaimRef, ClaimUid};
use crate::controller::objects::{Access, Backend, Claim, ObcObject};
use crate::plan::Stored;
use crate::plan::orphans::{OfAccess, OfClaim};

use super::line::{Line, Next, Object};
use super::seen::Seen;
use super::seen_obc::SeenObcs;
use super::setup::{Means, Scope, Setup};
use super::{access, backend, claim, obc, orphan};

/// The next step of each object: backends, claims, accesses, ObjectBucketClaims, and remaining
/// Secrets of deleted claims and accesses.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// One line per object, in order.
    pub lines: Vec<Line>,
    /// Values that were not given and were inferred from the cluster.
    pub assumed: Vec<String>,
}

impl Plan {
    /// Returns the number of objects with an effect due.
    pub fn to_do(&self) -> usize {
        self.count(|next| matches!(next, Next::Act(_)))
    }

    /// Returns the number of objects that wait.
    pub fn waiting(&self) -> usize {
        self.count(|next| matches!(next, Next::Wait(..)))
    }

    /// Returns the number of objects whose next step is unknown.
    pub fn unknown(&self) -> usize {
        self.count(|next| matches!(next, Next::Unknown(_)))
    }

    fn count(&self, such: impl Fn(&Next) -> bool) -> usize {
        self.lines.iter().filter(|line| such(&line.next)).count()
    }

    /// Returns the plan as JSON.
    pub fn json(&self) -> Value {
        let of = |such: fn(&Object) -> bool| -> Vec<Value> {
            self.lines.iter().filter(|line| such(&line.object)).map(Line::json).collect()
        };
        json!({
            "to_do": self.to_do(),
            "waiting": self.waiting(),
            "unknown": self.unknown(),
            "backends": of(|object| matches!(object, Object::Backend(_))),
            "claims": of(|object| matches!(object, Object::Claim(_))),
            "accesses": of(|object| matches!(object, Object::Access(_))),
            "obcs": of(|object| matches!(object, Object::Obc(_))),
            "left": of(|object| matches!(object, Object::Left(_) | Object::LeftAccess(_))),
            "assumed": self.assumed,
        })
    }
}

/// Previews the objects in `scope`. `progress` is called with the number of finished and of all
/// objects.
///
/// # Errors
/// An error message about what could not be read.
pub async fn plan(setup: &Setup, means: Means, scope: &Scope, progress: impl Fn(usize, usize)) -> Result<Plan, String> {
    let seen = Seen::read(setup, means, scope).await?;
    let (left, left_accesses) = left(&seen, scope);
    let backends = seen.backends.iter().filter(|(name, _)| scope.has_backend(name));
    let claims = seen.claims.iter().filter(|(at, _)| scope.has_claim(at));
    let accesses = seen.accesses.iter().filter(|(at, _)| scope.has_access(at));
    let obcs = seen.obcs.iter().flat_map(|seen| seen.all.iter().map(move |(at, obc)| (at, obc, seen)));
    let subjects: Vec<Subject<'_>> = backends
        .map(|(name, backend)| Subject::Backend(name, backend))
        .chain(claims.map(|(at, claim)| Subject::Claim(at, claim)))
        .chain(accesses.map(|(at, access)| Subject::Access(at, access)))
        .chain(obcs.map(|(at, obc, seen)| Subject::Obc(at, obc, seen)))
        .chain(left.iter().map(|(uid, secrets)| Subject::Left(uid, secrets)))
        .chain(left_accesses.iter().map(|(uid, secrets)| Subject::LeftAccess(uid, secrets)))
        .collect();
    let mut lines = not_there(&seen, scope);
    {
        let all = subjects.len();
        let looked = stream::iter(subjects.into_iter().zip(0..))
            .map(|(subject, place)| subject.look_ahead(&seen, place, setup.look_at_buckets))
            .buffered(setup.at_once.max(1))
            .enumerate();
        let mut looked = pin!(looked);
        while let Some((before, line)) = looked.next().await {
            lines.extend(line);
            progress(before + 1, all);
        }
    }
    lines.sort_by(|one, other| one.object.cmp(&other.object));
    Ok(Plan { lines, assumed: seen.assumed.clone() })
}

/// An object to preview.
enum Subject<'a> {
    Backend(&'a str, &'a Backend),
    Claim(&'a ClaimRef, &'a Claim),
    Access(&'a AccessRef, &'a Access),
    Obc(&'a ClaimRef, &'a ObcObject, &'a SeenObcs),
    /// The remaining Secrets of the claim with this UID.
    Left(&'a ClaimUid, &'a [Stored]),
    /// The remaining Secrets of the access with this UID.
    LeftAccess(&'a AccessUid, &'a [Stored]),
}

impl Subject<'_> {
    async fn look_ahead(self, seen: &Seen, place: u64, look: bool) -> Option<Line> {
        match self {
            Self::Backend(name, it) => Some(backend::look_ahead(seen, Object::Backend(name.to_owned()), it).await),
            Self::Claim(at, it) => Some(claim::look_ahead(seen, place, Object::Claim(at.clone()), it, look).await.line),
            Self::Access(at, it) => Some(access::look_ahead(seen, Object::Access(at.clone()), it).await.line),
            Self::Obc(at, it, obcs) => Some(obc::look_ahead(seen, obcs, Object::Obc(at.clone()), it).await.line),
            Self::Left(uid, secrets) => {
                let object = |namespace, name| Object::Left(ClaimRef { namespace, name });
                orphan::look_ahead::<OfClaim>(seen, uid.clone(), secrets, object).await
            }
            Self::LeftAccess(uid, secrets) => {
                let object = |namespace, name| Object::LeftAccess(AccessRef { namespace, name });
                orphan::look_ahead::<OfAccess>(seen, uid.clone(), secrets, object).await
            }
        }
    }
}

/// Remaining Secrets by their owner.
type LeftOf<Uid> = BTreeMap<Uid, Vec<Stored>>;

/// Returns the remaining Secrets of deleted claims and accesses. They are only known if all claims
/// were read.
fn left(seen: &Seen, scope: &Scope) -> (LeftOf<ClaimUid>, LeftOf<AccessUid>) {
    if !scope.is_whole() {
        return Default::default();
    }
    let claims = seen.claims.values().filter_map(|claim| claim.meta().uid.clone()).collect();
    let accesses = seen.accesses.values().filter_map(|access| access.meta().uid.clone()).collect();
    let has_kind = seen.observer.accesses.is_filled();
    let of_accesses = if has_kind { orphan::suspects::<OfAccess>(seen, &accesses) } else { BTreeMap::new() };
    (orphan::suspects::<OfClaim>(seen, &claims), of_accesses)
}

/// Returns lines for objects that were named and don't exist.
fn not_there(seen: &Seen, scope: &Scope) -> Vec<Line> {
    let backends = scope.backends.iter().filter(|name| !seen.backends.contains_key(*name));
    let claims = scope.claims.iter().filter(|at| !seen.claims.contains_key(*at));
    let accesses = scope.accesses.iter().filter(|at| !seen.accesses.contains_key(*at));
    let is_seen = |at: &&ClaimRef| seen.obcs.as_ref().is_some_and(|obcs| obcs.all.contains_key(*at));
    let obcs = scope.obcs.iter().filter(|at| !is_seen(at));
    let objects = backends.cloned().map(Object::Backend).chain(claims.cloned().map(Object::Claim));
    let objects = objects.chain(accesses.cloned().map(Object::Access)).chain(obcs.cloned().map(Object::Obc));
    let line = |object| Line { object, next: Next::Unknown("there is none of this name".to_owned()), doubt: None };
    objects.map(line).collect()
}
