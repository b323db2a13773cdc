//! Preview of an access.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::BucketAccess;
use crate::controller::drive::{CarryOut, drive};
use crate::controller::objects::Access;
use crate::plan::access::{AccessAnswer, AccessLook, AccessStep, AccessView, Outlook, outlook, purpose};
use crate::plan::{Failure, Rest, Then};

use super::ahead::{Ahead, End};
use super::line::{Deed, Line, Next, Object};
use super::seen::Seen;

/// Maximum number of passes over an access that changes meanwhile.
const MOST_PASSES: u8 = 3;

/// Answers looks, and can do nothing else.
struct Eyes<'a> {
    seen: &'a Seen,
    /// The first look that the API server did not answer.
    unanswered: Option<String>,
}

impl CarryOut<Ahead<AccessView>> for Eyes<'_> {
    async fn carry_out(&mut self, ahead: &Ahead<AccessView>, look: &AccessLook) -> AccessAnswer {
        let answer = self.seen.observer.answer_access(&ahead.0, look).await;
        if let AccessAnswer::Failed(step, Failure::Kubernetes(why) | Failure::Refused(why)) = &answer {
            self.unanswered.get_or_insert_with(|| format!("can't {step}: {why}"));
        }
        answer
    }
}

/// The preview of one access.
pub(super) struct Found {
    pub(super) line: Line,
    /// The state that `why` explains; `None` if the access is left alone.
    pub(super) outlook: Option<Outlook>,
}

impl Found {
    fn of(object: Object, next: Next, outlook: Option<Outlook>) -> Self {
        Self { line: Line { object, next, doubt: None }, outlook }
    }
}

/// Previews an access.
pub(super) async fn look_ahead(seen: &Seen, object: Object, access: &Access) -> Found {
    let raw = match &access.0 {
        Ok(raw) => raw,
        Err(error) => return Found::of(object, Next::LeftAlone(format!("it can't be decoded: {error}")), None),
    };
    let mut tries = 1;
    loop {
        let found = pass(seen, object.clone(), raw).await;
        match &found.line.next {
            Next::Unknown(_) if tries < MOST_PASSES => tries += 1,
            _ => return found,
        }
    }
}

async fn pass(seen: &Seen, object: Object, raw: &BucketAccess) -> Found {
    let view = seen.observer.begin_access(raw);
    let mut ahead = Ahead(view);
    let mut eyes = Eyes { seen, unanswered: None };
    let end = drive(&mut ahead, &seen.clock, &mut eyes).await;
    let now = seen.clock.now();
    let stands = outlook(&ahead.0, now);
    let next = match (eyes.unanswered, end) {
        (Some(why), _) => Next::Unknown(why),
        (None, End::Act(act)) => {
            let words = purpose(&ahead.0, &act);
            Next::Act(Box::new(Deed { words, step: AccessStep::Act(act).to_string(), act: None }))
        }
        (None, End::Rest(rest)) => match (ahead.0.served_by_another(), &stands.obstacle) {
            (Some(by), None) => {
                let why = format!("{by} serves it, and this operator is {}", seen.observer.setting.operator());
                return Found::of(object, Next::LeftAlone(why), None);
            }
            (Some(_) | None, _) => rests(&rest, &stands, now),
        },
    };
    Found::of(object, next, Some(stands))
}

/// Interprets a pass that ended without an effect.
fn rests(rest: &Rest, stands: &Outlook, now: Timestamp) -> Next {
    let after = |time| SignedDuration::try_from(time).ok().and_then(|time| now.checked_add(time).ok());
    let told = stands.obstacle.as_ref().map(|(_, message)| message.clone());
    match (&rest.then, told) {
        (Then::AwaitChange, None) => Next::Nothing(None),
        (Then::After(time), None) => Next::Nothing(after(*time)),
        (Then::Wait(time), None) => Next::Wait("it is too soon after the last step".to_owned(), after(*time)),
        (Then::Retry(why), None) => Next::Unknown(format!("{why}, so it changes just now: ask again")),
        (Then::AwaitChange | Then::Retry(_), Some(told)) => Next::Wait(told, None),
        (Then::After(time) | Then::Wait(time), Some(told)) => Next::Wait(told, after(*time)),
    }
}
