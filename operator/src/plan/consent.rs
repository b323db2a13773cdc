//! Consent: the namespaces whose accesses a bucket is open to, and their rights. The owner's
//! consent takes effect in the bucket record (spec §8).
//!
//! Withdrawn consent is removed from every record at once, before anything that may stop the pass.
//! New consent is added only after live reads that begin with the record itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::{
    AccessRef, BackendAccess, BucketRecord, ClaimAccesses, Consent, Desired, Limits, NamespaceUid, Sharing, kept,
};

use super::answer::BackendSeen;
use super::asking::{Asker, Asking, ConsentQuestion, ConsentSeen, Unasked};
use super::credentials::{record_patch, rewrite};
use super::halt::Halt;
use super::patch::Change;
use super::secret::newest_key;
use super::step::{Act, Look};
use super::view::View;

/// Maximum number of accesses that the status of a claim names.
const NAMED: usize = 20;

type Map = BTreeMap<NamespaceUid, Consent>;

/// Removes from every record of the claim what its owner or the backend no longer consents to.
/// Applies to a paused claim as well.
pub(super) fn narrow(view: &View) -> Result<(), Halt> {
    for (record, stored) in view.records().filter(|(record, _)| !record.accesses.is_empty()) {
        let access = backend_access(view, &record.backend)?;
        let word = |asker: &Asker| word(view, access.as_ref(), asker);
        let narrowed = |(uid, now): (&NamespaceUid, &Consent)| {
            let Some(asking) = view.asking() else {
                // An incomplete cache proves nothing.
                return Some((uid.clone(), now.clone()));
            };
            if let Some(name) = asking.unasked.get(uid) {
                let kept = unasked(view, access.as_ref(), &view.claim().sharing, name.as_deref(), now)?;
                return Some((uid.clone(), kept));
            }
            let wanted = word(asking.namespaces.get(uid)?)?;
            let kept =
                if now.is_within(&wanted) { Some(now.clone()) } else { Some(wanted).filter(|it| it.is_within(now)) };
            kept.map(|kept| (uid.clone(), kept))
        };
        let narrowed = bounded(record.accesses.iter().filter_map(narrowed));
        if narrowed != record.accesses {
            let limits = match &view.claim().desired {
                Ok(desired) => limits(&narrowed, desired),
                Err(_) => record.limits,
            };
            let record = BucketRecord { accesses: narrowed, limits, ..record.clone() };
            return Err(rewrite(view, &record, stored, Change::Consent));
        }
    }
    Ok(())
}

/// Opens the claim's bucket to the requesting accesses that its owner consents to, and closes it to
/// namespaces without a requesting access. The live reads are made once per pass.
pub(super) fn settle(view: &View) -> Result<(), Halt> {
    let (Ok(desired), Some((record, _)), Some(asking)) = (&view.claim().desired, view.record(), view.asking()) else {
        return Ok(());
    };
    if view.claim().paused || record.ending || view.credential(record.generation).is_none() {
        return Ok(());
    }
    if let Some(seen) = view.consent_seen() {
        return write(view, seen);
    }
    if asking.accesses.is_empty() && record.accesses.is_empty() {
        return Ok(());
    }
    let access = backend_access(view, &record.backend)?;
    let asks = |asker: &&Asker| asking.accesses.iter().any(|access| access.namespace == asker.namespace);
    let askers = asking.namespaces.values().filter(asks);
    let consented = askers.filter_map(|it| Some((it.uid.clone(), word(view, access.as_ref(), it)?)));
    let stays = stays(view, access.as_ref(), &view.claim().sharing, record, &asking.unasked);
    let wanted = bounded(consented.chain(stays));
    let is_so = wanted == record.accesses && limits(&wanted, desired) == record.limits;
    if is_so || view.is_consent_settled() {
        return Ok(());
    }
    let (backend, accesses) = (record.backend.clone(), may_ask(view, access.as_ref(), record, asking));
    Err(Look::Consent(ConsentQuestion { record: record.name(), backend, accesses }).into())
}

/// Returns the accesses to read. Leaves out those in namespaces that have no consent and no entry
/// in the record.
fn may_ask(view: &View, access: Option<&BackendAccess>, record: &BucketRecord, asking: &Asking) -> BTreeSet<AccessRef> {
    let matters = |at: &&AccessRef| {
        // A namespace that no watch shows yet is read as well.
        let asker = asking.namespaces.values().find(|asker| asker.namespace == at.namespace);
        asker.is_none_or(|it| record.accesses.contains_key(&it.uid) || word(view, access, it).is_some())
    };
    asking.accesses.iter().chain(&asking.recorded).filter(matters).cloned().collect()
}

