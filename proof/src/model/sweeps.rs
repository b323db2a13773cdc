//! Conversations with sweeps of a claim's or the access's Secrets. Equal states of a sweep are
//! interned, so each is asked for its next step only once.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use stowage_operator::api::{AccessRef, AccessUid, ClaimRef, ClaimUid};
use stowage_operator::plan::orphans::{Kind, OfAccess, OfClaim, Sweep, SweepAnswer, SweepEnd, SweepStep};
use stowage_operator::plan::{Arrival, Reach, Reconciliation, Stored};

use super::access::access_uid;
use super::facts::{CLAIMS, OPERATOR_NAMESPACE, Uid};
use super::names::{claim_ref, number_of};
use super::objects::{Objects, timestamp};
use super::phrases::{Stride, SweepReply};
use super::shelf::{Known, Memo};

/// A kind of object whose Secrets are swept.
pub(super) trait Swept: Kind {
    /// Returns the step that looks at the object of this name.
    fn look(at: &Self::At) -> Stride;

    /// Returns the UID in the answer to the look.
    fn seen(reply: &SweepReply) -> Option<Self::Uid>;
}

impl Swept for OfClaim {
    fn look(at: &ClaimRef) -> Stride {
        let slot = (0..CLAIMS).find(|slot| claim_ref(*slot) == *at);
        slot.map_or(Stride::Retry, Stride::Claim)
    }

    fn seen(reply: &SweepReply) -> Option<ClaimUid> {
        match reply {
            SweepReply::Claim(uid) => uid.map(Uid::claim_uid),
            reply => unreachable!("{reply:?} is no look at a claim"),
        }
    }
}

impl Swept for OfAccess {
    fn look(_: &AccessRef) -> Stride {
        Stride::All
    }

    fn seen(reply: &SweepReply) -> Option<AccessUid> {
        match reply {
            SweepReply::All(alive) => alive.then(access_uid),
            reply => unreachable!("{reply:?} is no look at the access"),
        }
    }
}

type Next<K> = ControlFlow<SweepEnd, SweepStep<K>>;

/// Sweeps of one kind, with every answer so far.
pub(super) struct Sweeps<K: Swept> {
    sweeps: Known<String, (Sweep<K>, Next<K>, Stride)>,
    swept: Memo<(u32, SweepReply), u32>,
}

impl<K: Swept> Sweeps<K> {
    pub(super) fn new() -> Self {
        Self { sweeps: Known::new(), swept: Memo::new() }
    }

    /// Begins a sweep.
    pub(super) fn begin(&self, objects: &Objects, uid: K::Uid, seen: &[u32], create_pending: bool) -> u32 {
        let seen: Vec<Stored> = seen.iter().map(|number| objects.stored(*number)).collect();
        self.go_on(objects, Sweep::new(uid, &seen, BTreeSet::new(), create_pending, Reach::Cluster))
    }

    fn go_on(&self, objects: &Objects, sweep: Sweep<K>) -> u32 {
        self.sweeps.number(format!("{sweep:?}"), |_| {
            let step = sweep.next(timestamp(0));
            let stride = stride(objects, &step);
            (sweep, step, stride)
        })
    }

    /// Returns the next step of a sweep.
    pub(super) fn stride_of(&self, sweep: u32) -> Stride {
        self.sweeps.get(sweep).2
    }

    /// Describes a sweep: its UID and its next step.
    pub(super) fn text(&self, sweep: u32) -> String {
        let (sweep, step, _) = self.sweeps.get(sweep);
        let uid = K::text(sweep.uid());
        match step {
            ControlFlow::Continue(step) => format!("sweep of {uid}: {step}"),
            ControlFlow::Break(end) => format!("sweep of {uid}: {end:?}"),
        }
    }

    /// Returns the sweep after an answer.
    pub(super) fn learn(&self, objects: &Objects, sweep: u32, reply: SweepReply) -> u32 {
        self.swept.get((sweep, reply), |(sweep, reply)| {
            let (sweep, step, _) = self.sweeps.get(*sweep);
            let mut sweep = sweep.clone();
            if let ControlFlow::Continue(step) = step {
                sweep.learn(answer(objects, step, reply), Arrival::Prompt);
            }
            self.go_on(objects, sweep)
        })
    }

    /// Returns the record after a sweep's PATCH; `None` if the patch cannot be applied.
    pub(super) fn patch(&self, objects: &Objects, sweep: u32, record: u32) -> Option<u32> {
        let (_, step, _) = self.sweeps.get(sweep);
        let ControlFlow::Continue(SweepStep::End(patch)) = step else { return None };
        objects.patched(record, patch)
    }
}

fn stride<K: Swept>(objects: &Objects, step: &Next<K>) -> Stride {
    match step {
        ControlFlow::Continue(SweepStep::Owner(at)) => K::look(at),
        ControlFlow::Continue(SweepStep::Owners) => Stride::All,
        ControlFlow::Continue(SweepStep::Own) => Stride::Own,
        ControlFlow::Continue(SweepStep::Internal(name)) => Stride::Internal(objects.name(OPERATOR_NAMESPACE, name)),
        ControlFlow::Continue(SweepStep::End(patch)) => Stride::End(number_of(&patch.target.id.resource_version)),
        ControlFlow::Continue(SweepStep::Delete(secret)) => Stride::Delete(number_of(&secret.id.resource_version)),
        ControlFlow::Break(SweepEnd::Held) => Stride::Held,
        ControlFlow::Break(SweepEnd::Retry(_)) => Stride::Retry,
        ControlFlow::Break(SweepEnd::Done | SweepEnd::Alive | SweepEnd::Elsewhere) => Stride::Over,
    }
}

fn answer<K: Swept>(objects: &Objects, step: &SweepStep<K>, reply: &SweepReply) -> SweepAnswer<K> {
    let stored = |number: &u32| objects.stored(*number);
    match (step, reply) {
        (_, SweepReply::Failed) => SweepAnswer::Failed(step.clone(), "no answer".to_owned()),
        (SweepStep::Owner(at), reply) => SweepAnswer::Owner(at.clone(), K::seen(reply)),
        (SweepStep::Owners, SweepReply::All(alive)) => SweepAnswer::Owners(*alive),
        (SweepStep::Own, SweepReply::Secrets(numbers)) => SweepAnswer::Own(numbers.iter().map(stored).collect()),
        (SweepStep::Internal(name), SweepReply::Secret(number)) => {
            SweepAnswer::Internal(name.clone(), number.as_ref().map(stored))
        }
        (SweepStep::End(_), SweepReply::Secret(Some(record))) => SweepAnswer::Ended(stored(record)),
        (SweepStep::Delete(secret), SweepReply::Deleted) => SweepAnswer::Deleted(secret.clone(), None),
        (step, reply) => unreachable!("{reply:?} is no answer to {step}"),
    }
}
