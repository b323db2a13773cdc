//! Runs a pass up to its first effect: looks are answered, and the effect ends it.

use std::ops::ControlFlow;

use k8s_openapi::jiff::Timestamp;

use crate::plan::access::{AccessAct, AccessLook, AccessStep, AccessView};
use crate::plan::obc::{ObcAct, ObcLook, ObcStep, ObcView};
use crate::plan::{Arrival, Bound, Reconciliation};

/// A pass each of whose steps either reads or changes something.
pub(super) trait Pass: Reconciliation {
    /// A step that only reads.
    type Look: Clone + Send;
    /// A step that changes something.
    type Act;

    /// Returns the step as one that reads or one that changes something.
    fn parted(step: Self::Step) -> Parted<Self::Look, Self::Act>;

    /// Wraps a look as a step.
    fn asking(look: &Self::Look) -> Self::Step;
}

/// A step.
pub(super) enum Parted<L, A> {
    Look(L),
    Act(A),
}

/// A pass, up to its first effect.
pub(super) struct Ahead<P>(pub(super) P);

/// The end of such a pass.
pub(super) enum End<P: Pass> {
    Act(P::Act),
    Rest(P::End),
}

impl<P: Pass> Reconciliation for Ahead<P> {
    type Step = P::Look;
    type Answer = P::Answer;
    type End = End<P>;

    fn most(bound: Bound) -> usize {
        P::most(bound)
    }

    fn bound(look: &P::Look) -> Bound {
        P::bound(&P::asking(look))
    }

    fn next(&self, now: Timestamp) -> ControlFlow<End<P>, P::Look> {
        match self.0.next(now) {
            ControlFlow::Break(rest) => ControlFlow::Break(End::Rest(rest)),
            ControlFlow::Continue(step) => match P::parted(step) {
                Parted::Act(act) => ControlFlow::Break(End::Act(act)),
                Parted::Look(look) => ControlFlow::Continue(look),
            },
        }
    }

    fn learn(&mut self, answer: P::Answer, arrival: Arrival) {
        self.0.learn(answer, arrival);
    }

    fn cut_short(&self, bound: Bound) -> End<P> {
        End::Rest(self.0.cut_short(bound))
    }
}

impl Pass for AccessView {
    type Look = AccessLook;
    type Act = AccessAct;

    fn parted(step: AccessStep) -> Parted<AccessLook, AccessAct> {
        match step {
            AccessStep::Look(look) => Parted::Look(look),
            AccessStep::Act(act) => Parted::Act(act),
        }
    }

    fn asking(look: &AccessLook) -> AccessStep {
        look.clone().into()
    }
}

impl Pass for ObcView {
    type Look = ObcLook;
    type Act = ObcAct;

    fn parted(step: ObcStep) -> Parted<ObcLook, ObcAct> {
        match step {
            ObcStep::Look(look) => Parted::Look(look),
            ObcStep::Act(act) => Parted::Act(act),
        }
    }

    fn asking(look: &ObcLook) -> ObcStep {
        look.clone().into()
    }
}
