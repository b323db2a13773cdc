//! The conversations with sweeps of what the access left: each is asked once for all that it can
//! know.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use k8s_openapi::jiff::Timestamp;
use stowage_operator::plan::orphans::{OfAccess, Sweep, SweepAnswer, SweepEnd, SweepStep};
use stowage_operator::plan::{Arrival, Reach, Reconciliation, Stored};

use super::access::access_uid;
use super::facts::OPERATOR_NAMESPACE;
use super::names::number_of;
use super::objects::Objects;
use super::phrases::SweepReply;
use super::shelf::{Known, Memo};

/// What a sweep is to do next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stretch {
    /// Is the access there?
    Owner,
    Own,
    Internal(u32),
    Delete(u32),
    /// Nothing is left, or it lives, or it is to be tried again.
    Over,
}

type Next = ControlFlow<SweepEnd, SweepStep<OfAccess>>;

/// All that was ever said to sweeps of the access's Secrets.
pub(super) struct AccessSweeps {
    sweeps: Known<String, (Sweep<OfAccess>, Next, Stretch)>,
    swept: Memo<(u32, SweepReply), u32>,
}

impl AccessSweeps {
    pub(super) fn new() -> Self {
        Self { sweeps: Known::new(), swept: Memo::new() }
    }

    /// A sweep that begins.
    pub(super) fn begin(&self, objects: &Objects, seen: &[u32]) -> u32 {
        let seen: Vec<Stored> = seen.iter().map(|number| objects.stored(*number)).collect();
        self.go_on(objects, Sweep::new(access_uid(), &seen, BTreeSet::new(), false, Reach::Cluster))
    }

    fn go_on(&self, objects: &Objects, sweep: Sweep<OfAccess>) -> u32 {
        self.sweeps.number(format!("{sweep:?}"), |_| {
            let step = sweep.next(Timestamp::UNIX_EPOCH);
            let stretch = stretch(objects, &step);
            (sweep, step, stretch)
        })
    }

    /// What a sweep is to do next.
    pub(super) fn stretch_of(&self, sweep: u32) -> Stretch {
        self.sweeps.get(sweep).2
    }

    /// Its next step in words.
    pub(super) fn text(&self, sweep: u32) -> String {
        match &self.sweeps.get(sweep).1 {
            ControlFlow::Continue(step) => format!("sweep of the access: {step}"),
            ControlFlow::Break(end) => format!("sweep of the access: {end:?}"),
        }
    }

    /// What a sweep knows after an answer.
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
}

fn stretch(objects: &Objects, step: &Next) -> Stretch {
    match step {
        ControlFlow::Continue(SweepStep::Owner(_) | SweepStep::Owners) => Stretch::Owner,
        ControlFlow::Continue(SweepStep::Own) => Stretch::Own,
        ControlFlow::Continue(SweepStep::Internal(name)) => Stretch::Internal(objects.name(OPERATOR_NAMESPACE, name)),
        ControlFlow::Continue(SweepStep::Delete(secret)) => Stretch::Delete(number_of(&secret.id.resource_version)),
        ControlFlow::Continue(SweepStep::End(_)) => unreachable!("an access has no record of a bucket"),
        ControlFlow::Break(_) => Stretch::Over,
    }
}

fn answer(objects: &Objects, step: &SweepStep<OfAccess>, reply: &SweepReply) -> SweepAnswer<OfAccess> {
    match (step, reply) {
        (_, SweepReply::Failed) => SweepAnswer::Failed(step.clone(), "no answer".to_owned()),
        (SweepStep::Owner(at), SweepReply::Claims(alive)) => SweepAnswer::Owner(at.clone(), alive.then(access_uid)),
        (SweepStep::Owners, SweepReply::Claims(alive)) => SweepAnswer::Owners(*alive),
        (SweepStep::Own, SweepReply::Secrets(numbers)) => {
            SweepAnswer::Own(numbers.iter().map(|number| objects.stored(*number)).collect())
        }
        (SweepStep::Internal(name), SweepReply::Secret(number)) => {
            SweepAnswer::Internal(name.clone(), number.map(|number| objects.stored(number)))
        }
        (SweepStep::Delete(secret), SweepReply::Deleted) => SweepAnswer::Deleted(secret.clone(), None),
        (step, reply) => unreachable!("{reply:?} is no answer to {step}"),
    }
}
