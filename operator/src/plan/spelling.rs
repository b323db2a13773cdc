//! Detection of one store under several spellings of its endpoint (spec §3.2).
//!
//! The name of a record depends on the spelling, so Kubernetes allows two records of one bucket. A
//! claim therefore reads the records under the other spellings before it creates its own, and again
//! afterwards until it has noted its intent for the bucket. If two claims do this concurrently, at
//! least one sees the other's record. If both do, the record with the lower name stays.

use crate::api::{BucketRecord, RecordName};

use super::answer::{BackendSeen, Holder};
use super::cause::BucketCause;
use super::credentials::{KeyHolder, delete_secret};
use super::halt::Halt;
use super::secret::Stored;
use super::step::Look;
use super::stop::Stop;
use super::view::View;

/// Halts if another claim holds the bucket under another spelling. Used before a record is created.
pub(super) fn refuse(view: &View, record: &BucketRecord) -> Result<(), Halt> {
    match find(view, record, |name| view.is_absent(name))? {
        Some((name, stop)) => Err(stop.until_released(name).into()),
        None => Ok(()),
    }
}

/// Halts if another claim holds the bucket under another spelling. Used for a record that exists
/// and was not acted on yet.
pub(super) fn settle(view: &View, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    if record.absence || record.adopted || record.settled {
        return Ok(());
    }
    let Some((name, stop)) = find(view, record, |name| view.is_absent_since_held(name))? else { return Ok(()) };
    if record.name() < name {
        return Err(stop.until_released(name).into());
    }
    if let Some(time) = view.unanswered() {
        return Err(Halt::Wait(time));
    }
    view.require_live()?;
    view.require_list()?;
    Err(delete_secret(view, stored))
}

/// Returns the record that another claim has for the bucket under another spelling, with the stop
/// to report.
fn find(
    view: &View,
    record: &BucketRecord,
    is_absent: impl Fn(&str) -> bool,
) -> Result<Option<(RecordName, Stop)>, Halt> {
    let BackendSeen::Present { backend, spellings, .. } = view.backend(&record.backend)? else { return Ok(None) };
    let others = spellings.iter().chain([&backend.endpoint]);
    for there in others.filter(|there| **there != record.endpoint && there.is_alias_of(&record.endpoint)) {
        let name = RecordName::of(there, &record.bucket);
        let bucket = record.bucket.clone();
        let cause = match view.anothers_record(&name) {
            Some(Holder::Damaged(why)) => BucketCause::RecordDamaged { bucket, why: why.clone() },
            Some(Holder::Other(holder)) => {
                BucketCause::Held { bucket, holder: holder.clone(), namespace: view.claim().at.namespace.clone() }
            }
            Some(Holder::Unknown | Holder::Suspect) | None if view.record_named(&name).is_some() => continue,
            Some(Holder::Unknown | Holder::Suspect) | None if is_absent(name.as_str()) => continue,
            Some(Holder::Unknown | Holder::Suspect) | None => return Err(Look::Internal(name.to_string()).into()),
        };
        return Ok(Some((name, Stop::new(cause))));
    }
    Ok(None)
}
