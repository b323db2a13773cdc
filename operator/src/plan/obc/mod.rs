//! Reconciliation of an ObjectBucketClaim (spec §9).
//!
//! The claim is turned into a BucketClaim in its namespace, or into a BucketAccess if its class
//! names an existing bucket. That object handles everything about buckets and keys. This module
//! translates between the two, and writes what consumers of ObjectBucketClaims expect: an
//! ObjectBucket, a ConfigMap and a phase.

mod bucket;
mod config_map;
mod deletion;
mod desired;
mod halt;
mod kinds;
mod shadow;
mod status;
mod step;
#[cfg(test)]
mod tests;
mod view;
mod words;

use std::ops::ControlFlow;

use k8s_openapi::jiff::Timestamp;

use super::reconciliation::{Arrival, Bound, Reconciliation};
use super::step::Then;
use super::walk::{Judgement, Outcome};

pub use kinds::{NewShadow, Shadow, ShadowKind, ShadowSpec};
pub use status::ObcRest;
pub use step::{ObcAct, ObcAnswer, ObcLook, ObcStep};
pub use view::{ObcCached, ObcSetting, ObcView, provisioner_label};
pub use words::{Bucket, CONFIG_KEYS, SHADOW, Told, bucket_names, shadow_name};

use halt::{Halt, Phase};
use view::Seen;
use words::Pins;

/// Maximum number of steps of a pass.
const MOST_STEPS: usize = 60;

fn next(view: &ObcView) -> ControlFlow<ObcRest, ObcStep> {
    let judged = match &view.trouble {
        None => Judgement::of(walk(view).map(|()| Outcome::default()), |_| None),
        Some(trouble) => Judgement::ended(trouble.end(status::told_of_failure)),
    };
    match judged {
        Judgement::Step(step) => ControlFlow::Continue(*step),
        Judgement::Rest(then) => ControlFlow::Break(status::ended(then)),
        Judgement::Conclude(stop, _) => status::conclude(view, stop.as_deref()),
    }
}

fn walk(view: &ObcView) -> Result<(), Halt> {
    if view.is_finalizer_removed {
        return Ok(());
    }
    view.require_current()?;
    require_ours(view)?;
    if view.obc.deleting {
        return deletion::walk(view);
    }
    let pins = bucket::pins(view)?;
    let (quota, refused) = match desired::quota(&view.obc, pins.work) {
        Ok(quota) => (Some(quota), None),
        Err(stop) => (None, Some(stop)),
    };
    if !view.obc.has_finalizer() || view.obc.label.as_ref() != Some(&view.setting.label()) {
        return Err(ObcAct::AddFinalizer(view.obc.id.clone()).into());
    }
    let bucket = bucket::ensure(view, &pins)?;
    let shadow = shadow::ensure(view, &pins, quota)?;
    bucket::note(bucket, shadow)?;
    let obstacle = match shadow::obstacle(view, &pins, shadow) {
        Some(stop) if stop.phase == Phase::Bound => Some(stop),
        Some(stop) => return Err(stop.into()),
        None => None,
    };
    write_names(view, bucket, &pins)?;
    config_map::ensure(view, &pins)?;
    bucket::tell(view, bucket, &pins)?;
    match refused.or_else(|| desired::changed(&view.obc, &pins)).or(obstacle) {
        Some(stop) => Err(stop.into()),
        None => Ok(()),
    }
}

/// Ensures that the claim names its bucket and its ObjectBucket, where its owner has not. This is
/// the first write once the bucket exists, because the answer shows the claim as it is.
fn write_names(view: &ObcView, bucket: &Bucket, pins: &Pins) -> Result<(), Halt> {
    let names = [
        ("bucketName", view.obc.spec.bucket_name.is_none().then_some(&pins.bucket)),
        ("objectBucketName", Some(&bucket.name).filter(|name| view.obc.spec.object_bucket_name.as_ref() != Some(name))),
    ];
    let names: Vec<_> = names.into_iter().filter_map(|(field, name)| Some((field, name?.clone()))).collect();
    if names.is_empty() { Ok(()) } else { Err(ObcAct::WriteNames(view.obc.id.clone(), names).into()) }
}

/// Requires that this provisioner serves the claim, according to its ObjectBucket or else its
/// class. If the class is gone, the claim's label and finalizer decide, which were added while the
/// class was known.
fn require_ours(view: &ObcView) -> Result<(), Halt> {
    let is_marked = view.obc.has_finalizer() && view.obc.label.as_ref() == Some(&view.setting.label());
    // After the ObjectBucket is gone the class must not block the deletion: it may belong to
    // another provisioner by now. A user who can set the label can also remove the finalizer.
    if view.bucket.present().is_some() || (view.obc.deleting && is_marked) {
        return Ok(());
    }
    match (&view.class, &view.obc.spec.storage_class_name) {
        (Seen::Cached(class) | Seen::Live(class), _) if class.provisioner == view.setting.provisioner => Ok(()),
        (Seen::Unknown, Some(name)) => Err(ObcLook::Class(name.clone()).into()),
        // Another provisioner recreated the class, or its name in the claim was edited.
        (Seen::Cached(_) | Seen::Live(_), _) if is_marked && view.bucket == Seen::Unknown => {
            Err(ObcLook::Buckets.into())
        }
        (Seen::Absent, _) | (Seen::Unknown, None) if is_marked => Ok(()),
        (Seen::Absent | Seen::Cached(_) | Seen::Live(_), _) | (Seen::Unknown, None) => Err(Halt::LeaveAlone),
    }
}

/// State of an ObjectBucketClaim, as shown by the `why` command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObcOutlook {
    /// Not served because of its class. Contains the provisioner of the class, or `None` if the
    /// class does not exist.
    NotOurs(Option<String>),
    /// A pass has another step to carry out first, or ends without reporting anything.
    Busy,
    /// Everything is as it should be.
    Well,
    /// Waiting, with reason and message of the Event. `None` if it waits for its BucketClaim or
    /// BucketAccess and nothing is reported.
    Waits(Option<(String, String)>),
}

/// Returns the state, for a pass that ends with what is known now.
pub fn outlook(view: &ObcView) -> ObcOutlook {
    if let Some(trouble) = &view.trouble {
        return match trouble.end(status::told_of_failure) {
            Ok(_) => ObcOutlook::Busy,
            Err(stop) => ObcOutlook::Waits(stop.word),
        };
    }
    match walk(view) {
        Ok(()) => ObcOutlook::Well,
        Err(Halt::Step(_) | Halt::Wait(_) | Halt::Stale(_)) => ObcOutlook::Busy,
        Err(Halt::Stop(stop)) => ObcOutlook::Waits(stop.word),
        Err(Halt::LeaveAlone) => ObcOutlook::NotOurs(view.class.present().map(|class| class.provisioner.clone())),
    }
}

impl Reconciliation for ObcView {
    type Step = ObcStep;
    type Answer = ObcAnswer;
    type End = ObcRest;

    fn most(_: Bound) -> usize {
        MOST_STEPS
    }

    fn bound(_: &ObcStep) -> Bound {
        Bound::Steps
    }

    fn next(&self, _: Timestamp) -> ControlFlow<ObcRest, ObcStep> {
        next(self)
    }

    fn learn(&mut self, answer: ObcAnswer, arrival: Arrival) {
        match arrival {
            Arrival::Prompt | Arrival::Slow => self.take(answer),
            Arrival::Late => self.take_late(answer),
        }
    }

    fn cut_short(&self, _: Bound) -> ObcRest {
        status::ended(Then::cut_short())
    }
}
