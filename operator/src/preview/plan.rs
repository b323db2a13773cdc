//! What comes next about everything that is asked for.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::stream::{self, StreamExt};
use serde_json::{Value, json};

use crate::api::{ClaimRef, ClaimUid};
use crate::controller::objects::{Backend, Claim};
use crate::plan::Stored;

use super::line::{Line, Next, Object};
use super::seen::Seen;
use super::setup::{Means, Scope, Setup};
use super::{backend, claim, orphan};

/// What comes next about each object: backends, claims, and what is left of claims that are gone.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// A line each, in order.
    pub lines: Vec<Line>,
    /// What was not told, and is taken from what there is.
    pub assumed: Vec<String>,
}

impl Plan {
    /// How many objects something is done about.
    pub fn to_do(&self) -> usize {
        self.count(|next| matches!(next, Next::Act(_)))
    }

    /// How many objects wait.
    pub fn waiting(&self) -> usize {
        self.count(|next| matches!(next, Next::Wait(..)))
    }

    /// Of how many it can't be told.
    pub fn unknown(&self) -> usize {
        self.count(|next| matches!(next, Next::Unknown(_)))
    }

    fn count(&self, such: impl Fn(&Next) -> bool) -> usize {
        self.lines.iter().filter(|line| such(&line.next)).count()
    }

    /// As a document.
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
            "left": of(|object| matches!(object, Object::Left(_))),
            "assumed": self.assumed,
        })
    }
}

/// Looks ahead at what `scope` names. `progress` is told how many of how many objects are done.
///
/// # Errors
/// One sentence: what could not be read.
pub async fn plan(setup: &Setup, means: Means, scope: &Scope, progress: impl Fn(usize, usize)) -> Result<Plan, String> {
    let seen = Seen::read(setup, means, scope).await?;
    let left = if scope.is_whole() { orphan::suspects(&seen) } else { BTreeMap::new() };
    let backends = seen.backends.iter().filter(|(name, _)| scope.has_backend(name));
    let claims = seen.claims.iter().filter(|(at, _)| scope.has_claim(at));
    let subjects: Vec<Subject<'_>> = backends
        .map(|(name, backend)| Subject::Backend(name, backend))
        .chain(claims.map(|(at, claim)| Subject::Claim(at, claim)))
        .chain(left.iter().map(|(uid, secrets)| Subject::Left(uid, secrets)))
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

/// What is looked ahead at.
enum Subject<'a> {
    Backend(&'a str, &'a Backend),
    Claim(&'a ClaimRef, &'a Claim),
    /// What is left of the claim of this UID.
    Left(&'a ClaimUid, &'a [Stored]),
}

impl Subject<'_> {
    async fn look_ahead(self, seen: &Seen, place: u64, look: bool) -> Option<Line> {
        match self {
            Self::Backend(name, it) => Some(backend::look_ahead(seen, Object::Backend(name.to_owned()), it).await),
            Self::Claim(at, it) => Some(claim::look_ahead(seen, place, Object::Claim(at.clone()), it, look).await.line),
            Self::Left(uid, secrets) => orphan::look_ahead(seen, uid.clone(), secrets).await,
        }
    }
}

/// What was asked for by name and is not there.
fn not_there(seen: &Seen, scope: &Scope) -> Vec<Line> {
    let backends = scope.backends.iter().filter(|name| !seen.backends.contains_key(*name));
    let claims = scope.claims.iter().filter(|at| !seen.claims.contains_key(*at));
    let objects = backends.cloned().map(Object::Backend).chain(claims.cloned().map(Object::Claim));
    let line = |object| Line { object, next: Next::Unknown("there is none of this name".to_owned()), doubt: None };
    objects.map(line).collect()
}