/// Writes what the live reads allow, to exactly the version of the record that they began with.
/// Opens nothing if a read shows that the claim has changed.
fn write(view: &View, seen: &ConsentSeen) -> Result<(), Halt> {
    let stale = || Halt::Stale("what a consent goes by has changed meanwhile");
    let claim = seen.claim.as_ref().filter(|live| live.uid == view.claim().uid && !live.deleting).ok_or_else(stale)?;
    let stored = seen.record.as_ref().ok_or_else(stale)?;
    let record = BucketRecord::read(&stored.0).map_err(|_| stale())?;
    let desired = claim.desired.as_ref().map_err(|_| stale())?;
    if record.uid != claim.uid || record.ending || stored.kept_by().is_some() || !is_opened(&record, seen) {
        return Err(stale());
    }
    // No access was read in a namespace that another operator has added since.
    let known = view.record().map(|(known, _)| &known.accesses);
    if record.accesses.keys().any(|uid| known.is_none_or(|known| !known.contains_key(uid))) {
        return Err(stale());
    }
    let backend = seen.backend.as_ref().map(|backend| &backend.access);
    let consented = |asker: &Asker| {
        let is_own = asker.namespace == claim.at.namespace;
        let word = if is_own {
            Some(Consent::full())
        } else {
            claim.sharing.consent(&asker.namespace, Some(&asker.labels)).cloned()
        };
        let is_let_in = backend.is_some_and(|access| access.allows(&asker.namespace, Some(&asker.labels)));
        word.filter(|_| is_let_in && !view.setting().trusts(&asker.namespace))
    };
    let stays = stays(view, backend, &claim.sharing, &record, &seen.unasked);
    let asked = seen.askers.iter().filter_map(|asker| Some((asker.uid.clone(), consented(asker)?)));
    let wanted = bounded(asked.chain(stays));
    match record_patch(view, &with(&record, wanted, desired), stored, Change::Consent) {
        Some(patch) => Err(Act::Patch(patch).into()),
        None => Ok(()),
    }
}

/// Returns the consent that the record keeps for namespaces that are not served.
fn stays(
    view: &View,
    access: Option<&BackendAccess>,
    sharing: &Sharing,
    record: &BucketRecord,
    of: &Unasked,
) -> impl Iterator<Item = (NamespaceUid, Consent)> {
    of.iter().filter_map(move |(uid, name)| {
        let kept = unasked(view, access, sharing, name.as_deref(), record.accesses.get(uid)?)?;
        Some((uid.clone(), kept))
    })
}

/// Returns the consent that a namespace keeps that this operator does not serve.
///
/// Its labels and accesses are unknown. Its consent is removed if neither the backend nor `sharing`
/// can allow it under any labels, and is never widened.
fn unasked(
    view: &View,
    access: Option<&BackendAccess>,
    sharing: &Sharing,
    name: Option<&str>,
    now: &Consent,
) -> Option<Consent> {
    let is_let_in = access.is_none_or(|access| access.may_allow(name));
    if !is_let_in || name.is_some_and(|name| view.setting().trusts(name)) {
        return None;
    }
    let words = sharing.possible(name);
    if words.iter().any(|word| now.is_within(word)) {
        return Some(now.clone());
    }
    match words.as_slice() {
        [only] if only.is_within(now) => Some((*only).clone()),
        [] | [_, ..] => None,
    }
}

/// Returns true if the claim's newest key that is not being retired opens the bucket of this record
/// and is not revoked.
fn is_opened(record: &BucketRecord, seen: &ConsentSeen) -> bool {
    newest_key(&record.uid, &seen.own)
        .is_some_and(|(generation, key)| key.opens(record) && generation > record.revoked_through)
}

/// Returns the record with these accesses and the limits that apply to them.
fn with(record: &BucketRecord, accesses: Map, desired: &Desired) -> BucketRecord {
    BucketRecord { limits: limits(&accesses, desired), accesses, ..record.clone() }
}

/// Returns the storage limits of the bucket. They are stored with the accesses, and are empty
/// without them.
fn limits(accesses: &Map, desired: &Desired) -> Limits {
    if accesses.is_empty() {
        return Limits::default();
    }
    Limits { soft: desired.quota_soft, hard: desired.quota_hard }
}

/// Returns the record without accesses, for a bucket that is released.
pub(super) fn closed(record: &BucketRecord) -> BucketRecord {
    BucketRecord { accesses: Map::new(), limits: Limits::default(), ..record.clone() }
}

/// Returns the consent for a namespace, by the claim's owner and the backend's administrator.
fn word(view: &View, access: Option<&BackendAccess>, asker: &Asker) -> Option<Consent> {
    let is_own = asker.namespace == view.claim().at.namespace;
    let consent = match is_own {
        true => Some(Consent::full()),
        false => view.claim().sharing.consent(&asker.namespace, Some(&asker.labels)).cloned(),
    };
    let is_let_in = access.is_none_or(|access| access.allows(&asker.namespace, Some(&asker.labels)));
    consent.filter(|_| is_let_in && !view.setting().trusts(&asker.namespace))
}

/// Returns the access rules of the backend. `None` if the backend is missing, which opens nothing,
/// or invalid; then only the owner can withdraw consent.
fn backend_access(view: &View, name: &str) -> Result<Option<BackendAccess>, Halt> {
    Ok(match view.backend(name)? {
        BackendSeen::Present { backend, .. } => Some(backend.access.clone()),
        BackendSeen::Missing | BackendSeen::Invalid(_) => None,
    })
}

/// Limits the map to the number of entries that a record has room for.
fn bounded(all: impl Iterator<Item = (NamespaceUid, Consent)>) -> Map {
    BucketRecord::bounded_accesses(all.collect())
}

/// Returns the accesses that the claim's bucket is open to, for the claim's status.
pub(super) fn shown(view: &View, record: &BucketRecord) -> Option<ClaimAccesses> {
    let Some(asking) = view.asking() else { return view.claim().status.accesses.clone() };
    let is_open = |namespace: &str| {
        asking.namespaces.values().any(|it| it.namespace == namespace && record.accesses.contains_key(&it.uid))
    };
    let names: Vec<String> =
        asking.accesses.iter().filter(|it| is_open(&it.namespace)).map(ToString::to_string).collect();
    let count = i64::try_from(names.len()).unwrap_or(i64::MAX);
    let mut room = kept::LONGEST_ACCESSES;
    let fits = |name: &String| room.checked_sub(name.len()).map(|left| room = left).is_some();
    let first = names.into_iter().take(NAMED).take_while(fits).collect();
    (count > 0).then_some(ClaimAccesses { count, first })
}
