//! What comes next about what is left of claims that are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use k8s_openapi::jiff::Timestamp;
use kube::Resource;

use crate::api::{ClaimRef, ClaimUid};
use crate::controller::converse::{CarryOut, converse};
use crate::controller::objects::Claim;
use crate::controller::orphans::look;
use crate::plan::orphans::{Kind, OfClaim, Sweep, SweepAnswer, SweepEnd, SweepStep};
use crate::plan::{Arrival, Bound, Conversation, SecretRef, Stored};

use super::line::{Deed, Line, Next, Object};
use super::seen::Seen;

/// A sweep, up to its first effect.
struct Ahead(Sweep);

/// Where it ends.
enum End {
    Delete(SecretRef),
    /// Of the record with this name.
    Close(String),
    Rest(SweepEnd),
}

impl Conversation for Ahead {
    type Step = SweepStep;
    type Answer = SweepAnswer;
    type End = End;

    fn most(bound: Bound) -> usize {
        Sweep::<OfClaim>::most(bound)
    }

    fn bound(step: &SweepStep) -> Bound {
        Sweep::<OfClaim>::bound(step)
    }

    fn next(&self, now: Timestamp) -> ControlFlow<End, SweepStep> {
        match self.0.next(now) {
            ControlFlow::Break(end) => ControlFlow::Break(End::Rest(end)),
            ControlFlow::Continue(SweepStep::Delete(secret)) => ControlFlow::Break(End::Delete(secret)),
            ControlFlow::Continue(SweepStep::End(patch)) => ControlFlow::Break(End::Close(patch.target.name)),
            ControlFlow::Continue(step) => ControlFlow::Continue(step),
        }
    }

    fn learn(&mut self, answer: SweepAnswer, arrival: Arrival) {
        self.0.learn(answer, arrival);
    }

    fn cut_short(&self, bound: Bound) -> End {
        End::Rest(self.0.cut_short(bound))
    }
}

struct Eyes<'a>(&'a Seen);

impl CarryOut<Ahead> for Eyes<'_> {
    async fn carry_out(&mut self, ahead: &Ahead, step: &SweepStep) -> SweepAnswer {
        let answer = look(&self.0.observer, &ahead.0, step).await;
        answer.unwrap_or_else(|why| SweepAnswer::Failed(step.clone(), why))
    }
}

/// UIDs that Secrets are left of, and no claim is; each with its Secrets.
pub(super) fn suspects(seen: &Seen) -> BTreeMap<ClaimUid, Vec<Stored>> {
    let uid = |claim: &Claim| claim.meta().uid.clone();
    let live: BTreeSet<String> = seen.claims.values().filter_map(uid).collect();
    let mut suspects: BTreeMap<ClaimUid, Vec<Stored>> = BTreeMap::new();
    for secret in seen.observer.internal.all() {
        if let Some(uid) = OfClaim::owner(&secret).filter(|uid| !live.contains(uid.as_str())) {
            suspects.entry(uid).or_default().push(secret);
        }
    }
    suspects
}

/// Looks ahead at a sweep; `None` where nothing is left to sweep.
pub(super) async fn look_ahead(seen: &Seen, uid: ClaimUid, secrets: &[Stored]) -> Option<Line> {
    let claim = secrets.iter().find_map(Stored::claim);
    let claim = claim.unwrap_or_else(|| ClaimRef { namespace: String::new(), name: uid.to_string() });
    let mut ahead = Ahead(Sweep::new(uid, secrets, BTreeSet::new(), false, seen.observer.setting.reach.clone()));
    let next = match converse(&mut ahead, &seen.clock, &mut Eyes(seen)).await {
        End::Delete(secret) => {
            let words = format!("delete Secret {}, which is left of a claim that is gone", secret.name);
            Next::Act(Box::new(Deed { words, step: SweepStep::<OfClaim>::Delete(secret).to_string(), act: None }))
        }
        End::Close(record) => {
            let words = format!("end every access by record {record}, which is left of a claim that is gone");
            Next::Act(Box::new(Deed { step: words.clone(), words, act: None }))
        }
        End::Rest(SweepEnd::Done | SweepEnd::Alive | SweepEnd::Elsewhere) => return None,
        End::Rest(SweepEnd::Held) => Next::Wait("its record is kept for a moment".to_owned(), None),
        End::Rest(SweepEnd::Retry(why)) => Next::Unknown(why),
    };
    Some(Line { object: Object::Left(claim), next, doubt: None })
}
