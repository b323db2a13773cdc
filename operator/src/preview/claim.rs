//! Preview of a claim.

use std::ops::ControlFlow;
use std::sync::Arc;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::BucketClaim;
use crate::controller::drive::{CarryOut, drive};
use crate::controller::looks::first_sight;
use crate::controller::objects::Claim;
use crate::plan::{
    Act, Answer, Arrival, Bound, Failure, Look, Obstacle, Reconciliation, Rest, Step, Then, View, obstacle, purpose,
};
use crate::upstream::{AccessError, Caller};

use super::heard::{doubt, heard, unanswered};
use super::line::{Deed, Line, Next, Object};
use super::seen::Seen;

/// Maximum number of passes over a claim that changes meanwhile.
const MOST_PASSES: u8 = 3;

/// A pass over a claim, up to its first effect.
struct Ahead(View);

/// The end of such a pass.
enum End {
    Act(Act),
    Rest(Rest),
}

impl Reconciliation for Ahead {
    type Step = Look;
    type Answer = Answer;
    type End = End;

    fn most(bound: Bound) -> usize {
        View::most(bound)
    }

    fn bound(look: &Look) -> Bound {
        View::bound(&Step::Look(look.clone()))
    }

    fn next(&self, now: Timestamp) -> ControlFlow<End, Look> {
        match Reconciliation::next(&self.0, now) {
            ControlFlow::Break(rest) | ControlFlow::Continue(Step::Rest(rest)) => ControlFlow::Break(End::Rest(rest)),
            ControlFlow::Continue(Step::Act(act)) => ControlFlow::Break(End::Act(act)),
            ControlFlow::Continue(Step::Look(look)) => ControlFlow::Continue(look),
        }
    }

    fn learn(&mut self, answer: Answer, arrival: Arrival) {
        Reconciliation::learn(&mut self.0, answer, arrival);
    }

    fn cut_short(&self, bound: Bound) -> End {
        End::Rest(self.0.cut_short(bound))
    }
}

/// Answers looks, and can do nothing else.
struct Eyes<'a> {
    seen: &'a Seen,
    caller: Arc<Caller>,
    /// Answers of stores, as text.
    heard: Vec<String>,
    doubt: Option<String>,
    /// The first look that the API server did not answer.
    unanswered: Option<String>,
}

impl CarryOut<Ahead> for Eyes<'_> {
    async fn carry_out(&mut self, ahead: &Ahead, look: &Look) -> Answer {
        let claim = ahead.0.claim();
        let answer = match self.out_of_reach(look).await {
            Some(why) => Answer::Failed(Step::Look(look.clone()), Failure::Kubernetes(why)),
            None => self.seen.observer.answer(&self.caller, claim, look).await,
        };
        self.heard.extend(heard(&claim.uid, &answer));
        self.doubt = self.doubt.take().or_else(|| doubt(&answer));
        self.unanswered = self.unanswered.take().or_else(|| unanswered(&answer));
        answer
    }
}

impl Eyes<'_> {
    /// Returns the reason if this process can't call a store that the operator may be able to call,
    /// because it may not read the Secret with the credentials. A defect of the backend itself
    /// doesn't count, as it affects the operator too.
    async fn out_of_reach(&self, look: &Look) -> Option<String> {
        let at = Step::Look(look.clone()).upstream()?.clone();
        let backend = self.seen.observer.backends.get(&at.backend)?.ok()?;
        match self.seen.observer.upstreams.get(&backend).await {
            Err(error @ (AccessError::Forbidden(..) | AccessError::Unreadable(..))) => Some(error.to_string()),
            Err(_) | Ok(_) => None,
        }
    }
}

/// The preview of one claim.
pub(super) struct Found {
    pub(super) line: Line,
    /// The reason why it isn't Ready, unless there is an effect to carry out first.
    pub(super) obstacle: Option<Obstacle>,
    /// Answers of stores, as text.
    pub(super) heard: Vec<String>,
}

impl Found {
    fn of(object: Object, next: Next) -> Self {
        Self { line: Line { object, next, doubt: None }, obstacle: None, heard: Vec::new() }
    }
}

/// Previews a claim. `look` also checks its bucket, like a drift check.
pub(super) async fn look_ahead(seen: &Seen, place: u64, object: Object, claim: &Claim, look: bool) -> Found {
    let raw = match &claim.0 {
        Ok(raw) => raw,
        Err(error) => return Found::of(object, Next::LeftAlone(format!("it can't be decoded: {error}"))),
    };
    let mut tries = 1;
    loop {
        let found = pass(seen, place, object.clone(), raw, look).await;
        match &found.line.next {
            Next::Unknown(_) if tries < MOST_PASSES => tries += 1,
            _ => return found,
        }
    }
}

async fn pass(seen: &Seen, place: u64, object: Object, raw: &BucketClaim, look: bool) -> Found {
    let view = seen.observer.begin(raw);
    let remembered = first_sight(&view, look);
    let mut ahead = Ahead(view.begin(remembered));
    let claim = ahead.0.claim();
    let caller = Arc::new(Caller::new(&claim.at.namespace, claim.uid.as_str(), place));
    let mut eyes = Eyes { seen, caller, heard: Vec::new(), doubt: None, unanswered: None };
    let end = drive(&mut ahead, &seen.clock, &mut eyes).await;
    let now = seen.clock.now();
    let obstacle = obstacle(&ahead.0, now);
    let next = match (eyes.unanswered, end) {
        (Some(why), _) => Next::Unknown(why),
        (None, End::Act(act)) => {
            let words = purpose(&ahead.0, &act);
            let step = Step::Act(act.clone()).to_string();
            Next::Act(Box::new(Deed { words, step, act: Some(act) }))
        }
        (None, End::Rest(rest)) => match (ahead.0.served_by_another(), &obstacle) {
            (Some(by), None) => {
                let operator = seen.observer.setting.operator();
                Next::LeftAlone(format!("{by} serves it, and this operator is {operator}"))
            }
            (Some(_) | None, _) => rests(&rest, obstacle.as_ref(), now),
        },
    };
    Found { line: Line { object, next, doubt: eyes.doubt }, obstacle, heard: eyes.heard }
}

/// Interprets a pass that ended without an effect.
fn rests(rest: &Rest, obstacle: Option<&Obstacle>, now: Timestamp) -> Next {
    let after = |time| SignedDuration::try_from(time).ok().and_then(|time| now.checked_add(time).ok());
    let told = obstacle.map(|obstacle| obstacle.message.clone());
    match (&rest.then, told) {
        (Then::AwaitChange, None) => Next::Nothing(None),
        (Then::After(time), None) => Next::Nothing(after(*time)),
        (Then::Wait(time), None) => Next::Wait("it is too soon after the last step".to_owned(), after(*time)),
        (Then::Retry(why), None) => Next::Unknown(format!("{why}, so it changes just now: ask again")),
        (Then::AwaitChange | Then::Retry(_), Some(told)) => Next::Wait(told, None),
        (Then::After(time) | Then::Wait(time), Some(told)) => Next::Wait(told, after(*time)),
    }
}
