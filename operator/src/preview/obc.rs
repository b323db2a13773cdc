//! Preview of an ObjectBucketClaim.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::{Obc, ObjectBucketClaim};
use crate::controller::drive::{CarryOut, drive};
use crate::controller::objects::ObcObject;
use crate::plan::obc::{ObcAct, ObcAnswer, ObcLook, ObcOutlook, ObcRest, ObcStep, ObcView, outlook, shadow_name};
use crate::plan::{Failure, Then};

use super::ahead::{Ahead, End};
use super::line::{Deed, Line, Next, Object};
use super::seen::Seen;
use super::seen_obc::SeenObcs;

/// Maximum number of passes over an ObjectBucketClaim that changes meanwhile.
const MOST_PASSES: u8 = 3;

/// Answers looks, and can do nothing else.
struct Eyes<'a> {
    seen: &'a Seen,
    /// The first look that the API server did not answer.
    unanswered: Option<String>,
}

impl CarryOut<Ahead<ObcView>> for Eyes<'_> {
    async fn carry_out(&mut self, ahead: &Ahead<ObcView>, look: &ObcLook) -> ObcAnswer {
        let answer = self.seen.observer.answer_obc(ahead.0.obc(), look).await;
        answer.unwrap_or_else(|failure| {
            let step = ObcStep::Look(look.clone());
            if let Failure::Kubernetes(why) | Failure::Refused(why) = &failure {
                self.unanswered.get_or_insert_with(|| format!("can't {step}: {why}"));
            }
            ObcAnswer::Failed(step, failure)
        })
    }
}

/// The preview of one ObjectBucketClaim.
pub(super) struct Found {
    pub(super) line: Line,
    /// The state that `why` explains.
    pub(super) outlook: ObcOutlook,
}

/// Previews an ObjectBucketClaim.
pub(super) async fn look_ahead(seen: &Seen, obcs: &SeenObcs, object: Object, obc: &ObcObject) -> Found {
    let raw = match &obc.0 {
        Ok(raw) => raw,
        Err(error) => {
            let next = Next::LeftAlone(format!("it can't be decoded: {error}"));
            return Found { line: Line { object, next, doubt: None }, outlook: ObcOutlook::Busy };
        }
    };
    let mut tries = 1;
    loop {
        let found = pass(seen, obcs, object.clone(), raw).await;
        match &found.line.next {
            Next::Unknown(_) if tries < MOST_PASSES => tries += 1,
            _ => return found,
        }
    }
}

async fn pass(seen: &Seen, obcs: &SeenObcs, object: Object, raw: &ObjectBucketClaim) -> Found {
    let obc = Obc::parse(raw);
    let cached = obcs.caches.around(&obc);
    let mut ahead = Ahead(ObcView::new(obcs.setting.clone(), obc, cached));
    let mut eyes = Eyes { seen, unanswered: None };
    let end = drive(&mut ahead, &seen.clock, &mut eyes).await;
    let stands = outlook(&ahead.0);
    let next = match (eyes.unanswered, end) {
        (Some(why), _) => Next::Unknown(why),
        (None, End::Act(act)) => {
            let words = purpose(ahead.0.obc(), &act);
            Next::Act(Box::new(Deed { words, step: ObcStep::Act(act).to_string(), act: None }))
        }
        (None, End::Rest(rest)) => rests(&rest, &stands, ahead.0.obc(), obcs, seen.clock.now()),
    };
    Found { line: Line { object, next, doubt: None }, outlook: stands }
}

/// Interprets a pass that ended without an effect.
fn rests(rest: &ObcRest, stands: &ObcOutlook, obc: &Obc, obcs: &SeenObcs, now: Timestamp) -> Next {
    let after = |time| SignedDuration::try_from(time).ok().and_then(|time| now.checked_add(time).ok());
    let until = match &rest.then {
        Then::AwaitChange | Then::Retry(_) => None,
        Then::After(time) | Then::Wait(time) => after(*time),
    };
    match (stands, &rest.then) {
        (ObcOutlook::NotOurs(None), _) => Next::Wait(without_class(obc), None),
        (ObcOutlook::NotOurs(Some(by)), _) => {
            Next::LeftAlone(format!("{by} serves its class, and this operator serves {}", obcs.setting.provisioner))
        }
        (ObcOutlook::Waits(Some((_, note))), _) => Next::Wait(note.clone(), until),
        (ObcOutlook::Waits(None), _) => Next::Wait(format!("what does its work, {}, is busy", shadow_name(obc)), until),
        (ObcOutlook::Well | ObcOutlook::Busy, Then::Retry(why)) => {
            Next::Unknown(format!("{why}, so it changes just now: ask again"))
        }
        (ObcOutlook::Well | ObcOutlook::Busy, Then::AwaitChange | Then::After(_) | Then::Wait(_)) => {
            Next::Nothing(until)
        }
    }
}

fn without_class(obc: &Obc) -> String {
    match &obc.spec.storage_class_name {
        Some(name) => format!("there is no storage class {name}"),
        None => "it names no storage class".to_owned(),
    }
}

/// Describes the purpose of an effect, and why it is due.
fn purpose(obc: &Obc, act: &ObcAct) -> String {
    let step = ObcStep::Act(act.clone());
    let goes = "the ObjectBucketClaim is deleted";
    match act {
        ObcAct::AddFinalizer(_) => {
            let class = obc.spec.storage_class_name.as_deref().unwrap_or_default();
            format!("begin to serve the ObjectBucketClaim, of storage class {class}")
        }
        ObcAct::RemoveFinalizer(_) => "let the ObjectBucketClaim go: nothing is left to do for it".to_owned(),
        ObcAct::CreateBucket(_) => format!("{step}, which keeps what was decided of the bucket"),
        ObcAct::CreateShadow(_) => format!("{step}, which does its work"),
        ObcAct::PatchShadow(..) if obc.deleting => {
            format!("{step}: {goes}, and its class says what becomes of the bucket")
        }
        ObcAct::PatchShadow(..) => format!("{step}: it is not as it should be"),
        ObcAct::DeleteShadow(..) | ObcAct::DeleteBucket(..) => format!("{step}: {goes}"),
        ObcAct::CreateConfigMap(_) => format!("{step}, which tells where the bucket is"),
        ObcAct::PatchConfigMap(..) => format!("{step}: it is not as it should be"),
        ObcAct::WriteNames(..) | ObcAct::WritePhase(..) | ObcAct::PatchBucket(..) | ObcAct::WriteBucketPhase(..) => {
            step.to_string()
        }
    }
}
