//! Objects whose deletion would hang after an uninstall, because only this operator removes their
//! finalizer.

use kube::{Resource, ResourceExt};

use crate::api::{ACCESS_FINALIZER, Deletion, FINALIZER, OBC_FINALIZER, ServedBy};
use crate::controller::objects::Claim;

use super::line::{Line, Next, Object};
use super::plan::Plan;
use super::seen::Seen;
use super::setup::{Means, Scope, Setup};

/// Lists the objects in `scope` whose deletion would hang after an uninstall, without those of
/// other operators.
///
/// # Errors
/// An error message about what could not be read.
pub async fn departure(setup: &Setup, means: Means, scope: &Scope) -> Result<Plan, String> {
    let seen = Seen::read(setup, means, scope).await?;
    let claims = seen.claims.iter().filter(|(at, it)| scope.has_claim(at) && is_ours(&seen, *it, FINALIZER));
    let mut lines: Vec<Line> = claims.map(|(at, it)| line(Object::Claim(at.clone()), &fate(&seen, it))).collect();
    let accesses = seen.accesses.iter();
    let accesses = accesses.filter(|(at, it)| scope.has_access(at) && is_ours(&seen, *it, ACCESS_FINALIZER));
    lines.extend(accesses.map(|(at, _)| line(Object::Access(at.clone()), "its key ends with it")));
    let obcs = seen.obcs.iter().flat_map(|obcs| &obcs.all).filter(|(_, it)| is_ours(&seen, *it, OBC_FINALIZER));
    lines.extend(obcs.map(|(at, _)| line(Object::Obc(at.clone()), "what does its work goes with it")));
    lines.sort_by(|one, other| one.object.cmp(&other.object));
    Ok(Plan { lines, assumed: seen.assumed.clone() })
}

fn is_ours<K: Resource>(seen: &Seen, object: &K, finalizer: &str) -> bool {
    let by = ServedBy::noted(object.annotations());
    object.finalizers().iter().any(|it| it == finalizer) && !seen.observer.setting.is_anothers(by.as_ref())
}

fn line(object: Object, then: &str) -> Line {
    let words = format!("it hangs without the operator, so delete it before; {then}");
    Line { object, next: Next::Wait(words, None), doubt: None }
}

/// Describes what happens to the bucket when the claim is deleted.
fn fate(seen: &Seen, claim: &Claim) -> String {
    let Ok(raw) = &claim.0 else { return "it can't be decoded".to_owned() };
    let view = seen.observer.begin(raw);
    let Some(bucket) = view.claim().status.bucket_name.clone() else { return "it has no bucket yet".to_owned() };
    match view.claim().deletion {
        Deletion::Retain => format!("bucket {bucket} is kept"),
        Deletion::Delete => format!("bucket {bucket} is deleted, once it is empty"),
        Deletion::Force => format!("bucket {bucket} is deleted with all that is in it"),
    }
}
