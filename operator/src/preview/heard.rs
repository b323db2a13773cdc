//! Answers of stores, as text.

use crate::api::ClaimUid;
use crate::api::wire::TAG_CLAIM_UID;
use crate::plan::{Answer, BucketSeen, Failure, OwnerSeen, Step, VersioningSeen};

/// Describes a store's answer; `None` for any other answer.
pub(super) fn heard(uid: &ClaimUid, answer: &Answer) -> Option<String> {
    Some(match answer {
        Answer::Bucket(at, seen) => format!("bucket {} {}", at.bucket, shown(uid, seen)),
        Answer::Owner(at, OwnerSeen::Ours) => format!("bucket {} is of the operator's account", at.bucket),
        Answer::Owner(at, OwnerSeen::Other) => format!("bucket {} is not of the operator's account", at.bucket),
        Answer::Owner(at, OwnerSeen::Untold) => format!("whose account bucket {} is of it does not tell", at.bucket),
        Answer::Contents(at, true) => format!("bucket {} is empty", at.bucket),
        Answer::Contents(at, false) => format!("bucket {} is not empty", at.bucket),
        Answer::Versioning(at, VersioningSeen::Unset) => format!("versioning of bucket {} was never set", at.bucket),
        Answer::Versioning(at, VersioningSeen::Set(it)) => format!("versioning of bucket {} is {it:?}", at.bucket),
        Answer::Failed(step, failure) => format!("can't {step}: {}", failed(step, failure)?),
        _ => return None,
    })
}

fn shown(uid: &ClaimUid, seen: &BucketSeen) -> String {
    match seen {
        BucketSeen::Absent => "is not there".to_owned(),
        BucketSeen::Forbidden => "is there, and not the operator's to look at".to_owned(),
        BucketSeen::Present(None) => "is there; this store has no tags".to_owned(),
        BucketSeen::Present(Some(tags)) => match tags.get(TAG_CLAIM_UID).map(String::as_str) {
            Some(tagged) if tagged == uid.as_str() => "is there, with the tags of this claim".to_owned(),
            Some(_) => "is there, with the tags of another claim".to_owned(),
            None => "is there, without tags of a claim".to_owned(),
        },
    }
}

/// Describes the failure of a call to a store.
fn failed<'a>(step: &Step, failure: &'a Failure) -> Option<&'a str> {
    step.upstream()?;
    match failure {
        Failure::Upstream(why) | Failure::NoUpstream(why) | Failure::UpstreamDenied(why) => Some(why),
        Failure::Unsupported => Some("this store does not implement it"),
        Failure::Conflict
        | Failure::Kubernetes(_)
        | Failure::Refused(_)
        | Failure::NamespaceTerminating
        | Failure::Paced(_)
        | Failure::ReadOnly => None,
    }
}

/// Returns the reason if an answer leaves the operator's next step open: the store gave no answer
/// to this process, but may give one to the operator.
pub(super) fn doubt(answer: &Answer) -> Option<String> {
    match answer {
        Answer::Failed(step, failure @ (Failure::Upstream(_) | Failure::NoUpstream(_))) => {
            Some(format!("can't {step} from here: {}", failed(step, failure)?))
        }
        _ => None,
    }
}

/// Returns the reason if the API server gave no answer to this process.
pub(super) fn unanswered(answer: &Answer) -> Option<String> {
    match answer {
        Answer::Failed(step, Failure::Kubernetes(why) | Failure::Refused(why)) => Some(format!("can't {step}: {why}")),
        _ => None,
    }
}
